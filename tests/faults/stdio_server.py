# SPDX-License-Identifier: Apache-2.0
"""A server over stdio that is sound but for one fault, without any SDK: `python stdio_server.py FAULT`.

Its tool `echo` always works; `trouble` is where the fault is, unless it is elsewhere. Each class below
is one fault; the catalogue says what a caller must see of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

JSON = dict[str, Any]
MODERN = "2026-07-28"
_OBJECT: JSON = {"type": "object", "properties": {}}
_TEXT: JSON = {"type": "object", "properties": {"text": {"type": "string"}}}
ECHO: JSON = {"name": "echo", "inputSchema": _TEXT}
TROUBLE: JSON = {"name": "trouble", "inputSchema": _OBJECT}


def text_result(text: str) -> JSON:
    """A result with one text, which both eras accept."""
    return {"content": [{"type": "text", "text": text}], "resultType": "complete"}


def note(word: str) -> None:
    """Leaves a word for the bench, which counts them over all processes."""
    with Path(os.environ["FAULT_NOTES"]).open("a", encoding="ascii") as file:
        file.write(word + "\n")


def count_notes(word: str) -> int:
    """How often a word was left so far."""
    return Path(os.environ["FAULT_NOTES"]).read_text("ascii").split().count(word)


def hold() -> None:
    """Does nothing, for ever."""
    while True:
        time.sleep(3_600)


class Server:
    """A sound server of the older era."""

    version = "2025-06-18"
    tools: list[JSON] = [ECHO, TROUBLE]  # noqa: RUF012

    def serve(self) -> None:
        """Answers each line of standard input until it ends."""
        for line in sys.stdin.buffer:
            self.take(json.loads(line))

    def take(self, message: JSON) -> None:
        if "method" not in message:
            self.hear_reply(message)
        elif "id" in message:
            self.answer(message["id"], message["method"], message.get("params") or {})
        else:
            self.hear(message["method"], message.get("params") or {})

    def hear_reply(self, message: JSON) -> None:
        """An answer to a question of ours."""

    def hear(self, method: str, params: JSON) -> None:
        """A notification."""

    def answer(self, number: Any, method: str, params: JSON) -> None:
        handler = getattr(self, "on_" + method.replace("/", "_"), None)
        if handler is None:
            self.on_unknown(number, method)
        else:
            handler(number, params)

    def on_unknown(self, number: Any, method: str) -> None:
        error = {"code": -32601, "message": f"Method not found: {method}"}
        self.send({"jsonrpc": "2.0", "id": number, "error": error})

    def on_initialize(self, number: Any, params: JSON) -> None:
        about = {"name": "faulty", "version": "1"}
        capabilities = {"tools": {"listChanged": True}}
        self.reply(
            number,
            {"protocolVersion": self.version, "capabilities": capabilities, "serverInfo": about},
        )

    def on_tools_list(self, number: Any, params: JSON) -> None:
        self.reply(number, {"tools": self.tools})

    def on_tools_call(self, number: Any, params: JSON) -> None:
        arguments = params.get("arguments") or {}
        if params["name"] == "echo":
            self.reply(number, text_result(str(arguments.get("text"))))
        else:
            self.trouble(number, arguments)

    def trouble(self, number: Any, arguments: JSON) -> None:
        """Where most faults are."""
        self.reply(number, text_result("fine"))

    def reply(self, number: Any, result: JSON) -> None:
        self.send({"jsonrpc": "2.0", "id": number, "result": result})

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def notify(self, method: str, params: JSON) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})


class Modern(Server):
    """A sound server of the newer era."""

    def on_server_discover(self, number: Any, params: JSON) -> None:
        result = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
        self.reply(number, {**result, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"})

    def on_tools_list(self, number: Any, params: JSON) -> None:
        cache = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
        self.reply(number, {"tools": self.tools, **cache})


class Silent(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        """No answer."""


class SilentFromTheStart(Server):
    def take(self, message: JSON) -> None:
        """No answer to anything."""


class DeafFromTheStart(SilentFromTheStart):
    def serve(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().serve()
        hold()


class SilentListing(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        """No answer."""


class MalformedLine(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.write(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [}\n' % number)


class MalformedLineWithoutId(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.write(b'{"jsonrpc": "2.0", "result": {"content": [}\n')


class WrongId(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number + 1, text_result("WRONG"))


class DuplicateId(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, text_result("fine"))
        self.reply(number, text_result("WRONG"))


class GuessedIds(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        for guess in {*range(2_000), *range(number + 1, number + 100)}:
            self.reply(guess, text_result("WRONG"))
        self.reply(number, text_result("fine"))


class LateAnswer(Server):
    late: Any = None

    def trouble(self, number: Any, arguments: JSON) -> None:
        self.late = number

    def hear(self, method: str, params: JSON) -> None:
        if method == "notifications/cancelled":
            self.reply(self.late, text_result("WRONG"))


class TextualId(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(str(number), text_result("fine"))


class LoneSurrogate(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(number, text_result("fine \ud800 here"))


class InvalidUtf8(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        line = json.dumps({"jsonrpc": "2.0", "id": number, "result": text_result("fine X")})
        self.write(line.encode().replace(b"X", b"\xff\xfe\x80") + b"\n")


class HugeInteger(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        digits = "9" * 10_000
        self.write(
            f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":[],"x":{digits}}}}}\n'.encode()
        )


class DeepJson(Server):
    depth = 100_000

    def trouble(self, number: Any, arguments: JSON) -> None:
        nest = "[" * self.depth + "]" * self.depth
        line = f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":[],"structuredContent":'
        self.write(f'{line}{{"x":{nest}}}}}}}\n'.encode())


class RatherDeepJson(DeepJson):
    depth = 400


class LargeResult(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        size = int(os.environ.get("FAULT_MEGABYTES", "30")) * 1024 * 1024
        self.reply(number, text_result("fine " + "x" * size))


class HalfLine(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.write(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [' % number)


class Junk(Server):
    def serve(self) -> None:
        self.write(b"Welcome!\n\n\x00\x01\x02\n[]\nnull\n42\n")
        super().serve()

    def send(self, message: Any) -> None:
        self.write(b"DEBUG sending\n{not json}\n")
        super().send(message)


class JunkOnTheSameLine(Server):
    def send(self, message: Any) -> None:
        self.write(b"Loading... 100 % ")
        super().send(message)


class ByteOrderMark(Server):
    def serve(self) -> None:
        self.write(b"\xef\xbb\xbf")
        super().serve()


class WindowsLines(Server):
    def send(self, message: Any) -> None:
        self.write(b"\r\n" + json.dumps(message).encode() + b"\r\n")


class Batch(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        reply = {"jsonrpc": "2.0", "id": number, "result": text_result("fine")}
        log = {"level": "info", "data": "batched"}
        self.send([{"jsonrpc": "2.0", "method": "notifications/message", "params": log}, reply])


class OddError(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.send({"jsonrpc": "2.0", "id": number, "error": "no"})


class NeitherResultNorError(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.send({"jsonrpc": "2.0", "id": number})


class EndlessJunk(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        while True:
            self.write(b"tick tock " * 6_000 + b"\n")


class StderrFlood(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        for _ in range(200):
            sys.stderr.write("secretly busy " * 7_000 + "\n")
        sys.stderr.flush()
        self.reply(number, text_result("fine"))


class StderrWithoutLines(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        for _ in range(200):
            sys.stderr.write("." * 100_000)
        sys.stderr.flush()
        self.reply(number, text_result("fine"))


class NeverReads(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        super().on_tools_list(number, params)
        hold()


class Dies(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        sys.stderr.write("out of cheese\n")
        sys.stderr.flush()
        os._exit(3)


class DiesOnce(Server):
    tools = [ECHO, {**TROUBLE, "annotations": {"readOnlyHint": True}}]  # noqa: RUF012

    def trouble(self, number: Any, arguments: JSON) -> None:
        note("called")
        if count_notes("called") == 1:
            os._exit(3)
        self.reply(number, text_result("fine"))


class HangsWhenBack(DiesOnce):
    def on_initialize(self, number: Any, params: JSON) -> None:
        if count_notes("start") > 1:
            return
        super().on_initialize(number, params)


class DiesAgainAndAgain(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        super().on_tools_list(number, params)
        os._exit(4)


class ClosesStdout(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        os.close(1)
        hold()


class ExitsAtStart(Server):
    def serve(self) -> None:
        sys.stderr.write("config.yaml: no such file\n")
        sys.stderr.flush()
        os._exit(2)


class ChildHoldsThePipe(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        if os.fork() == 0:
            hold()
        os._exit(0)


class IgnoresTheEnd(Server):
    def serve(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().serve()
        hold()


class SetsidGrandchildren(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                if os.fork() != 0:
                    os._exit(0)
                hold()
        self.reply(number, text_result("fine"))


class Nasty(SetsidGrandchildren):
    def serve(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().serve()
        hold()


class SlowStart(Server):
    def serve(self) -> None:
        time.sleep(1.5)
        super().serve()


class IgnoresUnknownMethods(Server):
    def on_unknown(self, number: Any, method: str) -> None:
        """No answer."""


class DiesOfUnknownMethods(Server):
    def on_unknown(self, number: Any, method: str) -> None:
        os._exit(5)


class UnsupportedVersion(Server):
    version = "1999-01-01"


class MalformedHandshake(Server):
    def on_initialize(self, number: Any, params: JSON) -> None:
        self.reply(number, {"protocolVersion": 7, "capabilities": []})


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


class ChangeFlood(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        note("listed")
        super().on_tools_list(number, params)

    def trouble(self, number: Any, arguments: JSON) -> None:
        for _ in range(5_000):
            self.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
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
    params = {"message": "Your password?", "requestedSchema": _TEXT}  # noqa: RUF012


class UnsolicitedNonsense(Unsolicited):
    method = "no/such/method"
    params = {"x": [1, 2, 3]}  # noqa: RUF012


class RequestFlood(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        for index in range(3_000):
            self.send({"jsonrpc": "2.0", "id": f"p{index}", "method": "ping"})
        self.reply(number, text_result("fine"))


class Cancelled(Server):
    def hear(self, method: str, params: JSON) -> None:
        if method == "notifications/cancelled":
            note("cancelled")

    def trouble(self, number: Any, arguments: JSON) -> None:
        note("called")


def main() -> None:
    """Serves the fault that the command line names."""
    note("start")
    server: Server = globals()[sys.argv[1]]()
    server.serve()


if __name__ == "__main__":
    main()
