# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that answers with what a test tells it, to the letter, broken streams included."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """One answer; a `broken` one promises more than it sends, one that `lasts` leaves the connection open."""

    body: bytes
    status: int = 200
    kind: str = "text/event-stream"
    headers: dict = field(default_factory=dict)
    broken: bool = False
    lasts: bool = False
    stalls: bool = False


class Service:
    """Gives answers in order, and keeps what it was asked; GET tells the models that it has, if any."""

    def __init__(self, listing):
        self.answers: list[Answer] = []
        self.decide = lambda body: self.answers.pop(0)
        self.requests: list[tuple[str, dict, dict]] = []
        self.listing = listing
        self.disconnected = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def bodies(self):
        return [body for _, _, body in self.requests]

    def close(self):
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def will_stream(self, *frames, broken=False):
        self.answers.append(Answer(b"".join(frames), broken=broken))

    def will_stall(self, *frames):
        self.answers.append(Answer(b"".join(frames), broken=True, stalls=True))

    def will_fail(self, status, body, times=1):
        headers = {"retry-after-ms": "1", "retry-after": "0"}
        data = json.dumps(body).encode()
        answer = Answer(data, status=status, kind="application/json", headers=headers)
        self.answers.extend([answer] * times)


def _make_handler(service):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {key.lower(): value for key, value in self.headers.items()}
            service.requests.append((self.path, headers, json.loads(body)))
            self._give(service.decide(json.loads(body)))

        def do_GET(self):
            status = 200 if service.listing else 404
            body = json.dumps(service.listing or {}).encode()
            self._give(Answer(body, status=status, kind="application/json"))

        def _give(self, answer):
            self.close_connection = not answer.lasts
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            for key, value in answer.headers.items():
                self.send_header(key, value)
            missing = 100_000 if answer.broken else 0
            self.send_header("Content-Length", str(len(answer.body) + missing))
            self.send_header("Connection", "keep-alive" if answer.lasts else "close")
            self.end_headers()
            self.wfile.write(answer.body)
            while answer.stalls and not service.disconnected.wait(0.01):
                try:
                    self.wfile.write(b": \n\n" if answer.kind == "text/event-stream" else b" ")
                except OSError:
                    service.disconnected.set()

        def log_message(self, *_): ...

    return Handler


def frame(data, event=None):
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {text}\n\n".encode()
