# SPDX-License-Identifier: Apache-2.0
"""Translates the variables of other hosts, such as `${NAME:-default}`, into references of ours."""

from __future__ import annotations

import os
import re
from pathlib import Path

from .references import REFERENCE, split_whole_reference

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?|env:([A-Za-z_][A-Za-z0-9_]*)(?::-?(.*))?", re.DOTALL
)
_EDITOR_FOLDERS = (".vscode", ".cursor")
_EDITOR_ONLY = ("input:", "command:", "config:")


def translate(text: str, *, path: Path, complaints: list[str], whole_counts: bool) -> str:
    """The text in our words; what can't be translated goes to the complaints.

    `whole_counts` says that a text which begins like `file:` would be taken for a reference.
    """

    def replace(match: re.Match[str]) -> str:
        return _translate_one(match[1], path, complaints) or _keep(match[0])

    translated = _PLACEHOLDER.sub(replace, text)
    if whole_counts and split_whole_reference(text) is not None:
        # To the other host this is plain text.
        head, _, tail = translated.partition(":")
        return f"${{literal:{head}:}}{tail}"
    return translated


def _translate_one(inner: str, path: Path, complaints: list[str]) -> str:
    if inner.startswith(_EDITOR_ONLY):
        kind, _, name = inner.partition(":")
        complaints.append(
            f"asks the editor for a value (${{{kind}:…}}), and there is none here. "
            f"Set an environment variable, and write ${{env:{suggest_variable(name)}}}."
        )
        return "${literal:}"
    fixed = _find_fixed(inner, path)
    if fixed is not None:
        return fixed
    match = _NAME.fullmatch(inner)
    if match is None:
        return ""
    name, default = (match[1], match[2]) if match[1] else (match[3], match[4])
    return f"${{env:{name}}}" if default is None else f"${{env:{name}:{default}}}"


def _find_fixed(name: str, path: Path) -> str | None:
    """What the editor knows by itself: folders, and how paths are written."""
    folder = path.parent.parent if path.parent.name in _EDITOR_FOLDERS else path.parent
    if name == "userHome":
        return str(Path.home())
    if name in ("pathSeparator", "/"):
        return os.sep
    if name == "workspaceFolder":
        return str(folder)
    return folder.name if name == "workspaceFolderBasename" else None


def _keep(text: str) -> str:
    """Text that only looks like a reference of ours stays text."""
    return f"${{literal:{text[:-1]}}}}}" if REFERENCE.fullmatch(text) else text


def suggest_variable(name: str) -> str:
    """A fit name for the variable that stands for something."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()
    return words if words and not words[0].isdigit() else "NAME"
