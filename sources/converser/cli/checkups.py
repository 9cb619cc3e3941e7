# SPDX-License-Identifier: Apache-2.0
"""What `converser doctor` can find out without starting a server: programs, variables, keys, extras, weights."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from ..configuration import (
    Configuration,
    MCPServer,
    resolve_command,
    resolve_cwd,
    resolve_environment,
    resolve_headers,
    resolve_url,
)
from ..configuration.mistakes import printable
from ..exceptions import ConfigurationFailure, ModelFailure
from .findings import Finding, broken, note, well

_INSTALLERS = {
    "docker": "Install Docker, and start it.",
    "node": "Install Node.js (https://nodejs.org).",
    "npx": "Install Node.js (https://nodejs.org), which brings npx.",
    "uv": "Install uv (https://docs.astral.sh/uv), or: pip install uv",
    "uvx": "Install uv (https://docs.astral.sh/uv), which brings uvx, or: pip install uv",
}


def check_references(server: MCPServer) -> Iterator[Finding]:
    """Variables and files that the settings of a server refer to, and that are not there."""
    resolvers = {
        "stdio": (resolve_command, resolve_environment, resolve_cwd),
        "http": (resolve_url, resolve_headers),
        "sse": (resolve_url, resolve_headers),
        "in-process": (),
    }
    for resolve in resolvers[server.transport]:
        try:
            resolve(server)
        except ConfigurationFailure as failure:
            yield from (broken(server.name, str(mistake)) for mistake in failure.mistakes)


def check_command(server: MCPServer) -> Iterator[Finding]:
    """The program of a server that is on no PATH; what else may be wrong with it, starting it tells."""
    if server.transport != "stdio" or "PATH" in server.environment:
        return
    try:
        program = resolve_command(server)[0]
    except ConfigurationFailure:
        return  # which was told already
    if "/" in program or "\\" in program or shutil.which(program):
        return
    remedy = "Install it, or write its whole path into `command`."
    words = f"the program {printable(program)} is not on PATH."
    yield broken(server.name, words, _INSTALLERS.get(program, remedy))


def check_model(configuration: Configuration) -> Iterator[Finding]:
    """Which model a conversation would have."""
    from ..providers.access import access_provider

    reasons: list[str] = []
    try:
        provider, reason = access_provider(
            None, {}, configuration=configuration, report=reasons.append
        )
    except (ModelFailure, ConfigurationFailure) as failure:
        is_named = "name" in configuration.tables.get("model", {})
        find = broken if is_named else note
        yield find("model", failure.message, failure.remedy)
    else:
        del provider
        yield well("model", reason)


def check_providers() -> Iterator[Finding]:
    """Keys, the packages that use them, and the embedded model; no key is ever shown."""
    import os

    from ..providers.automatic import CLOUDS, is_installed

    for cloud in CLOUDS:
        variable = next((name for name in cloud.variables if os.environ.get(name)), "")
        has_package = is_installed(cloud.package)
        install = f"pip install 'mcp-converser[{cloud.provider}]'"
        if variable and has_package:
            yield well(cloud.provider, f"{variable} is set, and its package is installed")
        elif variable:
            words = f"{variable} is set, but its package is not installed."
            yield broken(cloud.provider, words, install)
        else:
            lack = "" if has_package else " and its package is not installed"
            remedy = f"To use it, set {cloud.variables[0]}" + (
                "" if has_package else f"; {install}"
            )
            yield note(cloud.provider, f"no key is set{lack}", remedy)
    yield _check_embedded(is_installed("xllamacpp") and is_installed("openai"))


def _check_embedded(has_packages: bool) -> Finding:
    from platformdirs import user_cache_dir

    from ..providers.weights import FILE_NAME

    weights = Path(user_cache_dir("converser")) / "models" / FILE_NAME
    if not has_packages:
        install = "To use it: pip install 'mcp-converser[embedded]'"
        return note("embedded", "its packages are not installed", install)
    if not weights.is_file():
        words = "its weights are not here yet; they are fetched once, 1.1 GB, when it is first used"
        return note("embedded", words, "To do it now: converser ask --model embedded --yes Hello")
    return well("embedded", f"weights in {printable(str(weights))}")
