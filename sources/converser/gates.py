# SPDX-License-Identifier: Apache-2.0
"""Makes the gates of an ensemble's tools: one by one, so that others get their turn, and in a bounded time together."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import anyio.lowlevel

from .arguments import ArgumentsGate, Strictness
from .exceptions import SchemaInvalidity
from .invokers import Tool, peek_schema
from .schemas import list_readings

_UNUSABLE = "The schema is unusable"
_MENDED = "its schema is read as what it surely means, as it has a slip"
_SECONDS_MAX = 3.0
_SECONDS_EACH = 0.005
"""Of work on the schemas of one listing: so much, and more for each tool, ten times what a usual one takes."""
_TURN = 0.02

Gated = tuple[Tool, ArgumentsGate]
"""A tool as it is surely meant, and its gate."""


class GateMaker:
    """Compiles each schema of one listing once."""

    def __init__(self, *, repair: bool, strictness: Strictness) -> None:
        self._repair = repair
        self._strictness = strictness
        self._made: dict[str, tuple[Tool, Gated | SchemaInvalidity]] = {}
        self._spent = 0.0

    async def prepare(self, tools: Iterable[Tool]) -> None:
        """Does the work while others get their turn."""
        begun = time.perf_counter()
        for tool in tools:
            with suppress(SchemaInvalidity):
                self.make(tool)
            if time.perf_counter() - begun > _TURN:
                await anyio.lowlevel.checkpoint()
                begun = time.perf_counter()

    def make(self, tool: Tool) -> Gated:
        """The gate of a tool; raises `SchemaInvalidity` where its schema is unusable."""
        listed, made = self._made.get(tool.name, (None, None))
        if listed is not tool or made is None:
            made = self._compile_in_time(tool)
            self._made[tool.name] = tool, made
        if isinstance(made, SchemaInvalidity):
            raise made
        return made

    def _compile_in_time(self, tool: Tool) -> Gated | SchemaInvalidity:
        if self._spent > _SECONDS_MAX + _SECONDS_EACH * len(self._made):
            return SchemaInvalidity(
                f"{_UNUSABLE}: those of the tools before it took too long to read.",
                remedy="Expose fewer tools, or ask their author for simpler schemas.",
            )
        begun = time.thread_time()
        try:
            return self._compile(tool)
        except SchemaInvalidity as failure:
            return failure
        finally:
            self._spent += time.thread_time() - begun

    def _compile(self, tool: Tool) -> Gated:
        """The gate of a tool; where its schema has slips, those of the tool as it is surely meant."""
        try:
            return tool, self._create_gate(tool)
        except SchemaInvalidity as failure:
            for schema in list_readings(peek_schema(tool)):
                mended = replace(tool, arguments_schema=schema)
                with suppress(SchemaInvalidity):
                    gate = self._create_gate(mended)
                    slip = failure.message.removeprefix(_UNUSABLE)
                    gate.remarks = (f"{_MENDED}{slip}", *gate.remarks)
                    return mended, gate
            raise

    def _create_gate(self, tool: Tool) -> ArgumentsGate:
        return ArgumentsGate(
            peek_schema(tool), owner=tool, repair=self._repair, strictness=self._strictness
        )
