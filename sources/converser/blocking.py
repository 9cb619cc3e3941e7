# SPDX-License-Identifier: Apache-2.0
"""For programs without `async`: the same engine, on an event loop in one thread of its own.

Nothing is implemented twice here: each call hands an async function to that thread and waits.
Observers, approvers and local tools run in that thread.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from .canisters import Canister
from .ensembles import Ensemble, EnsembleConfiguration
from .events import Event
from .exceptions import ConverserFailure
from .immutables import EMPTY
from .invokers import NO_CONTEXT, Context, InvocationResult, Invoker
from .models import Model
from .replies import Reply
from .turns import Transcript

if TYPE_CHECKING:
    from .mcp.clients import MCPClient

_P = ParamSpec("_P")
_T = TypeVar("_T")
_CONFIGURATION = EnsembleConfiguration()
_PARTING = 10.0
"""Seconds that interrupted work gets to end in good order."""
_GLANCE = 1.0
"""Seconds between two looks at work under way; some systems deliver Ctrl-C only between them."""


class Portal:
    """The way into the thread; what is opened through it stays open until it is closed."""

    def __init__(self, portal: BlockingPortal, belongings: ExitStack) -> None:
        self._portal = portal
        self._belongings = belongings
        self._models: set[int] = set()
        self._errands: set[_Errand[Any]] = set()
        _portals.add(self)

    def run(
        self, function: Callable[_P, Awaitable[_T]], *args: _P.args, **options: _P.kwargs
    ) -> _T:
        """Runs any async function there, and waits; interrupted, it cancels and awaits its end."""
        errand = _Errand(lambda: function(*args, **options))
        self._errands.add(errand)
        try:
            future = self._start(errand.perform)
            while not wait([future], timeout=_GLANCE).done:
                pass
        except BaseException:  # An interrupt may come at any of these lines.
            with suppress(ConverserFailure):  # The portal is closed, so that nothing runs.
                wait([self._start(errand.stop)], timeout=_PARTING)
            raise
        finally:
            self._errands.discard(errand)
        future.result()
        if not errand.results:
            raise ConverserFailure(
                "This portal was closed before the work was done.",
                remedy="Close it when all threads have what they want; a transcript keeps what was completed.",
            )
        return errand.results[0]

    def stop(self) -> None:
        """Cancels what still runs for other threads, and awaits its end, as `close` and the end of `with` do."""
        with suppress(ConverserFailure):  # The portal is closed, so that nothing runs.
            for errand in tuple(self._errands):
                wait([self._start(errand.stop)], timeout=_PARTING)

    def forsake(self) -> None:
        """Waits for its thread no more, which is not in a process that was forked from this one."""
        self._belongings.pop_all()
        with suppress(StopIteration, RuntimeError):  # The first is how a coroutine ends.
            self._portal.stop().send(None)

    def _start(self, function: Callable[[], Awaitable[None]]) -> Future[None]:
        try:
            return self._portal.start_task_soon(function)
        except RuntimeError as failure:
            raise ConverserFailure(
                f"This portal cannot be used: {failure}.",
                remedy="Open another one, blocking.open_portal(); within async code, await instead.",
            ) from failure

    def converse(
        self, model: Model, canisters: Iterable[Canister] | Transcript, **options: Any
    ) -> Reply:
        """As `model.converse`; the model is closed with the portal."""
        self._adopt(model)
        return self.run(model.converse, canisters, **options)

    def stream(
        self, model: Model, canisters: Iterable[Canister] | Transcript, **options: Any
    ) -> Generator[Event, None, None]:
        """As `model.stream`; leaving the iteration cancels the conversation."""
        self._adopt(model)
        events = model.stream(canisters, **options)

        async def advance() -> Event | None:
            return await anext(events, None)

        try:
            while (event := self.run(advance)) is not None:
                yield event
        finally:
            with suppress(ConverserFailure):  # The portal is closed, and the conversation with it.
                self.run(events.aclose)

    def call(
        self,
        invoker: Invoker,
        arguments: Mapping[str, Any] = EMPTY,
        *,
        context: Context = NO_CONTEXT,
    ) -> InvocationResult:
        """Calls one tool, as `await invoker(arguments)` does."""
        return self.run(invoker, arguments, context=context)

    def connect(self, ensemble: Ensemble) -> Ensemble:
        """Connects an ensemble, and disconnects it with the portal."""
        self._belongings.callback(self.run, ensemble.disconnect)
        self.run(ensemble.connect)
        return ensemble

    def discover_mcp_tools(
        self,
        client: MCPClient,
        ensemble_name: str,
        *,
        configuration: EnsembleConfiguration = _CONFIGURATION,
    ) -> Ensemble:
        """As `converser.discover_mcp_tools`; the ensemble is disconnected with the portal."""
        from .mcp.discovery import discover_mcp_tools

        ensemble = self.run(discover_mcp_tools, client, ensemble_name, configuration=configuration)
        self._belongings.callback(self.run, ensemble.disconnect)
        return ensemble

    def _adopt(self, model: Model) -> None:
        if id(model) not in self._models:
            self._models.add(id(model))
            self._belongings.callback(self.run, model.close)  # Holds the model, so its id stays.


class _Errand(Generic[_T]):
    """Work in the thread that can be stopped from outside, whether or not it has begun."""

    def __init__(self, work: Callable[[], Awaitable[_T]]) -> None:
        self._work = work
        self._scope: anyio.CancelScope | None = None
        self._is_stopped = False
        self._ended: anyio.Event | None = None
        self.results: list[_T] = []

    async def perform(self) -> None:
        self._ended = anyio.Event()
        try:
            with anyio.CancelScope() as self._scope:
                if not self._is_stopped:
                    self.results.append(await self._work())
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """Cancels the work, and waits for its end."""
        self._is_stopped = True
        if self._scope is not None:
            self._scope.cancel()
        if self._ended is not None:
            await self._ended.wait()


_portals: WeakSet[Portal] = WeakSet()


@contextmanager
def open_portal(*, backend: str = "asyncio") -> Generator[Portal, None, None]:
    """A thread of your own: `with open_portal() as portal: portal.converse(model, […])`."""
    thread = start_blocking_portal(backend, name="converser portal")
    with thread as portal, ExitStack() as belongings:
        own = Portal(portal, belongings)
        try:
            yield own
        finally:
            own.stop()


class _Shared:
    """The thread behind the functions of this room; begun at the first call, ended at exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._portal: Portal | None = None

    def enter(self) -> Portal:
        with self._lock:
            if self._portal is None:
                if sys.is_finalizing():  # A thread that is begun now never runs.
                    raise ConverserFailure(
                        "The program is at its end, and can converse no more.",
                        remedy="Close what you use before, such as by `with`, not in `__del__`.",
                    )
                atexit.register(self.leave)
                self._portal = self._stack.enter_context(open_portal())
            return self._portal

    def leave(self) -> None:
        with self._lock:
            self._portal = None
            atexit.unregister(self.leave)
            self._stack.close()

    def renew(self) -> None:
        """Forgets a thread that is not in this process, which was forked."""
        for portal in tuple(_portals):
            portal.forsake()
        self._lock = threading.Lock()  # The old one may have been held by another thread.
        self.leave()


_shared = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.renew)


def run(function: Callable[_P, Awaitable[_T]], *args: _P.args, **options: _P.kwargs) -> _T:
    """Runs any async function in the shared thread, and waits for it."""
    return _shared.enter().run(function, *args, **options)


def converse(model: Model, canisters: Iterable[Canister] | Transcript, **options: Any) -> Reply:
    """As `model.converse`, with the same options."""
    return _shared.enter().converse(model, canisters, **options)


def stream(
    model: Model, canisters: Iterable[Canister] | Transcript, **options: Any
) -> Generator[Event, None, None]:
    """As `model.stream`, with the same options."""
    return _shared.enter().stream(model, canisters, **options)


def call(
    invoker: Invoker, arguments: Mapping[str, Any] = EMPTY, *, context: Context = NO_CONTEXT
) -> InvocationResult:
    """Calls one tool, as `await invoker(arguments)` does."""
    return _shared.enter().call(invoker, arguments, context=context)


def connect(ensemble: Ensemble) -> Ensemble:
    """Connects an ensemble, until `close` or the end of the program."""
    return _shared.enter().connect(ensemble)


def discover_mcp_tools(
    client: MCPClient,
    ensemble_name: str,
    *,
    configuration: EnsembleConfiguration = _CONFIGURATION,
) -> Ensemble:
    """As `converser.discover_mcp_tools`; connected until `close` or the end of the program."""
    return _shared.enter().discover_mcp_tools(client, ensemble_name, configuration=configuration)


def close() -> None:
    """Disconnects and closes all that the functions of this room opened, and ends their thread."""
    _shared.leave()
