# SPDX-License-Identifier: Apache-2.0
"""`converser completion`, and what is offered for names: from files only, so that no server is started."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ..configuration.mistakes import printable
from ..exceptions import ConverserFailure
from .judging import Misuse
from .screen import complain

if TYPE_CHECKING:
    from ..configuration import Configuration

Shell = Literal["bash", "zsh", "fish"]


def offer(completer: Callable[[Any], list[str]]) -> Parameter:
    """A parameter whose values are offered; the cyclopts for Python 3.10 cannot, and offers none."""
    can_offer = hasattr(Parameter, "completer")
    return Parameter(completer=completer) if can_offer else Parameter()


def completion(
    shell: Shell | None = None,
    /,
    *,
    install: Annotated[
        bool, Parameter(help="Put it where the shell finds it, and into its start-up file.")
    ] = False,
) -> None:
    """Writes a script for your shell, which completes commands, options, servers and tools.

    Parameters
    ----------
    shell
        bash, zsh or fish; found out, if not given.
    """
    from .program import app

    try:
        if install:
            path = app.install_completion(shell=shell)
        else:
            sys.stdout.write(app.generate_completion(shell=shell))
            return
    except RuntimeError:
        raise Misuse(
            "It is not known which shell this is.", remedy="Name it: converser completion bash"
        ) from None
    except OSError as failure:
        raise Misuse(
            f"Nothing can be installed there: {failure.strerror}: {printable(str(failure.filename))}.",
            remedy="Write the script elsewhere: converser completion > FILE",
        ) from None
    complain(f"Installed: {printable(str(path))}. Start a new shell to use it.", style="green")


def complete_servers(_: Any) -> list[str]:
    """The names of the configured servers."""
    configuration = _load()
    return list(configuration.servers) if configuration else []


def complete_tools(_: Any) -> list[str]:
    """SERVER.TOOL for the tools in converser.lock, and SERVER. for servers that are not in it."""
    configuration = _load()
    if configuration is None or not configuration.files:
        return []
    known = _read_lock(configuration.files[0].path)
    offers: list[str] = []
    for name in configuration.servers:
        offers.extend(f"{name}.{tool}" for tool in known.get(name, [""]))
    return offers


def _load() -> Configuration | None:
    from ..configuration import load_configuration

    try:
        return load_configuration()
    except ConverserFailure:
        return None


def _read_lock(path: Path) -> dict[str, list[str]]:
    from ..rosters.catalogue import FILE_NAME, read_catalogue

    try:
        entries = read_catalogue(path.with_name(FILE_NAME)).servers
    except ConverserFailure:
        return {}
    return {name: [tool.name for tool in entry.tools] for name, entry in entries.items()}
