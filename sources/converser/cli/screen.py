# SPDX-License-Identifier: Apache-2.0
"""What people see: tables on a terminal, lines in a pipe, complaints on standard error.

What servers and models say goes through `clean_text` here, and is never read as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..exceptions import ConverserFailure
from ..hygiene import clean_text
from .exits import ExitCode
from .judging import judge

if TYPE_CHECKING:
    from ..ensembles import Ensemble


def say(words: object = "") -> None:
    """Writes to standard output, as it is but for treacherous characters."""
    sys.stdout.write(f"{clean_text(str(words))}\n")


def complain(words: object, *, style: str = "yellow") -> None:
    """Says something on standard error, where it harms no output."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text(clean_text(str(words)), style=style))


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


def print_rows(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table for people; for programs a line for each row, with tabs and without titles."""
    console = Console(highlight=False)
    cleaned = [[squeeze(cell) for cell in row] for row in rows]
    if not console.is_terminal:
        sys.stdout.writelines("\t".join(cells) + "\n" for cells in cleaned)
    elif cleaned:
        console.print(_build_table(titles, cleaned))


def squeeze(text: str) -> str:
    """Text on one line, cleaned, and cut where it is endless."""
    return clean_text(" ".join(text.split()), limit=500)


def _build_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> object:
    from rich.table import Table

    table = Table(*titles, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
