# SPDX-License-Identifier: Apache-2.0
"""Makes control and invisible characters of untrusted text visible, at one place."""

from __future__ import annotations

import json
import re

# C0 but tab and line feed, DEL, C1; zero-width, bidirectional and tag characters; letters and marks
# that are blank, among them the selectors in which whole texts can be hidden. For a class of `re`.
TREACHEROUS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
    "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\U000e0100-\U000e01ef"
)
_TREACHEROUS = re.compile(f"([{TREACHEROUS}\ud800-\udfff])")


def clean_text(text: str, *, limit: int = 0) -> str:
    """Shows treacherous characters as escapes, and cuts what is over the limit (0: no limit)."""
    if limit and len(text) > limit:
        text = f"{text[:limit]}… ({len(text)} characters)"
    if text.isascii() and text.isprintable():  # the common case, at once
        return text
    parts = _TREACHEROUS.split(text)  # a text may be full of them: no call of ours for each
    parts[1::2] = map(_ESCAPES.__getitem__, parts[1::2])
    return "".join(parts)


def clean_json(text: str) -> str:
    """Writes the treacherous characters of a JSON text as JSON does, so that it says the same."""
    return _TREACHEROUS.sub(escape_in_json, text)


def escape_in_json(match: re.Match[str]) -> str:
    """The escape of JSON for what a pattern found; two of them where UTF-16 needs two."""
    return json.dumps(match.group())[1:-1]


class _Escapes(dict[str, str]):
    """The escape of each treacherous character that was met."""

    def __missing__(self, character: str) -> str:
        point = ord(character)
        escape = f"\\x{point:02x}" if point < 0x100 else f"\\u{{{point:x}}}"
        return self.setdefault(character, escape)


_ESCAPES = _Escapes()
