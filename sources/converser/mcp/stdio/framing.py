# SPDX-License-Identifier: Apache-2.0
"""Cuts a stream of bytes into lines, in linear time and within a bound of memory."""

from __future__ import annotations

from ..oversize.spills import Bounds, Gathering, Spill


class Framer:
    """Collects chunks until a line is whole; a line over the bound goes into a file instead."""

    def __init__(self, bounds: Bounds) -> None:
        self._line = Gathering(bounds)

    def feed(self, chunk: bytes) -> list[bytes | Spill]:
        """The lines that this chunk completes; empty ones are left out."""
        line = self._line
        if b"\n" not in chunk:  # of a long line most chunks are such: they need no copy
            line.add(chunk)
            return []
        first, *others = chunk.split(b"\n")
        line.add(first)
        lines: list[bytes | Spill] = []
        for piece in others:
            if line.size:
                lines.append(line.release())
            line.add(piece)
        return lines

    def discard(self) -> None:
        """Forgets a line that will never be whole."""
        self._line.discard()
