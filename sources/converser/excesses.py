# SPDX-License-Identifier: Apache-2.0
"""What was too large to be taken into memory: private files, and the handles by which they are read.

They last as long as this process, unless there are too many of them: then the oldest go. What a process
that was killed has left is swept away by the next one.
"""

from __future__ import annotations

import atexit
import codecs
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio.lowlevel

from .contents import LinkContent

STORE_MAX = 1024 * 1024 * 1024
"""Bytes of all files together; over it, the oldest go."""

HANDLE = re.compile(r"excess-[0-9a-f]{12}")
_PREFIX = "converser-excess-"
_PIECE = 1024 * 1024
_CHARACTER_MAX = 4
"""Bytes of the longest character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """A part of a result in a file of its own; a `LinkContent` of that result has its handle as name."""

    handle: str
    path: Path
    mimetype: str
    size: int

    @property
    def is_text(self) -> bool:
        """Whether it can be read as text, which is UTF-8."""
        return self.mimetype.startswith("text/") or self.mimetype == "application/json"

    def read(self, offset: int, length: int) -> tuple[str, int]:
        """The text at an offset, and where it ends; all count bytes, and halved characters are left out."""
        with self.path.open("rb") as file:
            file.seek(offset)
            data = file.read(max(length, _CHARACTER_MAX))
        decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        text = decoder.decode(data, final=offset + len(data) >= self.size)
        return text, offset + len(data) - len(decoder.getstate()[0])

    async def find(self, words: str, offset: int) -> int | None:
        """Where words next occur, without regard to case; others get their turn meanwhile."""
        pattern = re.compile(re.escape(words), re.IGNORECASE)
        overlap = len(words.encode())
        while offset < self.size:
            text, end = self.read(offset, _PIECE + overlap)
            if found := pattern.search(text):
                return end - len(text[found.start() :].encode())
            offset += _PIECE
            await anyio.lowlevel.checkpoint()
        return None


class ExcessStore:
    """A private directory of this process, made when it is first needed."""

    def __init__(self) -> None:
        self._directory: Path | None = None
        self._owner: IO[bytes] | None = None
        self._process = 0
        self._kept: dict[str, Excess] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever too large."""
        return not self._kept

    def reserve(self) -> Path:
        """A path for a new file that only we can read."""
        return self._open() / f"excess-{secrets.token_hex(6)}"

    def keep(self, path: Path, mimetype: str) -> Excess:
        """Takes a file in; its name is its handle."""
        size = path.stat().st_size
        excess = Excess(handle=path.name, path=path, mimetype=mimetype, size=size)
        self._kept[excess.handle] = excess
        room = STORE_MAX - sum(each.size for each in self._kept.values())
        for old in list(self._kept.values())[:-1]:
            if room >= 0:
                break
            room += old.size
            del self._kept[old.handle]
            old.path.unlink(missing_ok=True)
        return excess

    def find(self, handle: str) -> Excess | None:
        """What a handle stands for, where it is still there; only what we stored ourselves has one."""
        excess = self._kept.get(handle)
        return excess if excess is not None and excess.path.exists() else None

    def close(self) -> None:
        """Removes everything that is not of the process that this one was forked from."""
        self._kept.clear()
        if self._directory is not None and self._process == os.getpid():
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = None
        if self._owner is not None:
            self._owner.close()
            self._owner = None

    def _open(self) -> Path:
        is_own = self._process == os.getpid()
        if self._directory is None or not is_own or not self._directory.is_dir():
            parent = Path(tempfile.gettempdir())
            _sweep(parent)
            draft = Path(tempfile.mkdtemp(prefix="converser-"))  # which only we may enter
            owner = (draft / "owner").open("xb")
            _try_lock(owner)
            self._directory = draft.rename(parent / f"{_PREFIX}{secrets.token_hex(8)}")
            self._owner, self._process = owner, os.getpid()
            atexit.register(self.close)
        return self._directory


STORE = ExcessStore()


def access_excess(link: LinkContent) -> Excess | None:
    """What a link in a result stands for, if it is to something too large that is still stored."""
    return STORE.find(link.name)


def _sweep(parent: Path) -> None:
    """Removes what processes have left that ended without a chance to do so."""
    for directory in _find_old(parent):
        with suppress(OSError), (directory / "owner").open("rb+") as owner:
            if _try_lock(owner):
                shutil.rmtree(directory, ignore_errors=True)


def _find_old(parent: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from parent.glob(f"{_PREFIX}*")


def _try_lock(file: IO[bytes]) -> bool:
    """Whether nobody who lives holds this file; a lock ends with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system; there, temporary files are the system's to sweep
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
