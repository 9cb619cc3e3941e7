# SPDX-License-Identifier: Apache-2.0
"""How calls are told to people: what was called, with what, how it ended, and what came of it.

Everything that leaves this room is clean: no server and no model can steer a terminal with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...contents import ImageContent, TextualContent
from ...hygiene import clean_text
from ...outcomes import Outcome
from ..calls import describe_content

if TYPE_CHECKING:
    from ...canisters import InvocationCanister, ResultCanister

FOLDED_LINES = 3
"""How much of a result is shown until it is opened."""
_ENDS = {
    Outcome.SUCCESS: "done",
    Outcome.TOOL_ERROR: "failed",
    Outcome.REFUSED: "refused",
    Outcome.INVALID: "bad arguments",
    Outcome.TIMED_OUT: "timed out",
    Outcome.CANCELLED: "cancelled",
    Outcome.UNKNOWN: "outcome unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call that has ended, kept so that it can be looked at again."""

    number: int
    title: str
    invocation: InvocationCanister
    result: ResultCanister
    duration: float


def name_tool(ensemble: str, name: str) -> str:
    """A tool as people write it, SERVER.TOOL, from its name on the wire."""
    for prefix in (f"mcp__{ensemble}__", f"{ensemble}_"):
        if ensemble and name.startswith(prefix):
            return clean_line(f"{ensemble}.{name.removeprefix(prefix)}")
    return clean_line(f"{ensemble}.{name}" if ensemble else name)


def clean_line(text: str, limit: int = 0) -> str:
    """Text that stays on its line."""
    return clean_text(text, limit=limit).replace("\n", "\\n").replace("\t", "\\t")


def tidy(text: str) -> str:
    """Text of several lines, clean; line ends of other systems are line ends."""
    return clean_text(text.replace("\r\n", "\n"))


def write_json(value: Any, indent: int | None = None) -> str:
    """JSON for people: every character that is more than a letter is visible."""
    return clean_text(json.dumps(value, ensure_ascii=False, indent=indent, default=str))


def summarize_arguments(arguments: Mapping[str, Any], limit: int) -> str:
    """Arguments on one line, cut where they are long."""
    words = " ".join(f"{clean_line(key)}={write_json(arguments[key])}" for key in arguments)
    return words if len(words) <= limit else f"{words[: max(0, limit - 1)]}…"


def list_arguments(arguments: Mapping[str, Any]) -> list[str]:
    """Arguments in full, each beginning a line of its own."""
    return [f"{clean_line(key)} = {write_json(arguments[key], 2)}" for key in arguments]


def describe_end(outcome: Outcome, duration: float) -> str:
    """How a call ended, and after how long."""
    took = f", {tell_seconds(duration)}" if duration else ""
    return f"{_ENDS[outcome]}{took}"


def tell_seconds(seconds: float) -> str:
    """A span of time, as precise as it matters."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def list_result(result: ResultCanister) -> list[str]:
    """What came of a call, line by line; of images and other data, what they are."""
    parts = [clean_text(result.error)] if result.error else []
    texts = [part.text for part in result.contents if isinstance(part, TextualContent)]
    if result.structured is not None and not texts:
        parts.append(write_json(result.structured))
    parts.extend(_compact(describe_content(part)) for part in result.contents)
    return [line for part in parts for line in part.rstrip("\n").split("\n")]


def _compact(text: str) -> str:
    """Short JSON on one line, as it needs no more; all else as it is."""
    if len(text) < 1000 and text.startswith(("{", "[")):
        try:
            line = write_json(json.loads(text))
        except (ValueError, RecursionError):
            return tidy(text)
        return line if len(line) <= 100 else tidy(text)
    return tidy(text)


def list_images(result: ResultCanister) -> list[ImageContent]:
    """The pictures that came of a call."""
    return [part for part in result.contents if isinstance(part, ImageContent)]


def fold(lines: Iterable[str], width: int, how_to_open: str = "") -> list[str]:
    """The first of many lines, each cut to the width, and how many more there are."""
    lines = list(lines)
    shown = [line if len(line) <= width else f"{line[: width - 1]}…" for line in lines]
    hidden = len(lines) - FOLDED_LINES
    if hidden <= 0 and shown == lines:
        return shown
    more = f"… {hidden} more line{'s' if hidden > 1 else ''}" if hidden > 0 else ""
    rest = " · ".join(filter(None, (more, how_to_open)))
    return [*shown[:FOLDED_LINES], *([rest] if rest else [])]
