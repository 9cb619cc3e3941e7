# SPDX-License-Identifier: Apache-2.0
"""What `converser doctor` finds: how bad it is, what it is about, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["well", "note", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report."""

    level: Level
    subject: str
    words: str
    remedy: str = ""


def well(subject: str, words: str) -> Finding:
    """Something works."""
    return Finding(level="well", subject=subject, words=words)


def note(subject: str, words: str, remedy: str = "") -> Finding:
    """Something that one may want to know, or to change."""
    return Finding(level="note", subject=subject, words=words, remedy=remedy)


def broken(subject: str, words: str, remedy: str = "") -> Finding:
    """Something does not work."""
    return Finding(level="broken", subject=subject, words=words, remedy=remedy)
