# SPDX-License-Identifier: Apache-2.0
"""Whether a tool has a place for what a request names: files, numbers and times of day.

A small model goes by sounds, and takes a listing of a folder where two files are named, or the history of a project
where a log is. The schema of a tool knows better: what the user named has to go somewhere, and what the tool
demands has to come from somewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from ..invokers import Invoker
from ..searches import split_words
from .introductions import explain_parameter, get_properties

_MISSES_MAX = 2
_MANY = 100
_KINDS = {
    "time": re.compile(
        r"\b(?:(?:[01]?\d|2[0-3]):[0-5]\d|(?:1[0-2]|[1-9])\s?[ap]\.?m|o'clock|half past|quarter (?:past|to))\b",
        re.IGNORECASE,
    ),
    "file": re.compile(r"(?<![\w/.@])(?:[\w.~-]+/)*[\w-]*\.[a-z][a-z\d]{1,3}\b(?![.@]\w)"),
    "number": re.compile(r"(?<![\w.,:/~^-])\d+(?:[.,]\d+)?(?![\w/:-]|\.\w)"),
}
"""How each kind of thing looks; what one has found is none of the next."""
_DEMANDS: tuple[Mapping[str, int], ...] = ({"number": 1}, {"time": 1})
"""What a parameter takes that takes nothing else: a number, or a time that is written as HH:MM."""
_FOLDERS = {"directory", "folder", "dir"}
_FILES = {"destination", "document", "file", "filename", "path", "source", "uri", "url"}
_SPOKEN = re.compile(
    r"\w/\w|\b(?:file|folder|directory|document|path)s?\b|\bdirectories\b", re.IGNORECASE
)
"""That a file or a folder is spoken of, though it does not look like one."""
_NAME_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_TIMES = {"date", "datetime", "day", "deadline", "due", "hh", "hour", "time", "timestamp", "when"}
_TEXTS = {
    "body",
    "code",
    "command",
    "content",
    "data",
    "description",
    "expression",
    "input",
    "message",
    "prompt",
    "query",
    "sql",
    "text",
    "title",
}


def list_named(request: str) -> Counter[str]:
    """How many things of each kind a request names."""
    named: Counter[str] = Counter()
    for kind, form in _KINDS.items():
        named[kind] += len(set(form.findall(request)))
        request = form.sub(" ", request)
    return +named


def list_heard(text: str) -> set[str]:
    """The kinds of which anything was said in a text."""
    heard = {kind for kind, form in _KINDS.items() if form.search(text)}
    return heard | {"file"} if _SPOKEN.search(text) else heard


def count_misfits(named: Counter[str], heard: Collection[str], invoker: Invoker) -> int:
    """How much of what a request names a tool has no place for, and how much it demands that was heard nowhere."""
    places, demanded = _list_places(invoker)
    homeless = sum(max(0, count - places[kind]) for kind, count in named.items())
    return min(homeless + len(demanded.difference(heard)), _MISSES_MAX)


def _list_places(invoker: Invoker) -> tuple[Counter[str], set[str]]:
    """How many things of each kind a tool has a place for, and the kinds that it demands."""
    places: Counter[str] = Counter()
    demanded = {"file"} if "file" in _split_name(invoker.name) else set[str]()
    required = invoker.arguments_schema.get("required", ())
    for name in get_properties(invoker):
        kinds = _read_kinds(invoker, name)
        places.update(kinds)
        if name in required and kinds in _DEMANDS:
            demanded.update(kinds)
    return places, demanded


def _split_name(name: str) -> list[str]:
    """The words of a name as they are: a tool for a file wants to know which; one for files may find them."""
    return [word.casefold() for word in _NAME_WORDS.findall(name)]


def _read_kinds(invoker: Invoker, name: str) -> Mapping[str, int]:
    """What may go into a parameter, and how many of each; into a text, what its words speak of."""
    detail = get_properties(invoker)[name]
    types = _list_types(detail)
    if types & {"integer", "number"}:
        return _DEMANDS[0]
    words = set(split_words(name))
    is_list = bool(types & {"array", "object"})
    if words & _TEXTS or (is_list and name in invoker.arguments_schema.get("required", ())):
        return dict.fromkeys(_KINDS, _MANY)
    if types == {"boolean"} or "enum" in types:
        return {}
    most = _MANY if is_list else 1
    said = words | set(split_words(explain_parameter(invoker, name)))
    if said & _TIMES:
        return _DEMANDS[1] if "hh" in said else {"time": most, "number": _MANY}
    is_folder = bool(_FOLDERS & (words | set(split_words(invoker.name))))
    is_file = words <= _FILES or "file" in said | set(split_words(invoker.description))
    if words & _FILES:
        return {"file": most} if is_file and not is_folder else {}
    return {"number": _MANY, **({"file": most} if is_file and not is_folder else {})}


def _list_types(detail: Any) -> set[str]:
    """The types that a schema allows; that it has a few values only is a type here, too."""
    if not isinstance(detail, Mapping):
        return set()
    facts = cast("Mapping[str, Any]", detail)
    named = cast("str | Sequence[str]", facts.get("type", ()))
    types: set[str] = {named} if isinstance(named, str) else set(named)
    for option in (*facts.get("anyOf", ()), *facts.get("oneOf", ())):
        types |= _list_types(option)
    return (types | ({"enum"} if "enum" in facts else set[str]())) - {"null"}
