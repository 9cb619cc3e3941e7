# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Responses through the official SDK: one streamed turn at a time, reasoning kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..canisters import AssistantCanister, Usage
from ..contents import TextualContent
from ..events import TextDelta, ThoughtDelta
from ..exceptions import ModelFailure
from ..turns import (
    STOP_FILTERED,
    STOP_LENGTH,
    Call,
    Capabilities,
    Concession,
    Controls,
    TurnCompleted,
    TurnRequest,
)
from .chat import connect
from .dialects import form_answer, open_top
from .failures import Service, find_remedy, is_since
from .openai import TOOLS_MAX
from .responses_items import (
    PROVIDER,
    ResponsesConversation,
    is_call,
    nativize_search,
    nativize_tool,
)
from .streaming import Stream, StreamingProvider, join
from .translations import Message, join_tools

if TYPE_CHECKING:
    from openai.types.responses import Response, ResponseStreamEvent

_GENERATION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_DEFERS_SINCE = (5, 4)
_BAD_REQUEST = 400
_ERROR = "an error: "
_NOTHING_ENCRYPTED = "ncrypted content is not supported"
_STOP_REASONS = {"max_output_tokens": STOP_LENGTH, "content_filter": STOP_FILTERED}


class ResponsesProvider(StreamingProvider[ResponsesConversation]):
    """A model behind Responses; nothing is kept at the service."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key: str | None = None,
        retries: int = 2,
    ) -> None:
        super().__init__(
            PROVIDER,
            model,
            create=lambda reveals: ResponsesConversation(model, reveals),
            nativize=nativize_tool,
            deferral=is_since(model, _GENERATION, _DEFERS_SINCE),
        )
        self._clients, self._service = connect(
            self.name, base_url=base_url, key=key, retries=retries
        )
        self._reasons = True

    @property
    def capabilities(self) -> Capabilities:
        """What is not refused; the service takes so many tools at most."""
        return replace(super().capabilities, tools_max=TOOLS_MAX)

    def _compose(self, request: TurnRequest) -> dict[str, Any]:
        native = {
            "model": self._model,
            "input": self._translate(request).items,
            "tools": self._compose_tools(request) or None,
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"] if self._reasons else None,
            **_nativize_controls(request.controls, _compose_format(request.answer_schema)),
        }
        return join_tools({key: value for key, value in native.items() if value is not None})

    def _concede(self, failure: Exception, request: TurnRequest, *, deferral: bool) -> None:
        """Models that do not reason have nothing encrypted, and refuse to be asked for it."""
        is_first = self._reasons or request.conceded is None
        if is_first and _NOTHING_ENCRYPTED in str(failure):
            self._reasons = False
            raise Concession from failure
        if isinstance(failure, ModelFailure):  # The service refuses some images only on the way.
            words = failure.message.partition(_ERROR)[2]
            self._veil.draw(request.canisters, _BAD_REQUEST, words, request.conceded)
        super()._concede(failure, request, deferral=deferral)

    def _compose_tools(self, request: TurnRequest) -> list[Message]:
        """The tools; where the service loads some later, without those, and our search as its own."""
        if not self._concessions.deferral or not request.search:
            return self._definitions.translate(request.invokers)
        tools, _ = self._definitions.split(request.invokers, request.found)
        return [nativize_search(tool) if tool["name"] == request.search else tool for tool in tools]

    async def _open(self, native: dict[str, Any]) -> Stream:
        client = await self._clients.get()
        stream: Stream = await client.responses.create(**native)
        return stream

    def _expect(self, request: TurnRequest) -> _Answer:
        return _Answer(self._service, self._model, request.search)

    async def _list_models(self) -> list[str]:
        client = await self._clients.get()
        listing = await client.models.list()
        return [entry.id for entry in listing.data]


def _compose_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Holds the answer to a schema: to the letter where strict mode takes it as it is."""
    if schema is None:
        return None
    fitted, strict = form_answer(open_top(schema))
    form = {"type": "json_schema", "name": "answer", "schema": fitted, "strict": strict}
    return {"format": form}


def _nativize_controls(controls: Controls, text: dict[str, Any] | None) -> dict[str, Any]:
    """Controls as they are called there; there is no seed."""
    return {
        "temperature": controls.temperature,
        "top_p": controls.top_p,
        "max_output_tokens": controls.tokens_max,
        "extra_body": join(controls.extras, text=text) or None,
    }


@dataclass(slots=True)
class _Answer:
    """An answer while it comes in, item by item."""

    _service: Service
    _asked: str
    _search: str
    _response: Response | None = None
    _items: dict[int, Any] = field(default_factory=dict[int, Any])

    def absorb(self, event: ResponseStreamEvent) -> list[TextDelta | ThoughtDelta]:
        """Takes one event in, and gives what of it people can see."""
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return [TextDelta(text=event.delta)]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return [ThoughtDelta(text=event.delta)]
            case "response.output_item.done":
                self._items[event.output_index] = event.item
            case "response.completed" | "response.incomplete":
                self._response = event.response
            case "response.failed":
                error = event.response.error
                self._fail(error.message if error else "it does not say why")
            case "error":
                self._fail(event.message)
            case _:
                pass  # Beginnings and ends of parts, and what a newer service may send.
        return []

    def _fail(self, words: str) -> None:
        said = f"{self._service.who} answered with {_ERROR}{words.rstrip('.')}."
        raise ModelFailure(said, remedy=find_remedy(words))

    def complete(self) -> TurnCompleted | None:
        """The end of the turn, or None where it has not come."""
        if (response := self._response) is None:
            return None
        items: list[Any] = [self._items[index] for index in sorted(self._items)]
        items = items or list(response.output)
        if not all(isinstance(item.type, str) for item in items):
            return None
        calls = tuple(
            Call(
                name=self._search if item.type == "tool_search_call" else item.name,
                arguments=item.arguments,
                identifier=item.call_id,
            )
            for item in items
            if is_call(_dump(item))
        )
        parts = [part for item in items if item.type == "message" for part in item.content]
        texts = [_read_words(part) for part in parts]
        refused = any(part.type == "refusal" for part in parts)
        canister = AssistantCanister(
            contents=tuple(TextualContent(text=text) for text in texts if text),
            model=response.model,
            stop_reason=STOP_FILTERED if refused else _find_reason(response, bool(calls)),
            usage=_sum_up(response),
            extras=_keep_all(items, self._asked),
        )
        return TurnCompleted(canister=canister, calls=calls)


def _read_words(part: Any) -> str:
    """The words of a part; one of a kind that a newer service may send has none for us."""
    if part.type == "refusal":
        return part.refusal or ""
    return (part.text or "") if part.type == "output_text" else ""


def _keep_all(items: list[Any], model: str) -> dict[str, Any]:
    """What this model demands back, where it is more than words and calls."""
    if all(map(_is_plain, items)):
        return {}
    return {PROVIDER: {"model": model, "items": [_keep(item) for item in items]}}


def _is_plain(item: Any) -> bool:
    if item.type == "message":
        return not item.phase
    return item.type == "function_call" and not item.namespace


def _find_reason(response: Response, has_calls: bool) -> str:
    if response.status == "incomplete":
        details = response.incomplete_details
        # Whatever cut it off: what is not whole must not be run.
        return _STOP_REASONS.get((details.reason if details else None) or "", STOP_LENGTH)
    return "tool-use" if has_calls else "stop"


def _keep(item: Any) -> Message:
    """An item as it must be sent back; of a call only what is not in its own canister."""
    native = _dump(item)
    if is_call(native):
        kept = ("type", "id", "namespace", "execution")
        return {key: native[key] for key in kept if native.get(key)}
    # The service gives a status with reasoning, but does not take one.
    dropped = ("status",) if item.type == "reasoning" else ()
    return {key: value for key, value in native.items() if value is not None and key not in dropped}


def _dump(item: Any) -> Message:
    """An item as it came; the SDK need not warn of what a newer service may send."""
    native: Message = item.to_dict(mode="json", warnings=False)
    return native


def _sum_up(response: Response) -> Usage:
    if (usage := response.usage) is None:
        return Usage()
    details: Any = usage.input_tokens_details
    return Usage(
        tokens_in=usage.input_tokens or 0,
        tokens_out=usage.output_tokens or 0,
        tokens_cached=getattr(details, "cached_tokens", 0) or 0,
    )
