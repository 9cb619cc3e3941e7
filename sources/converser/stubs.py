# SPDX-License-Identifier: Apache-2.0
"""Writes a Python module with typed access to tools, for editors, type checkers and people.

Every word of a server goes in as a checked identifier, as the `repr` of a literal, or into a
docstring that it cannot leave.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Sequence

from .hygiene import clean_text
from .identifiers import (
    MODULE_RESERVES,
    claim_name,
    compose_arguments_class_name,
    compose_function_name,
)
from .shapes import (
    Array,
    Attribute,
    Choice,
    Record,
    Reference,
    Scalar,
    Shape,
    Table,
    read_schema,
)
from .signatures import Describable, gather_metadata

_WIDTH = 92
_INDENT = "    "
_QUOTES = re.compile(r'"(?=")|"\Z')
_SOURCES: Sequence[Sequence[tuple[str, Sequence[str]]]] = (
    (
        ("collections.abc", ("Mapping", "Sequence")),
        ("dataclasses", ("dataclass", "field")),
        ("typing", ("Any", "Literal")),
    ),
    (
        ("converser.ensembles", ("Ensemble",)),
        ("converser.invokers", ("Context", "InvocationResult")),
        ("converser.signatures", ("OMITTED", "Omitted", "dump_arguments")),
    ),
)


def write_stub_module(tools: Iterable[Describable], ensemble_name: str) -> str:
    """The source of a module with a dataclass and a typed function for each tool of an ensemble."""
    taken = set(MODULE_RESERVES)
    parts = [part for tool in tools for part in _write_tool(tool, taken)]
    title = f"Typed access to the tools of ensemble {ensemble_name!r}; written by converser."
    opening = (_write_docstring(title, ""), "", "from __future__ import annotations")
    imports = _write_imports("\n".join(parts))
    return "\n\n\n".join(("\n".join((*opening, *imports)), *parts)) + "\n"


def _write_tool(tool: Describable, taken: set[str]) -> list[str]:
    """The classes for the arguments of a tool, and its function."""
    records = read_schema(
        tool.arguments_schema, compose_arguments_class_name(tool.name), taken=taken
    )
    function = claim_name(compose_function_name(tool.name), taken)
    return [
        _write_class(records[0], f"Arguments of tool {tool.name!r}."),
        *(_write_class(r, f"Part of the arguments of tool {tool.name!r}.") for r in records[1:]),
        _write_function(function, tool, records[0]),
    ]


def _write_imports(body: str) -> list[str]:
    """Imports of what the body uses, and of nothing else."""
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    lines: list[str] = []
    for group in _SOURCES:
        wanted = {module: [name for name in names if name in used] for module, names in group}
        imports = [f"from {module} import {', '.join(n)}" for module, n in wanted.items() if n]
        lines.extend(("", *imports) if imports else ())
    return lines


def _write_class(record: Record, title: str) -> str:
    """A dataclass; what the schema says of a property stands below its field."""
    lines = [
        "@dataclass(frozen=True, kw_only=True, slots=True)",
        f"class {record.name}:",
        _write_docstring(record.description or title, _INDENT),
    ]
    for attribute in record.attributes:
        lines.append(f"{_INDENT}{_write_field(attribute)}")
        if attribute.description:
            lines.append(_write_docstring(attribute.description, _INDENT))
    if record.attributes:
        lines.insert(3, "")
    return "\n".join(lines)


def _write_field(attribute: Attribute) -> str:
    annotation = express(attribute.shape) + (" | Omitted" if attribute.omissible else "")
    default = "OMITTED" if attribute.omissible else repr(attribute.default)
    metadata = gather_metadata(attribute)
    if not metadata:
        return f"{attribute.name}: {annotation}" + ("" if attribute.required else f" = {default}")
    options = [] if attribute.required else [f"default={default}"]
    options.append(f"metadata={metadata!r}")
    return f"{attribute.name}: {annotation} = field({', '.join(options)})"


def _write_function(name: str, tool: Describable, record: Record) -> str:
    """A typed function; arguments that are all optional need not be given."""
    optional = not any(attribute.required for attribute in record.attributes)
    default = f" = {record.name}()" if optional else ""
    return "\n".join(
        (
            f"async def {name}(",
            f"{_INDENT}ensemble: Ensemble,",
            f"{_INDENT}arguments: {record.name}{default},",
            f"{_INDENT}*,",
            f"{_INDENT}context: Context = Context(),",
            ") -> InvocationResult:",
            _write_docstring(tool.description or f"Calls tool {tool.name!r}.", _INDENT),
            f"{_INDENT}invoker = ensemble.access_invoker({tool.name!r})",
            f"{_INDENT}return await invoker(dump_arguments(arguments), context=context)",
        )
    )


def _write_docstring(text: str, indent: str) -> str:
    """Text within three quotes, which it cannot close; what is invisible in it is made visible."""
    lines: list[str] = []
    for line in clean_text(text.replace("\r\n", "\n").strip()).split("\n"):
        lines.extend(textwrap.wrap(line, _WIDTH, break_on_hyphens=False) or [""])
    escaped = [_QUOTES.sub(r"\"", line.replace("\\", "\\\\")) for line in lines]
    if len(escaped) > 1:
        escaped.append("")
    return indent + '"""' + f"\n{indent}".join(escaped) + '"""'


def express(shape: Shape) -> str:
    """A shape as the text of an annotation."""
    if isinstance(shape, Scalar):
        return shape.kind
    if isinstance(shape, Choice):
        return f"Literal[{', '.join(map(repr, shape.values))}]"
    if isinstance(shape, Array):
        return f"Sequence[{express(shape.item)}]"
    if isinstance(shape, Table):
        return f"Mapping[str, {express(shape.value)}]"
    if isinstance(shape, Reference):
        return shape.name
    return " | ".join(map(express, shape.members))
