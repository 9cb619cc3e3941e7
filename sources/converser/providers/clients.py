# SPDX-License-Identifier: Apache-2.0
"""The clients of an SDK: one for each event loop, as connections of one are dead in another; and past proxies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from ..tasks import find_loop


def bypass_proxies(sdk: Any, base_url: str | None) -> dict[str, Any]:
    """Options for a client of a server on this machine, which no proxy of the environment reaches."""
    from ..mcp.http.proxies import is_loopback

    if not is_loopback(urlsplit(base_url or "").hostname or ""):
        return {}
    direct = dict.fromkeys(("http://", "https://", "all://"))
    return {"http_client": sdk.DefaultAsyncHttpxClient(trust_env=False, mounts=direct)}


class Clients:
    """Gives the client of the running loop, and makes it at need: after `close`, and in another loop.

    Programs run one loop after another, with `asyncio.run` for each question or a portal for each job.
    """

    def __init__(
        self, create: Callable[[], Any], close: Callable[[Any], Awaitable[object]]
    ) -> None:
        self._create = create
        self._close = close
        self._clients: dict[Any, Any] = {}
        self.first: Any = create()
        """The one that the first loop will get; it is made at once, so that mistakes show early."""
        self._spares = [self.first]

    async def get(self) -> Any:
        """The client of this loop."""
        loop = find_loop()
        if loop not in self._clients:
            self._clients[loop] = self._take()
            await self._bury()
        return self._clients[loop]

    async def close(self) -> None:
        """Closes the connections of this loop, and forgets those of loops that have ended."""
        if (client := self._clients.pop(find_loop(), None)) is not None:
            await self._close(client)
        await self._bury()

    def _take(self) -> Any:
        """The first client, or another; loops of other threads may take one at the same time."""
        try:
            return self._spares.pop()
        except IndexError:
            return self._create()

    async def _bury(self) -> None:
        """Closes clients whose loop has ended, lest the SDK try it later; their connections are dead."""
        # A copy, as loops of other threads come and go meanwhile.
        for loop in [loop for loop in list(self._clients) if getattr(loop, "is_closed", bool)()]:
            with suppress(Exception):
                await self._close(self._clients.pop(loop))
