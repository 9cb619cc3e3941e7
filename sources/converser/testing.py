# SPDX-License-Identifier: Apache-2.0
"""Fakes for tests of your own: a real model, loop and all, that says what you have written for it."""

from __future__ import annotations

import inspect
import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Union, cast, overload

from .canisters import AssistantCanister, Canister, Usage
from .contents import TextualContent
from .events import TextDelta
from .exceptions import ModelFailure
from .invokers import Invoker
from .models import Model
from .turns import Call, Capabilities, Controls, Transcript, TurnCompleted, TurnItem, TurnRequest

Speech = Union[str, "Sequence[tuple[str, Mapping[str, Any] | str]]"]
"""A text to say, or pairs of a tool's name and its arguments; these may be raw text, as a model's."""

Turn = Union[Speech, Callable[[Sequence[Canister]], Union[Speech, Awaitable[Speech]]]]
"""What to say; or a function, `async` where it shall take its time, that decides it by the conversation so far."""


_CAPABILITIES = Capabilities()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """What the model was asked in one turn; its canisters stay as they were then."""

    canisters: Sequence[Canister]
    invokers: Mapping[str, Invoker]
    controls: Controls
    answer_schema: Mapping[str, Any] | None = None


class ScriptedModel(Model):
    """Says its turns one after the other: `ScriptedModel([[("echo", {"text": "hi"})], "Done."])`.

    A bare tool name is enough where it is unambiguous. `requests` has what it was asked.
    """

    def __init__(
        self,
        turns: Iterable[Turn],
        *,
        name: str = "scripted",
        usage: Usage | None = None,
        capabilities: Capabilities = _CAPABILITIES,
    ) -> None:
        if isinstance(turns, str):
            raise ModelFailure(
                "A scripted model takes a list of turns, and this is a text.",
                remedy=f"Write ScriptedModel([{turns[:20]!r}]).",
            )
        self._script = _Script(turns, name, usage, capabilities)
        super().__init__(self._script)

    @property
    def requests(self) -> Sequence[RecordedRequest]:
        """What it was asked, turn by turn."""
        return tuple(self._script.requests)


class _Script:
    """The provider of a scripted model."""

    def __init__(
        self,
        turns: Iterable[Turn],
        name: str,
        usage: Usage | None,
        capabilities: Capabilities,
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self.requests: list[RecordedRequest] = []
        self._turns = iter(turns)
        self._usage = usage or Usage()

    async def stream_turn(self, request: TurnRequest) -> AsyncGenerator[TurnItem, None]:
        """Says the next turn, a word at a time."""
        canisters = _Beginning(request.canisters)
        self.requests.append(
            RecordedRequest(
                canisters=canisters,
                invokers=request.invokers,
                controls=request.controls,
                answer_schema=request.answer_schema,
            )
        )
        speech = await self._advance(canisters)
        if isinstance(speech, str):
            for piece in re.findall(r"\s*\S+|\s+$", speech):
                yield TextDelta(text=piece)
            yield TurnCompleted(canister=self._compose(speech, "stop"))
            return
        calls = tuple(
            Call(name=resolve_name(name, request.invokers), arguments=arguments)
            for name, arguments in speech
        )
        yield TurnCompleted(canister=self._compose("", "tool-use"), calls=calls)

    async def close(self) -> None:
        """Has nothing to let go of."""

    async def _advance(self, canisters: Sequence[Canister]) -> Speech:
        try:
            turn = next(self._turns)
        except StopIteration:
            raise ModelFailure(
                f"The model {self.name!r} has no turn left: it was asked"
                f" {len(self.requests)} times, and its script has {len(self.requests) - 1} turns.",
                remedy="Add turns to the script; a conversation ends with a turn that is a text.",
            ) from None
        speech: Any = turn(canisters) if callable(turn) else turn
        speech = await speech if inspect.isawaitable(speech) else speech
        if not isinstance(speech, str) and not _is_list_of_pairs(speech):
            raise ModelFailure(
                f"Turn {len(self.requests)} of the model {self.name!r} is neither a text nor a list of pairs.",
                remedy='Write "text", [("tool", {"argument": 1})], or a function that gives one of these.',
            )
        return cast("Speech", speech)

    def _compose(self, text: str, stop_reason: str) -> AssistantCanister:
        contents = (TextualContent(text=text),) if text else ()
        return AssistantCanister(
            contents=contents, model=self.name, stop_reason=stop_reason, usage=self._usage
        )


def _is_list_of_pairs(speech: object) -> bool:
    """Whether these are calls: names of tools, each with its arguments."""
    return isinstance(speech, Sequence) and all(map(_is_pair, cast("Sequence[object]", speech)))


def _is_pair(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    pair = cast("Sequence[object]", value)
    return len(pair) == 2 and isinstance(pair[0], str)


def resolve_name(name: str, invokers: Mapping[str, Invoker]) -> str:
    """The name on the wire of a tool that may be named barely; a strange name stays as it is."""
    if name in invokers:
        return name
    matches = [wire for wire, invoker in invokers.items() if invoker.tool.name == name]
    matches = matches or [wire for wire in invokers if wire.endswith(f"_{name}")]
    if len(matches) > 1:
        raise ModelFailure(
            f"The tool name {name!r} is ambiguous: it may be {' or '.join(map(repr, matches))}.",
            remedy="Write the full name in the script.",
        )
    return matches[0] if matches else name


class _Beginning(Sequence[Canister]):
    """A conversation as it was at one time; no copy, since a transcript only grows."""

    __slots__ = ("_length", "_transcript")

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._length = len(transcript)

    def __repr__(self) -> str:
        return repr(list(self))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Canister]:
        return (self._transcript[index] for index in range(self._length))

    @overload
    def __getitem__(self, index: int) -> Canister: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Canister]: ...
    def __getitem__(self, index: int | slice) -> Canister | Sequence[Canister]:
        indices = range(self._length)[index]
        if isinstance(indices, range):
            return [self._transcript[position] for position in indices]
        return self._transcript[indices]
