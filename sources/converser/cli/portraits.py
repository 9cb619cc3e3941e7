# SPDX-License-Identifier: Apache-2.0
"""One tool in full: how it is called, what it takes and gives, what it says of itself, and what it costs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..configuration.mistakes import printable
from ..costs import estimate_tokens
from ..hygiene import clean_text
from ..schemas.examples import example_for
from ..shapes import Attribute, Record, read_schema
from ..stubs import express
from .screen import squeeze, write
from .tools import name_fully

if TYPE_CHECKING:
    from ..configuration import MCPServer
    from ..invokers import Annotations, Invoker

_HINTS = (
    ("read_only", "only reads", "changes things"),
    ("destructive", "may destroy", "destroys nothing"),
    ("idempotent", "safe to repeat", "not safe to repeat"),
    ("open_world", "reaches the outside world", "stays within its own world"),
)


def print_portrait(invoker: Invoker, server: MCPServer) -> None:
    """Shows a tool; all words of its server are made clean, and none is read as markup."""
    console = Console(highlight=False)
    records = read_schema(invoker.arguments_schema, "Arguments", taken=set())
    console.print(_write_signature(invoker, records[0]), soft_wrap=True)
    if invoker.description:
        console.print()
        console.print(Text(clean_text(invoker.description.strip())))
    for record in records:
        _print_record(console, record, is_first=record is records[0])
    console.print()
    for title, words in _list_facts(invoker, server):
        write(console, Text.assemble((f"{title:11}", "dim"), words))


def _write_signature(invoker: Invoker, record: Record) -> Text:
    ordered = sorted(record.attributes, key=lambda attribute: not attribute.required)
    arguments = ", ".join(map(_write_attribute, ordered))
    return Text.assemble((squeeze(name_fully(invoker)), "bold cyan"), f"({arguments})")


def _write_attribute(attribute: Attribute) -> str:
    """As in Python; what may be left out has its default, or dots."""
    name = clean_text(attribute.property or f"**{attribute.name}")
    text = f"{name}: {clean_text(express(attribute.shape))}"
    if attribute.required or attribute.property is None:
        return text
    return f"{text} = {'…' if attribute.omissible else clean_text(repr(attribute.default))}"


def _print_record(console: Console, record: Record, *, is_first: bool) -> None:
    """The fields that have something said of them; and every object within the arguments."""
    told = [attribute for attribute in record.attributes if attribute.description or not is_first]
    if not told:
        return
    console.print()
    if not is_first:
        console.print(Text(record.name, "bold"))
    for attribute in told:
        console.print(Text(f"  {_write_attribute(attribute)}", "cyan"), soft_wrap=True)
        if attribute.description:
            console.print(Text(f"      {squeeze(attribute.description)}"))


def _list_facts(invoker: Invoker, server: MCPServer) -> Iterator[tuple[str, str]]:
    if invoker.output_schema is not None:
        record = read_schema(invoker.output_schema, "Result", taken=set())[0]
        yield "gives", ", ".join(map(_write_attribute, record.attributes)) or "structured data"
    if hints := _list_hints(invoker.annotations):
        yield "says", f"{', '.join(hints)} (the server's word)"
    yield "costs", f"about {estimate_tokens(invoker)} tokens in each request"
    yield "to models", clean_text(invoker.name)
    yield "from", f"{printable(str(server.origin))} ({server.scope}, {server.transport})"
    yield "example", _write_example(invoker)


def _list_hints(annotations: Annotations) -> Sequence[str]:
    return [
        yes if getattr(annotations, key) else no
        for key, yes, no in _HINTS
        if getattr(annotations, key) is not None
    ]


def _write_example(invoker: Invoker) -> str:
    """A call with made-up arguments that fit, ready to be changed."""
    example = example_for(invoker.arguments_schema)
    command = f"converser call {shlex.quote(name_fully(invoker))}"
    if not example:
        return clean_text(command)
    if all(isinstance(value, (str, int, float)) for value in example.values()):
        words = [f"{key}={_write_value(value)}" for key, value in example.items()]
        return clean_text(" ".join((command, *map(shlex.quote, words))))
    return clean_text(f"{command} {shlex.quote(json.dumps(example))}")


def _write_value(value: str | float) -> str:
    return value if isinstance(value, str) else json.dumps(value)
