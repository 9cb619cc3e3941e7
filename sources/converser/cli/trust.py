# SPDX-License-Identifier: Apache-2.0
"""Whether a file that came with a project may be obeyed: asked once for each content in each folder.

A file of configuration starts commands, imports code, and sends secrets to addresses. Only the
user's own is obeyed unasked. An approval is a file named by a hash over path and content, as there
is then nothing that two programs could write at once.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ..configuration import Configuration, MCPServer, Source
from ..configuration.mistakes import printable
from ..configuration.references import HIDDEN, REFERENCE, show_url, split_whole_reference
from .conversing.terminals import is_interactive
from .judging import Distrust
from .screen import complain, confirm

VARIABLE = "CONVERSER_TRUST"
_YES = ("1", "true", "yes")


def check_trust(configuration: Configuration, *, given: bool = False) -> None:
    """Lets a configuration pass if the user approved each of its files; asks where it can."""
    if is_given(given):
        return
    for source in find_untrusted(configuration):
        if not is_interactive():
            raise Distrust(
                f"{printable(str(source.path))} was not approved by you, or has changed since,"
                " and here is no terminal to ask at. Nothing was started.",
                remedy="Read it; then run the command once at a terminal, where you are asked, or"
                f" approve it for one run with --trust or {VARIABLE}=1.",
            )
        if not _ask(source, configuration):
            raise Distrust(
                f"{printable(str(source.path))} was not approved, and nothing was started.",
                remedy="You will be asked again.",
            )
        approve(source.path, source.digest)


def is_given(given: bool) -> bool:
    """Whether all files are trusted in this run, by the option or by the environment."""
    return given or os.environ.get(VARIABLE, "").lower() in _YES


def find_untrusted(configuration: Configuration) -> list[Source]:
    """The files that are not the user's own, and were not approved as they are."""
    return [
        source
        for source in configuration.files
        if source.scope != "user"
        and any(describe(source, configuration))
        and not is_approved(source.path, source.digest)
    ]


def is_approved(path: Path, digest: str) -> bool:
    """Whether the user approved this content in this place."""
    return _find_approval(path, digest).is_file()


def approve(path: Path, digest: str) -> None:
    """Remembers an approval, for this user only."""
    approval = _find_approval(path, digest)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        approval.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(approval, flags, 0o600), "w", encoding="utf-8") as stream:
            stream.write(f"{printable(str(path))}\n")
    except OSError as failure:
        complain(f"The approval cannot be kept in {approval.parent}: {failure.strerror}.")


def _find_approval(path: Path, digest: str) -> Path:
    from platformdirs import user_state_path

    place = os.path.realpath(path)
    name = hashlib.sha256(f"{digest}\n{place}".encode("utf-8", "surrogateescape")).hexdigest()
    return user_state_path("converser", appauthor=False) / "trust" / name


def _ask(source: Source, configuration: Configuration) -> bool:
    """Shows all that the file would do, whole, and asks; anything but a clear yes is a no."""
    complain(f"{printable(str(source.path))} is new here, or has changed. It wants to:")
    for words in describe(source, configuration):
        complain(f"  {words}", style="bold")
    complain("Only go on if you know where it comes from. Any change of it will be asked again.")
    return confirm("Obey this file from now on?")


def describe(source: Source, configuration: Configuration) -> Iterator[str]:
    """What a file would start and whom it would send something to, a line each; no secret is shown."""
    for server in configuration.servers.values():
        if server.origin == source.path:
            yield describe_server(server)
    for key, table in source.tables.items():
        yield f"{key}: {_describe_table(table)}"


def describe_server(server: MCPServer) -> str:
    """What a server would start or be sent, on one line."""
    state = "" if server.enabled else " (disabled)"
    return f"{server.name}{state}: {'; '.join(_list_deeds(server))}"


def _list_deeds(server: MCPServer) -> Iterator[str]:
    if server.transport == "stdio":
        yield f"run {printable(shlex.join(server.command))}"
        if server.cwd is not None:
            yield f"in the folder {printable(server.cwd)}"
        if server.environment:
            yield f"with the variables {_describe_values(server.environment)}"
    elif server.transport == "in-process":
        yield f"import {printable(str(server.server))} into this program"
    else:
        yield f"connect to {printable(show_url(server.url or ''))}"
        if server.headers:
            yield f"and send the headers {_describe_values(server.headers)}"


def _describe_table(table: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner = _describe_table(cast("Mapping[str, Any]", value))
            parts.append(f"{printable(key)} ({inner})")
        elif key in ("base_url", "url"):
            parts.append(f"{printable(key)} {printable(show_url(str(value)))}")
        elif key in ("name", "model", "type"):
            parts.append(f"{printable(key)} {printable(str(value))}")
        else:
            parts.append(_describe_values({key: str(value)}))
    return ", ".join(parts)


def _describe_values(values: Mapping[str, str]) -> str:
    """Names, each with the references in its value; other text may be a secret."""
    return ", ".join(f"{printable(name)}={_show(value)}" for name, value in values.items())


def _show(value: str) -> str:
    whole = split_whole_reference(value)
    found = [whole] if whole else [(match[1], match[2]) for match in REFERENCE.finditer(value)]
    # The path of a file is shown, unlike elsewhere: it is what would be sent away.
    names = [
        f"{kind}:{target.partition(':')[0] if kind == 'env' else printable(target)}"
        for kind, target in found
        if kind != "literal"
    ]
    return " ".join(names) or HIDDEN
