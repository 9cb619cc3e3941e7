# SPDX-License-Identifier: Apache-2.0
"""Streams of events without oversized ones: such an event is kept in a file, and made small."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, AsyncIterator

import anyio.lowlevel
from pydantic_core import from_json

from ..leniency import has_deep_tools, has_too_many_parts
from .parking import Parking, blame_message, compose_event, find_answered, read_data
from .running import Oversize, reduce_message, spill_message
from .spills import Bounds, Gathering, Spill

LARGE = 1024 * 1024
_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


async def shrink_events(
    pieces: AsyncIterator[bytes], parking: Parking
) -> AsyncGenerator[bytes, None]:
    """Whole events, as they come; nobody can use half of one."""
    gathering, large = Gathering(parking.bounds), min(LARGE, parking.bounds.memory)
    edge, mark = b"", BOM_UTF8
    try:
        async for raw in pieces:
            piece, mark = raw.removeprefix(mark), b""
            is_whole = not gathering.size and piece.endswith(_ENDS)
            if is_whole and len(piece) < large and not has_deep_tools(piece):
                yield piece  # the common case, at once
                continue
            rest = piece
            first = gathering.size + len(piece) > large
            while (cut := _find_cut(edge, rest, first=first)) is not None:
                gathering.add(rest[:cut])
                rest, edge = rest[cut:], b""
                yield await _shrink(gathering.release(), parking)
            gathering.add(rest)
            edge = (edge + rest)[-3:]
            if gathering.is_hopeless:
                break
        if gathering.size:
            yield _conclude(await _shrink(gathering.release(), parking))
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
        from_json(read_data(event))
    except ValueError:
        return event
    return event + b"\n\n"


async def _shrink(event: bytes | Spill, parking: Parking) -> bytes:
    if isinstance(event, bytes) and len(event) > LARGE:
        if has_too_many_parts(event, parking.bounds.parts):
            event = spill_message(event, parking.bounds)
        else:
            await anyio.lowlevel.checkpoint()
    if isinstance(event, Spill):
        event = compose_event(event.edges, await _reduce(event, parking.bounds))
    is_plain = len(event) <= LARGE and not has_deep_tools(event)
    return event if is_plain else parking.park(event)


async def _reduce(spill: Spill, bounds: Bounds) -> bytes:
    """A message with links to files in place of what is large in it, or the failure of the call that it answers."""
    identifier = find_answered(spill.edges)
    try:
        message = await reduce_message(spill, bounds)
    except Oversize as failure:
        if identifier is None:
            failure.discard()
            return b""
        return blame_message(identifier, failure.keep(), failure.remedy)
    return message.replace(b"\r", b" ").replace(b"\n", b" ")
