# SPDX-License-Identifier: Apache-2.0
"""Two tools of one name: refused wherever they meet, in what was given, on the wire, and between ensembles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .exceptions import NameConflict
from .invokers import Invocable, Invoker, Tool

if TYPE_CHECKING:
    from .ensembles import Ensemble


def index_tools(
    ensemble: str, pairs: Iterable[tuple[Tool, Invocable]]
) -> dict[str, tuple[Tool, Invocable]]:
    """The tools by their own names; two of one name are refused, never overwritten."""
    indexed: dict[str, tuple[Tool, Invocable]] = {}
    for tool, invocable in pairs:
        if tool.name in indexed:
            raise NameConflict(
                f"Ensemble {ensemble!r} was given two tools of the name {tool.name!r}.",
                remedy="Give one of them another name, or put it into an ensemble of its own.",
            )
        indexed[tool.name] = (tool, invocable)
    return indexed


def refuse_conflicts(ensemble: str, names: Mapping[str, str]) -> None:
    """Refuses two tools of one name within an ensemble, which only renaming can bring about."""
    owners: dict[str, str] = {}
    for tool, name in names.items():
        if name in owners:
            raise NameConflict(
                f"Tools {owners[name]!r} and {tool!r} of ensemble {ensemble!r} would both be called"
                f" {name!r}.",
                remedy="Change `renames` so that each tool has a name of its own.",
            )
        owners[name] = tool


def gather_invokers(ensembles: Iterable[Ensemble]) -> dict[str, Invoker]:
    """All tools of several ensembles by name; two of one name are refused, never overwritten."""
    gathered: dict[str, Invoker] = {}
    for ensemble in ensembles:
        for name, invoker in ensemble.invokers.items():
            if (other := gathered.get(name)) is not None and other is not invoker:
                owner = other.ensemble.name if other.ensemble else "?"
                raise NameConflict(
                    f"Ensembles {owner!r} and {ensemble.name!r} both have a tool {name!r}.",
                    remedy="Give one of them a prefix, such as"
                    f' EnsembleConfiguration(naming=Naming(prefix="{ensemble.name}")), or rename'
                    " the tool.",
                )
            gathered[name] = invoker
    return gathered
