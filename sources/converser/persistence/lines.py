# SPDX-License-Identifier: Apache-2.0
"""A canister as a line of a file, with what is large or binary put aside, and named in its place.

`{"kind":"image","data":{"$content":"sha256:…","as":"bytes"},…}`: any field, of the canister or of
one of its contents, may have such a reference in place of its value. A value that only looks like
a reference is put aside too, so that there is never a doubt.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from ..canisters import Canister
from ..codec import decode_canister, dump_data, encode_canister
from ..exceptions import CanisterInvalidity, ConverserFailure, PersistenceFailure
from .vault import name_content

LARGE = 1_024
"""Bytes from which on text is put aside."""
_REFERENCE = "$content"
_MARK = _REFERENCE.encode()
_INLINE = frozenset({"version", "kind", "identifier", "timestamp"})
_BINARY_KINDS = frozenset({"image", "audio", "blob"})
_UTF8 = ("utf-8", "surrogatepass")

Fetch = Callable[[str], bytes]
"""Gives the content of a name, or raises `PersistenceFailure`."""


class Line(NamedTuple):
    """What is written to the file of a conversation, and the content that must be there before."""

    data: bytes
    stowed: dict[str, bytes]


def write_line(canister: Canister) -> Line:
    """The line of a canister, with its line break."""
    data = encode_canister(canister)
    stowed: dict[str, bytes] = {}
    for fields in _walk(data):
        is_instruction = data["kind"] == "supervisor" and fields.get("kind") == "text"
        for key, value in fields.items():
            if key in _INLINE or (fields is data and key == "contents" and _is_walked(value)):
                continue
            if (found := _prepare(fields, key, value, canister.identifier)) is None:
                continue
            form, content = found
            if len(content) >= LARGE or form == "bytes" or is_instruction or _is_reference(value):
                name = name_content(content)
                stowed[name] = content
                fields[key] = {_REFERENCE: name, "as": form}
    return Line(f"{dump_data(data, canister.identifier)}\n".encode(*_UTF8), stowed)


def read_line(line: bytes, fetch: Fetch, complaints: list[str] | None = None) -> Canister | None:
    """The canister of a line.

    With a list for complaints, what is lost or damaged is noted there, and what is left is given;
    None where that is nothing. Without one, the first damage raises.
    """
    try:
        data = _parse(line)
        for fields in _walk(data) if _MARK in line else ():  # most lines have none
            _restore(fields, fetch, complaints, is_content=fields is not data)
        return decode_canister(data)
    except ConverserFailure as failure:
        if complaints is None:
            raise
        complaints.append(f"It is left out. {failure}")
        return None


def peek(line: bytes) -> dict[str, Any]:
    """What stands in a line, as it stands there; nothing, where it cannot be read."""
    try:
        return _parse(line)
    except CanisterInvalidity:
        return {}


def _parse(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line.decode(*_UTF8))
    except (ValueError, RecursionError) as failure:
        raise CanisterInvalidity(
            f"This is not JSON that can be read: {failure}.",
            remedy="Correct the line, or remove it.",
        ) from failure
    if isinstance(data, dict):
        return cast("dict[str, Any]", data)
    raise CanisterInvalidity("This is no JSON object.", remedy="Correct the line, or remove it.")


def _walk(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Where fields are: in the canister itself, and in each of its contents."""
    yield data
    contents: Any = data.get("contents")
    if _is_walked(contents):
        yield from (content for content in contents if isinstance(content, dict))


def _is_walked(contents: Any) -> bool:
    return isinstance(contents, list)


def _is_reference(value: Any) -> bool:
    return type(value) is dict and _REFERENCE in value


def _prepare(
    fields: dict[str, Any], key: str, value: Any, identifier: str
) -> tuple[str, bytes] | None:
    """A field as it would be put aside; None for what never is."""
    if isinstance(value, str):
        if key == "data" and value and fields.get("kind") in _BINARY_KINDS:
            return _prepare_bytes(value)
        return "text", value.encode(*_UTF8)
    if isinstance(value, (dict, list)):
        return "json", dump_data(value, identifier).encode(*_UTF8)
    return None


def _prepare_bytes(text: str) -> tuple[str, bytes]:
    try:
        data = b64decode(text, validate=True)
    except ValueError:  # of an image that could not be decoded, and is kept as it came
        return "text", text.encode(*_UTF8)
    is_same = b64encode(data).decode("ascii") == text
    return ("bytes", data) if is_same else ("text", text.encode(*_UTF8))


def _restore(
    fields: dict[str, Any], fetch: Fetch, complaints: list[str] | None, *, is_content: bool
) -> None:
    """Puts back what was put aside; what is lost leaves a note, where that is wanted."""
    for key, value in list(fields.items()):
        if not _is_reference(value):
            continue
        try:
            fields[key] = _fetch(value, fetch)
        except PersistenceFailure as failure:
            if complaints is None:
                raise
            complaints.append(f"Its {key!r} is left out. {failure}")
            if is_content:
                _replace_content(fields, failure.message)
                return
            if key == "error":
                fields[key] = failure.message
            else:
                del fields[key]


def _replace_content(fields: dict[str, Any], reason: str) -> None:
    """Makes a content that could not be restored one that says so, and keeps the rest of it."""
    data = {key: value for key, value in fields.items() if key != "kind"}
    kind = fields.get("kind")
    fields.clear()
    fields.update(kind="unknown", original=kind, data=data, reason=reason)


def _fetch(reference: dict[str, Any], fetch: Fetch) -> Any:
    content = fetch(str(reference[_REFERENCE]))
    form = reference.get("as")
    if form == "bytes":
        return b64encode(content).decode("ascii")
    try:
        text = content.decode(*_UTF8)
        return json.loads(text) if form == "json" else text
    except (ValueError, RecursionError) as failure:
        raise PersistenceFailure(
            f"The content {reference[_REFERENCE]} is not {form or 'text'}: {failure}.",
            remedy='Correct "as" beside its name: bytes, text or json.',
        ) from failure
