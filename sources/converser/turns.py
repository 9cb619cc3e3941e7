# SPDX-License-Identifier: Apache-2.0
"""What the loop gives to a provider for one turn, and what it gets back; all that both need to know."""

from __future__ import annotations

import json
from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, Union, cast, overload
from weakref import WeakKeyDictionary

from .canisters import AssistantCanister, Canister, ResultCanister, Usage, check_canisters
from .contents import TextualContent
from .events import TextDelta, ThoughtDelta
from .immutables import EMPTY, FrozenDictionary, freeze
from .invokers import Invoker
from .schemas.plain import copy_plain, is_plain

STOP_LENGTH = "length"
"""The `stop_reason` of an answer that was cut off at a limit on tokens."""

STOP_FILTERED = "filtered"
"""The `stop_reason` of an answer that the provider withheld."""


STOP_PAUSED = "paused"
"""The `stop_reason` of an answer that its provider only interrupted: the model goes on when it is asked again."""


class Transcript(Sequence[Canister]):
    """A conversation that only grows, so that what was made of its beginning stays true.

    Given to `converse` in place of a list, it is extended as the conversation goes, and is valid
    however that ends, by cancellation too. Providers may keep translations of its first canisters.
    """

    __slots__ = ("__weakref__", "_canisters")

    def __init__(self, canisters: Iterable[Canister] = ()) -> None:
        self._canisters = check_canisters(canisters)

    def __repr__(self) -> str:
        return f"Transcript({self._canisters!r})"

    def append(self, canister: Canister) -> None:
        """Adds one canister at the end."""
        self.extend((canister,))

    def extend(self, canisters: Iterable[Canister]) -> None:
        """Adds canisters at the end; while calls run, what is no result of theirs comes after these."""
        checked = check_canisters(canisters)
        if (held := _held.get(self)) is not None:
            held += (each for each in checked if not isinstance(each, ResultCanister))
            checked = [each for each in checked if isinstance(each, ResultCanister)]
        self._canisters.extend(checked)

    @contextmanager
    def hold(self) -> Generator[None]:
        """Keeps the place behind invocations free for their results, whatever others add meanwhile."""
        _held[self] = []
        try:
            yield
        finally:
            self._canisters.extend(_held.pop(self))

    def __len__(self) -> int:
        return len(self._canisters)

    def __iter__(self) -> Iterator[Canister]:
        return iter(self._canisters)

    @overload
    def __getitem__(self, index: int) -> Canister: ...
    @overload
    def __getitem__(self, index: slice) -> list[Canister]: ...
    def __getitem__(self, index: int | slice) -> Canister | list[Canister]:
        return self._canisters[index]


_held: WeakKeyDictionary[Transcript, list[Canister]] = WeakKeyDictionary()
"""What waits for results; beside the transcripts, of which a copy waits for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """How a model shall answer; None leaves it to the provider.

    `extras` go to it as they are; `tools` in them, such as a service's own search, beside ours.
    """

    temperature: float | None = None
    tokens_max: int | None = None
    top_p: float | None = None
    seed: int | None = None
    extras: Mapping[str, Any] = field(default_factory=FrozenDictionary)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extras", freeze(self.extras))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One turn: the conversation so far (never copied), one consistent set of tools, and controls.

    The same set of tools is the same mapping object, so that its translation can be kept.
    """

    canisters: Transcript
    invokers: Mapping[str, Invoker]
    controls: Controls = Controls()
    answer_schema: Mapping[str, Any] | None = None
    """What an answer in words shall fit, always an object; only for providers that can see to it."""
    search: str = ""
    """The name of our tool that searches for tools, where there are too many to send."""
    found: Mapping[str, Invoker] = field(default_factory=FrozenDictionary)
    """Those of the tools that results of searches in this conversation told of, in their order.

    A provider that defers tools lets its service load them there; for others they are tools like all.
    """
    conceded: Concession | None = None
    """What its provider has just given up for this turn, which is asked for once more."""


class Concession(Exception):
    """A service refused what a provider asked beyond the plain, and will not be asked for it again.

    Raised in place of the first item of a turn, which can then be asked for once more at once. Where
    that is refused as well, `take_back` tells the provider that this was not to blame; without it, it is certain.
    """

    def __init__(self, take_back: Callable[[], None] | None = None) -> None:
        super().__init__("What the service refused is given up; ask for the turn once more.")
        self.take_back = take_back


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as a model wrote it: the arguments may still be text, and may be nonsense."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=FrozenDictionary)
    identifier: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    """The end of a turn, given only once the provider has said why the model stopped."""

    canister: AssistantCanister
    calls: tuple[Call, ...] = ()


def is_sound(completed: TurnCompleted) -> bool:
    """Whether all in it is of the kind that it should be: SDKs pass on whatever a server sends."""
    canister, usage = completed.canister, completed.canister.usage or Usage()
    names: list[Any] = [canister.model or "", canister.stop_reason or ""]
    names += (part.text for part in canister.contents if isinstance(part, TextualContent))
    for call in completed.calls:
        names += (call.name, call.identifier)
    counts: tuple[Any, ...] = (usage.tokens_in, usage.tokens_out, usage.tokens_cached)
    return all(isinstance(name, str) for name in names) and all(
        isinstance(count, int) for count in counts
    )


TurnItem = Union[TextDelta, ThoughtDelta, TurnCompleted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model can do, as far as the engine must know it."""

    vision: bool = True
    """Whether it sees images; where not, a note stands in the place of each."""
    answer_schema: bool = False
    """Whether its provider holds answers to a schema; where not, the model is told in words.

    A provider with the method `holds(schema, tools=…)` decides on each schema, beside tools or without.
    """
    deferral: bool = False
    """Whether its service loads tools in the middle of a conversation, where a result tells of them."""
    result_budget: int | None = None
    """Tokens that it should be sent of one result at most, where that is less than the limit given."""
    tools_budget: int | None = None
    """Tokens that its tools should take at most, where that is less than the limit given."""
    tools_max: int | None = None
    """How many tools its service takes in one request."""


class Provider(Protocol):
    """An LLM service: takes one turn at a time.

    It may have an attribute `capabilities`; where it has none, the usual ones are taken.
    """

    @property
    def name(self) -> str:
        """How messages call it, such as `openai:gpt-5`."""
        ...

    def stream_turn(self, request: TurnRequest) -> AsyncGenerator[TurnItem, None]:
        """Deltas as they come, then one `TurnCompleted`; raises `ModelFailure`."""
        ...

    async def close(self) -> None:
        """Lets go of what it holds; does nothing the second time."""
        ...


def find_capabilities(provider: Provider) -> Capabilities:
    """What a provider says that its model can do."""
    found = getattr(provider, "capabilities", None)
    return found if isinstance(found, Capabilities) else Capabilities()


def holds_answer(provider: Provider, schema: Mapping[str, Any], *, tools: bool) -> bool:
    """Whether a provider itself sees to it that an answer fits a schema."""
    if not find_capabilities(provider).answer_schema:
        return False
    holds: Any = getattr(provider, "holds", None)
    return holds is None or bool(holds(schema, tools=tools))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _read_json(text: str) -> Any:
    """A value, and what is in it where it is text again: some models write an object as text."""
    value = json.loads(text, parse_constant=_refuse_constant)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = json.loads(value, parse_constant=_refuse_constant)
    return value


def interpret_arguments(arguments: object) -> tuple[Mapping[str, Any], str]:
    """A call's arguments as an object, or an empty one and what is wrong with them."""
    if isinstance(arguments, str):
        if not arguments.strip():
            return EMPTY, ""
        try:
            arguments = _read_json(arguments)
        except (ValueError, RecursionError) as failure:
            return EMPTY, f"The arguments are not valid JSON: {failure}. Give one JSON object."
    if arguments is None:
        return EMPTY, ""
    if not isinstance(arguments, Mapping):
        kind = type(arguments).__name__
        return EMPTY, f"The arguments are not a JSON object, but a {kind}. Give one JSON object."
    mapping = cast("Mapping[str, Any]", arguments)
    try:
        return mapping if is_plain(mapping) else copy_plain(mapping), ""
    except ValueError as failure:  # Nobody could store it, or send it back to the model.
        return EMPTY, f"The arguments are unusable: {failure}. Give one JSON object."
