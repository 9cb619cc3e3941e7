# SPDX-License-Identifier: Apache-2.0
"""What a server says of its tools becomes definitions of ours; and results are held to what it promised."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

import mcp_types as wire

from ..exceptions import SchemaInvalidity
from ..hygiene import clean_text
from ..immutables import freeze
from ..invokers import Annotations, InvocationResult, Tool
from ..schemas import Validator, compile_schema


def interpret_tools(tools: Iterable[wire.Tool], report: Callable[[str], None]) -> tuple[Tool, ...]:
    """The tools that a model may use, each name once; what is left out is told."""
    kept: dict[str, Tool] = {}
    for tool in tools:
        name = clean_text(tool.name, limit=200)
        if tool.name in kept:
            report(f"Tool {name!r} is listed twice; the first one is used.")
        elif (reason := _find_hindrance(tool)) is not None:
            report(f"Tool {name!r} was left out: {reason}.")
        else:
            kept[tool.name] = interpret_tool(tool)
    return tuple(kept.values())


def interpret_tool(tool: wire.Tool) -> Tool:
    """One definition of ours, its text made harmless to look at."""
    hints = tool.annotations or wire.ToolAnnotations()
    title = tool.title or hints.title
    extras: dict[str, Any] = {}
    if tool.meta:
        extras["meta"] = dict(tool.meta)
    if tool.icons:
        extras["icons"] = [icon.model_dump(mode="json", exclude_none=True) for icon in tool.icons]
    return Tool(
        name=tool.name,
        description=clean_text(tool.description or ""),
        arguments_schema=freeze(tool.input_schema),
        output_schema=freeze(tool.output_schema),
        annotations=Annotations(
            title=clean_text(title) if title else None,
            read_only=hints.read_only_hint,
            destructive=hints.destructive_hint,
            idempotent=hints.idempotent_hint,
            open_world=hints.open_world_hint,
        ),
        extras=freeze(extras),
    )


def _find_hindrance(tool: wire.Tool) -> str | None:
    """Why a model cannot use a tool, though it is valid."""
    if tool.execution is not None and tool.execution.task_support == "required":
        return "it runs only as a task, which this client does not offer"
    ui = (tool.meta or {}).get("ui")
    if isinstance(ui, dict):
        visibility = cast("dict[str, Any]", ui).get("visibility")
        if isinstance(visibility, list) and "model" not in visibility:
            return "it is meant for an app's user interface only"
    return None


class OutputChecks:
    """Holds results to the output schemas that a server promised; each is compiled at first use."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._schemas = {t.name: t.output_schema for t in tools if t.output_schema is not None}
        self._validators: dict[str, Validator | str] = {}

    def check(self, name: str, result: InvocationResult) -> InvocationResult:
        """The same result, with a remark where it does not keep the promise; nothing is thrown away."""
        if name not in self._schemas:
            return result
        if (problem := self._find_problem(name, result)) is None:
            return result
        return replace(result, remarks=(*result.remarks, problem))

    def _find_problem(self, name: str, result: InvocationResult) -> str | None:
        validator = self._validators.get(name)
        if validator is None:
            validator = self._validators[name] = self._compile(name)
        if isinstance(validator, str):
            return validator
        if validator.is_valid(result.structured):
            return None
        problems = [
            f"{v.path or 'the result'} should be {v.expected}"
            for v in validator.violations(result.structured)[:3]
        ]
        return f"The result does not fit the tool's own output schema: {'; '.join(problems)}."

    def _compile(self, name: str) -> Validator | str:
        try:
            return compile_schema(self._schemas[name] or {})
        except SchemaInvalidity as failure:
            return f"The result was not checked: the tool's output schema is unusable. {failure}"
