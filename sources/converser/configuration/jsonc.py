# SPDX-License-Identifier: Apache-2.0
"""Reads JSON with comments and trailing commas, as editors write it, and finds the lines of its keys."""

from __future__ import annotations

import bisect
import contextlib
import json
import re
from typing import Any, NamedTuple

from .mistakes import KeyPath

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[\]}}])", re.DOTALL)
_TOKEN = re.compile(rf'{_STRING}|[{{}}\[\],:]|[^\s"{{}}\[\],:]+', re.DOTALL)


class Fault(NamedTuple):
    """Where a text stops being JSON; the text itself is not kept, as it may hold secrets."""

    line: int
    message: str


def read_json(text: str) -> Any | Fault:
    """The data, or where and why there is none."""
    try:
        return json.loads(_blank_out(text))
    except json.JSONDecodeError as failure:
        return Fault(failure.lineno, f"this is not valid JSON: {failure.msg}.")
    except RecursionError:
        return Fault(1, "this JSON is nested too deeply.")
    except ValueError:
        return Fault(1, "this JSON has a number with too many digits.")


def _blank_out(text: str) -> str:
    """Puts spaces in the place of comments and trailing commas, so that all positions stay."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[1] is not None else re.sub(r"[^\n]", " ", match[0])

    return _TRAILING_COMMA.sub(blank, _COMMENT.sub(blank, text))


def locate_json_keys(text: str) -> tuple[dict[KeyPath, int], list[KeyPath]]:
    """The line of each key and item of valid JSON, and the keys that are there more than once."""
    locator = _Locator(_blank_out(text))
    # The lines up to there are better than none.
    with contextlib.suppress(IndexError, RecursionError):
        locator.read_value(())
    return locator.lines, locator.doubled


class _Locator:
    """Walks once over the tokens of text that the parser has accepted."""

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.doubled: list[KeyPath] = []
        self._tokens = [(match[0], match.start()) for match in _TOKEN.finditer(text)]
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._place = 0

    def read_value(self, path: KeyPath) -> None:
        opening = self._take()
        if opening not in ("{", "["):
            return
        count = 0
        while self._tokens[self._place][0] not in ("}", "]"):
            if self._tokens[self._place][0] == ",":
                self._take()
            here = self._tokens[self._place][1]
            item: KeyPath = (*path, json.loads(self._take()) if opening == "{" else count)
            if opening == "{":
                self._take()
            self._note(item, here)
            self.read_value(item)
            count += 1
        self._take()

    def _take(self) -> str:
        self._place += 1
        return self._tokens[self._place - 1][0]

    def _note(self, item: KeyPath, position: int) -> None:
        if item in self.lines:
            self.doubled.append(item)
        self.lines[item] = bisect.bisect_left(self._breaks, position) + 1
