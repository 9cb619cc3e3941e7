# SPDX-License-Identifier: Apache-2.0
"""Which of its tools an ensemble exposes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .invokers import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """An allow list, then a deny list, then a predicate; the lists hold names or glob patterns."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    predicate: Callable[[Tool], bool] | None = None

    def admits(self, tool: Tool) -> bool:
        """Whether this tool is exposed."""
        if self.allow is not None and not _matches(tool.name, self.allow):
            return False
        if self.deny and _matches(tool.name, self.deny):
            return False
        return self.predicate is None or self.predicate(tool)

    def find_idle_patterns(self, names: Iterable[str]) -> tuple[str, ...]:
        """Patterns that match no tool at all: most likely a slip of the pen."""
        present = tuple(names)
        patterns = (*(self.allow or ()), *self.deny)
        return tuple(p for p in patterns if not any(_matches(name, (p,)) for name in present))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)
