# SPDX-License-Identifier: Apache-2.0
"""A `converser.toml` that is edited: comments and layout stay, and so does an approval of its content."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, cast

import tomli
import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AbstractTable, InlineTable

from ..configuration import find_user_file
from ..configuration.mistakes import create_failure, place_problems, printable
from ..configuration.names import check_name
from ..configuration.readings import Source, build_server, hash_content
from ..configuration.servers import MCPServer
from ..exceptions import ConfigurationFailure
from .trust import approve, is_approved

_UNUSUAL = "its layout is too unusual to be edited without harm"


class Document:
    """One file, as it is and as it shall be; nothing is written before `save`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._before: bytes | None = None
        with contextlib.suppress(FileNotFoundError):
            self._before = self._read()
        try:
            text = (self._before or b"").decode("utf-8-sig")
            self._toml = tomlkit.parse(text)
            self._meant: dict[str, Any] = tomli.loads(text)
        except (ValueError, TOMLKitError):
            raise self._refuse("it is not valid TOML") from None

    @property
    def servers(self) -> Mapping[str, Any]:
        """The tables of the servers, as they shall be."""
        servers: Any = self._meant.get("mcp")
        return cast("Mapping[str, Any]", servers) if isinstance(servers, Mapping) else {}

    def put(self, name: str, settings: Mapping[str, Any]) -> None:
        """Adds a server, or writes over the one of that name, if the settings are valid."""
        self._check(name, settings)
        self._meant.setdefault("mcp", {})[name] = dict(settings)
        if "mcp" not in self._toml:
            self._toml["mcp"] = tomlkit.table(is_super_table=True)
        with self._trying() as owner:
            owner[name] = _write_table(settings, inline=isinstance(owner, InlineTable))

    def remove(self, name: str) -> None:
        """Takes a server out, which must be there."""
        del self._meant["mcp"][name]
        with self._trying() as owner:
            del owner[name]

    def set(self, name: str, key: str, value: Any) -> None:
        """Changes one setting of a server, which must be there."""
        self._meant["mcp"][name][key] = value
        with self._trying() as owner:
            owner[name][key] = value

    @property
    def is_users(self) -> bool:
        """Whether it is the user's own file, which is obeyed unasked."""
        return os.path.realpath(self.path) == os.path.realpath(find_user_file())

    def save(self, *, private: bool = False, approved: bool = True) -> None:
        """Writes the file in one step.

        What the user had approved stays approved after an edit of ours, if that is `approved` too.
        """
        text = tomlkit.dumps(self._toml)
        if not self._is_as_meant(text):
            raise self._refuse(_UNUSUAL)
        after = text.encode("utf-8")
        is_ours = self._before is None or is_approved(self.path, hash_content(self._before))
        try:
            _write(self.path, after, mode=0o600 if private else None)
        except OSError as failure:
            raise self._refuse(failure.strerror or type(failure).__name__) from None
        if is_ours and approved and not self.is_users:
            approve(self.path, hash_content(after))

    @contextlib.contextmanager
    def _trying(self) -> Generator[Any]:
        """Gives the table of servers; what tomlkit cannot do in an odd layout is told as such."""
        try:
            yield self._toml["mcp"]
        except (TOMLKitError, ValueError):
            raise self._refuse(_UNUSUAL) from None

    def _read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as failure:
            raise self._refuse(failure.strerror or type(failure).__name__) from None

    def _check(self, name: str, settings: Mapping[str, Any]) -> None:
        problems = check_name(name)
        server = build_server(
            "unnamed" if problems else name, settings, Source(path=self.path, scope="project")
        )
        if not isinstance(server, MCPServer):
            problems.extend(server)
        if problems:
            found = (problem.under(("mcp", name)) for problem in problems)
            raise create_failure(place_problems(found, lines={}))

    def _is_as_meant(self, text: str) -> bool:
        try:
            return tomli.loads(text) == self._meant
        except tomli.TOMLDecodeError:
            return False

    def _refuse(self, reason: str) -> ConfigurationFailure:
        return ConfigurationFailure(
            f"{printable(str(self.path))} cannot be edited: {reason}.",
            remedy="Nothing was changed. Edit it by hand, or name another file with --config.",
        )


def _write_table(settings: Mapping[str, Any], *, inline: bool) -> AbstractTable:
    table: AbstractTable = tomlkit.inline_table() if inline else tomlkit.table()
    for key, value in settings.items():
        if isinstance(value, Mapping):
            inner: Any = tomlkit.inline_table()
            inner.update(value)
            table[key] = inner
        else:
            table[key] = value
    return table


def _write(path: Path, content: bytes, *, mode: int | None) -> None:
    """A reader sees the old file or the new one; permissions stay, and so does a symbolic link."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    with contextlib.suppress(FileNotFoundError):
        mode = target.stat().st_mode & 0o7777
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.chmod(0o666 & ~_find_umask() if mode is None else mode)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _find_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
