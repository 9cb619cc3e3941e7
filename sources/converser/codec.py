# SPDX-License-Identifier: Apache-2.0
"""Loss-free, versioned JSON for canisters and contents; what a newer version wrote is carried along.

The tables are made from the dataclasses, so no field can be forgotten here; a field that has its
default is left out. Every canister of every version has `version`, `kind`, `identifier` and
`timestamp`. A newer `version` is kept in `extras`, or in the `data` of an unknown canister.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, cast

from . import canisters, contents
from .canisters import Canister
from .contents import Content
from .exceptions import CanisterInvalidity
from .hygiene import TREACHEROUS, escape_in_json
from .immutables import EMPTY, FrozenDictionary
from .outcomes import Outcome

VERSION = 1

_T = TypeVar("_T")
_ENCODE_REMEDY = "Build it anew, with what is expected there."
_DECODE_REMEDY = "Correct that place in the JSON, or restore it from a copy."
# What ends a line for `str.splitlines`, steers a terminal or cannot be seen, and what UTF-8 cannot
# hold. A low surrogate right after a high one stays raw: escaped, the two would be read back as one.
_AWKWARD = re.compile(f"[{TREACHEROUS}\ud800-\udbff]|(?<![\ud800-\udbff])[\udc00-\udfff]")


class _Mistake(Exception):
    """A value that does not fit; containers note where it is as this passes through them."""

    def __init__(self, expected: str, value: object, *, novel: bool = False) -> None:
        # Names the type and not the value, which may be secret.
        found = "nothing" if value is MISSING else f"a value of type {type(value).__name__}"
        super().__init__(f"expected {expected}, found {found}")
        self.path: list[object] = []
        self.novel = novel

    def __str__(self) -> str:
        path = "".join(
            f".{part}" if isinstance(part, str) and part.isidentifier() else f"[{part!r}]"
            for part in reversed(self.path)
        )
        return f"field {path.lstrip('.')}: {self.args[0]}" if path else str(self.args[0])


class _Field(NamedTuple):
    name: str
    key: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    default: Any


class _Shape(NamedTuple):
    """The table of one class."""

    family: type[Any]
    fields: tuple[_Field, ...]
    keys: frozenset[str]


class _Sort(NamedTuple):
    """Canisters or contents: what each begins with, what it has in every version, and all kinds."""

    noun: str
    head: dict[str, Any]
    envelope: tuple[str, ...]
    shapes: dict[str, _Shape]


def _at(place: object, convert: Callable[[Any], _T], value: Any) -> _T:
    try:
        return convert(value)
    except _Mistake as mistake:
        mistake.path.append(place)
        raise


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)  # Plain, also where an enumeration was given.
    raise _Mistake("a string", value)


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise _Mistake("an integer", value)


def _version(value: Any) -> int:
    if _integer(value) >= VERSION:
        return int(value)
    raise _Mistake(f"a version number from {VERSION} on", value)


def _number(value: Any) -> Any:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise _Mistake("JSON data, which has no NaN, Infinity, bytes or objects of Python", value)


def _real(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    raise _Mistake("a number", value)


def _json(value: Any) -> Any:
    """Copies JSON data into plain containers; one frame a level, so that deep data fits."""
    if value is None or isinstance(value, (str, bool)):
        return _text(value) if isinstance(value, str) else value
    place: object = None
    try:
        if isinstance(value, Mapping):
            members: dict[str, Any] = {}
            for place, item in _mapping(value).items():
                members[_text(place)] = _json(item)
            return members
        if isinstance(value, (list, tuple)):
            array = cast("list[Any]", value)
            items: list[Any] = []
            for place in range(len(array)):
                items.append(_json(array[place]))
            return items
    except _Mistake as mistake:
        mistake.path.append(place)
        raise
    return _number(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    raise _Mistake("an object", value)


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", _json(_mapping(value)))


def _encode_bytes(value: Any) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    raise _Mistake("bytes", value)


def _decode_bytes(value: Any) -> bytes:
    try:
        return b64decode(_text(value), validate=True)
    except ValueError:
        raise _Mistake("bytes in base64", value) from None


def _encode_time(value: datetime) -> str:
    offset = value.utcoffset()
    # Python reads an offset below one second back as none at all.
    if offset is not None and not offset.microseconds:
        return value.isoformat()
    raise _Mistake("a time whose offset has no fractions of a second", value)


def _decode_time(value: Any) -> datetime:
    text = _text(value)
    try:
        # Python 3.10 does not know the suffix Z.
        time = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        time = datetime.min
    if time.utcoffset() is None:
        raise _Mistake("an ISO 8601 time with offset, such as 2026-01-31T12:00:00+00:00", value)
    return time


def _decode_outcome(value: Any) -> Outcome:
    try:
        return Outcome(_text(value))
    except ValueError:
        raise _Mistake("an outcome that this version knows", value, novel=True) from None


def _each(convert: Callable[[_Sort, Any], Any], value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise _Mistake("an array of contents", value)
    numbered = enumerate(cast("list[Any]", value))
    return [_at(place, lambda item: convert(_CONTENTS, item), item) for place, item in numbered]


def _write(shape: _Shape, value: Any, data: dict[str, Any]) -> dict[str, Any]:
    """Adds to `data` the fields that do not have their default, then the extras."""
    if type(value) is not shape.family:
        raise _Mistake(f"a {shape.family.__name__}", value)
    for name, key, encode, _, default in shape.fields:
        item = getattr(value, name)
        if type(item) is not type(default) or item != default:
            data[key] = _at(key, encode, item)
    for key, item in _at("extras", _object, value.extras).items():
        newer = key == "version" and key in data and _at(key, _version, item) > VERSION
        if key in shape.keys or (key in data and not newer):
            raise _Mistake(f"extras without {key!r}, which has a place of its own", item)
        data[key] = item
    return data


def _read(shape: _Shape, value: Any, *ignored: str) -> Any:
    """Builds the value; what is neither ignored nor in the table becomes extras."""
    data = _mapping(value)
    values: dict[str, Any] = {}
    for name, key, _, decode, default in shape.fields:
        item = data.get(key, default)
        if item is not default or default is MISSING:
            values[name] = _at(key, decode, item)
    extras = {key: data[key] for key in data if key not in shape.keys and key not in ignored}
    if extras:
        values["extras"] = _object(extras)
    return shape.family(**values)


def _encode(sort: _Sort, value: Any) -> dict[str, Any]:
    """Writes an unknown one as it came, unless that would be read back as something else."""
    kind = _KINDS.get(value.__class__, "")
    if kind not in sort.shapes:
        raise _Mistake(f"a {sort.noun}", value)
    data = _write(sort.shapes[kind], value, {**sort.head, "kind": kind})
    if kind != "unknown":
        return data
    flat = {**sort.head, "kind": value.kind, **{key: data[key] for key in sort.envelope}}
    flat.update(data.get("data", {}))
    try:
        return flat if _decode(sort, flat) == value else data
    except (_Mistake, CanisterInvalidity):
        return data


def _decode(sort: _Sort, value: Any) -> Any:
    """Reads by the table of the kind; keeps as unknown what only a newer version can have written."""
    data = _mapping(value)
    newer = bool(sort.head) and _at("version", _version, data.get("version", MISSING)) > VERSION
    kind = _at("kind", _text, data.get("kind", MISSING))
    ignored = ("kind",) if newer else ("kind", *sort.head)
    if kind in sort.shapes:
        try:
            return _read(sort.shapes[kind], data, *ignored)
        except (_Mistake, CanisterInvalidity) as mistake:
            if not (newer or getattr(mistake, "novel", False)):
                raise
    rest = {key: data[key] for key in data if key not in ignored and key not in sort.envelope}
    common = {key: data[key] for key in sort.envelope if key in data}
    unknown = _read(sort.shapes["unknown"], {**common, "original": kind, "data": rest})
    if sort.envelope and data["timestamp"] != unknown.timestamp.isoformat():
        return replace(unknown, data={**rest, "timestamp": data["timestamp"]})
    return unknown


# By annotation: a field of any other type fails here, at import, and not in somebody's archive.
_FORMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "str": (_text, _text),
    "int": (_integer, _integer),
    "float": (_real, _real),
    "bytes": (_encode_bytes, _decode_bytes),
    "datetime": (_encode_time, _decode_time),
    "Outcome": (lambda value: _decode_outcome(value).value, _decode_outcome),
    "Any": (_json, _json),
    "Mapping[str, Any]": (_object, _object),
    "Usage": (lambda value: _write(_USAGE, value, {}), lambda value: _read(_USAGE, value)),
    "tuple[Content, ...]": (
        lambda value: _each(_encode, value),
        lambda value: _each(_decode, value),
    ),
}


def _shape(family: type[Any]) -> _Shape:
    table: list[_Field] = []
    for field in fields(family):
        if field.name != "extras":
            encode, decode = _FORMS[cast("str", field.type).removesuffix(" | None")]
            key = "original" if field.name == "kind" else field.name
            default = EMPTY if field.default_factory is FrozenDictionary else field.default
            table.append(_Field(field.name, key, encode, decode, default))
    return _Shape(family, tuple(table), frozenset(field.key for field in table))


def _sort(noun: str, head: dict[str, Any], *envelope: str, **families: type[Any]) -> _Sort:
    return _Sort(noun, head, envelope, {kind: _shape(families[kind]) for kind in families})


_USAGE: _Shape = _shape(canisters.Usage)
_CONTENTS = _sort(
    "content",
    {},
    text=contents.TextualContent,
    image=contents.ImageContent,
    audio=contents.AudioContent,
    blob=contents.BlobContent,
    link=contents.LinkContent,
    unknown=contents.UnknownContent,
)
_CANISTERS = _sort(
    "canister",
    {"version": VERSION},
    "identifier",
    "timestamp",
    user=canisters.UserCanister,
    assistant=canisters.AssistantCanister,
    supervisor=canisters.SupervisorCanister,
    document=canisters.DocumentCanister,
    invocation=canisters.InvocationCanister,
    result=canisters.ResultCanister,
    unknown=canisters.UnknownCanister,
)
_KINDS = {
    shape.family: kind for sort in (_CONTENTS, _CANISTERS) for kind, shape in sort.shapes.items()
}


def _attempt(convert: Callable[[_Sort, Any], _T], sort: _Sort, value: Any, remedy: str) -> _T:
    """Turns the mistakes of a conversion into the failure that people see."""
    try:
        return convert(sort, value)
    except _Mistake as mistake:
        problem = str(mistake)
    except RecursionError:
        problem, remedy = "it is nested too deeply", "Flatten its data."
    data: Any = value
    identifier = data.get("identifier") if isinstance(value, dict) else None
    identifier = getattr(data, "identifier", identifier)
    subject = f"{sort.noun} {identifier!r}" if isinstance(identifier, str) else f"a {sort.noun}"
    verb = convert.__name__.lstrip("_")
    raise CanisterInvalidity(f"Cannot {verb} {subject}: {problem}.", remedy=remedy)


def encode_content(content: Content) -> dict[str, Any]:
    """Turns a content into plain data that is ready for JSON."""
    return _attempt(_encode, _CONTENTS, content, _ENCODE_REMEDY)


def decode_content(data: Mapping[str, Any]) -> Content:
    """Builds a content from what `encode_content` made, also in a newer version."""
    return cast("Content", _attempt(_decode, _CONTENTS, data, _DECODE_REMEDY))


def encode_canister(canister: Canister) -> dict[str, Any]:
    """Turns a canister into plain data that is ready for JSON."""
    return _attempt(_encode, _CANISTERS, canister, _ENCODE_REMEDY)


def decode_canister(data: Mapping[str, Any]) -> Canister:
    """Builds a canister from what `encode_canister` made, also in a newer version."""
    return cast("Canister", _attempt(_decode, _CANISTERS, data, _DECODE_REMEDY))


def dump_canister(canister: Canister) -> str:
    """Writes a canister as one line of JSON, without the line break."""
    return dump_data(encode_canister(canister), canister.identifier)


def dump_data(data: Any, identifier: str) -> str:
    """Writes an encoded canister, or a part of one, as one line of JSON that any editor can show."""
    try:
        line = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        raise CanisterInvalidity(
            f"Cannot write canister {identifier!r} as JSON: {error}.",
            remedy="Give huge integers as strings, and flatten data that is nested deeply.",
        ) from error
    if line.isascii() and "\x7f" not in line:
        return line
    return _AWKWARD.sub(escape_in_json, line)


def load_canister(text: str) -> Canister:
    """Builds a canister from a line of JSON."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CanisterInvalidity(
            f"Cannot read a canister: this is not JSON that can be read: {error}.",
            remedy="Give one whole line that `dump_canister` wrote.",
        ) from error
    return decode_canister(data)
