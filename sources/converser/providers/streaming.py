# SPDX-License-Identifier: Apache-2.0
"""What the providers over official SDKs share: one streamed turn, and what to do where a service refuses something."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Protocol, TypeVar

from ..canisters import Canister, DocumentCanister, ResultCanister, UserCanister
from ..contents import ImageContent
from ..events import TextDelta, ThoughtDelta
from ..immutables import EMPTY
from ..invokers import Invoker
from ..turns import Capabilities, Concession, TurnCompleted, TurnItem, TurnRequest
from .clients import Clients
from .failures import Service
from .translations import Conversation, Definitions, Message, Reveals, Translations
from .veils import Veil

_REFUSALS = (400, 422, 501)
_BLIND_REFUSALS = (404, 500)
"""How some servers answer to images besides: a router that no such model is found, llama.cpp that it failed."""
_REFUSED_MAX = 100
_UNREADABLE = re.compile(
    r"encrypted content.{0,99} could not be (verified|decrypted)"
    r"|(invalid|corrupted)\W+(thought\W+)?signature|thought signature is not valid",
    re.IGNORECASE | re.DOTALL,
)
"""How services say that they cannot read thoughts of theirs: those of another account, or by way of another host."""

Stream = AbstractAsyncContextManager[AsyncIterator[Any]]


class Concessions:
    """What a service may be asked beyond the plain; given up once it refuses a request for it.

    A request can be refused for many reasons. So it is asked again without these things: if that is
    refused as well, they were not to blame. Conversations side by side can all come to this at once.
    """

    def __init__(self, *, deferral: bool = False, blindness: bool = False) -> None:
        self._deferral = deferral
        self._vision = True
        self._may_be_blind = blindness
        self._refused: deque[Mapping[str, Any]] = deque(maxlen=_REFUSED_MAX)

    @property
    def deferral(self) -> bool:
        """Whether tools may be left to the service to load."""
        return self._deferral

    @property
    def vision(self) -> bool:
        """Whether images may be sent; only servers of unknown models are suspected of blindness."""
        return self._vision

    def holds(self, schema: Mapping[str, Any]) -> bool:
        """Whether answers may be left to the service to hold to this schema."""
        return schema not in self._refused

    def concede(self, status: int | None, request: TurnRequest, *, deferral: bool = False) -> None:
        """Raises `Concession` where something can be given up after a refusal with this status.

        `deferral` tells whether this request asked for it: another one may have given it up meanwhile.
        """
        if (before := request.conceded) is not None and before.take_back is not None:
            if status is not None:
                before.take_back()
            return
        blind = self._may_be_blind and _has_images(request.canisters)
        if status not in _REFUSALS and not (blind and status in _BLIND_REFUSALS):
            return
        schema = request.answer_schema
        if schema is None and not deferral and not blind:
            return
        if schema is not None:
            self._refused.append(schema)
        self._deferral = self._deferral and not deferral
        self._vision = self._vision and not blind

        def take_back() -> None:
            if schema is not None and schema in self._refused:
                self._refused.remove(schema)
            self._deferral = self._deferral or deferral
            self._vision = self._vision or blind

        raise Concession(take_back)


def _has_images(canisters: Iterable[Canister]) -> bool:
    """Whether there are images which a model is shown."""
    return any(
        isinstance(part, ImageContent)
        for canister in canisters
        if isinstance(canister, (UserCanister, DocumentCanister, ResultCanister))
        for part in canister.contents
    )


def join(extras: Mapping[str, Any], **own: dict[str, Any] | None) -> dict[str, Any]:
    """What goes into a request as it is: what the user wants, and ours within it."""
    joined = dict(extras)
    for key, value in own.items():
        if value is not None:
            joined[key] = {**joined.get(key, {}), **value}
    return joined


class Answer(Protocol):
    """An answer while it comes in."""

    def absorb(self, event: Any, /) -> list[TextDelta | ThoughtDelta]:
        """Takes one event in, and gives what of it people can see."""
        ...

    def complete(self) -> TurnCompleted | None:
        """The end of the turn, or None where the service has not said why the model stopped."""
        ...


_C = TypeVar("_C", bound=Conversation)


class StreamingProvider(ABC, Generic[_C]):
    """A model behind an official SDK; nothing is translated twice."""

    def __init__(
        self,
        label: str,
        model: str,
        *,
        create: Callable[[Reveals], _C],
        nativize: Callable[[Invoker], Message],
        deferral: bool = False,
    ) -> None:
        self._label = label
        self._model = model
        self._service: Service
        self._clients: Clients
        self._veil = Veil()
        self._translations = Translations(create, self._veil)
        self._definitions = Definitions(nativize)
        self._concessions = Concessions(deferral=deferral)

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self._label}:{self._model}"

    @property
    def capabilities(self) -> Capabilities:
        """What is not refused."""
        return Capabilities(answer_schema=True, deferral=self._concessions.deferral)

    def holds(self, schema: Mapping[str, Any], *, tools: bool) -> bool:
        """Whether the service holds an answer to this schema, beside tools or without."""
        del tools
        return self._concessions.holds(schema)

    async def close(self) -> None:
        """Closes the connections."""
        await self._clients.close()

    async def stream_turn(self, request: TurnRequest) -> AsyncGenerator[TurnItem, None]:
        """One answer; calls are given only after the service has said why the model stopped."""
        answer = self._expect(request)
        deferral = self._concessions.deferral and bool(request.search)
        native = self._compose(request)
        heard = False
        try:
            async with await self._open(native) as events:
                async for event in events:
                    heard = True
                    for delta in answer.absorb(event):
                        yield delta
            completed = answer.complete()
        except Exception as failure:
            self._concede(failure, request, deferral=deferral)
            await self._service.fail(failure, self._model, self._list_models, heard=heard)
        if completed is None:
            self._service.break_off(heard=heard)
        yield completed

    def _concede(self, failure: Exception, request: TurnRequest, *, deferral: bool) -> None:
        """Raises `Concession` where the service refused what it can do without."""
        if request.conceded is None and _UNREADABLE.search(str(failure)):
            self._translations.forget(request.canisters)
            raise Concession from failure
        status = self._service.read_status(failure)
        self._veil.draw(request.canisters, status, str(failure), request.conceded)
        self._concessions.concede(status, request, deferral=deferral)

    @abstractmethod
    def _compose(self, request: TurnRequest) -> dict[str, Any]:
        """The request in the wire format."""

    @abstractmethod
    async def _open(self, native: dict[str, Any]) -> Stream:
        """Sends it, and gives the stream of the answer."""

    @abstractmethod
    def _expect(self, request: TurnRequest) -> Answer:
        """What takes the answer in."""

    @abstractmethod
    async def _list_models(self) -> list[str]:
        """The models that the service has."""

    def _list_found(self, request: TurnRequest) -> Mapping[str, Invoker]:
        """The tools that the service loads where they were found."""
        return request.found if self._concessions.deferral else EMPTY

    def _translate(self, request: TurnRequest) -> _C:
        """The conversation; with tools in their places, where the service loads them there."""
        if not self._concessions.deferral:
            return self._translations.update(request.canisters)
        return self._translations.update(request.canisters, request.search, request.found)
