# SPDX-License-Identifier: Apache-2.0
"""Leads listed tools past the SDK, which validates each twice and rejects all for one that is bad."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import mcp_types as wire
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from typing_extensions import Self

from ..hygiene import clean_text
from .narrowing import as_dictionary, as_list

Report = Callable[[str], None]
_T = TypeVar("_T")

_PARCEL_KEY = "converser/tools"
_HEADER_MARK = b'"x-mcp-header"'
_TOOLS: TypeAdapter[list[wire.Tool]] = TypeAdapter(list[wire.Tool])


class Parcel(str):
    """Tools in the metadata of a page, where the SDK sees only a text."""

    __slots__ = ("tools",)
    tools: list[Any]

    def __new__(cls, tools: list[Any]) -> Self:
        """Packs tools that are valid on the wire."""
        parcel = super().__new__(cls, f"{len(tools)} tools")
        parcel.tools = tools
        return parcel


class Bypass:
    """Sets tools aside before the SDK reads a page, in one session.

    Where tools want arguments sent as headers, the SDK must see them: it is the one to send those.
    """

    def __init__(self) -> None:
        self._has_headers = False

    def lead(self, result: dict[str, Any], version: str, report: Report) -> dict[str, Any]:
        """A page for the SDK, without tools that are bad; those that are sound wait in a parcel."""
        if (listed := as_list(result.get("tools"))) is None:
            return result
        sound, _ = _sift(listed, _find_rules(version), report)
        if version in MODERN_PROTOCOL_VERSIONS and not self._has_headers:
            self._has_headers = _HEADER_MARK in to_json(sound)
        if self._has_headers:  # from now on always, so that it also learns which are gone
            return {**result, "tools": sound}
        meta = {**(as_dictionary(result.get("_meta")) or {}), _PARCEL_KEY: Parcel(sound)}
        return {**result, "tools": [], "_meta": meta}


def unpack_tools(page: wire.ListToolsResult, report: Report) -> list[wire.Tool]:
    """The tools of a page, also those that the SDK has not seen."""
    parcel = (page.meta or {}).get(_PARCEL_KEY)
    if not isinstance(parcel, Parcel):
        return page.tools
    return _sift(parcel.tools, _TOOLS, report)[1]


@cache
def _find_rules(version: str) -> TypeAdapter[list[Any]]:
    """What a version of the protocol wants of tools, as the SDK's own tables have it."""
    page: Any = methods.SERVER_RESULTS["tools/list", version]
    tools: Any = page.model_fields["tools"].annotation
    return TypeAdapter(tools)


def _sift(
    tools: list[Any], rules: TypeAdapter[list[_T]], report: Report
) -> tuple[list[Any], list[_T]]:
    """The tools that keep the rules, as they came and as the rules read them; the others are told."""
    try:
        return tools, rules.validate_python(tools, by_name=False)
    except ValidationError as failure:
        problems = failure.errors(include_url=False, include_input=False, include_context=False)
    bad: dict[Any, Any] = {}
    for problem in problems:
        bad.setdefault(problem["loc"][0], problem)
    for index, problem in bad.items():
        report(_describe(tools[index], index, problem))
    sound = [tool for index, tool in enumerate(tools) if index not in bad]
    return sound, rules.validate_python(sound, by_name=False)


def _describe(tool: Any, index: int, problem: Any) -> str:
    name = (as_dictionary(tool) or {}).get("name")
    label = repr(clean_text(name, limit=100)) if isinstance(name, str) else f"number {index + 1}"
    place = ".".join(str(part) for part in problem["loc"][1:]) or "definition"
    return f"Tool {label} was left out: its {place} is not valid ({problem['msg']})."
