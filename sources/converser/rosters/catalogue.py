# SPDX-License-Identifier: Apache-2.0
"""`converser.lock`: every tool of every server as it was last seen, and what has drifted since.

It is JSON in a stable order, made to be read, and kept under version control. Control and invisible
characters are always escaped, because all of it is what servers say.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..configuration import MCPServer
from ..exceptions import ConfigurationFailure
from ..hygiene import clean_text
from ..immutables import EMPTY, FrozenDictionary, freeze
from ..invokers import Annotations, Tool

FILE_NAME = "converser.lock"
VERSION = 1
_SIZE_LIMIT = 268_435_456
_FIELDS = ("description", "arguments_schema", "output_schema", "annotations")
_RESTORE = "Restore it from version control, or delete it: it is written anew when the servers are connected."
_UPDATE = "Update this package, or keep the catalogue elsewhere: `open_roster(…, lock=PATH)`."
_UNUSUAL = re.compile(r"[^\x20-\x7e\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """The tools of one server; `reach` tells whether a server of that name is still the same one."""

    reach: str
    tools: tuple[Tool, ...] = ()
    """Sorted by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """What is known of all servers, by name."""

    servers: Mapping[str, CatalogueEntry] = field(default_factory=FrozenDictionary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How the tools of a server differ from those that were seen earlier; false where they do not."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenDictionary)
    """The names of the fields that changed, by the name of the tool."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def __str__(self) -> str:
        changed = [f"{name} ({', '.join(fields)})" for name, fields in self.changed.items()]
        parts = (("added", self.added), ("removed", self.removed), ("changed", changed))
        words = "; ".join(f"{verb}: {', '.join(names)}" for verb, names in parts if names)
        return clean_text(words, limit=1_000) or "nothing"


def describe_server(server: MCPServer, tools: Iterable[Tool]) -> CatalogueEntry:
    """What is to be remembered of a server; a tool that JSON cannot hold is left out."""
    kept = (replace(tool, extras=EMPTY) for tool in tools if _is_storable(tool))
    return CatalogueEntry(
        reach=identify_reach(server), tools=tuple(sorted(kept, key=lambda tool: tool.name))
    )


def identify_reach(server: MCPServer) -> str:
    """A hash over how a server is reached, without anything that is secret."""
    shown = server.describe()
    return _hash([shown[key] for key in ("transport", "command", "url", "server")])


def find_drift(remembered: Sequence[Tool], present: Sequence[Tool]) -> Drift:
    """What has been added, removed and changed, by the tools' own names, each list sorted."""
    before = {tool.name: tool for tool in remembered}
    after = {tool.name: tool for tool in present}
    changed = {
        name: fields
        for name in sorted(before.keys() & after.keys())
        if (fields := _find_changes(before[name], after[name]))
    }
    return Drift(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed=FrozenDictionary(changed),
    )


def _find_changes(before: Tool, after: Tool) -> tuple[str, ...]:
    if before == after:
        return ()
    one, other = _describe_tool(before), _describe_tool(after)
    return tuple(key for key in _FIELDS if _write(one[key]) != _write(other[key]))


def hash_tool(tool: Tool) -> str:
    """A hash over the canonical JSON of all that is remembered of a tool."""
    return _hash(_describe_tool(tool))


def _describe_tool(tool: Tool) -> dict[str, Any]:
    hints = {key: hint for key, hint in asdict(tool.annotations).items() if hint is not None}
    return {
        "name": tool.name,
        "description": tool.description,
        "arguments_schema": tool.arguments_schema,
        "output_schema": tool.output_schema,
        "annotations": hints,
    }


def _is_storable(tool: Tool) -> bool:
    try:
        json.dumps(_describe_tool(tool))
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _write(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _hash(data: Any) -> str:
    return f"sha256:{hashlib.sha256(_write(data).encode('ascii')).hexdigest()}"


def dump_catalogue(catalogue: Catalogue) -> str:
    """The text of `converser.lock`; the order of keys in a schema is kept, as models see it."""
    servers = {
        name: {
            "reach": entry.reach,
            "tools": [{"hash": hash_tool(tool), **_describe_tool(tool)} for tool in entry.tools],
        }
        for name, entry in sorted(catalogue.servers.items())
    }
    data = {"version": VERSION, "servers": servers}
    return _UNUSUAL.sub(_escape, json.dumps(data, indent=2, ensure_ascii=False)) + "\n"


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return character if character.isprintable() else json.dumps(character)[1:-1]


def write_catalogue(path: str | Path, catalogue: Catalogue) -> None:
    """Writes the file in one step: a reader sees the old one or the new one, and never a part."""
    target = Path(path).resolve()
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        with draft.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(dump_catalogue(catalogue))
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def read_catalogue(path: str | Path) -> Catalogue:
    """What the file holds; nothing, where there is no file yet."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(_SIZE_LIMIT + 1)
    except FileNotFoundError:
        return Catalogue()
    except OSError as failure:
        raise _refuse(path, failure.strerror or type(failure).__name__) from None
    if len(data) > _SIZE_LIMIT:
        raise _refuse(path, "it is larger than 256 mebibytes")
    try:
        return _load(json.loads(data))
    except _Damage as damage:
        refusal = _refuse(path, str(damage), damage.remedy)
    except (ValueError, RecursionError):
        refusal = _refuse(path, "it is not valid JSON")
    raise refusal


class _Damage(Exception):
    """What in the file is not as this package writes it."""

    remedy = _RESTORE


class _Novelty(_Damage):
    """A later version of this package wrote the file, which is in order."""

    remedy = _UPDATE


def _refuse(path: Path, reason: str, remedy: str = _RESTORE) -> ConfigurationFailure:
    shown = clean_text(str(path))
    return ConfigurationFailure(
        f"The catalogue of tools {shown} cannot be used: {reason}.", remedy=remedy
    )


def _load(data: Any) -> Catalogue:
    top = _expect(data, dict, "the top")
    version = top.get("version")
    if isinstance(version, int) and version > VERSION:
        raise _Novelty(f"it is of version {version}, and this program knows {VERSION} at most")
    if version != VERSION:
        raise _Damage(f"it is not of version {VERSION}")
    servers = _expect(top.get("servers"), dict, "servers")
    return Catalogue(
        servers=FrozenDictionary({name: _load_entry(name, e) for name, e in servers.items()})
    )


def _load_entry(name: str, data: Any) -> CatalogueEntry:
    where = f"servers.{clean_text(name, limit=100)}"
    entry = _expect(data, dict, where)
    listed = _expect(entry.get("tools"), list, f"{where}.tools")
    tools = tuple(_load_tool(tool, f"{where}.tools[{i}]") for i, tool in enumerate(listed))
    if len({tool.name for tool in tools}) < len(tools):
        raise _Damage(f"{where}.tools has two of one name, as after a merge")
    return CatalogueEntry(reach=_expect(entry.get("reach"), str, f"{where}.reach"), tools=tools)


def _load_tool(data: Any, where: str) -> Tool:
    entry = _expect(data, dict, where)
    hints = _expect(entry.get("annotations"), dict, f"{where}.annotations")
    output = entry.get("output_schema")
    try:
        annotations = Annotations(**hints)
    except TypeError:
        raise _Damage(f"{where}.annotations has keys that are not known") from None
    tool = Tool(
        name=_expect(entry.get("name"), str, f"{where}.name"),
        description=_expect(entry.get("description"), str, f"{where}.description"),
        arguments_schema=freeze(
            _expect(entry.get("arguments_schema"), dict, f"{where}.arguments_schema")
        ),
        output_schema=None
        if output is None
        else freeze(_expect(output, dict, f"{where}.output_schema")),
        annotations=annotations,
    )
    if entry.get("hash") != hash_tool(tool):
        raise _Damage(f"{where} does not fit its hash, so it was edited by hand or in part")
    return tool


def _expect(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise _Damage(f"{where} is missing or of the wrong kind")
    return value
