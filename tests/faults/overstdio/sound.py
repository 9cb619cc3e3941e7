# SPDX-License-Identifier: Apache-2.0
"""A sound server over stdio of either era: its tool `echo` always works; faults are mostly in `trouble`."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

JSON = dict[str, Any]
MODERN = "2026-07-28"
OBJECT: JSON = {"type": "object", "properties": {}}
TEXT: JSON = {"type": "object", "properties": {"text": {"type": "string"}}}
ECHO: JSON = {"name": "echo", "inputSchema": TEXT}
TROUBLE: JSON = {"name": "trouble", "inputSchema": OBJECT}


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
