# SPDX-License-Identifier: Apache-2.0
"""Servers that refuse, forget the session, restart, redirect or fall silent."""

from __future__ import annotations

import asyncio

from tests.faults.overhttp.sound import JSON_TYPE, Modern, Sound
from tests.faults.overhttp.wire import JSON, Line, Request


class Refuses(Sound):
    """Says no to each call with a status."""

    status = 500
    headers: dict[str, str] = {}  # noqa: RUF012

    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(
            self.status, b"<h1>No</h1>", {"content-type": "text/html", **self.headers}
        )


class Status403(Refuses):
    status = 403


class Status429(Refuses):
    status = 429
    headers = {"retry-after": "7"}  # noqa: RUF012


class Status500(Refuses):
    status = 500


class Status502(Refuses):
    status = 502


class Status503(Refuses):
    status = 503
    headers = {"retry-after": "3"}  # noqa: RUF012


class Status429WithError(Sound):
    """An error of the protocol, in a response that asks to wait."""

    async def trouble(self, request: Request, line: Line) -> None:
        error = {"code": -32603, "message": "Too many"}
        answer = {"jsonrpc": "2.0", "id": request.message["id"], "error": error}
        await line.respond_json(answer, 429, {"retry-after": "7"})


class Status503WithDate(Refuses):
    status = 503
    headers = {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}  # noqa: RUF012


class Status418WithJson(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond_json({"oops": True}, 418)


class Status401(Sound):
    async def handle(self, request: Request, line: Line) -> None:
        await line.respond(401, headers={"www-authenticate": "Bearer"})


class ForgetsTheSession(Sound):
    """Forgets the session at the first call of `trouble`, and says so in one of several ways."""

    forgotten = False
    status = 404
    error: JSON | None = None

    async def trouble(self, request: Request, line: Line) -> None:
        if not self.forgotten:
            self.forgotten = True
            self.sessions.clear()
            await self.on_lost_session(request, line)
            return
        await super().trouble(request, line)

    async def on_lost_session(self, request: Request, line: Line) -> None:
        if self.error is None:
            await line.respond(self.status)
        else:
            await line.respond_json(
                {"jsonrpc": "2.0", "id": None, "error": self.error}, self.status
            )


class ForgetsLikePython(ForgetsTheSession):
    error = {"code": -32600, "message": "Session not found"}  # noqa: RUF012


class ForgetsLikeTypescript(ForgetsTheSession):
    error = {"code": -32001, "message": "Session not found"}  # noqa: RUF012


class ForgetsLikeEverything(ForgetsTheSession):
    status = 400
    error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}  # noqa: RUF012


class ForgetsLikeOlderPython(ForgetsTheSession):
    """As servers on the Python SDK 1.x do."""

    async def on_lost_session(self, request: Request, line: Line) -> None:
        await line.respond(400, b"Bad Request: No valid session ID provided")


class ForgetsItsStart(ForgetsTheSession):
    """As servers on the TypeScript SDK with a single session do, after a restart."""

    status = 400
    error = {"code": -32000, "message": "Bad Request: Server not initialized"}  # noqa: RUF012


class ForgetsAmongMany(ForgetsTheSession):
    """Forgets the session while other calls are under way in it, which it answers afterwards."""

    async def on_lost_session(self, request: Request, line: Line) -> None:
        await super().on_lost_session(request, line)
        asyncio.get_running_loop().call_later(0.2, self.release.set)


class TalksOfSessions(Sound):
    """A tool whose own error sounds like that of a lost session."""

    async def trouble(self, request: Request, line: Line) -> None:
        error = {"code": -32000, "message": "Session not found: tmux"}
        await line.respond_json({"jsonrpc": "2.0", "id": request.message["id"], "error": error})


class IgnoresUnknownMethods(Sound):
    """An older server that never answers what it does not know."""

    async def on_discover(self, request: Request, line: Line) -> None:
        self.server.notes["discover"] += 1
        await line.hold()


class Restarts(Sound):
    """Breaks everything off in the middle of a call, and comes back without its sessions."""

    pause = 0.3

    async def trouble(self, request: Request, line: Line) -> None:
        self.sessions.clear()
        self.server.close()
        self.server.come_back(self.pause)


class RestartsModern(Restarts, Modern):
    pass


class GoesDown(Restarts):
    """Is away for longer than a call lasts."""

    pause = 1.5


class Html(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(200, b"<h1>Please log in</h1>", {"content-type": "text/html"})


class Accepted(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(202)


class Silent(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.hold()


class SilentModern(Silent, Modern):
    pass


class SilentFromTheStart(Sound):
    async def handle(self, request: Request, line: Line) -> None:
        await line.hold()


class SilentToNotifications(Silent):
    """Takes each notification in and never says so; a cancellation is one."""

    async def on_notification(self, request: Request, line: Line) -> None:
        if request.message["method"] == "notifications/cancelled":
            await line.hold()
        else:
            await super().on_notification(request, line)


class RefusesNotifications(Sound):
    async def on_notification(self, request: Request, line: Line) -> None:
        await line.respond(500)


class ResetsNotifications(Silent):
    async def on_notification(self, request: Request, line: Line) -> None:
        if request.message["method"] == "notifications/cancelled":
            line.reset()
        else:
            await super().on_notification(request, line)


class SilentGoodbye(Sound):
    async def on_delete(self, request: Request, line: Line) -> None:
        await line.hold()


class SilentEvents(Sound):
    """Keeps a stream alive with comments, and never answers."""

    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin_events()
        while True:
            await line.write(b": still here\n\n")
            await asyncio.sleep(0.05)


class DrippingBody(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.begin(200, {**JSON_TYPE, "content-length": "100000"})
        while True:
            await line.write(b" ")
            await asyncio.sleep(0.05)


class RedirectsElsewhere(Sound):
    """Sends each call to another origin, which counts who comes."""

    async def handle(self, request: Request, line: Line) -> None:
        if request.path == "/elsewhere":
            self.server.notes["elsewhere"] += 1
            await line.respond(200)
        else:
            await super().handle(request, line)

    async def trouble(self, request: Request, line: Line) -> None:
        url = f"http://localhost:{self.server.port}/elsewhere"
        await line.respond(307, headers={"location": url})


class RedirectsForEver(Sound):
    async def trouble(self, request: Request, line: Line) -> None:
        await line.respond(307, headers={"location": request.path})
