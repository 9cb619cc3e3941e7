# SPDX-License-Identifier: Apache-2.0
"""Schemas that are a lot of work: it is bounded, and others get their turn meanwhile."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import anyio
import pytest

import converser
from converser.invokers import Tool
from converser.schemas import compile_schema
from tests.places import LIMIT

pytestmark = pytest.mark.anyio
COSTLY = "^(\\p{L}|a%d|[^\\p{Lu}]){1,99}$"
"""A pattern that takes tens of milliseconds before it is known to be too large."""


def demand(pattern: str, count: int) -> dict[str, Any]:
    fields = {f"p{n}": {"type": "string", "pattern": pattern % n} for n in range(count)}
    return {"type": "object", "properties": fields}


def test_the_patterns_of_a_schema_take_no_more_than_their_time() -> None:
    begun = time.thread_time()
    validator = compile_schema(demand(COSTLY, 1_000))
    assert time.thread_time() - begun < 2.0
    assert validator.remarks[-1] == "980 more patterns are not checked"
    assert len(validator.remarks) == 21


def test_the_usual_patterns_of_a_schema_are_all_checked() -> None:
    validator = compile_schema(demand("^[a-z]{1,9}%d$", 50))
    assert validator.remarks == ()
    assert validator.is_valid({"p7": "abc7"})
    assert not validator.is_valid({"p7": "abc8"})


class Heavy:
    """A connection to a server whose tools all have heavy schemas."""

    remarks = ()
    interruption = None

    def __init__(self, count: int) -> None:
        self.schemas = [demand(f"^[a-z]{{1,9}}{n}%d$", 400) for n in range(count)]

    async def connect(self) -> None: ...

    async def disconnect(self) -> None: ...

    async def call_tool(self, *_: Any, **__: Any) -> converser.InvocationResult:
        raise NotImplementedError

    def watch(self, **_: Any) -> None: ...

    async def list_tools(self) -> list[Tool]:
        light = {"type": "object"}
        return [
            Tool(name="light", arguments_schema=light),
            *(Tool(name=f"t{n}", arguments_schema=s) for n, s in enumerate(self.schemas)),
        ]


async def test_others_get_their_turn_while_heavy_schemas_are_read() -> None:
    ensemble = converser.Ensemble("heavy", connection=Heavy(20))
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            begun = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - begun)

    heart = asyncio.ensure_future(beat())
    await asyncio.sleep(0)
    begun = time.thread_time()
    with anyio.fail_after(LIMIT):
        await ensemble.connect()
    whole = time.thread_time() - begun
    heart.cancel()
    assert len(ensemble.invokers) == 21
    assert longest < whole / 4


async def test_what_comes_after_too_much_work_is_told_and_costs_nothing_that_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("converser.gates._SECONDS_MAX", 0.0)
    ensemble = converser.Ensemble("heavy", connection=Heavy(2))
    with anyio.fail_after(LIMIT):
        await ensemble.connect()
    assert "took too long to read" in ensemble.disabled["t1"]
    assert "light" in ensemble.invokers


async def test_ten_thousand_usual_tools_are_all_exposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine so slow that what all of them are allowed is long gone."""
    monkeypatch.setattr("converser.gates._SECONDS_MAX", 0.05)
    fields = {f"p{n}": {"type": ["string", "null"], "maxLength": n + 1} for n in range(4)}
    connection = Heavy(0)
    connection.schemas = [
        {"type": "object", "properties": fields, "required": [f"p{n % 4}"], "title": f"Tool {n}"}
        for n in range(10_000)
    ]
    ensemble = converser.Ensemble("many", connection=connection)
    with anyio.fail_after(LIMIT):
        await ensemble.connect()
    assert len(ensemble.invokers) == 10_001
