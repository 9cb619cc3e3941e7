# SPDX-License-Identifier: Apache-2.0
"""Turns references into values: only when a server is connected, and never into a message."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .checks import find_url_fault
from .kinds import name_kind
from .mistakes import KeyPath, Mistake, create_failure, printable, render_key
from .references import REFERENCE, VARIABLE, split_whole_reference

if TYPE_CHECKING:
    from .servers import MCPServer

_SIZE_LIMIT = 1_048_576
_CONTROL_SIGN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class _Unresolvable(Exception):
    """Why there is no usable value, and what to do now; becomes a mistake."""


def resolve_value(
    text: str,
    *,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    key: str = "",
) -> str:
    """The value behind `env:NAME`, `env:NAME:default`, `file:PATH`, or a text with `${…}` of these.

    Anything else is itself, and so is what follows `literal:`. What a reference gives is not
    read again. `folder` is where relative paths begin.
    """
    try:
        return _resolve(text, folder, os.environ if environ is None else environ)
    except _Unresolvable as reason:
        complaint = str(reason)
    raise create_failure((Mistake(key=key, message=complaint),))


def resolve_environment(
    server: MCPServer, *, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables that the process of the server gets, with their values."""
    texts: dict[KeyPath, str] = {
        ("environment", name): text for name, text in server.environment.items()
    }
    values = _resolve_all(server, texts, environ, inspect=_inspect_variable)
    return dict(zip(server.environment, values, strict=True))


def resolve_headers(
    server: MCPServer, *, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The headers of each request to the server, with their values."""
    texts: dict[KeyPath, str] = {("headers", name): text for name, text in server.headers.items()}
    values = _resolve_all(server, texts, environ, inspect=_inspect_header)
    return dict(zip(server.headers, values, strict=True))


def resolve_command(
    server: MCPServer, *, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """The program and its arguments; only `${…}` counts here, as `file:` begins many an argument."""
    texts: dict[KeyPath, str] = {
        ("command", place): text for place, text in enumerate(server.command)
    }
    inspect = _inspect_variable
    return tuple(_resolve_all(server, texts, environ, inspect=inspect, parts_only=True))


def resolve_parts(
    server: MCPServer, *, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """What the references within longer texts stand for, to be kept out of what is shown."""
    environ = os.environ if environ is None else environ
    texts = (*server.command, *server.environment.values(), *server.headers.values())
    found = [m for text in (*texts, server.url or "") for m in REFERENCE.finditer(text)]
    return tuple(
        _look_up(m[1], m[2], _find_folder(server), environ) for m in found if m[1] != "literal"
    )


def resolve_url(server: MCPServer, *, environ: Mapping[str, str] | None = None) -> str:
    """The URL of the server; secrets and all, so not for display."""
    return _resolve_all(server, {("url",): server.url or ""}, environ, inspect=find_url_fault)[0]


def resolve_cwd(server: MCPServer, *, environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder in which the server runs; relative to the file that named it."""
    if server.cwd is None:
        return None
    folder = _find_folder(server)

    def inspect(value: str) -> str:
        return (
            ""
            if (folder / _expand(value)).is_dir()
            else "there is no such folder. Create it, or correct the path."
        )

    return folder / _expand(
        _resolve_all(server, {("cwd",): server.cwd}, environ, inspect=inspect)[0]
    )


def resolve_server(server: MCPServer) -> Any:
    """The in-process server itself, imported if it is given by an import path."""
    import importlib

    if not isinstance(server.server, str):
        return server.server
    module_name, _, attributes = server.server.partition(":")
    try:
        value: Any = importlib.import_module(module_name)
        for attribute in attributes.split("."):
            value = getattr(value, attribute)
    except Exception as failure:  # A module may do anything while it is imported.
        complaint = (
            f"{printable(server.server)} cannot be imported ({type(failure).__name__}). "
            "Install the package, or correct the import path."
        )
        raise create_failure((_create_mistake(server, ("server",), complaint),)) from failure
    if isinstance(value, str) or value is None:
        complaint = f"{server.server} is {name_kind(value)}, not a server."
        raise create_failure((_create_mistake(server, ("server",), complaint),))
    return value


def _resolve_all(
    server: MCPServer,
    texts: Mapping[KeyPath, str],
    environ: Mapping[str, str] | None,
    *,
    inspect: Callable[[str], str],
    parts_only: bool = False,
) -> list[str]:
    """Resolves all texts, and tells of all that cannot be resolved at once."""
    environ = os.environ if environ is None else environ
    folder = _find_folder(server)
    values: list[str] = []
    mistakes: list[Mistake] = []
    for where, text in texts.items():
        try:
            value = _resolve(text, folder, environ, parts_only=parts_only)
            fault = inspect(value)
        except _Unresolvable as reason:
            mistakes.append(_create_mistake(server, where, str(reason)))
            continue
        if fault:
            mistakes.append(_create_mistake(server, where, fault))
        values.append(value)
    if mistakes:
        raise create_failure(mistakes)
    return values


def _create_mistake(server: MCPServer, where: KeyPath, message: str) -> Mistake:
    key = render_key(("mcp", server.name, *where))
    return Mistake(key=key, message=message, path=server.origin)


def _find_folder(server: MCPServer) -> Path:
    return Path.cwd() if server.origin is None else server.origin.parent


def _resolve(
    text: str, folder: Path | None, environ: Mapping[str, str], *, parts_only: bool = False
) -> str:
    whole = None if parts_only else split_whole_reference(text)
    if whole is not None:
        return _look_up(*whole, folder, environ)
    return REFERENCE.sub(lambda match: _look_up(match[1], match[2], folder, environ), text)


def _look_up(kind: str, target: str, folder: Path | None, environ: Mapping[str, str]) -> str:
    if kind == "literal":
        return target
    if kind == "file":
        return _read_file((folder or Path.cwd()) / _expand(target))
    variable = VARIABLE.fullmatch(target)
    if variable is None:
        raise _Unresolvable(
            "a reference to a variable lacks a proper name. Write ${env:NAME} or ${env:NAME:default}."
        )
    name: str = variable[1]
    default: str | None = variable[2]
    value = environ.get(name) if default is None else environ.get(name, default)
    if value is None:
        raise _Unresolvable(
            f"the environment variable {name} is not set. "
            f'Set it, or give a default: "env:{name}:default".'
        )
    return value


def _expand(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise _Unresolvable(
            'the home folder behind "~" is not known. Write the whole path.'
        ) from None


def _read_file(path: Path) -> str:
    shown = printable(str(path))
    remedy = 'Create it, correct the path, or write "literal:file:…" if the text itself is meant.'
    try:
        data = _read_bytes(path)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or "it is no usable path"
        raise _Unresolvable(f"the file {shown} cannot be read: {reason}. {remedy}") from None
    if len(data) > _SIZE_LIMIT:
        raise _Unresolvable(f"the file {shown} is larger than a mebibyte. Name a smaller one.")
    text = data.decode("utf-8-sig", "replace")
    if "\ufffd" in text:
        # The decoder itself would raise an error that holds the secret bytes.
        raise _Unresolvable(f"the file {shown} is not text in UTF-8. Save it as such.")
    return re.sub(r"\r?\n\Z", "", text)


def _read_bytes(path: Path) -> bytes:
    # A pipe or a device could block for ever.
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "there is no such file")
    with path.open("rb") as stream:
        return stream.read(_SIZE_LIMIT + 1)


def _inspect_header(value: str) -> str:
    if _CONTROL_SIGN.search(value):
        return "the value has line breaks or control characters, which no header may have."
    return ""


def _inspect_variable(value: str) -> str:
    return "the value has a null character, which no process can be given." if "\0" in value else ""
