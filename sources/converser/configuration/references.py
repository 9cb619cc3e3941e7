# SPDX-License-Identifier: Apache-2.0
"""How references (`env:NAME`, `file:PATH`, `${env:NAME}` within a text) are recognised, and shown without values."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

HIDDEN = "…"
"""What stands in the place of a value that is not shown."""

REFERENCE = re.compile(r"\$\{(env|file|literal):([^}]*)\}")
"""A reference inside a longer text."""

WHOLE_REFERENCE = re.compile(
    r"(env)(?=:[A-Za-z_][A-Za-z0-9_]*(?::|\Z)):(.*)|(file|literal):(.+)", re.DOTALL
)
"""A text that is nothing but a reference; `env:` with no proper name after it is a plain text."""

VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::(.*))?", re.DOTALL)
"""What follows `env:`: a name, and perhaps a default."""


def split_whole_reference(text: str) -> tuple[str, str] | None:
    """Kind and target of a text that is nothing but a reference."""
    match = WHOLE_REFERENCE.fullmatch(text)
    if match is None:
        return None
    return (match[1], match[2]) if match[1] else (match[3], match[4])


def has_reference(text: str) -> bool:
    """Whether a text has parts that are only known when the server is connected."""
    return bool(WHOLE_REFERENCE.fullmatch(text) or REFERENCE.search(text))


def hide_references(text: str) -> str:
    """Keeps kind and name of each reference, and hides defaults."""
    whole = split_whole_reference(text)
    if whole is not None:
        return _hide(*whole)
    return REFERENCE.sub(lambda match: "${" + _hide(match[1], match[2]) + "}", text)


def _hide(kind: str, target: str) -> str:
    if kind != "env":
        return f"{kind}:{HIDDEN}"
    name, separator, _ = target.partition(":")
    return f"{kind}:{name}:{HIDDEN}" if separator else f"{kind}:{name}"


def show_url(url: str) -> str:
    """A URL without userinfo, query and fragment, which often hold secrets."""
    shown = hide_references(url)
    if split_whole_reference(url) is not None:
        return shown
    try:
        parts = urlsplit(shown)
    except ValueError:
        return HIDDEN
    if not parts.netloc:  # Scheme or host come from a reference.
        return HIDDEN if "@" in parts.path else f"{parts.path}{HIDDEN}"
    _, separator, host = parts.netloc.rpartition("@")
    host = f"{HIDDEN}@{host}" if separator else host
    query = f"?{HIDDEN}" if parts.query else ""
    fragment = f"#{HIDDEN}" if parts.fragment else ""
    return f"{parts.scheme}://{host}{parts.path}{query}{fragment}"
