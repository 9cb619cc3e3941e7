# SPDX-License-Identifier: Apache-2.0
"""What each setting of a server may be, and which settings go together; one set of rules for all sources."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .kinds import is_list, is_table, name_kind
from .mistakes import Problem, nearest
from .references import REFERENCE, has_reference

TRANSPORTS = ("stdio", "http", "sse", "in-process")
TOOL_NAMES = ("prefix", "mcp")
LIMIT_MIN = 65_536
"""Bytes of a result; with less than that, there would be little but notes on what is left out."""
SCOPES = ("project", "user", "application")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TOOL_PREFIX = re.compile(r"[A-Za-z0-9_-]{0,64}")
_IMPORT_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_REQUIRED = {"stdio": "command", "http": "url", "sse": "url", "in-process": "server"}
_BELONGINGS = {
    "command": ("stdio",),
    "environment": ("stdio",),
    "cwd": ("stdio",),
    "url": ("http", "sse"),
    "headers": ("http", "sse"),
    "server": ("in-process",),
}


def _check_text(value: Any) -> Iterable[Problem]:
    if not isinstance(value, str):
        hint = " Write it in quotes." if isinstance(value, (int, float)) else ""
        yield Problem((), f"expected text, not {name_kind(value)}.{hint}")
    elif "\0" in value:
        yield Problem((), "must not contain a null character.")


def _check_filled_text(value: Any) -> Iterable[Problem]:
    yield from _check_text(value)
    if value == "":
        yield Problem((), "must not be empty.")


def _check_texts(value: Any) -> Iterable[Problem]:
    if not is_list(value):
        yield Problem((), f"expected a list of texts, not {name_kind(value)}.")
        return
    for position, item in enumerate(value):
        yield from (problem.under((position,)) for problem in _check_text(item))


def _check_command(value: Any) -> Iterable[Problem]:
    if isinstance(value, str):
        yield from _check_filled_text(value)
    elif not is_list(value):
        yield Problem((), f"expected a list of texts, or one text, not {name_kind(value)}.")
    else:
        yield from _check_texts(value)
        if value and value[0] == "":
            yield Problem((0,), "the name of the program must not be empty.")


def _check_table(value: Any, check_name: Callable[[str], str]) -> Iterable[Problem]:
    if not is_table(value):
        yield Problem((), f"expected a table of texts, not {name_kind(value)}.")
        return
    for name, item in value.items():
        complaint = check_name(str(name))
        if complaint:
            yield Problem((str(name),), complaint)
        yield from (problem.under((str(name),)) for problem in _check_text(item))


def _check_environment(value: Any) -> Iterable[Problem]:
    def check_name(name: str) -> str:
        fit = name and "=" not in name and "\0" not in name
        return "" if fit else "the name of a variable has no '=' and is not empty."

    return _check_table(value, check_name)


def _check_headers(value: Any) -> Iterable[Problem]:
    def check_name(name: str) -> str:
        return "" if _HEADER_NAME.fullmatch(name) else "this is not a valid name of a header."

    return _check_table(value, check_name)


def _check_boolean(value: Any) -> Iterable[Problem]:
    if not isinstance(value, bool):
        yield Problem((), f"expected true or false, not {name_kind(value)}.")


def _check_seconds(value: Any) -> Iterable[Problem]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        yield Problem((), f"expected a number of seconds, not {name_kind(value)}.")
    elif not (value > 0 and math.isfinite(value)):
        yield Problem((), "expected a finite number of seconds above 0.")


def _check_choice(choices: tuple[str, ...]) -> Callable[[Any], Iterable[Problem]]:
    def check(value: Any) -> Iterable[Problem]:
        if value not in choices:
            listing = ", ".join(f'"{choice}"' for choice in choices)
            suggestion = nearest(value, choices) if isinstance(value, str) else ""
            yield Problem((), f"expected one of {listing}.", suggestion)

    return check


def find_url_fault(url: str) -> str:
    """Why a text is no usable URL, or an empty text; the URL itself is never repeated."""
    if any(sign.isspace() or not sign.isprintable() for sign in url):
        return "must not contain spaces or control characters."
    try:
        parts = urlsplit(url)
        usable = parts.port != 0
    except ValueError:
        return "is not a valid URL."
    if parts.scheme not in ("http", "https"):
        return 'expected a URL that begins with "http://" or "https://".'
    return "" if parts.hostname and usable else "is not a valid URL: it has no usable host."


def _check_url(value: Any) -> Iterable[Problem]:
    problems = list(_check_filled_text(value))
    yield from problems
    if not problems and not has_reference(value):
        fault = find_url_fault(value)
        if fault:
            yield Problem((), fault)


def _check_server(value: Any) -> Iterable[Problem]:
    if isinstance(value, str) and not _IMPORT_PATH.fullmatch(value):
        yield Problem((), 'expected an import path such as "package.module:attribute".')


def _check_prefix(value: Any) -> Iterable[Problem]:
    problems = list(_check_text(value))
    yield from problems
    if not problems and not _TOOL_PREFIX.fullmatch(value):
        yield Problem((), "may have letters, digits, '_' and '-' only, and at most 64 of them.")


def _check_count(value: Any) -> Iterable[Problem]:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        yield Problem((), f"expected a whole number from 0 on, not {name_kind(value)}.")


def _check_limit(value: Any) -> Iterable[Problem]:
    if isinstance(value, bool) or not isinstance(value, int) or value < LIMIT_MIN:
        words = f"expected a whole number of bytes from {LIMIT_MIN} on, not {name_kind(value)}."
        yield Problem((), words)


def _check_tool_timeouts(value: Any) -> Iterable[Problem]:
    if not is_table(value):
        yield Problem((), f"expected a table of tools and seconds, not {name_kind(value)}.")
        return
    for name, seconds in value.items():
        yield from (problem.under((str(name),)) for problem in _check_seconds(seconds))


CHECKS: Mapping[str, Callable[[Any], Iterable[Problem]]] = {
    "transport": _check_choice(TRANSPORTS),
    "command": _check_command,
    "args": _check_texts,
    "environment": _check_environment,
    "cwd": _check_filled_text,
    "url": _check_url,
    "headers": _check_headers,
    "server": _check_server,
    "enabled": _check_boolean,
    "required": _check_boolean,
    "timeout": _check_seconds,
    "idle_timeout": _check_seconds,
    "timeout_maximum": _check_seconds,
    "tool_timeouts": _check_tool_timeouts,
    "connect_timeout": _check_seconds,
    "reconnect_attempts": _check_count,
    "result_limit": _check_limit,
    "replay_tools": _check_texts,
    "lazy": _check_boolean,
    "tool_prefix": _check_prefix,
    "tool_names": _check_choice(TOOL_NAMES),
    "enabled_tools": _check_texts,
    "disabled_tools": _check_texts,
    "description": _check_text,
    "scope": _check_choice(SCOPES),
}


def check_field(key: str, value: Any) -> list[Problem]:
    """What is wrong with one setting, seen from the table of its server."""
    return [problem.under((key,)) for problem in CHECKS[key](value)]


def check_combination(transport: str, present: Iterable[str]) -> list[Problem]:
    """What a transport lacks, and what it has no use for."""
    present = tuple(present)
    problems = [
        Problem((key,), f'belongs to transport {_list_choices(owners)}, not to "{transport}".')
        for key, owners in _BELONGINGS.items()
        if key in present and transport not in owners
    ]
    required = _REQUIRED[transport]
    if required not in present:
        problems.append(Problem((), f'transport "{transport}" needs the key "{required}".'))
    return problems


def _list_choices(choices: tuple[str, ...]) -> str:
    return " or ".join(f'"{choice}"' for choice in choices)


def check_program(command: Any, *, folder: Path | None = None) -> list[Problem]:
    """Finds a whole shell line where the name of one program is due; nothing is split by guessing."""
    if not isinstance(command, str) or not any(sign.isspace() for sign in command.strip()):
        return []
    if REFERENCE.search(command) or "\0" in command:
        return []
    import shutil

    if shutil.which(command) or ((folder or Path()) / command).is_file():
        return []
    message = (
        "one text is the name of one program, and there is none of this name. "
        'Write a list instead: ["program", "argument", "…"].'
    )
    return [Problem(("command",), message)]
