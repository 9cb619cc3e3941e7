# SPDX-License-Identifier: Apache-2.0
"""Mistakes in configuration: where they are, what was expected, and how they read; never a value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from converser.exceptions import ConfigurationFailure
from converser.hygiene import clean_text

KeyPath = tuple["str | int", ...]
"""The way from the top of a file to a key: names of tables, and positions in lists."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Problem(NamedTuple):
    """A mistake before it is known where in which file it is."""

    where: KeyPath
    message: str
    suggestion: str = ""

    def under(self, prefix: KeyPath) -> Problem:
        """The same problem, seen from a table further up."""
        return self._replace(where=(*prefix, *self.where))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake; `str()` gives the line for people: place, key, what was expected, nearest key."""

    key: str
    message: str
    suggestion: str = ""
    path: Path | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.path is None else printable(str(self.path))
        if place and self.line is not None:
            place = f"{place}:{self.line}"
        parts = [part for part in (place, self.key) if part]
        hint = f' Did you mean "{printable(self.suggestion)}"?' if self.suggestion else ""
        return f"{': '.join([*parts, self.message])}{hint}"


def printable(text: str) -> str:
    """Escapes what could steer a terminal; the text may come from a stranger's project."""
    return clean_text(text).replace("\n", "\\n").replace("\t", "\\t")


def render_key(where: KeyPath) -> str:
    """Writes a key as one would in the file: `mcp.weather.command[1]`, `mcp."My Server"`."""
    text = ""
    for segment in where:
        if isinstance(segment, int):
            text += f"[{segment}]"
            continue
        if not _BARE_KEY.fullmatch(segment):
            escaped = segment.replace("\\", "\\\\").replace('"', '\\"')
            text += f'{"." if text else ""}"{printable(escaped)}"'
            continue
        text += f".{segment}" if text else segment
    return text


def nearest(word: str, choices: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """The choice that was probably meant, or an empty text."""
    import difflib

    word = word.lower()
    if aliases and word in aliases:
        return aliases[word]
    return next(iter(difflib.get_close_matches(word, list(choices), n=1)), "")


def place_problems(
    problems: Iterable[Problem], *, path: Path | None = None, lines: Mapping[KeyPath, int]
) -> tuple[Mistake, ...]:
    """Gives each problem its line, or the line of the nearest table that has one; sorted by line."""
    mistakes = [
        Mistake(
            key=render_key(problem.where),
            message=problem.message,
            suggestion=problem.suggestion,
            path=path,
            line=_find_line(problem.where, lines),
        )
        for problem in problems
    ]
    return tuple(sorted(mistakes, key=lambda mistake: mistake.line or 0))


def _find_line(where: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    for length in range(len(where), 0, -1):
        if where[:length] in lines:
            return lines[where[:length]]
    return None


def create_failure(mistakes: Sequence[Mistake]) -> ConfigurationFailure:
    """One failure for all mistakes, with one line for each."""
    if len(mistakes) == 1:
        return ConfigurationFailure(str(mistakes[0]), mistakes=mistakes)
    listing = "".join(f"\n  {mistake}" for mistake in mistakes)
    head = f"There are {len(mistakes)} mistakes in the configuration. Correct them all:"
    return ConfigurationFailure(f"{head}{listing}", mistakes=mistakes)
