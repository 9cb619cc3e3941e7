# SPDX-License-Identifier: Apache-2.0
"""Lists every tool, past the SDK's models: it validates each tool twice, and rejects all for one that is bad."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mcp_types as wire
from mcp.client.session import ClientSession
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from typing_extensions import Self

from ..hygiene import clean_text
from .narrowing import as_dictionary, as_list

Report = Callable[[str], None]
Definition = dict[str, Any]
"""A tool as it stands on the wire, where it keeps the rules of the protocol."""

Take = Callable[[list[Definition]], None]

PAGES_MAX = 1_000
TOOLS_MAX = 100_000
SIZE_MAX = 64 * 1024 * 1024
"""Bytes of all pages but the last, each of which is bounded as a message."""
_PARCEL_KEY = "converser/tools"
_HEADER_MARK = b'"x-mcp-header"'
_UNUSED: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
"""What a page must have, and we do not look at."""


class Parcel(str):
    """Tools in the metadata of a page, where the SDK sees only a text."""

    __slots__ = ("tools",)
    tools: list[Definition]

    def __new__(cls, tools: list[Definition]) -> Self:
        """Packs tools that are valid on the wire."""
        parcel = super().__new__(cls, f"{len(tools)} tools")
        parcel.tools = tools
        return parcel


class Bypass:
    """Sets tools aside before the SDK reads a page, in one session.

    Where tools want arguments sent as HTTP headers, the SDK must see them: it is the one to send those.
    """

    def __init__(self, *, sends_headers: bool) -> None:
        self._sends_headers = sends_headers
        self._has_headers = False

    def lead(self, result: dict[str, Any], version: str, report: Report) -> dict[str, Any]:
        """A page for the SDK, without tools that are bad; those that are sound wait in a parcel."""
        if (listed := as_list(result.get("tools"))) is None:
            return result
        sound = _sift(listed, version, report)
        page = _straighten(result, version, report)
        if self._sends_headers and version in MODERN_PROTOCOL_VERSIONS and not self._has_headers:
            self._has_headers = _HEADER_MARK in to_json(sound)
        if self._has_headers:  # from now on always, so that it also learns which are gone
            return {**page, "tools": sound}
        return {**page, "tools": [], "_meta": {**page["_meta"], _PARCEL_KEY: Parcel(sound)}}


async def list_every_page(session: ClientSession, take: Take, report: Report) -> None:
    """Hands on all pages; a list without end, or a cursor that stands still, is cut and told."""
    count = size = 0
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(PAGES_MAX):
        page = await session.list_tools(params=wire.PaginatedRequestParams(cursor=cursor))
        tools = unpack_tools(page)
        del tools[TOOLS_MAX - count :]
        count += len(tools)
        take(tools)
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            report("The listing was cut: the server's cursor came a second time.")
            return
        seen.add(cursor)
        size += _measure(tools) + len(cursor)
        if count >= TOOLS_MAX or size > SIZE_MAX:
            break
    report(f"The listing was cut after {count} tools: it has no end, or is too large.")


def _measure(tools: list[Definition]) -> int:
    """About how many bytes tools take."""
    try:
        return len(to_json(tools))
    except ValueError:  # such as halves of characters
        return len(repr(tools))


def unpack_tools(page: wire.ListToolsResult) -> list[Definition]:
    """The tools of a page, also those that the SDK has not seen."""
    parcel = (page.meta or {}).get(_PARCEL_KEY)
    if isinstance(parcel, Parcel):
        return parcel.tools
    return [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in page.tools]


@cache
def _find_rules(version: str) -> TypeAdapter[list[Any]]:
    """What a version of the protocol wants of tools, as the SDK's own tables have it."""
    page: Any = methods.SERVER_RESULTS["tools/list", version]
    tools: Any = page.model_fields["tools"].annotation
    return TypeAdapter(tools)


def _straighten(result: dict[str, Any], version: str, report: Report) -> dict[str, Any]:
    """What is used of a page besides its tools; what is missing or odd there does not cost them."""
    page: dict[str, Any] = {"_meta": as_dictionary(result.get("_meta")) or {}}
    if version in MODERN_PROTOCOL_VERSIONS:
        page.update(_UNUSED, resultType=result.get("resultType", "complete"))
    cursor = result.get("nextCursor")
    if isinstance(cursor, str):
        page["nextCursor"] = cursor
    elif cursor is not None:
        report("The listing was cut: the server's cursor is no text.")
    return page


def _sift(tools: list[Any], version: str, report: Report) -> list[Definition]:
    """The tools that keep the rules of a version; the others are told."""
    try:
        _find_rules(version).validate_python(tools, by_name=False)
    except ValidationError as failure:
        problems = failure.errors(include_url=False, include_input=False, include_context=False)
    else:
        return tools
    bad: dict[Any, Any] = {}
    for problem in problems:
        bad.setdefault(problem["loc"][0], problem)
    for index, problem in bad.items():
        report(_describe(tools[index], index, problem))
    return [tool for index, tool in enumerate(tools) if index not in bad]


def _describe(tool: Any, index: int, problem: Any) -> str:
    name = (as_dictionary(tool) or {}).get("name")
    label = repr(clean_text(name, limit=100)) if isinstance(name, str) else f"number {index + 1}"
    place = ".".join(str(part) for part in problem["loc"][1:]) or "definition"
    return f"Tool {label} was left out: its {place} is not valid ({problem['msg']})."
