# SPDX-License-Identifier: Apache-2.0
"""Remembers, over the end of this process too, which servers are of the older era and do badly when asked.

Some do not answer a question that they do not know, and some die of it; that costs seconds, so it shall be
found out once. Only hashes of commands and URLs are kept, in a small file in the user's folder for caches.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import Sequence
from pathlib import Path

from .narrowing import as_list

_ENTRIES_MAX = 1_000
_log = logging.getLogger(__name__)


class EraMemory:
    """What is remembered of one server."""

    def __init__(self, command: Sequence[str], cwd: str | Path | None) -> None:
        words = json.dumps([*command, str(cwd or "")])
        self._key = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()

    def recall(self) -> bool:
        """Whether it is known to be of the older era."""
        return self._key in _read()

    def note(self, *, legacy: bool) -> None:
        """Remembers what was found out; where that is not possible, it is found out again."""
        known = _read()
        if (self._key in known) is legacy:
            return
        kept = [key for key in known if key != self._key]
        try:
            _write([*kept, self._key][-_ENTRIES_MAX:] if legacy else kept)
        except OSError as failure:
            _log.debug("Eras of servers cannot be remembered: %s", failure.strerror)


def _find_file() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("converser") / "legacy-servers.json"


def _read() -> list[str]:
    try:
        found = as_list(json.loads(_find_file().read_bytes()))
    except (OSError, ValueError, RecursionError):
        return []
    return [key for key in found or () if isinstance(key, str)]


def _write(keys: list[str]) -> None:
    """Writes the file in one step: a reader sees the old one or the new one, and never a part."""
    file = _find_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(6)}")
    draft.write_text(json.dumps(keys, indent=0), "utf-8")
    draft.replace(file)
