# SPDX-License-Identifier: Apache-2.0
"""Answers that never come, are broken, or come in strange company."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from overstdio.sound import JSON, Server, note, text_result


class Silent(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
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


class FractionalId(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        self.reply(float(number), text_result("fine"))


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


class ManyParts(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        result = {"content": [], "structuredContent": {"parts": [[] for _ in range(5_000_000)]}}
        self.reply(number, result)


class ManyBlocks(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        result = text_result("fine")
        result["content"] *= 100_000
        self.reply(number, result)


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


class Cancelled(Server):
    def hear(self, method: str, params: JSON) -> None:
        if method == "notifications/cancelled":
            note("cancelled")

    def trouble(self, number: Any, arguments: JSON) -> None:
        note("called")
