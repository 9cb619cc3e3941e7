# SPDX-License-Identifier: Apache-2.0
"""The SDK rejects a message whole for one bad part; here the good part is saved, and the bad part told."""

from __future__ import annotations

from typing import Any

import mcp_types as wire
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from .listings import Bypass, Report
from .narrowing import as_dictionary, as_list
from .results import ODD_BLOCKS_KEY, ODD_STRUCTURED_KEY, is_plain_text

_BLOCKS: dict[str, type[BaseModel]] = {
    "text": wire.TextContent,
    "image": wire.ImageContent,
    "audio": wire.AudioContent,
    "resource": wire.EmbeddedResource,
    "resource_link": wire.ResourceLink,
}
BLOCKS_MAX = 2_000
"""Content blocks of one result; what is beyond is kept as JSON in one more."""


class Salvager:
    """Salvages the answers of one session."""

    def __init__(self, *, sends_headers: bool) -> None:
        self.version = "2025-11-25"
        self.report: Report = _ignore
        """Hears what was left out of a list of tools."""
        self._bypass = Bypass(sends_headers=sends_headers)

    def treat(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """The result as the SDK will accept it."""
        if method == "tools/call":
            return salvage_outcome(result, self.version)
        if method == "tools/list":
            return self._bypass.lead(result, self.version, self.report)
        return result


def salvage_outcome(result: dict[str, Any], version: str) -> dict[str, Any]:
    """Moves what a result of a call may not have into its metadata, where our mapping finds it."""
    if "inputRequests" in result or "requestState" in result:
        return result
    if (content := _find_content(result)) is None:
        return result
    if not isinstance(result.get("content"), list):
        result = {**result, "content": content}
    odd = _pick_odd_blocks(content[:BLOCKS_MAX])
    if excess := content[BLOCKS_MAX:]:
        odd.append((BLOCKS_MAX, {"type": "excess", "json": to_json(excess).decode()}))
    meta: dict[str, Any] = {ODD_BLOCKS_KEY: odd} if odd else {}
    modern = version in MODERN_PROTOCOL_VERSIONS
    structured = result.get("structuredContent")
    if not modern and structured is not None and not isinstance(structured, dict):
        meta[ODD_STRUCTURED_KEY] = structured
    if not meta and (not modern or "resultType" in result):
        return result
    return _rewrite(result, meta)


def _find_content(result: dict[str, Any]) -> list[Any] | None:
    """The blocks of a result, also of one that has a single one, or only data; None where nothing is sound."""
    given = result.get("content")
    if (content := as_list(given)) is not None:
        return content
    if given is None:
        is_empty = "content" in result and result.get("structuredContent") is None
        return None if is_empty else []
    return [given] if _is_sound(given) else None


def _rewrite(result: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """A copy of a result without its odd parts, which its metadata carries instead."""
    taken = {index for index, _ in meta.get(ODD_BLOCKS_KEY, ())}
    rewritten: dict[str, Any] = {"content": [], "resultType": "complete", **result}
    if (content := as_list(rewritten["content"])) is not None:
        rewritten["content"] = [
            b for index, b in enumerate(content[:BLOCKS_MAX]) if index not in taken
        ]
    if ODD_STRUCTURED_KEY in meta:
        del rewritten["structuredContent"]
    if meta:
        rewritten["_meta"] = {**(as_dictionary(result.get("_meta")) or {}), **meta}
    return rewritten


def _pick_odd_blocks(content: list[Any]) -> list[tuple[int, Any]]:
    """The blocks that the SDK would reject, with their places."""
    return [(index, block) for index, block in enumerate(content) if not _is_sound(block)]


def _is_sound(block: Any) -> bool:
    if is_plain_text(block):
        return True
    if (fields := as_dictionary(block)) is None:
        return False
    kind = fields.get("type")
    if not isinstance(kind, str) or (model := _BLOCKS.get(kind)) is None:
        return False
    try:
        model.model_validate(block, by_name=False)
    except ValidationError:
        return False
    return True


def _ignore(_: str) -> None:
    """Nobody wants to know."""
