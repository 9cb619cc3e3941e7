# SPDX-License-Identifier: Apache-2.0
"""What all translations to a wire format share: a turn's canisters together, and nothing done twice."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, Union, cast
from weakref import WeakKeyDictionary

from ..canisters import (
    AssistantCanister,
    Canister,
    DocumentCanister,
    InvocationCanister,
    ResultCanister,
    SupervisorCanister,
    UnknownCanister,
    UserCanister,
)
from ..contents import (
    AudioContent,
    BlobContent,
    Content,
    ImageContent,
    LinkContent,
    TextualContent,
)
from ..immutables import EMPTY
from ..invokers import Invoker
from ..outcomes import Outcome
from ..searches import read_found
from ..turns import Transcript

if TYPE_CHECKING:
    from .veils import Places, Veil

Message = dict[str, Any]
_SETS_MAX = 8
GO_ON = "Go on."
"""What the user is made to say where the model spoke last, and its service wants the user to."""
OPENING = "…"
"""What stands for a side that said nothing, where a service wants it to have spoken."""
UNSIGNED = "skip_thought_signature_validator"
"""What Gemini takes in the place of a signature, for a call that another model made."""
_PLAIN_IDENTIFIER = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def recall(canister: AssistantCanister, provider: str, model: str) -> Mapping[str, Any]:
    """What a provider kept of a turn, if the same model took it: others cannot read it."""
    kept: Any = canister.extras.get(provider)
    if not isinstance(kept, Mapping):
        return EMPTY
    facts = cast("Mapping[str, Any]", kept)
    return facts if facts.get("model") == model else EMPTY


@dataclass(frozen=True, slots=True)
class Step:
    """What a model did in one turn: its words, if any, and the calls that it made."""

    assistant: AssistantCanister | None
    invocations: tuple[InvocationCanister, ...] = ()

    def recall(self, provider: str, model: str) -> Mapping[str, Any]:
        """What this provider kept of the turn."""
        return EMPTY if self.assistant is None else recall(self.assistant, provider, model)

    def strip(self) -> Step:
        """The same turn without what any provider kept of it."""
        assistant = self.assistant and replace(self.assistant, extras=EMPTY)
        return Step(assistant, self.invocations)


Piece = Union[Step, UserCanister, SupervisorCanister, DocumentCanister, ResultCanister]


def heal(canisters: Iterable[Canister]) -> Iterator[Canister]:
    """A conversation in which each call has one result, before anything else is said, as services demand.

    One that was broken off, by the end of a program, has calls without a result: there the model is told so.
    A second result, or one without a call, is left out.
    """
    waiting: dict[str, None] = {}
    answered = False
    for canister in canisters:
        if isinstance(canister, ResultCanister):
            answered = True
            if canister.invocation_identifier in waiting:
                del waiting[canister.invocation_identifier]
                yield canister
            continue
        if answered or not isinstance(canister, InvocationCanister):
            yield from _tell_missing(waiting)
            answered = False
        if isinstance(canister, InvocationCanister):
            waiting[canister.identifier] = None
        yield canister
    yield from _tell_missing(waiting)


def _tell_missing(waiting: dict[str, None]) -> Iterator[ResultCanister]:
    for identifier in waiting:
        yield ResultCanister(
            invocation_identifier=identifier,
            outcome=Outcome.UNKNOWN,
            error="The conversation was broken off here: what this call did is not known.",
        )
    waiting.clear()


def group(canisters: Iterable[Canister]) -> Iterator[Piece]:
    """Puts a model's words and the calls after them together; leaves out what is not known."""
    assistant: AssistantCanister | None = None
    invocations: list[InvocationCanister] = []
    for canister in canisters:
        if isinstance(canister, InvocationCanister):
            invocations.append(canister)
            continue
        if assistant is not None or invocations:
            yield Step(assistant, tuple(invocations))
            assistant, invocations = None, []
        if isinstance(canister, AssistantCanister):
            assistant = canister
        elif not isinstance(canister, UnknownCanister):
            yield canister
    if assistant is not None or invocations:
        yield Step(assistant, tuple(invocations))


class Reveals:
    """Tools that results of searches tell of, for services that load a tool where it is told of."""

    __slots__ = ("_found", "_searches", "_told", "search")

    def __init__(self, search: str = "", found: Mapping[str, Invoker] = EMPTY) -> None:
        self.search = search
        self._found = found
        self._searches: set[str] = set()
        self._told: dict[str, Invoker] = {}

    def renew(self, search: str, found: Mapping[str, Invoker]) -> bool:
        """Takes the tools of another turn; False where what was told before is true no more."""
        if search != self.search:
            return False
        self._found = found
        return all(found.get(name) is invoker for name, invoker in self._told.items())

    def is_search(self, invocation: InvocationCanister) -> bool:
        """Whether a call was a search; its result is then known as one."""
        if not self.search or invocation.name != self.search:
            return False
        self._searches.add(invocation.identifier)
        return True

    def is_result(self, result: ResultCanister) -> bool:
        """Whether this came of a search."""
        return result.invocation_identifier in self._searches

    def tell(self, result: ResultCanister) -> list[Invoker]:
        """The tools that a result tells of, as far as there are such."""
        if not self.is_result(result):
            return []
        names = [name for name in read_found(result) if name in self._found]
        self._told.update((name, self._found[name]) for name in names)
        return [self._found[name] for name in names]

    def has_told(self, name: str) -> bool:
        """Whether a tool is known by a result, and so not from the beginning."""
        return name in self._told


class Conversation(Protocol):
    """A conversation in a wire format, which takes in one piece after another."""

    def add(self, piece: Piece) -> None:
        """Translates one piece, and appends it."""
        ...


_C = TypeVar("_C", bound=Conversation)


class Translations(Generic[_C]):
    """What was made of each transcript so far; only what is new is translated."""

    def __init__(self, create: Callable[[Reveals], _C], veil: Veil) -> None:
        self._create = create
        self._veil = veil
        self._known: WeakKeyDictionary[Transcript, tuple[int, _C, Reveals, Places]]
        self._known = WeakKeyDictionary()
        self._forgotten: WeakKeyDictionary[Transcript, int] = WeakKeyDictionary()

    def forget(self, transcript: Transcript) -> None:
        """Has it translated anew, without what was kept of its turns so far for the service alone."""
        self._known.pop(transcript, None)
        self._forgotten[transcript] = len(transcript)

    def update(
        self, transcript: Transcript, search: str = "", found: Mapping[str, Invoker] = EMPTY
    ) -> _C:
        """The whole transcript in the wire format, with tools in the places where searches found them."""
        # Taken out meanwhile, so that what a failure leaves half done is thrown away.
        known = self._known.pop(transcript, None)
        covered = self._veil.find(transcript)
        if known is None or known[3] != covered or not known[2].renew(search, found):
            reveals = Reveals(search, found)
            known = (0, self._create(reveals), reveals, covered)
        count, conversation, reveals, _ = known
        old = max(count, self._forgotten.get(transcript, 0))
        for piece in group(heal(self._veil.look(transcript, count, old))):
            conversation.add(piece.strip() if isinstance(piece, Step) else piece)
        for piece in group(heal(self._veil.look(transcript, old))):
            conversation.add(piece)
        self._known[transcript] = (len(transcript), conversation, reveals, covered)
        return conversation


class Definitions:
    """Tools in a wire format, in the order in which they are given; each is translated once.

    The last few sets are kept, as one model may hold several conversations at once.
    """

    def __init__(self, nativize: Callable[[Invoker], Message]) -> None:
        self._nativize = nativize
        self._sets: deque[tuple[Mapping[str, Invoker], dict[int, Message], list[Message]]]
        self._sets = deque(maxlen=_SETS_MAX)

    def translate(self, invokers: Mapping[str, Invoker]) -> list[Message]:
        """The definitions of a set of tools; the same set gives the same list."""
        for known, _, tools in list(self._sets):  # Other threads may add to them meanwhile.
            if known is invokers:
                return tools
        # The tools of a set live as long as it is kept, so that no other has their identity.
        messages = {id(each): self._define(each) for each in invokers.values()}
        tools = list(messages.values())
        self._sets.appendleft((invokers, messages, tools))
        return tools

    def _define(self, invoker: Invoker) -> Message:
        for _, messages, _ in list(self._sets):
            if (message := messages.get(id(invoker))) is not None:
                return message
        return self._nativize(invoker)

    def split(
        self, invokers: Mapping[str, Invoker], found: Mapping[str, Invoker]
    ) -> tuple[list[Message], list[Message]]:
        """The same in two parts: those that were not found by a search, and those that were."""
        tools = self.translate(invokers)
        if not found:
            return tools, []
        pairs = list(zip(invokers, tools, strict=True))
        return (
            [tool for name, tool in pairs if name not in found],
            [tool for name, tool in pairs if name in found],
        )


def join_tools(native: Message) -> Message:
    """A request in which tools of the service's own, that the user wants by `extras`, stand beside ours."""
    extras: Any = native.get("extra_body") or {}
    if "tools" not in extras:
        return native
    tools = [*native.get("tools", ()), *extras["tools"]]
    return {**native, "extra_body": {**extras, "tools": tools}}


def fit_identifier(identifier: str, most: int = 64) -> str:
    """An identifier that a provider takes: itself, or a hash of it."""
    if len(identifier) <= most and _PLAIN_IDENTIFIER.fullmatch(identifier):
        return identifier
    return "call_" + hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def render_result(canister: ResultCanister) -> str:
    """A result as text: what went wrong, if something did, and all that the tool had to say."""
    parts = [] if canister.error is None else [f"Error ({canister.outcome}): {canister.error}"]
    parts.extend(describe_content(part) for part in canister.contents)
    if not canister.contents and canister.structured is not None:
        parts.append(json.dumps(canister.structured, ensure_ascii=False))
    words = "\n".join(parts)
    return words if words.strip() else "(no output)"  # Anthropic refuses white space alone.


def describe_content(content: Content) -> str:
    """A content as text; what is no text is named, so that the model knows that it is there."""
    match content:
        case TextualContent():
            return content.text
        case BlobContent():
            name = content.name or content.uri or "unnamed"
            text = content.text
            return f"[{name}: {content.mimetype}, {len(content.data)} bytes]" + (
                "" if text is None else f"\n{text}"
            )
        case LinkContent():
            return content.describe()
        case ImageContent() | AudioContent():
            kind = content.mimetype
            return f"[{kind}, {len(content.data)} bytes, which cannot be shown here]"
        case _:
            return f"[content of the unknown kind {content.kind!r}]"
