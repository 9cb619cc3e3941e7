# SPDX-License-Identifier: Apache-2.0
"""A bare JSON-RPC server over stdio, without any SDK, for what a well-behaved library would not let through.

`python raw.py SCENARIO`. It speaks the handshake of 2025-06-18; its tool `good` works in every scenario
that lists it, whatever else is wrong.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

JSON = dict[str, Any]

EMPTY_OBJECT: JSON = {"type": "object", "properties": {}}


def tool(name: str, schema: JSON | None = None, **others: Any) -> JSON:
    """Define a tool as it looks on the wire."""
    return {"name": name, "inputSchema": EMPTY_OBJECT if schema is None else schema, **others}


GOOD = tool("good", description="Works.")
ALSO_GOOD = tool("also_good", description="Works as well.")


class Scenario:
    """A server without fault; each scenario spoils one thing."""

    def list_tools(self, cursor: str | None) -> JSON:
        """Answer `tools/list`."""
        return {"tools": [GOOD, ALSO_GOOD]}

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        """Answer `tools/call`."""
        return {"content": [{"type": "text", "text": f"{name} was called"}]}

    def answer(self, method: str, parameters: JSON) -> JSON | None:
        """Answer any request; None where the method is unknown."""
        if method == "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "raw", "version": "1"},
            }
        if method == "ping":
            return {}
        if method == "tools/list":
            return self.list_tools(parameters.get("cursor"))
        if method == "tools/call":
            return self.call_tool(parameters["name"], parameters.get("arguments") or {})
        return None


class EmptySchema(Scenario):
    """One tool among good ones has `{}` as its input schema."""

    def list_tools(self, cursor: str | None) -> JSON:
        return {"tools": [GOOD, tool("spoiled", {}), ALSO_GOOD]}


class BrokenSchema(Scenario):
    """Two tools among good ones have schemas that no validator can compile."""

    def list_tools(self, cursor: str | None) -> JSON:
        wrong_type = {"type": "object", "properties": {"a": {"type": "strnig"}}}
        wrong_pattern = {"type": "object", "properties": {"a": {"pattern": "("}}}
        spoiled = [tool("wrong_type", wrong_type), tool("wrong_pattern", wrong_pattern)]
        return {"tools": [GOOD, *spoiled, ALSO_GOOD]}


class DeepSchema(Scenario):
    """One tool among good ones has a schema of more levels than strict decoders take."""

    def list_tools(self, cursor: str | None) -> JSON:
        schema = EMPTY_OBJECT
        for _ in range(150):
            schema = {"type": "object", "properties": {"in": schema}}
        return {"tools": [GOOD, tool("deep", schema), ALSO_GOOD]}


class MalformedTools(Scenario):
    """Things that are not tools at all stand among good ones."""

    def list_tools(self, cursor: str | None) -> JSON:
        nameless = {"inputSchema": EMPTY_OBJECT}
        schemaless = {"name": "schemaless"}
        return {"tools": [GOOD, nameless, schemaless, None, "text", ALSO_GOOD]}


class DuplicateNames(Scenario):
    """Two tools have one name, on two pages."""

    def list_tools(self, cursor: str | None) -> JSON:
        if cursor is None:
            return {"tools": [GOOD, tool("twin", description="first")], "nextCursor": "2"}
        return {"tools": [tool("twin", description="second"), ALSO_GOOD]}


class StuckCursor(Scenario):
    """The cursor never advances."""

    def list_tools(self, cursor: str | None) -> JSON:
        return {"tools": [GOOD], "nextCursor": "again"}


class EndlessPages(Scenario):
    """Every page has a new tool, and there is always another page."""

    def list_tools(self, cursor: str | None) -> JSON:
        number = int(cursor or 0)
        page = [tool(f"tool_{number}")] if number else [GOOD]
        return {"tools": page, "nextCursor": str(number + 1)}


class EndlessEmptyPages(Scenario):
    """After the first page there are only empty ones, without end."""

    def list_tools(self, cursor: str | None) -> JSON:
        number = int(cursor or 0)
        return {"tools": [] if number else [GOOD], "nextCursor": str(number + 1)}


class LeisurelyPages(Scenario):
    """The first page comes when nobody will ask for the second any more."""

    def list_tools(self, cursor: str | None) -> JSON:
        sys.stdin.read()
        return {"tools": [GOOD], "nextCursor": "2"}


class UnknownContent(Scenario):
    """`good` gives text, and a block of a kind that does not exist yet."""

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        hologram = {"type": "hologram", "data": "AAEC", "depth": 3}
        return {"content": [{"type": "text", "text": "known"}, hologram]}


class MissingContent(Scenario):
    """A result has no `content`."""

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        return {"structuredContent": {"answer": 42}} if arguments.get("structured") else {}


class Large(Scenario):
    """`good` gives as many bytes of text as it is asked for; `also_good` as many numbers."""

    def list_tools(self, cursor: str | None) -> JSON:
        promise = {"type": "object", "required": ["numbers"]}
        return {"tools": [GOOD, {**ALSO_GOOD, "outputSchema": promise}]}

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        size = arguments.get("size", 0)
        if name == "also_good":
            return {"content": [], "structuredContent": {"numbers": list(range(size))}}
        words = "the beginning" + " \u20ac and so on" * (size // 16) + " the very end"
        return {"content": [{"type": "text", "text": "small"}, {"type": "text", "text": words}]}


class Noise(Scenario):
    """Lines that are not JSON come before each answer."""

    def answer(self, method: str, parameters: JSON) -> JSON | None:
        print("Starting up… 100 % done\n{not json}", flush=True)
        return super().answer(method, parameters)


class Mute(Scenario):
    """`good` is never answered; all else is."""

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        if name != "good":
            return super().call_tool(name, arguments)
        raise _NoAnswer


class Reticent(Scenario):
    """What it does not know is not answered; `good` tells what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answer(self, method: str, parameters: JSON) -> JSON | None:
        self.asked.append(method)
        if (answer := super().answer(method, parameters)) is None:
            raise _NoAnswer
        return answer

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        return {"content": [{"type": "text", "text": " ".join(self.asked)}]}


class Touchy(Reticent):
    """What it does not know ends it."""

    def answer(self, method: str, parameters: JSON) -> JSON | None:
        try:
            return super().answer(method, parameters)
        except _NoAnswer:
            sys.exit(1)


class Changing(Scenario):
    """`flip` exchanges `work` for one of the same name with other arguments, and `old` for `new`."""

    def __init__(self) -> None:
        self.is_flipped = False

    def list_tools(self, cursor: str | None) -> JSON:
        need, other = ("b", "new") if self.is_flipped else ("a", "old")
        schema = {"type": "object", "properties": {need: {"type": "integer"}}, "required": [need]}
        return {"tools": [tool("flip"), tool("work", schema), tool(other)]}

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        if name == "flip":
            self.is_flipped = not self.is_flipped
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        return {"content": [{"type": "text", "text": f"{name} {json.dumps(arguments)}"}]}


class Loud(Changing):
    """It has much to say before it tells of a change."""

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        words = {"level": "info", "data": "There is news."}
        message = {"jsonrpc": "2.0", "method": "notifications/message", "params": words}
        print("\n".join([json.dumps(message)] * 3_000))
        return super().call_tool(name, arguments)


class Sluggish(Changing):
    """It cannot list its new tools when it is first asked for them."""

    refusals = 0

    def list_tools(self, cursor: str | None) -> JSON:
        if self.is_flipped and not self.refusals:
            self.refusals += 1
            raise _Refusal
        return super().list_tools(cursor)


class Torn(Scenario):
    """Its second page is refused until `mend` is called, and again after `tear`; then there is `new`, too.

    After `lose` there is nothing on that page.
    """

    is_torn = True

    def __init__(self) -> None:
        self.first = [GOOD, *(tool(name) for name in ("mend", "tear", "lose"))]
        self.second = [ALSO_GOOD]

    def list_tools(self, cursor: str | None) -> JSON:
        if cursor is None:
            return {"tools": self.first, "nextCursor": "1"}
        return self.tear_off(cursor) if self.is_torn else {"tools": self.second}

    def tear_off(self, cursor: str) -> JSON:
        """Answer in place of the second page."""
        raise _Refusal

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        if name in ("mend", "tear", "lose"):
            self.is_torn = name == "tear"
            if name == "tear":
                self.first.append(tool("new"))
            if name == "lose":
                self.second = []
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        return super().call_tool(name, arguments)


class TornSilently(Torn):
    """The second page never comes."""

    def tear_off(self, cursor: str) -> JSON:
        raise _NoAnswer


class TornSlowly(Torn):
    """There are pages without end, each after a moment."""

    def tear_off(self, cursor: str) -> JSON:
        time.sleep(0.1)
        return {"tools": [tool(f"slow_{cursor}")], "nextCursor": str(int(cursor) + 1)}


class TornOddly(Torn):
    """It does not know that it can list tools, all of a sudden."""

    def answer(self, method: str, parameters: JSON) -> JSON | None:
        if parameters.get("cursor") and self.is_torn:
            return None
        return super().answer(method, parameters)


class TornOnce(Torn):
    """The second page is refused once, and nothing is told afterwards."""

    def tear_off(self, cursor: str) -> JSON:
        self.is_torn = False
        raise _Refusal


class TornApart(Torn):
    """It ends at the second page."""

    def tear_off(self, cursor: str) -> JSON:
        os._exit(3)


class Fickle(Changing):
    """Of the new era; it ends the first subscription at once, and changes its tools meanwhile."""

    listens = 0

    def answer(self, method: str, parameters: JSON) -> JSON | None:
        cache = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
        if method == "server/discover":
            capabilities = {"tools": {"listChanged": True}}
            return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, **cache}
        if method == "subscriptions/listen":
            self.listens += 1
            if self.listens > 1:
                raise _NoAnswer
            self.is_flipped = True
            return {"resultType": "complete"}
        answer = super().answer(method, parameters)
        return answer if answer is None else {**answer, **cache}


class Tardy(Fickle):
    """Of both eras, and too late to answer the first question."""

    is_awake = False

    def answer(self, method: str, parameters: JSON) -> JSON | None:
        was_awake, self.is_awake = self.is_awake, True
        if not was_awake:
            raise _NoAnswer
        return super().answer(method, parameters)


class Modern(Fickle):
    """Of the new era alone: it does not know the handshake."""

    def answer(self, method: str, parameters: JSON) -> JSON | None:
        return None if method == "initialize" else super().answer(method, parameters)


class Mayfly(Scenario):
    """It ends as soon as it has told its tools."""

    def list_tools(self, cursor: str | None) -> JSON:
        threading.Timer(0.05, os._exit, (3,)).start()
        return super().list_tools(cursor)


class Weary(Scenario):
    """It gives no sign of life, and ends when it is called."""

    def answer(self, method: str, parameters: JSON) -> JSON | None:
        if method == "ping":
            raise _NoAnswer
        return super().answer(method, parameters)

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        os._exit(3)


class Rude(Scenario):
    """`good` asks back whatever it is told to, and tells the answer."""

    def call_tool(self, name: str, arguments: JSON) -> JSON:
        print(json.dumps({"jsonrpc": "2.0", "id": "mine", **arguments}), flush=True)
        return {"content": [{"type": "text", "text": sys.stdin.readline()}]}


class Deaf(Scenario):
    """Nothing is ever answered, not even the handshake."""

    def answer(self, method: str, parameters: JSON) -> NoReturn:
        raise _NoAnswer


class _NoAnswer(Exception):
    """Not answering is the answer."""


class _Refusal(Exception):
    """An error of the server's own is the answer."""


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "sound": Scenario,
    "empty-schema": EmptySchema,
    "broken-schema": BrokenSchema,
    "deep-schema": DeepSchema,
    "malformed-tools": MalformedTools,
    "duplicate-names": DuplicateNames,
    "stuck-cursor": StuckCursor,
    "endless-pages": EndlessPages,
    "leisurely-pages": LeisurelyPages,
    "endless-empty-pages": EndlessEmptyPages,
    "unknown-content": UnknownContent,
    "missing-content": MissingContent,
    "large": Large,
    "noise": Noise,
    "mute": Mute,
    "reticent": Reticent,
    "touchy": Touchy,
    "changing": Changing,
    "loud": Loud,
    "sluggish": Sluggish,
    "torn": Torn,
    "torn-silently": TornSilently,
    "torn-slowly": TornSlowly,
    "torn-oddly": TornOddly,
    "torn-once": TornOnce,
    "torn-apart": TornApart,
    "fickle": Fickle,
    "tardy": Tardy,
    "modern": Modern,
    "mayfly": Mayfly,
    "weary": Weary,
    "rude": Rude,
    "deaf": Deaf,
}


def _reply(scenario: Scenario, request: JSON) -> JSON:
    envelope = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        result = scenario.answer(request["method"], request.get("params") or {})
    except _Refusal:
        return {**envelope, "error": {"code": -32603, "message": "Not now"}}
    if result is None:
        error = {"code": -32601, "message": f"Method not found: {request['method']}"}
        return {**envelope, "error": error}
    return {**envelope, "result": result}


def main() -> None:
    """Answer each line of standard input until it ends."""
    scenario = SCENARIOS[sys.argv[1] if len(sys.argv) > 1 else "sound"]()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        try:
            reply = _reply(scenario, message)
        except _NoAnswer:
            continue
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
