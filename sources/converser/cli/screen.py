# SPDX-License-Identifier: Apache-2.0
"""What people see: tables on a terminal, lines in a pipe, complaints on standard error.

What servers and models say goes through `clean_text` here, and is never read as markup.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ..exceptions import ConverserFailure
from ..hygiene import clean_json, clean_text
from .exits import ExitCode
from .judging import judge

if TYPE_CHECKING:
    from rich.table import Table

    from ..ensembles import Ensemble

_NUMBERS = ("tools", "tokens", "latency", "length")
_MARKS = {"+": "green", "-": "red", "~": "yellow"}
_STYLES = {
    "connected": "green",
    "failed": "red",
    "needs-auth": "red",
    "reconnecting": "yellow",
    "pending": "yellow",
    "disabled": "dim",
}


def say(words: object = "") -> None:
    """Writes to standard output, as it is but for treacherous characters."""
    sys.stdout.write(f"{clean_text(str(words))}\n")


def complain(words: object, *, style: str = "yellow") -> None:
    """Says something on standard error, where it harms no output."""
    write(Console(stderr=True, highlight=False), Text(clean_text(str(words)), style=style))


def write(console: Console, text: Text) -> None:
    """At a terminal, lines end between words, and no word is cut; in a pipe, lines stay whole."""
    if console.is_terminal:
        console.print(text, overflow="ignore", crop=False)
    else:
        console.print(text, soft_wrap=True)


_beginning: float | None = None


def speak_up() -> None:
    """From now on, what is whispered is heard."""
    global _beginning  # noqa: PLW0603
    _beginning = time.monotonic()


def whisper(words: object) -> None:
    """Says on standard error what goes on, and since when, where somebody wants to know."""
    if _beginning is not None:
        complain(f"[{time.monotonic() - _beginning:6.2f} s] {words}", style="dim")


def report(failure: Exception) -> ExitCode:
    """Tells of a failure in words for people, and gives the code to end with."""
    if isinstance(failure, ConverserFailure):
        complain(failure)
    else:
        complain(
            f"Unexpected {type(failure).__name__}: {failure}. This is our mistake, not yours;"
            " --trace shows where it came from."
        )
    return judge(failure)


def remark(ensemble: Ensemble) -> None:
    """Tells what was left out of an ensemble, and why."""
    for tool, reason in ensemble.disabled.items():
        complain(f"{ensemble.name}.{tool} is disabled: {reason}")
    for words in ensemble.remarks:
        complain(f"{ensemble.name}: {words}")


def print_json(data: Any) -> None:
    """JSON that people can read, in colours on a terminal; no character in it can steer one."""
    text = clean_json(json.dumps(data, indent=2, ensure_ascii=False))
    if not is_terminal():
        sys.stdout.write(f"{text}\n")
        return
    from rich.highlighter import JSONHighlighter

    Console(highlight=False).print(JSONHighlighter()(Text(text)), soft_wrap=True)


def is_terminal() -> bool:
    """Whether standard output is looked at by a person."""
    return Console().is_terminal


def confirm(question: str) -> bool:
    """Asks at the terminal; anything but a clear yes is a no."""
    forget_typing()
    sys.stderr.write(f"{clean_text(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def forget_typing() -> None:
    """What was typed before the question was shown is no answer to it."""
    try:
        import termios
    except ImportError:  # Windows
        return
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def print_rows(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table for people; for programs a line for each row, with tabs and without titles."""
    if is_terminal():
        table = build_table(titles, rows)
        if table.row_count:
            Console(highlight=False).print(table)
        return
    sys.stdout.writelines("\t".join(map(squeeze, row)) + "\n" for row in rows)


def build_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table without lines; numbers stand to the right, and states have colours."""
    from rich.table import Table

    has_long, width = "description" in titles, Console().width
    table = Table(box=None, pad_edge=False, header_style="bold", expand=has_long)
    for title in titles:
        is_first, is_long = title == titles[0], title == "description"
        table.add_column(
            title,
            justify="right" if title in _NUMBERS else "left",
            no_wrap=is_long,
            ratio=1 if is_long else None,
            # No cell, however long, pushes others off the screen; and names can be copied whole.
            max_width=None if is_long or not has_long else width * (2 if is_first else 1) // 5,
            overflow="fold" if is_first else "ellipsis",
        )
    for row in rows:
        cells = [squeeze(cell) for cell in row]
        table.add_row(*(Text(cell, _STYLES.get(cell, "")) for cell in cells))
    return table


def print_lines(lines: Iterable[str]) -> None:
    """The lines of a difference; on a terminal what came is green, and what went is red."""
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(clean_text(line), _MARKS.get(line.lstrip()[:1], "")))


def count(number: int, noun: str) -> str:
    """So many of something, in words."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def squeeze(text: str) -> str:
    """Text on one line, cleaned, and cut where it is endless."""
    return clean_text(" ".join(text.split()), limit=500)
