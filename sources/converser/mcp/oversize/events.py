# SPDX-License-Identifier: Apache-2.0
"""Streams of events without oversized ones: such an event is kept in a file, and made small."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, AsyncIterator

from pydantic_core import from_json, to_json

from ..failures import wrap_fault
from ..leniency import has_too_many_parts, recover_identifiers
from .running import Oversize, reduce_message, spill_message
from .spills import Bounds, Gathering, Spill

LARGE = 1024 * 1024
_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_DATA = re.compile(rb"(?:\A|[\r\n])data: ?([^\r\n]+)")
_IDENTITY = re.compile(rb"(?:\A|[\r\n])(id: ?[^\r\n]+)")


async def shrink_events(
    pieces: AsyncIterator[bytes], bounds: Bounds
) -> AsyncGenerator[bytes, None]:
    """Whole events, as they come; nobody can use half of one."""
    gathering, large = Gathering(bounds), min(LARGE, bounds.memory)
    edge, mark = b"", BOM_UTF8
    try:
        async for raw in pieces:
            piece, mark = raw.removeprefix(mark), b""
            if not gathering.size and piece.endswith(_ENDS) and len(piece) < large:
                yield piece  # the common case, at once
                continue
            rest = piece
            first = gathering.size + len(piece) > large
            while (cut := _find_cut(edge, rest, first=first)) is not None:
                gathering.add(rest[:cut])
                rest, edge = rest[cut:], b""
                yield await _shrink(gathering.release(), bounds)
            gathering.add(rest)
            edge = (edge + rest)[-3:]
            if gathering.is_hopeless:
                break
        if gathering.size:
            yield _conclude(await _shrink(gathering.release(), bounds))
    finally:
        gathering.discard()


def _find_cut(edge: bytes, piece: bytes, *, first: bool) -> int | None:
    """Where the first or the last event ends in a piece; its end may have begun in the one before."""
    data = edge + piece
    seek = data.find if first else data.rfind
    places = [place + len(end) for end in _ENDS if (place := seek(end)) >= 0]
    found = (min if first else max)(places, default=0)
    return found - len(edge) if found > len(edge) else None


def _conclude(event: bytes) -> bytes:
    """The last event with the empty line that some servers leave out, if it is whole."""
    try:
        from_json(b"".join(_DATA.findall(event)))
    except ValueError:
        return event
    return event + b"\n\n"


async def _shrink(event: bytes | Spill, bounds: Bounds) -> bytes:
    if isinstance(event, bytes):
        if len(event) <= LARGE or not has_too_many_parts(event, bounds.parts):
            return event
        event = spill_message(event, bounds)
    identity = _IDENTITY.search(event.edges)
    try:
        message = await reduce_message(event, bounds)
    except Oversize as failure:
        message = _blame(event.edges, failure)
    head = identity[1] + b"\n" if identity else b""
    return b"%bdata: %b\n\n" % (head, message.replace(b"\r", b" ").replace(b"\n", b" "))


def _blame(edges: bytes, failure: Oversize) -> bytes:
    """An error in place of an answer that cannot be used, if it tells what it answers."""
    found = recover_identifiers(edges)
    if len(found) != 1:
        failure.discard()
        return b""
    fault = wrap_fault({"broken": failure.keep(), "remedy": failure.remedy})
    return to_json({"jsonrpc": "2.0", "id": found.pop(), "error": fault})
