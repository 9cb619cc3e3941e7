# SPDX-License-Identifier: Apache-2.0
"""A broken character costs that character, and junk costs itself, never the message that it came with."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_core import from_json

from converser.mcp.leniency import (
    DEPTH_MAX,
    decode_leniently,
    has_odd_characters,
    has_too_many_parts,
    recover_identifiers,
)
from converser.mcp.messages import decode_messages
from converser.mcp.salvage import BLOCKS_MAX, salvage_outcome

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)
MESSAGE: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}


@given(JSON, st.booleans())
def test_sound_json_is_read_as_it_is(value: Any, ascii_only: bool) -> None:
    assert decode_leniently(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary() | st.text('[]{}",:0123456789truefalsn \\ud8\xff').map(str.encode))
def test_bytes_are_json_or_a_value_error(data: bytes) -> None:
    """What a strict decoder takes is the same here; what comes can be written as JSON again."""
    try:
        value = decode_leniently(data)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 (whatever it says, it is none)
            json.loads(data)
        return
    assert repr(decode_leniently(json.dumps(value).encode())) == repr(value)


@given(st.binary(), st.text())
def test_what_is_not_odd_is_accepted_by_a_strict_decoder(data: bytes, text: str) -> None:
    for literal in (
        b'"' + data.replace(b"\\", b"").replace(b'"', b"") + b'"',
        json.dumps(text).encode(),
    ):
        try:
            lenient = json.loads(literal.decode("utf-8", "replace"))
        except ValueError:
            continue
        if has_odd_characters(literal):
            assert not literal.isascii() or b"\\u" in literal
        else:
            assert from_json(literal) == lenient


@pytest.mark.parametrize("broken", [b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\uDFFF"])
def test_broken_characters_are_replaced(broken: bytes) -> None:
    data = b'{"a' + broken + b'": "b' + broken + b'c"}'
    assert has_odd_characters(data)
    ((key, value),) = decode_leniently(data).items()
    assert key.replace("\ufffd", "") == "a"
    assert value.replace("\ufffd", "") == "bc"
    assert "\ufffd" in value
    json.dumps([key, value]).encode("utf-8")


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 990, 100_000])
def test_what_is_nested_too_deeply_is_no_json(depth: int) -> None:
    with pytest.raises(ValueError, match=r"deeply|recursion"):
        decode_leniently(b"[" * depth + b"]" * depth)


@pytest.mark.parametrize(
    "junk", [b"Loading... ", b"\xef\xbb\xbf", b'{"jsonrpc": "2.0", "id": 3, "result": {']
)
def test_a_message_behind_junk_is_found(junk: bytes) -> None:
    assert decode_messages(junk + json.dumps(MESSAGE).encode()) == [MESSAGE]


@pytest.mark.parametrize(
    "line", [b"null", b"3", b"[]", b"[1]", b'{"jsonrpc"', b"{", b'"{\\"jsonrpc\\""']
)
def test_what_is_no_message_is_none(line: bytes) -> None:
    assert decode_messages(line) is None


def test_ids_are_found_in_broken_lines() -> None:
    assert recover_identifiers(b'{"id": 12, "result": {"id": "x"') == {12, "x"}
    assert recover_identifiers(b'{"x": "' + b"y" * 10_000 + b'", "id":5') == {5}
    assert recover_identifiers(b"nothing") == set()


@given(JSON, st.integers(0, 20))
def test_parts_are_counted_without_what_texts_say(value: Any, limit: int) -> None:
    data = json.dumps(value).encode()
    commas = sum(token in ",[{" for token in json.dumps(_blank(value)))
    if commas > limit and len(data) > limit:
        assert has_too_many_parts(data, limit)
    elif data.count(b'"') <= 4 * limit:
        assert not has_too_many_parts(data, limit)


def _blank(value: Any) -> Any:
    """The same shape without any text."""
    if isinstance(value, list):
        return [_blank(part) for part in value]
    if isinstance(value, dict):
        return {str(number): _blank(part) for number, part in enumerate(value.values())}
    return "" if isinstance(value, str) else value


def test_a_long_text_is_one_part() -> None:
    assert not has_too_many_parts(json.dumps({"text": '[1,"a\\' * 300_000}).encode(), 500_000)
    assert has_too_many_parts(b"[" + b"[]," * 300_000 + b"[]]", 500_000)
    assert has_too_many_parts(b"[" + b"1," * 5_000_000 + b"1]", 500_000)


def test_blocks_without_end_are_kept_together() -> None:
    blocks = [{"type": "text", "text": str(number)} for number in range(BLOCKS_MAX + 2)]
    salvaged = salvage_outcome({"content": blocks}, "2025-11-25")
    assert salvaged["content"] == blocks[:BLOCKS_MAX]
    [[(place, excess)]] = salvaged["_meta"].values()
    assert place == BLOCKS_MAX
    assert json.loads(excess["json"]) == blocks[BLOCKS_MAX:]
