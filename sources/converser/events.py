# SPDX-License-Identifier: Apache-2.0
"""What happens in a conversation, as immutable events for one observer that can harm nothing."""

from __future__ import annotations

import inspect
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast

import anyio
from anyio.abc import ObjectReceiveStream

from .canisters import AssistantCanister, InvocationCanister, ResultCanister
from .tasks import is_cancelled, is_from_above

if TYPE_CHECKING:
    from .replies import Reply

_T = TypeVar("_T")
_logger = logging.getLogger(__name__)

Source = Literal["local", "mcp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStarted:
    """The model was asked for its next message; `turn` counts from 1 in each `converse`."""

    turn: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the model's words."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtDelta:
    """A piece of the model's reasoning, where the provider shows it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCompleted:
    """The model's message is whole."""

    turn: int
    canister: AssistantCanister


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFailed:
    """The model or its provider failed; `converse` raises this failure."""

    turn: int
    failure: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class _InvocationEvent:
    """What the events of an invocation share."""

    invocation: InvocationCanister
    ensemble: str = ""
    source: Source = "local"

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.invocation.name

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments as the model gave them."""
        return self.invocation.arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationRequested(_InvocationEvent):
    """The model wants to use a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationStarted(_InvocationEvent):
    """The call was allowed, and runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationProgressed(_InvocationEvent):
    """The tool says how far it is."""

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationCompleted(_InvocationEvent):
    """The invocation has its one result; `duration` is in seconds, 0 where it was never started."""

    result: ResultCanister
    duration: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStateChanged:
    """A server came, went, or failed."""

    server: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsChanged:
    """A server's tools are not what they were; the names are those on the wire."""

    server: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyCompleted:
    """The loop has ended; always the last event of a `converse` that returns."""

    reply: Reply


Event = Union[
    MessageStarted,
    TextDelta,
    ThoughtDelta,
    MessageCompleted,
    MessageFailed,
    InvocationRequested,
    InvocationStarted,
    InvocationProgressed,
    InvocationCompleted,
    ServerStateChanged,
    ToolsChanged,
    ReplyCompleted,
]

Observer = Union[Callable[[Event], None], Callable[[Event], Awaitable[None]]]
"""Hears every event. A plain function is called at once and should be quick; an `async` one works
beside the conversation, in order, and may be as slow as it likes."""

Announce = Callable[[Event], None]
"""What the engine calls: never raises, never waits."""

_PIECES = (TextDelta, ThoughtDelta, InvocationProgressed)
"""Events of which an observer that cannot keep up loses some."""
_BACKLOG = 10_000
_GRACE = 1.0
_SLOW = 0.1
_RAISED = "An observer of events raised; the conversation goes on."


class _Guard:
    """Keeps an observer's mistakes from the conversation, and logs the first of each kind."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, message: str, failure: BaseException | None = None) -> None:
        if message not in self._told:
            self._told.add(message)
            _logger.warning("%s This is said once.", message, exc_info=failure)


async def observe(observer: Observer | None, run: Callable[[Announce], Awaitable[_T]]) -> _T:
    """Runs something that announces events, and brings them to the observer."""
    if observer is None:
        return await run(_ignore)
    if _is_async(observer):
        return await _observe_beside(cast("Callable[[Event], Awaitable[None]]", observer), run)
    return await run(_guard_call(cast("Announce", observer)))


def _ignore(_: Event) -> None:
    """Nobody listens."""


def _is_async(observer: Observer) -> bool:
    call = getattr(observer, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(observer) or inspect.iscoroutinefunction(call)


def _guard_call(observer: Announce) -> Announce:
    """Calls a plain observer directly, so that it sees events the moment they happen."""
    guard = _Guard()
    call = cast("Callable[[Event], object]", observer)

    def announce(event: Event) -> None:
        begun = time.perf_counter()
        try:
            returned = call(event)
        except anyio.get_cancelled_exc_class() as failure:
            guard.tell(_RAISED, failure)
        except BaseException as failure:
            if is_from_above(failure):
                raise
            guard.tell(_RAISED, failure)
        else:
            if inspect.iscoroutine(returned):
                returned.close()
                guard.tell("An observer of events wants to be awaited: make it an async function.")
        if time.perf_counter() - begun > _SLOW:
            guard.tell("An observer of events is slow and holds up the event loop: make it async.")

    return announce


async def _observe_beside(
    observer: Callable[[Event], Awaitable[None]], run: Callable[[Announce], Awaitable[_T]]
) -> _T:
    """Feeds an async observer in a task of its own; over a limit it loses pieces, but never what they are of."""
    guard = _Guard()
    send, receive = anyio.create_memory_object_stream[Event](math.inf)

    def announce(event: Event) -> None:
        if isinstance(event, _PIECES) and send.statistics().current_buffer_used >= _BACKLOG:
            guard.tell("An observer of events cannot keep up; it loses pieces of messages.")
            return
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            send.send_nowait(event)

    failure: Exception | None = None
    result: list[_T] = []
    # Shielded, since a conversation that is cancelled has last events, too, as of the calls that it ends.
    hearing = anyio.CancelScope(shield=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_feed, receive, observer, guard, hearing)
        try:
            result.append(await run(announce))
        except Exception as caught:  # Raised below, so that the group does not wrap it.
            failure = caught
        finally:
            send.close()
            hearing.deadline = anyio.current_time() + _GRACE
    if failure is not None:
        raise failure
    return result[0]


async def _feed(
    receive: ObjectReceiveStream[Event],
    observer: Callable[[Event], Awaitable[None]],
    guard: _Guard,
    hearing: anyio.CancelScope,
) -> None:
    with hearing:
        async with receive:
            async for event in receive:
                await _tell(observer, event, guard)
    if hearing.cancelled_caught:
        guard.tell("An observer of events was not done soon after the end; it loses the last ones.")


async def _tell(observer: Callable[[Event], Awaitable[None]], event: Event, guard: _Guard) -> None:
    try:
        await observer(event)
    except anyio.get_cancelled_exc_class() as failure:
        if is_cancelled():
            raise
        guard.tell(_RAISED, failure)
    except BaseException as failure:
        if is_from_above(failure):
            raise
        guard.tell(_RAISED, failure)
