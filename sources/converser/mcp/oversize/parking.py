# SPDX-License-Identifier: Apache-2.0
"""Large messages in streams of events go past the SDK, which handles each of their bytes several times.

Its reader of the older events would even end the session for one that has more than a megabyte.
"""

from __future__ import annotations

import re
import secrets
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter
from pydantic_core import to_json

from ..failures import wrap_fault
from ..leniency import recover_identifiers
from ..messages import decode_messages
from ..narrowing import as_dictionary
from ..tap import TappedRead
from .spills import USUAL_BOUNDS, Bounds

_TICKET = f"converser/parked/{secrets.token_hex(8)}"
"""What stands in a message for another one; no server can guess it."""
_DATA = b"data:"
_LINES = 4_096
_BROKEN = "it is not valid JSON"
_HEAD = ("jsonrpc", "id", "method")
_IDENTITY = re.compile(rb"(?:\A|[\r\n])(id: ?[^\r\n]+)")


class Parking:
    """Messages of one session, each of which waits until the SDK hands on the ticket that stands for it."""

    def __init__(self, bounds: Bounds = USUAL_BOUNDS) -> None:
        self.bounds = bounds
        """How large a message may be that is taken into memory at all."""
        self._parked: dict[str, JSONRPCMessage] = {}

    def park(self, event: bytes) -> bytes:
        """The event with a ticket in place of its message; one that is broken fails the call that it answers."""
        messages = decode_messages(read_data(event))
        if messages is None:
            identifier = find_answered(event)
            blame = b"" if identifier is None else blame_message(identifier, _BROKEN)
            return compose_event(event, blame)
        try:
            [message] = messages
            parked = jsonrpc_message_adapter.validate_python(message, by_name=False)
        except ValueError:  # a batch, or no message of the protocol
            return event
        number = secrets.token_hex(8)
        self._parked[number] = parked
        ticket: dict[str, Any] = {key: message[key] for key in _HEAD if key in message}
        ticket["params" if "method" in message else "result"] = {_TICKET: number}
        return compose_event(event, to_json(ticket))

    def put_on(self, read: Any) -> Any:
        """The stream of messages of the SDK's transport, with those that were parked."""
        return TappedRead(read, self)

    def treat(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Called for each message."""
        if isinstance(item, Exception):
            return item
        message: Any = item.message
        carried = getattr(message, "result", None) or getattr(message, "params", None)
        if (number := (as_dictionary(carried) or {}).get(_TICKET)) in self._parked:
            identity = {"id": message.id} if hasattr(message, "id") else {}
            item.message = self._parked.pop(number).model_copy(update=identity)
        return item

    def lose(self) -> None:
        """Called at the end of the stream."""
        self._parked.clear()


def read_data(event: bytes) -> bytes:
    """What an event carries."""
    lines = event.splitlines()
    return b"\n".join(line[len(_DATA) :] for line in lines if line.startswith(_DATA))


def compose_event(event: bytes, message: bytes) -> bytes:
    """The same event with another message, which must be in one line, or without any."""
    identity = _IDENTITY.search(event[:_LINES] + event[-_LINES:])
    return b"%bdata: %b\n\n" % (identity[1] + b"\n" if identity else b"", message)


def find_answered(edges: bytes) -> int | str | None:
    """The one request that a broken message answers, as far as its beginning and its end tell."""
    found = recover_identifiers(edges)
    return found.pop() if len(found) == 1 else None


def blame_message(identifier: int | str, reason: str, remedy: str = "") -> bytes:
    """An error in place of an answer that cannot be used."""
    fault = wrap_fault({"broken": reason, "remedy": remedy})
    return to_json({"jsonrpc": "2.0", "id": identifier, "error": fault})
