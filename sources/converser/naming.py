# SPDX-License-Identifier: Apache-2.0
"""Names on the wire: what a model calls a tool, within the limits of every provider."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from .immutables import FrozenDictionary, freeze

NAME_LENGTH_MAX = 64
_FOREIGN_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")
_BEGINNING = re.compile(r"[a-zA-Z_]")
_MEANINGFUL = re.compile(r"[a-zA-Z0-9]")

NamingStyle = Literal["plain", "prefix", "mcp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How an ensemble names its tools: `{tool}`, `{prefix}_{tool}`, or `mcp__{ensemble}__{tool}`.

    The names of one ensemble depend on nothing outside it, so they stay when a server is added.
    """

    style: NamingStyle = "plain"
    prefix: str | None = None
    renames: Mapping[str, str] = field(default_factory=FrozenDictionary)

    def __post_init__(self) -> None:
        object.__setattr__(self, "renames", freeze(self.renames))
        if self.prefix is not None and self.style == "plain":
            object.__setattr__(self, "style", "prefix")

    def compose(self, ensemble: str, tool: str) -> str:
        """The wanted name, before it is fitted to the limits of the wire."""
        renamed = self.renames.get(tool, tool)
        if self.style == "mcp":
            return f"mcp__{ensemble}__{renamed}"
        prefix = self.prefix if self.prefix is not None else ensemble
        return f"{prefix}_{renamed}" if self.style == "prefix" and prefix else renamed


def fit_name(wanted: str) -> str:
    """Fits a name to `[a-zA-Z_][a-zA-Z0-9_-]*` and 64 characters; what is cut is told apart by a hash."""
    fitted = _fit_characters(wanted)
    if len(fitted) <= NAME_LENGTH_MAX and _MEANINGFUL.search(fitted):
        return fitted
    return distinguish_name(wanted)


def distinguish_name(wanted: str) -> str:
    """A fitted name that always ends in a hash of the wanted one."""
    digest = hashlib.sha256(wanted.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_fit_characters(wanted)[: NAME_LENGTH_MAX - 9]}_{digest}"


def _fit_characters(wanted: str) -> str:
    """Replaces what some service does not take, and begins with what all of them take."""
    fitted = _FOREIGN_CHARACTERS.sub("_", wanted)
    return fitted if _BEGINNING.match(fitted) else f"_{fitted}"


def assign_names(naming: Naming, ensemble: str, tools: Iterable[str]) -> dict[str, str]:
    """A wire name for each tool; where fitting makes two alike, the altered ones get a hash."""
    wanted = {tool: naming.compose(ensemble, tool) for tool in tools}
    fitted = {tool: fit_name(name) for tool, name in wanted.items()}
    claims: dict[str, list[str]] = {}
    for tool, name in fitted.items():
        claims.setdefault(name, []).append(tool)
    contested = {tool for claimants in claims.values() if len(claimants) > 1 for tool in claimants}
    return {
        tool: distinguish_name(wanted[tool]) if tool in contested and wanted[tool] != name else name
        for tool, name in fitted.items()
    }


def suggest_name(name: str, names: Iterable[str]) -> str:
    """A hint that names the nearest tools, or all where they are few."""
    known = list(names)
    near = difflib.get_close_matches(name, known, n=3)
    if near:
        return "Did you mean " + " or ".join(repr(n) for n in near) + "?"
    if not known:
        return "It has no tools: connect it first, or look at its `disabled` and `remarks`."
    return "There are: " + ", ".join(known[:12]) + (", …" if len(known) > 12 else "") + "."
