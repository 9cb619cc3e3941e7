# SPDX-License-Identifier: Apache-2.0
"""Which tools of a page the SDK gets to see, and that none is lost on either way."""

from __future__ import annotations

from typing import Any

import mcp_types as wire
import pytest

from converser.mcp.listings import Bypass, unpack_tools

LEGACY, MODERN = "2025-11-25", "2026-07-28"


def make_tool(name: str, **part: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"region": {"type": "string", **part}}}
    return {"name": name, "inputSchema": schema}


def make_page(*tools: Any) -> dict[str, Any]:
    return {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "tools": list(tools),
        "_meta": {"of": "the server"},
    }


def read(page: dict[str, Any]) -> list[dict[str, Any]]:
    return unpack_tools(wire.ListToolsResult.model_validate(page, by_name=False))


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_ordinary_tools_are_led_past_the_sdk(version: str) -> None:
    remarks: list[str] = []
    page = Bypass(sends_headers=True).lead(
        make_page(make_tool("a"), make_tool("b")), version, remarks.append
    )
    assert page["tools"] == []
    assert page["_meta"]["of"] == "the server"
    assert read(page) == [make_tool("a"), make_tool("b")]
    assert remarks == []


def test_the_sdk_sees_tools_that_want_headers_and_from_then_on_all() -> None:
    remarks: list[str] = []
    bypass = Bypass(sends_headers=True)
    for part in ({"x-mcp-header": "Region", "default": None}, {"enum": [None]}):
        page = bypass.lead(make_page(make_tool("a", **part), {}), MODERN, remarks.append)
        assert page["tools"] == [make_tool("a", **part)]
        assert read(page) == page["tools"]
    assert len(remarks) == 2  # the bad one, twice


@pytest.mark.parametrize(("version", "sends_headers"), [(LEGACY, True), (MODERN, False)])
def test_headers_mean_nothing_in_the_older_era_and_without_http(
    version: str, sends_headers: bool
) -> None:
    page = make_page(make_tool("a", **{"x-mcp-header": ""}))
    led = Bypass(sends_headers=sends_headers).lead(page, version, [].append)
    assert led["tools"] == []
    assert read(led) == page["tools"]


def test_a_tool_with_several_mistakes_is_told_once() -> None:
    remarks: list[str] = []
    bad = {"name": 1, "inputSchema": {"type": "array"}, "description": []}
    page = Bypass(sends_headers=True).lead(
        make_page(make_tool("a"), bad, make_tool("b")), MODERN, remarks.append
    )
    assert read(page) == [make_tool("a"), make_tool("b")]
    assert len(remarks) == 1
    assert remarks[0].startswith("Tool number 2 was left out: its")


@pytest.mark.parametrize("tools", [None, "text", {}])
def test_what_is_no_list_is_for_the_sdk_to_refuse(tools: Any) -> None:
    page = {"tools": tools}
    assert Bypass(sends_headers=True).lead(page, MODERN, [].append) is page
