# SPDX-License-Identifier: Apache-2.0
"""Where other programs keep their MCP servers, and what is in those files."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ..configuration.foreign import read_foreign
from ..configuration.jsonc import Fault, read_json
from ..configuration.mistakes import create_failure, printable
from ..configuration.readings import Reading, Source
from ..configuration.translations import suggest_variable
from ..exceptions import ConfigurationFailure

_QUESTION = re.compile(r"\$\{input:([^}]*)\}")


def list_places(folder: Path) -> Iterator[tuple[str, Path]]:
    """The usual files of other programs, with the names of these: first the project's, then the user's."""
    home = Path.home()
    yield "Claude Code", folder / ".mcp.json"
    yield "Cursor", folder / ".cursor" / "mcp.json"
    yield "VS Code", folder / ".vscode" / "mcp.json"
    yield "Claude Code", home / ".claude.json"
    yield "Cursor", home / ".cursor" / "mcp.json"
    settings = _find_settings_folder(home)
    yield "Claude Desktop", settings / "Claude" / "claude_desktop_config.json"
    yield "VS Code", settings / "Code" / "User" / "mcp.json"
    yield "VS Code", settings / "Code" / "User" / "settings.json"


def _find_settings_folder(home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", home / "AppData" / "Roaming"))
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")


def read_host_file(path: Path, folder: Path) -> Reading:
    """The servers of one file, all of them well-formed; a variable stands for what VS Code would ask for."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or "it is not text in UTF-8"
        raise ConfigurationFailure(f"{printable(str(path))} cannot be read: {reason}.") from None
    asked = [suggest_variable(match[1]) for match in _QUESTION.finditer(text)]
    text = _QUESTION.sub(lambda match: f"${{env:{suggest_variable(match[1])}}}", text)
    reading = read_foreign(_settle(text, folder), Source(path=path, scope="project"))
    if reading.mistakes:
        raise create_failure(reading.mistakes)
    words = f"{printable(str(path))} asks for values; set the variables: {', '.join(asked)}."
    remarks = (*reading.remarks, words) if asked else reading.remarks
    return Reading(source=reading.source, servers=reading.servers, remarks=remarks)


def _settle(text: str, folder: Path) -> str:
    """The text as it is, or an equal of it that has the servers at the top, as for one folder of Claude Code."""
    data = read_json(text)
    if isinstance(data, Fault) or not isinstance(data, Mapping):
        return text
    top = cast("Mapping[str, Any]", data)
    own = _dig(top, "projects", str(folder), "mcpServers")
    everywhere = _dig(top, "mcpServers")
    if own:
        return json.dumps({"mcpServers": {**everywhere, **own}})
    is_empty = not (everywhere or _dig(top, "servers") or _dig(top, "mcp", "servers"))
    return '{"mcpServers": {}}' if is_empty else text


def _dig(data: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    found: Any = data
    for key in keys:
        found = cast("Mapping[str, Any]", found).get(key) if isinstance(found, Mapping) else None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
