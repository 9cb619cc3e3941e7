# SPDX-License-Identifier: Apache-2.0
"""What a server says of its tools becomes definitions of ours; and results are held to what it promised."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import mcp_types as wire
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError

from ..contents import Content, LinkContent
from ..exceptions import MCPFailure, SchemaInvalidity
from ..excesses import access_excess
from ..hygiene import clean_text
from ..immutables import EMPTY, FrozenDictionary, freeze
from ..invokers import Annotations, InvocationResult, Tool
from ..schemas import Validator, compile_schema
from .failures import TEXT_LIMIT
from .listings import Definition, list_every_page
from .narrowing import as_dictionary, as_list

_EXTRAS = {"_meta": "meta", "icons": "icons"}
_REMARKS_MAX = 100
_NAME_MAX = _TITLE_MAX = 1_000
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class Interpreter:
    """Makes definitions of ours of pages of tools, as they come: so none of the pages must be kept."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._kept: dict[str, Tool] = {}

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that a model may use, each name once."""
        return tuple(self._kept.values())

    def take(self, page: Iterable[Definition]) -> None:
        """Takes the tools of a page; what is left out is told."""
        for tool in page:
            name: str = tool["name"]
            if name in self._kept:
                self._report(f"Tool {_show(name)} is listed twice; the first one is used.")
            elif (reason := _find_hindrance(tool)) is not None:
                self._report(f"Tool {_show(name)} was left out: {reason}.")
            else:
                self._kept[name] = interpret_tool(tool)


def interpret_tool(tool: Definition) -> Tool:
    """One definition of ours, its text made harmless to look at."""
    return Tool(
        name=tool["name"],
        description=clean_text(tool.get("description") or "", limit=TEXT_LIMIT),
        arguments_schema=tool["inputSchema"],
        output_schema=freeze(tool.get("outputSchema")),
        annotations=_interpret_annotations(tool),
        extras=_gather_extras(tool),
    )


def _interpret_annotations(tool: Definition) -> Annotations:
    """What a tool says of itself; those that say the same share it."""
    hints = tool.get("annotations") or EMPTY
    annotations = _read_hints(*map(hints.get, _HINTS))
    title = tool.get("title") or hints.get("title")
    return replace(annotations, title=clean_text(title, limit=_TITLE_MAX)) if title else annotations


@lru_cache(maxsize=256, typed=True)
def _read_hints(read_only: Any, destructive: Any, idempotent: Any, open_world: Any) -> Annotations:
    return Annotations(
        read_only=_read_hint(read_only),
        destructive=_read_hint(destructive),
        idempotent=_read_hint(idempotent),
        open_world=_read_hint(open_world),
    )


def _gather_extras(tool: Definition) -> FrozenDictionary:
    if not tool.get("_meta") and not tool.get("icons"):
        return EMPTY
    return FrozenDictionary(
        (key, freeze(tool[name])) for name, key in _EXTRAS.items() if tool.get(name)
    )


def _read_hint(value: Any) -> bool | None:
    """Yes or no; what only resembles it, such as a text, says nothing."""
    return value if isinstance(value, bool) else None


def _show(name: str) -> str:
    return repr(clean_text(name, limit=200))


def _find_hindrance(tool: Definition) -> str | None:
    """Why a model cannot use a tool, though it is valid."""
    if len(tool["name"]) > _NAME_MAX:
        return f"its name has more than {_NAME_MAX:,} characters"
    if (tool.get("execution") or EMPTY).get("taskSupport") == "required":
        return "it runs only as a task, which this client does not offer"
    if (meta := tool.get("_meta")) and (ui := as_dictionary(meta.get("ui"))):
        visibility = as_list(ui.get("visibility"))
        if visibility is not None and "model" not in visibility:
            return "it is meant for an app's user interface only"
    return None


class Listing:
    """The tools of the pages that came, and what is to be said of them."""

    def __init__(self) -> None:
        self.has_begun = False
        """Whether a page came."""
        self._remarks: list[str] = []
        self._more = 0
        self._interpreter = Interpreter(self.report)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that a model may use."""
        return self._interpreter.tools

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out, and why."""
        more = (
            (f"There is as much to say of {_count(self._more, 'more tool')}.",)
            if self._more
            else ()
        )
        return (*self._remarks, *more)

    def report(self, words: str) -> None:
        """Takes a remark; a list may be all bad."""
        if len(self._remarks) < _REMARKS_MAX:
            self._remarks.append(words)
        else:
            self._more += 1

    async def read(self, session: ClientSession) -> None:
        """Reads every page; a server that does not know of tools has none, which is no failure."""
        try:
            await list_every_page(session, self._take, self.report)
        except MCPError as failure:
            if self.has_begun or failure.code != wire.METHOD_NOT_FOUND:
                raise

    def break_off(self, reason: MCPFailure) -> None:
        """Says that pages are missing, and why."""
        seen = _count(len(self.tools), "tool")
        self._remarks.insert(0, f"The listing broke off after {seen}: {reason}")

    def _take(self, page: list[Definition]) -> None:
        self.has_begun = True
        self._interpreter.take(page)


def _count(number: int, things: str) -> str:
    return f"{number} {things}" if number == 1 else f"{number} {things}s"


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
        if result.structured is None and any(map(_is_excess, result.contents)):
            return (
                "The result was not checked against the tool's own output schema: it is too large."
            )
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


def _is_excess(content: Content) -> bool:
    return isinstance(content, LinkContent) and access_excess(content) is not None
