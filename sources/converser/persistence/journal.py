# SPDX-License-Identifier: Apache-2.0
"""A file of lines that only grows at its end, and is readable again after whatever was cut off there."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .files import write_new

_BOM = b"\xef\xbb\xbf"


class Entry(NamedTuple):
    """A line that is not blank: its number as editors count, where it begins, and what it holds."""

    number: int
    offset: int
    data: bytes


class Journal:
    """The file of one conversation; who uses it must hold the store's lock."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, data: bytes) -> None:
        """Writes whole lines at the end, durably; a write that fails leaves the file as it was."""
        with self.path.open("r+b", buffering=0) as stream:
            end = stream.seek(0, os.SEEK_END)
            try:
                _write_all(stream.fileno(), data)
                os.fsync(stream.fileno())
            except OSError:
                stream.truncate(end)
                raise

    def cut(self, offset: int) -> None:
        """Drops what begins there, in one step."""
        with self.path.open("r+b", buffering=0) as stream:
            stream.truncate(offset)
            os.fsync(stream.fileno())

    def read(self) -> bytes:
        """All that is there."""
        return self.path.read_bytes()

    def mend(self) -> str:
        """Sees to it that the last line is a whole one; says what was amiss, if anything."""
        if self._is_sound():
            return ""
        data = self.read()
        begin = data.rfind(b"\n") + 1
        tail = data[begin:]
        if not tail.strip() or _is_object(tail):
            self.append(b"\n")
            return ""
        aside = self.path.with_name(f"torn-{secrets.token_hex(4)}.txt")
        write_new(aside, tail)
        self.cut(begin)
        return (
            f"The last line of {self.path} was torn, as when a program is killed: it was cut off,"
            f" and its {len(tail)} bytes are kept in {aside.name}."
        )

    def _is_sound(self) -> bool:
        with self.path.open("rb") as stream:
            if not stream.seek(0, os.SEEK_END):
                return True
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) == b"\n"


def split(data: bytes) -> Iterator[Entry]:
    """The lines that are not blank, in order."""
    offset = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        content = line.removeprefix(_BOM) if number == 1 else line
        if content.strip():
            yield Entry(number, offset, content)
        offset += len(line) + 1


def _write_all(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def _is_object(tail: bytes) -> bool:
    """Whether a line lacks only its end, as some editors leave it; no beginning of one is whole JSON."""
    try:
        return isinstance(json.loads(tail), dict)
    except (ValueError, RecursionError):
        return False
