# SPDX-License-Identifier: Apache-2.0
"""Halves of characters, which Python's text can have and no service takes: one would stop a conversation for good."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

from .canisters import (
    AssistantCanister,
    Canister,
    InvocationCanister,
    ResultCanister,
    UnknownCanister,
)
from .contents import BlobContent, Content, LinkContent, TextualContent
from .immutables import freeze

_HALVES = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def purify(value: Any) -> Any:
    """JSON data with whole characters only; what has no other is given back as it is."""
    if isinstance(value, str):
        pure = value.isascii() or _HALVES.search(value) is None
        return value if pure else _HALVES.sub(_REPLACEMENT, value)
    if isinstance(value, dict):
        pairs = {purify(key): purify(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        same = all(a is b for a, b in zip(value.values(), pairs.values(), strict=False))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return value if same and pairs.keys() == value.keys() else freeze(pairs)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        items = [purify(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        same = all(a is b for a, b in zip(value, items, strict=True))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return value if same else freeze(items)  # pyright: ignore[reportUnknownVariableType]
    return value


def purify_canister(canister: Canister) -> Canister:
    """A canister as services take it; the same one where nothing is amiss, as nearly always."""
    match canister:
        case InvocationCanister():
            return cast("Canister", _change(canister, ("name", "arguments")))
        case UnknownCanister():
            return canister
        case _:
            pass
    contents = tuple([_purify_content(part) for part in canister.contents])
    if any(a is not b for a, b in zip(contents, canister.contents, strict=True)):
        canister = replace(canister, contents=contents)
    if isinstance(canister, ResultCanister):
        return cast("Canister", _change(canister, ("error", "structured")))
    if isinstance(canister, AssistantCanister):
        return cast("Canister", _change(canister, ("extras",)))
    return canister


def _purify_content(content: Content) -> Content:
    if isinstance(content, TextualContent):
        return cast("Content", _change(content, ("text",)))
    if isinstance(content, LinkContent):
        return cast("Content", _change(content, ("uri", "name", "title", "description")))
    if isinstance(content, BlobContent) and (text := content.text) is not None:
        pure = purify(text)
        return content if pure is text else replace(content, data=pure.encode(), encoding="utf-8")
    return content


def _change(item: Any, names: tuple[str, ...]) -> Any:
    """The same with some of its fields pure, or itself."""
    values = {name: getattr(item, name) for name in names}
    changes = {name: pure for name, value in values.items() if (pure := purify(value)) is not value}
    return replace(item, **changes) if changes else item
