# SPDX-License-Identifier: Apache-2.0
"""Python names for what a server calls as it likes: any text becomes a safe and fitting identifier."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata

_LENGTH_MAX = 64
_FIELD_RESERVES = frozenset(
    [
        "str",
        "int",
        "float",
        "bool",
        "Any",
        "Literal",
        "Mapping",
        "Sequence",
        "dataclass",
        "field",
        "Omitted",
        "OMITTED",
    ]
)
MODULE_RESERVES = (
    _FIELD_RESERVES
    | frozenset(dir(builtins))
    | frozenset(["Context", "Ensemble", "InvocationResult", "dump_arguments", "annotations"])
)
"""Names that a module of such classes and functions needs for itself."""
CLASS_MARK = "Arguments"
"""Part of the name of every class in a stub module, so that fields can keep clear of them."""

_WORDS = re.compile(r"[^\W_]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def compose_class_name(text: str) -> str:
    """Words in CamelCase; may be empty, or begin with a digit, so it wants a word before or behind it."""
    words = _WORDS.findall(_simplify(text))
    return "".join(word[:1].upper() + word[1:] for word in words)[:_LENGTH_MAX]


def compose_arguments_class_name(tool: str) -> str:
    """The name of the class for the arguments of a tool."""
    name = compose_class_name(tool)
    return f"{name if name.isidentifier() else 'Tool' + name}{CLASS_MARK}"


def compose_field_name(property_name: str) -> str:
    """The name of a field for a property, the same wherever that is possible."""
    name = _secure(_simplify(property_name), "field")
    return f"{name}_" if name in _FIELD_RESERVES or CLASS_MARK in name else name


def compose_function_name(tool: str) -> str:
    """The name of a function for a tool, in snake_case."""
    name = _secure(_HUMPS.sub("_", _simplify(tool)).lower(), "tool")
    return f"{name}_" if name in MODULE_RESERVES else name


def claim_name(wanted: str, taken: set[str]) -> str:
    """Takes a name, with a number behind it where others have it already."""
    name, number = wanted, 2
    while name in taken:
        name = f"{wanted}{'_' if '_' in wanted or wanted.islower() else ''}{number}"
        number += 1
    taken.add(name)
    return name


def _secure(text: str, prefix: str) -> str:
    """Makes an identifier that is neither private nor a keyword."""
    name = text.lstrip("_")[:_LENGTH_MAX]
    if not name.isidentifier():
        name = f"{prefix}_{name}" if name else f"{prefix}_"
    return f"{name}_" if keyword.iskeyword(name) else name


def _simplify(text: str) -> str:
    """Replaces what cannot be part of an identifier; Python reads identifiers in their NFKC form."""
    simple = re.sub(r"\W", "_", unicodedata.normalize("NFKC", text))
    if f"x{simple}".isidentifier() and unicodedata.is_normalized("NFKC", simple):
        return simple
    return re.sub(r"\W", "_", simple, flags=re.ASCII)
