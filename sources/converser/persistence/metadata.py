# SPDX-License-Identifier: Apache-2.0
"""What is known of a conversation beside its messages: `metadata.toml`, which people may edit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

from ..exceptions import PersistenceFailure
from ..hygiene import clean_text
from .files import write_whole


def _now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationMetadata:
    """What is known of a conversation; text is on one line, and shows whatever is treacherous in it."""

    name: str = ""
    created: datetime = field(default_factory=_now)
    model: str = ""
    servers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    parent: str = ""
    """The identifier of the conversation that this one was forked from."""

    def __post_init__(self) -> None:
        for key in ("name", "model", "parent"):
            object.__setattr__(self, key, _squeeze(getattr(self, key)))
        for key in ("servers", "tags"):
            words: Sequence[str] = getattr(self, key)
            kept = (each for word in words if (each := _squeeze(word)))
            object.__setattr__(self, key, tuple(dict.fromkeys(kept)))


def _squeeze(text: str) -> str:
    return clean_text(" ".join(text.split()))


def write_metadata(path: Path, metadata: ConversationMetadata, keys: Iterable[str]) -> None:
    """Writes the values of some keys; all else in the file, comments too, stays as it is."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        document = tomlkit.document()
    except (ValueError, TOMLKitError) as failure:
        raise PersistenceFailure(
            f"{clean_text(str(path))} cannot be changed, since it is not valid TOML: {failure}.",
            remedy="Correct it, or remove it: a new one is written then.",
        ) from failure
    for key in keys:
        value = getattr(metadata, key)
        document[key] = list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
    write_whole(path, tomlkit.dumps(document).encode())


def read_metadata(path: Path, remarks: list[str]) -> ConversationMetadata:
    """What the file holds, as far as it can be read; what cannot is remarked."""
    import tomli

    try:
        text = path.read_bytes().decode("utf-8-sig")
        table = tomli.loads(text.replace("\r\n", "\n"))
    except (OSError, ValueError, RecursionError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        remarks.append(clean_text(f"{path} is left out: {reason}."))
        table = {}
    found: dict[str, Any] = {"created": _find_age(path)}
    for key, (kind, wanted) in KINDS.items():
        if key not in table:
            continue
        if isinstance(value := table[key], kind) and _is_uniform(value):
            found[key] = value
        else:
            remarks.append(clean_text(f"{path}: {key} is left out, since it is not {wanted}."))
    return ConversationMetadata(**_adjust(found))


KINDS: dict[str, tuple[type, str]] = {
    "name": (str, "a string"),
    "created": (datetime, "a date with a time"),
    "model": (str, "a string"),
    "servers": (list, "a list of strings"),
    "tags": (list, "a list of strings"),
    "parent": (str, "a string"),
}
"""All keys, and what each must be."""


def _is_uniform(value: Any) -> bool:
    return not isinstance(value, list) or all(
        isinstance(item, str) for item in cast("list[object]", value)
    )


def _adjust(found: dict[str, Any]) -> dict[str, Any]:
    """A time without an offset is one of this machine's."""
    if isinstance(created := found.get("created"), datetime) and created.tzinfo is None:
        found["created"] = created.astimezone()
    return found


def _find_age(path: Path) -> datetime:
    """When a conversation began whose file does not tell."""
    try:
        seconds = path.parent.stat().st_mtime
    except OSError:
        return _now()
    return datetime.fromtimestamp(int(seconds), timezone.utc)
