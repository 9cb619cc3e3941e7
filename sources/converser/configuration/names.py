# SPDX-License-Identifier: Apache-2.0
"""Names of servers: what they may be, and how a foreign name becomes one."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from .kinds import name_kind
from .mistakes import Problem

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def check_name(name: Any) -> list[Problem]:
    """What is wrong with the name of a server."""
    if not isinstance(name, str):
        return [Problem((), f"expected text as the name of a server, not {name_kind(name)}.")]
    if NAME_PATTERN.fullmatch(name):
        return []
    message = (
        "the name of a server has 1 to 64 of the signs a-z, 0-9, '_' and '-', "
        "and begins with a letter or a digit."
    )
    return [Problem((), message, normalise_name(name))]


def normalise_name(text: str) -> str:
    """A valid name that is always the same for the same text: `My Server` gives `my-server`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    name = re.sub(r"[^a-z0-9_]+", "-", plain).strip("-_")[:64].rstrip("-_")
    if name:
        return name
    import hashlib

    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"server-{digest[:8]}"
