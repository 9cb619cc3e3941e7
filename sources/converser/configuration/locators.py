# SPDX-License-Identifier: Apache-2.0
"""Finds the lines of keys in TOML, which the parser does not tell; reads text that has been parsed before."""

from __future__ import annotations

import bisect
import contextlib
import re

from .mistakes import KeyPath

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")
# In each, a run of quotation marks at the end may have up to two that belong to the text.
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


def locate_keys(text: str) -> dict[KeyPath, int]:
    """The line, counted from 1, of each key, table and item of a list; the first one if there are more."""
    locator = _Locator(text)
    # Text that no parser accepts: the lines up to there are better than none.
    with contextlib.suppress(IndexError, RecursionError):
        locator.read_document()
    return locator.lines


class _Locator:
    """Walks once over the text; knows just enough of TOML to tell keys from values."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.lines: dict[KeyPath, int] = {}
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._counts: dict[KeyPath, int] = {}

    def read_document(self) -> None:
        table: KeyPath = ()
        while self._skip(_BLANK) < len(self.text):
            start = self.position
            if self.text[start] == "[":
                table = self._read_header()
            else:
                self._read_pair(table)
            if self.position == start:
                raise IndexError

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.position)
        if match:
            self.position = match.end()
        return self.position

    def _note(self, path: KeyPath, position: int) -> None:
        line = bisect.bisect_left(self._breaks, position) + 1
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _read_header(self) -> KeyPath:
        """Reads `[a.b]` or `[[a.b]]`; lists of tables on the way stand for their last item."""
        start = self.position
        doubled = self.text.startswith("[[", start)
        self.position += 2 if doubled else 1
        keys = self._read_keys()
        segments: list[str | int] = []
        for place, key in enumerate(keys):
            segments.append(key)
            path = tuple(segments)
            if doubled and place == len(keys) - 1:
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                segments.append(self._counts[path])
        self._note(tuple(segments), start)
        self._skip(_SPACE)
        self.position += 2 if doubled else 1
        return tuple(segments)

    def _read_keys(self) -> tuple[str, ...]:
        keys: list[str] = []
        while True:
            self._skip(_SPACE)
            keys.append(self._read_key())
            self._skip(_SPACE)
            if self.text[self.position] != ".":
                return tuple(keys)
            self.position += 1

    def _read_key(self) -> str:
        start = self.position
        quoted = self.text[start] in "\"'"
        text = self.text[start : self._skip(_STRING if quoted else _BARE_KEY)]
        if not text:
            raise IndexError
        return _unquote(text) if quoted else text

    def _read_pair(self, table: KeyPath) -> None:
        start = self.position
        path = (*table, *self._read_keys())
        self._note(path, start)
        self.position += 1  # The equals sign.
        self._read_value(path)

    def _read_value(self, path: KeyPath) -> None:
        self._skip(_SPACE)
        sign = self.text[self.position]
        if sign == "[":
            self._read_items(path, "]")
        elif sign == "{":
            self._read_items(path, "}")
        else:
            self._skip(_STRING if sign in "\"'" else _SCALAR)

    def _read_items(self, path: KeyPath, end: str) -> None:
        """Reads the items of a list, or the pairs of an inline table."""
        self.position += 1
        count = 0
        while self.text[self._skip(_BLANK)] != end:
            if end == "}":
                self._read_pair(path)
            else:
                self._note((*path, count), self.position)
                self._read_value((*path, count))
            count += 1
            if self.text[self._skip(_BLANK)] == ",":
                self.position += 1
            elif self.text[self.position] != end:
                raise IndexError
        self.position += 1


def _unquote(text: str) -> str:
    """The key that a quoted key means; the parser knows the escapes."""
    if text[0] == "'" or "\\" not in text:
        return text[1:-1]
    import tomli

    try:
        return next(iter(tomli.loads(f"{text} = 0")))
    except tomli.TOMLDecodeError:
        return text[1:-1]
