# SPDX-License-Identifier: Apache-2.0
"""A server that speaks Chat Completions over real HTTP, and says what a test tells it to."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STALLING = "text/event-stream; stalling=yes"


class Service:
    """A server that answers requests with what it was told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str, bytes]] = []
        self.requests: list[tuple[str, dict, dict]] = []
        self.disconnected = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {key.lower(): value for key, value in self.headers.items()}
                service.requests.append((self.path, headers, json.loads(body)))
                status, kind, body = service.answers.pop(0)
                try:
                    self._answer(status, kind, body)
                    while kind == STALLING:
                        self.wfile.write(b": ping\n\n")
                        time.sleep(0.01)
                except OSError:  # whoever asked has left
                    service.disconnected.set()

            def do_GET(self):
                models = {"object": "list", "data": [{"id": "qwen3:8b", "object": "model"}]}
                self._answer(200, "application/json", json.dumps(models).encode())

            def _answer(self, status, kind, body):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_): ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Ends it; does nothing the second time."""
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def will_stream(self, *chunks, done=True):
        lines = [
            f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n"
            for chunk in chunks
        ]
        body = "".join(lines) + ("data: [DONE]\n\n" if done else "")
        self.answers.append((200, "text/event-stream", body.encode()))

    def will_answer(self, answer):
        self.answers.append((200, "application/json", json.dumps(answer).encode()))

    def will_stall(self, first):
        self.answers.append((200, STALLING, f"data: {json.dumps(first)}\n\n".encode()))

    def will_fail(self, status, message):
        body = json.dumps({"error": {"message": message}}).encode()
        self.answers.append((status, "application/json", body))

    @property
    def bodies(self):
        return [body for _, _, body in self.requests]


def chunk(finish=None, usage=None, **delta):
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    shared = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
    return {**shared, "choices": [] if usage else choices, "usage": usage}


def call(index, *, identifier=None, name=None, arguments=""):
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": identifier, "type": "function", "function": function}
