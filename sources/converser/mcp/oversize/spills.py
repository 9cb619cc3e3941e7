# SPDX-License-Identifier: Apache-2.0
"""A message on its way into memory or, where it is too large, into a file; bounded there, too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ...excesses import STORE, Excess

RESULT_LIMIT = 16 * 1024 * 1024
"""Bytes of one message that are taken into memory, if a client is not told otherwise."""

_EDGE = 4_096


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large messages may be; all bounds follow from how much of one is taken into memory."""

    memory: int = RESULT_LIMIT

    @property
    def parts(self) -> int:
        """Values in one message: each becomes an object, and takes much more than its bytes."""
        return self.memory // 64

    @property
    def file(self) -> int:
        """Bytes of one message that are kept in a file."""
        return self.memory * 16


USUAL_BOUNDS = Bounds()


class Spill:
    """The file of one message; it remembers how the message began and ended, where its id may be."""

    def __init__(self, bounds: Bounds) -> None:
        self.size = 0
        self._head = self._tail = b""
        self._bounds = bounds
        self._path: Path | None = None
        self._file: IO[bytes] | None = None
        self._complaint = ""
        self._kept = 0

    @property
    def edges(self) -> bytes:
        """The first and the last bytes of the message."""
        return self._head + self._tail

    @property
    def path(self) -> Path | None:
        """Where the whole message is; None where it could not be kept whole."""
        return None if self._complaint else self._path

    def write(self, piece: bytes) -> None:
        """Takes a piece in; where it cannot be kept, it is counted."""
        self.size += len(piece)
        self._head += piece[: _EDGE - len(self._head)]
        self._tail = (self._tail + piece[-_EDGE:])[-_EDGE:]
        if self._complaint:
            return
        if self.size > self._bounds.file:
            self._complaint = f"it has more than {self._bounds.file} bytes"
            piece = piece[: self._bounds.file - self._kept]
        try:
            self._open().write(piece)
            self._kept += len(piece)
        except OSError as failure:
            self._complaint = f"it cannot be stored: {failure.strerror}"

    def close(self) -> None:
        """No more will come."""
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        """Removes the file."""
        self.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def keep(self, reason: str) -> str:
        """Keeps the message as it came, and says why it could not be used, and where it is."""
        self.close()
        reason = self._complaint or reason
        if self._path is None or not self._kept:
            self.discard()
            return reason
        excess: Excess = STORE.keep(self._path, "application/json")
        self._path = None
        part = "its beginning" if excess.size < self.size else "it"
        return f"{reason}; {part} is kept as {excess.handle} in {excess.path}"

    def _open(self) -> IO[bytes]:
        if self._file is None:
            self._path = STORE.reserve()
            self._file = self._path.open("xb", buffering=0)
        return self._file


class Gathering:
    """Pieces of a message, in memory up to the bound, and then in a file."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._pieces: list[bytes] = []
        self._spill: Spill | None = None
        self.size = 0

    @property
    def is_hopeless(self) -> bool:
        """Whether it is more than even a file shall hold, so that nobody need wait for its end."""
        return self.size > self._bounds.file

    def add(self, piece: bytes) -> None:
        """Takes a piece in, which may be empty."""
        if not piece:
            return
        self.size += len(piece)
        if self._spill is not None:
            self._spill.write(piece)
            return
        self._pieces.append(piece)
        if self.size > self._bounds.memory:
            self._spill = Spill(self._bounds)
            for each in self._pieces:
                self._spill.write(each)
            self._pieces = []

    def release(self) -> bytes | Spill:
        """The whole message; what comes now is another one."""
        spill, pieces = self._spill, self._pieces
        self.size, self._spill, self._pieces = 0, None, []
        return spill or (pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def discard(self) -> None:
        """Forgets a message that will never be whole."""
        if self._spill is not None:
            self._spill.discard()
