# SPDX-License-Identifier: Apache-2.0
"""Servers and tools as tables; all that servers say is clean, and on one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...hygiene import clean_text
from ..conversing.wording import tell_seconds, tidy, write_json
from ..screen import squeeze

if TYPE_CHECKING:
    from ...invokers import Invoker
    from ...rosters.surveys import ServerSurvey
    from ..conversing.displays import Display

_COLOURS = {"connected": "green", "failed": "red", "needs-auth": "red", "disabled": "dim"}


def show_rows(
    console: Console, titles: Sequence[str], rows: Sequence[Sequence[str | Text]]
) -> None:
    """Columns, as wide as they need to be, within reason; the last one wraps."""
    table = Table(*titles, box=None, pad_edge=False, header_style="dim", show_header=bool(titles))
    for _ in range(len(rows[0]) - len(titles) if rows else 0):
        table.add_column()
    for column in table.columns[:-1]:
        column.no_wrap = True
        column.max_width = console.width // 2
    for row in rows:
        table.add_row(*(Text(squeeze(cell)) if isinstance(cell, str) else cell for cell in row))
    console.print(table)


def show_servers(display: Display, surveys: Mapping[str, ServerSurvey]) -> None:
    """Where each server stands, and what to do about those that failed."""
    if not surveys:
        display.tell("There are no servers: write a table [mcp.NAME] into converser.toml.")
        return
    rows = [
        (
            each.name,
            Text(str(each.state), _COLOURS.get(str(each.state), "yellow")),
            str(len(each.tools)),
            f"{each.tokens:,}",
            tell_seconds(each.latency) if each.latency is not None else "",
        )
        for each in surveys.values()
    ]
    show_rows(display.console, ("server", "state", "tools", "tokens", "latency"), rows)
    for each in surveys.values():
        if each.error is not None and each.state != "disabled":
            display.tell(str(each.error), "yellow")


def show_tools(display: Display, surveys: Mapping[str, ServerSurvey]) -> None:
    """All tools that can be used, with the first line of what each says."""
    rows = [
        (f"{server}.{tool.own_name}", Text(squeeze(tool.description.split("\n")[0]), "dim"))
        for server, survey in surveys.items()
        for tool in survey.tools
    ]
    if rows:
        show_rows(display.console, (), rows)
    else:
        display.tell("No tools can be used; /servers tells why.")


def show_tool(display: Display, invoker: Invoker) -> None:
    """One tool: what it says of itself, and what it takes."""
    console, hints = display.console, invoker.annotations
    console.print(Text(clean_text(invoker.tool.name), "bold"))
    console.print(Text(tidy(invoker.description)))
    if hints.read_only:
        display.tell("It says that it only reads.")
    elif hints.destructive:
        display.tell("It says that it may destroy something.", "yellow")
    schema = invoker.arguments_schema
    required: Sequence[str] = schema.get("required") or ()
    properties: Mapping[str, object] = schema.get("properties") or {}
    rows = [
        (f"{name}{'' if name in required else '?'}", Text(write_json(part), "dim"))
        for name, part in properties.items()
    ]
    if rows:
        show_rows(console, (), rows)
