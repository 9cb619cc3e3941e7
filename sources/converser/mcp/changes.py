# SPDX-License-Identifier: Apache-2.0
"""Hears that a server's tools have changed, in both eras of the protocol."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import mcp_types as wire
from mcp.client.session import ClientSession, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..tasks import shelter
from .http.exchanges import Throttle

_QUIET = 0.1
_BURST, _INTERVAL = 10, 2.0
"""How many listings are made without delay, and the seconds between two after that."""
_GAPS = 6
"""After how many gaps, in which changes could not be heard, the tools are listed at once; then once a minute."""
_PAUSE = 1.0
_PAUSE_MAX = 60.0
_REST = 10.0
"""How many times as long as a listing took the pause grows before the next one, where it did not come to its end."""
_log = logging.getLogger(__name__)


class ChangeSignal:
    """Collects hints that the tools have changed, and reacts once to many that come together."""

    def __init__(self) -> None:
        self._hint = anyio.Event()
        self._throttle = Throttle(_BURST, _INTERVAL)
        self._doubt = anyio.Event()
        self._gap = anyio.Event()
        self._has_heard = False
        self._pause = self._patience = _PAUSE

    async def take(self, message: IncomingMessage) -> None:
        """Looks at what a server sends of its own accord; older servers tell of changes there."""
        if isinstance(message, wire.ToolListChangedNotification):
            self._has_heard = True
            self.hint()

    def hint(self) -> None:
        """Says that the tools may have changed."""
        self._hint.set()

    def note_gap(self) -> None:
        """Says that nobody could hear for a while whether the tools change."""
        self._gap.set()

    def trust(self) -> None:
        """Says that a listing came to its end."""
        self._patience = _PAUSE

    def doubt(self, seconds: float = 0.0) -> None:
        """Says that a listing did not come to its end, and how long it took.

        It is made again, ever more patiently; one that takes long takes but a part of the time.
        """
        self._pause = max(self._patience, seconds)
        self._patience = min(max(_PAUSE_MAX, seconds * _REST), self._pause * 2)
        self._doubt.set()

    async def follow(self, session: ClientSession, react: Callable[[], Awaitable[None]]) -> None:
        """Reacts to changes for as long as the session lasts."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, session)
            group.start_soon(self._look_again)
            group.start_soon(self._mind_gaps, session)
            while True:
                await self._hint.wait()
                await anyio.sleep(_QUIET)
                await self._throttle.wait()  # some tell of a change whenever they list
                self._hint = anyio.Event()
                try:
                    await shelter(react)
                except Exception as failure:
                    _log.warning("The tools could not be listed again: %s", failure)
                    self.doubt()

    async def _look_again(self) -> None:
        while True:
            await self._doubt.wait()
            with anyio.move_on_after(self._pause):
                await self._hint.wait()
            self._doubt = anyio.Event()
            self.hint()

    async def _mind_gaps(self, session: ClientSession) -> None:
        """Has the tools listed after gaps: at once after a few, but not without end where gaps are the rule."""
        throttle = Throttle(_GAPS, _PAUSE_MAX)
        while True:
            await self._gap.wait()
            await throttle.wait()
            self._gap = anyio.Event()
            if self._has_heard or _tells(session):
                self.hint()

    async def _listen(self, session: ClientSession) -> None:
        """Subscribes to changes where the protocol asks for it, again and again where that breaks."""
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS or not _tells(session):
            return
        pause, is_late = _PAUSE, False
        while True:
            begun = anyio.current_time()
            try:
                async with listen(session, tools_list_changed=True) as subscription:
                    if is_late or anyio.current_time() - begun > _PAUSE:
                        self.note_gap()
                    async for _ in subscription:
                        self.hint()
            except ListenNotSupportedError:
                return
            except MCPError as failure:
                if failure.code == wire.METHOD_NOT_FOUND:
                    return
            except SubscriptionLost:
                pass
            if anyio.current_time() - begun > _PAUSE_MAX:
                pause = _PAUSE
            await anyio.sleep(pause)
            pause = min(_PAUSE_MAX, pause * 2)
            is_late = True
            self.note_gap()  # and again once the server says that it listens, which some never say


def _tells(session: ClientSession) -> bool:
    capabilities = session.server_capabilities
    return bool(capabilities and capabilities.tools and capabilities.tools.list_changed)
