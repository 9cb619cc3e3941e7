# SPDX-License-Identifier: Apache-2.0
"""Cuts a stream of bytes into lines, in linear time and within a bound of memory."""

from __future__ import annotations

from dataclasses import dataclass

LINE_LENGTH_MAX = 256 * 1024 * 1024
_HEAD_LENGTH = 4_096


@dataclass(frozen=True, slots=True)
class Excess:
    """A line that was over the bound: how it began, and how long it was."""

    head: bytes
    length: int


class Framer:
    """Collects chunks until a line is whole; a line over the bound is counted, and not kept."""

    def __init__(self, limit: int = LINE_LENGTH_MAX) -> None:
        self._limit = limit
        self._chunks: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes | Excess]:
        """The lines that this chunk completes; empty ones are left out."""
        first, *others = chunk.split(b"\n")
        self._hold(first)
        lines: list[bytes | Excess] = []
        for piece in others:
            if self._length:
                lines.append(self._release())
            self._hold(piece)
        return lines

    def _hold(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= self._limit:
            self._chunks.append(piece)
        elif len(self._chunks) != 1 or len(self._chunks[0]) > _HEAD_LENGTH:
            self._chunks = [b"".join([*self._chunks, piece])[:_HEAD_LENGTH]]

    def _release(self) -> bytes | Excess:
        line = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        length, self._length, self._chunks = self._length, 0, []
        return Excess(line[:_HEAD_LENGTH], length) if length > self._limit else line
