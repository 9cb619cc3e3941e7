# SPDX-License-Identifier: Apache-2.0
"""Tools and results that are wrong, and floods of messages that nobody wants."""

from __future__ import annotations

import threading
import time
from typing import Any

from overstdio.sound import ECHO, JSON, TEXT, TROUBLE, Modern, Server, note, text_result

TREACHEROUS = "ab\u202e\x1b " * 300_000
"""Text of which every other character must be shown as an escape."""


class WordyServer(Server):
    tools = [  # noqa: RUF012
        ECHO,
        {**TROUBLE, "description": TREACHEROUS, "annotations": {"title": TREACHEROUS}},
        {**ECHO, "name": TREACHEROUS[:200_000]},
    ]


class MalformedTool(Server):
    tools = [ECHO, {"name": "spoiled", "inputSchema": {}}, {"name": 3}, None, TROUBLE]  # noqa: RUF012


class EndlessPages(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        page = int(params.get("cursor") or 0)
        tools = [{**ECHO, "name": f"tool{page}"}] if page else self.tools
        self.reply(number, {"tools": tools, "nextCursor": str(page + 1)})


class DrippingPages(EndlessPages):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        time.sleep(0.2)
        super().on_tools_list(number, params)


class StandingCursor(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        self.reply(number, {"tools": self.tools, "nextCursor": "again"})


class DuplicateTools(Server):
    tools = [ECHO, TROUBLE, TROUBLE, ECHO]  # noqa: RUF012


class ListingOfNoList(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        self.reply(number, {"tools": "all of them"})


class UnknownBlock(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        hologram = {"type": "hologram", "data": "AAEC"}
        self.reply(number, {"content": [{"type": "text", "text": "fine"}, hologram]})


class MissingContent(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, {"structuredContent": {"state": "fine"}})


class ContentOfNoList(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, {"content": {"type": "text", "text": "fine"}})


class NullContent(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, {"content": None, "structuredContent": {"state": "fine"}})


class MissingResultType(Modern):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, {"content": [{"type": "text", "text": "fine"}]})


class UnknownResultType(Modern):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, {**text_result("fine"), "resultType": "maybe"})


_STATE: JSON = {"type": "object", "properties": {"state": {"type": "integer"}}}


class SchemaViolation(Server):
    tools = [ECHO, {**TROUBLE, "outputSchema": _STATE}]  # noqa: RUF012

    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, {**text_result("fine"), "structuredContent": {"state": "fine"}})


_EVIL: JSON = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}


class EvilInputPattern(Server):
    tools = [ECHO, {**TROUBLE, "inputSchema": _EVIL}]  # noqa: RUF012


class EvilOutputPattern(Server):
    tools = [ECHO, {**TROUBLE, "outputSchema": _EVIL}]  # noqa: RUF012

    def trouble(self, number: Any, arguments: JSON) -> None:
        evil = {"text": "a" * 60 + "!"}
        self.reply(number, {**text_result("fine"), "structuredContent": evil})


_A: JSON = {"$ref": "#/$defs/a"}
_LOOP: JSON = {
    "type": "object",
    "$defs": {"a": {"$ref": "#/$defs/b"}, "b": _A},
    "properties": {"x": _A},
}
_TREE: JSON = {
    "type": "object",
    "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
}


class RecursiveSchema(Server):
    tools = [ECHO, {**TROUBLE, "inputSchema": _TREE, "outputSchema": _TREE}]  # noqa: RUF012

    def trouble(self, number: Any, arguments: JSON) -> None:
        tree: JSON = {"children": []}
        for _ in range(40):
            tree = {"children": [tree]}
        self.reply(number, {**text_result("fine"), "structuredContent": tree})


class CircularSchema(Server):
    tools = [ECHO, {**TROUBLE, "outputSchema": _LOOP}]  # noqa: RUF012

    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, {**text_result("fine"), "structuredContent": {"x": {"x": 1}}})


class RemoteReference(Server):
    tools = [  # noqa: RUF012
        ECHO,
        {**TROUBLE, "outputSchema": {"type": "object", "$ref": "http://127.0.0.1:9/schema.json"}},
    ]

    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, {**text_result("fine"), "structuredContent": {"x": 1}})


class NotificationFlood(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        for index in range(20_000):
            self.notify("notifications/message", {"level": "info", "data": f"message {index}"})
        self.reply(number, text_result("fine"))


class ProgressFlood(Server):
    token: Any = None

    def on_tools_call(self, number: Any, params: JSON) -> None:
        self.token = (params.get("_meta") or {}).get("progressToken", number)
        super().on_tools_call(number, params)

    def trouble(self, number: Any, arguments: JSON) -> None:
        for index in range(20_000):
            self.notify("notifications/progress", {"progressToken": self.token, "progress": index})
        self.reply(number, text_result("fine"))


class CountlessProgress(ProgressFlood):
    def serve(self) -> None:
        note("started")
        super().serve()

    def trouble(self, number: Any, arguments: JSON) -> None:
        for facts in ({"progress": 10**400}, {"progress": 1, "total": 10**400}):
            self.notify("notifications/progress", {"progressToken": self.token, **facts})
        self.reply(number, text_result("fine"))


class WordyProgress(ProgressFlood):
    def trouble(self, number: Any, arguments: JSON) -> None:
        facts = {"progressToken": self.token, "progress": 1, "message": TREACHEROUS}
        self.notify("notifications/progress", facts)
        self.reply(number, text_result("fine"))


class ChangeFlood(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        note("listed")
        super().on_tools_list(number, params)

    def trouble(self, number: Any, arguments: JSON) -> None:
        for _ in range(5_000):
            self.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        self.reply(number, text_result("fine"))


class QuickChanges(ChangeFlood):
    """Lists its tools without delay, while another thread tells of one change after the other."""

    def trouble(self, number: Any, arguments: JSON) -> None:
        threading.Thread(target=self.tell, args=(number,)).start()

    def tell(self, number: Any) -> None:
        for _ in range(9):
            self.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            time.sleep(0.01)
        self.reply(number, text_result("fine"))


class Unsolicited(Server):
    method = "sampling/createMessage"
    params: JSON = {"messages": [], "maxTokens": 10}  # noqa: RUF012
    waiting: Any = None

    def trouble(self, number: Any, arguments: JSON) -> None:
        self.waiting = number
        self.send({"jsonrpc": "2.0", "id": "q1", "method": self.method, "params": self.params})

    def hear_reply(self, message: JSON) -> None:
        refused = "error" in message and message["id"] == "q1"
        self.reply(self.waiting, text_result("fine, refused" if refused else "WRONG"))


class UnsolicitedElicitation(Unsolicited):
    method = "elicitation/create"
    params = {"message": "Your password?", "requestedSchema": TEXT}  # noqa: RUF012


class UnsolicitedNonsense(Unsolicited):
    method = "no/such/method"
    params = {"x": [1, 2, 3]}  # noqa: RUF012


class OddRequests(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        for identifier in ([1], {"a": 1}, 1.5):
            params = {"progress": 1}
            self.send({"jsonrpc": "2.0", "id": identifier, "method": "ping", "params": params})
        self.reply(number, text_result("fine"))


class RequestFlood(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        for index in range(3_000):
            self.send({"jsonrpc": "2.0", "id": f"p{index}", "method": "ping"})
        self.reply(number, text_result("fine"))
