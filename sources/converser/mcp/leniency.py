# SPDX-License-Identifier: Apache-2.0
"""Reads JSON that strict decoders refuse for a broken character, so that one such does not cost a result."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from typing import Any, cast

from .narrowing import as_list

DEPTH_MAX = 200
"""Levels of nesting, as the strict decoder has it; deeper data ends other parts of the SDK."""

_DEEP = "nested too deeply"
_TOOLS = b'"inputSchema"'
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_BRACKETS_MAX = 20_000
_ROUNDS_MIN = 8
_PREFIX = 4 * 1024 * 1024
_IDENTIFIER = re.compile(rb'"id"\s*:\s*(?:(\d{1,19})|"([^"\\]{1,100})")')
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def decode_leniently(data: bytes) -> Any:
    """The JSON in the data, with replacements for bytes and surrogates that are no characters.

    Raises `ValueError` where it is no JSON, or nested too deeply. Of tools only the deep part is replaced,
    which makes one schema unusable, and costs no other tool.
    """
    try:
        return _mend(json.loads(data.decode("utf-8-sig", "replace")), 0, cuts=_TOOLS in data)
    except RecursionError:
        raise ValueError("It is nested too deeply") from None


def has_deep_tools(data: bytes) -> bool:
    """Whether tools are listed that are nested too deeply for strict decoders, as far as can be told quickly."""
    if _TOOLS not in data:
        return False
    rest = data.translate(None, _NO_BRACKETS)
    for count in range(DEPTH_MAX - _ROUNDS_MIN):
        # Each round removes the innermost ones, of one or both kinds.
        before = len(rest)
        rest = rest.replace(b"{}", b"").replace(b"[]", b"")
        if len(rest) == before or (count >= _ROUNDS_MIN and before > _BRACKETS_MAX):
            return False
    return True


def has_too_many_parts(data: bytes, limit: int) -> bool:
    """Whether JSON has more values than the bound; told without decoding it, and whatever its texts say."""
    if len(data) <= limit or _count_parts(data) <= limit:
        return False
    return _has_too_many_bare(data[:_PREFIX], limit) or (
        len(data) > _PREFIX and _has_too_many_bare(data, limit)
    )


def _has_too_many_bare(data: bytes, limit: int) -> bool:
    """The same without what is in strings."""
    data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if data.count(b'"') > 4 * limit:  # each value has a text and a key, at most
        return True
    return _count_parts(b"".join(data.split(b'"')[::2])) > limit


def _count_parts(data: bytes) -> int:
    return sum(map(data.count, (b",", b"[", b"{")))


def recover_identifiers(line: bytes) -> set[int | str]:
    """What may be ids in a line that cannot be decoded, at its beginning and end."""
    found = {match for part in (line[:4_096], line[-4_096:]) for match in _IDENTIFIER.findall(part)}
    return {int(number) if number else text.decode("utf-8", "replace") for number, text in found}


def has_odd_characters(data: bytes) -> bool:
    """Whether there may be something to mend: the same answer for all strict decoders, and quick."""
    if b"\\ud" in data or b"\\uD" in data or data.startswith(BOM_UTF8):
        return True
    if data.isascii():
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _mend(value: Any, depth: int, *, cuts: bool) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if depth >= DEPTH_MAX:
        if cuts:
            return _DEEP
        raise ValueError("It is nested too deeply")
    if (parts := as_list(value)) is not None:
        return [_mend(part, depth + 1, cuts=cuts) for part in parts]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_mend(k, depth, cuts=cuts): _mend(v, depth + 1, cuts=cuts) for k, v in items}
    return value
