# SPDX-License-Identifier: Apache-2.0
"""What a server answers to a call becomes contents and structured data, without loss and without doubles."""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Sequence
from typing import Any, cast

import mcp_types as wire
from pydantic import TypeAdapter, ValidationError

from ..contents import (
    AudioContent,
    BlobContent,
    Content,
    ImageContent,
    LinkContent,
    TextualContent,
    UnknownContent,
)
from ..exceptions import MCPExecutionFailure
from ..hygiene import clean_text
from ..immutables import EMPTY, freeze
from ..invokers import InvocationResult
from ..schemas.plain import is_array, is_object
from .failures import MESSAGE_LIMIT, Site

_UNGUESSABLE = secrets.token_hex(8)  # no server can pretend that we salvaged something
ODD_BLOCKS_KEY = f"converser/odd-blocks/{_UNGUESSABLE}"
"""Where the salvage keeps content blocks that the SDK would reject, as `[index, block]` pairs."""
ODD_STRUCTURED_KEY = f"converser/odd-structured/{_UNGUESSABLE}"
"""Where the salvage keeps structured data that the negotiated protocol version does not allow."""

_BLOCKS: TypeAdapter[wire.ContentBlock] = TypeAdapter(wire.ContentBlock)
_LARGE = 5_000


def is_large(result: dict[str, Any]) -> bool:
    """Whether a result has so many values that it takes a while to interpret."""
    count = len(result["content"])
    structured = result.get("structuredContent")
    pending: list[Any] = [] if structured is None else [structured]
    while pending and count <= _LARGE:
        value = pending.pop()
        if is_object(value):
            value = value.values()
        elif not is_array(value):
            continue
        count += len(value)
        pending.extend(part for part in value if is_object(part) or is_array(part))
    return count > _LARGE


def interpret_result(result: dict[str, Any]) -> InvocationResult:
    """The contents and structured data of a complete result; a structured-only result is not empty."""
    contents = [interpret_block(block) for block in result["content"]]
    structured = result.get("structuredContent")
    # Some servers write `null` where they have nothing to say; alone, it may be the answer.
    present = structured is not None or ("structuredContent" in result and not contents)
    if meta := result.get("_meta"):
        for index, block in meta.get(ODD_BLOCKS_KEY, ()):
            contents.insert(index, keep_odd_block(block))
        if ODD_STRUCTURED_KEY in meta:
            structured, present = meta[ODD_STRUCTURED_KEY], True
    if present and not _has_textual_twin(contents, structured):
        contents.append(_render_structured(structured))
    if structured is not None:
        structured = freeze(structured)
    return InvocationResult(contents=tuple(contents), structured=structured)


def report_tool_error(outcome: InvocationResult, site: Site) -> MCPExecutionFailure:
    """The failure that a tool told in its result."""
    words = clean_text(outcome.text, limit=MESSAGE_LIMIT) or "It gave no reason."
    return MCPExecutionFailure(
        f"{site.describe()} reported an error: {words}",
        contents=outcome.contents,
        structured=outcome.structured,
        **site.at(),
    )


def interpret_block(raw: dict[str, Any]) -> Content:
    """One content block, with its annotations and metadata."""
    if is_plain_text(raw):
        return TextualContent(text=raw["text"], annotations=EMPTY, extras=EMPTY)
    try:
        block = _BLOCKS.validate_python(raw, by_name=False)
    except ValidationError:
        return keep_odd_block(raw)
    if isinstance(block, wire.TextContent):
        return TextualContent(text=block.text, **_gather_marks(block))
    if isinstance(block, wire.ResourceLink):
        return _interpret_link(block)
    try:
        if isinstance(block, wire.ImageContent):
            return ImageContent(
                data=_decode(block.data), mimetype=block.mime_type, **_gather_marks(block)
            )
        if isinstance(block, wire.AudioContent):
            return AudioContent(
                data=_decode(block.data), mimetype=block.mime_type, **_gather_marks(block)
            )
        return _interpret_embedded(block)
    except (binascii.Error, ValueError) as failure:
        raw = block.model_dump(by_alias=True, mode="json", exclude_none=True)
        return keep_odd_block(raw, f"Its base64 data cannot be decoded: {failure}.")


def is_plain_text(block: Any) -> bool:
    """Whether a block is text and nothing else: nearly all are, and need no model."""
    return (
        block.__class__ is dict
        and len(block) == 2
        and block.get("type") == "text"
        and block.get("text").__class__ is str
    )


def keep_odd_block(block: Any, reason: str = "No such content block is known.") -> UnknownContent:
    """Keeps a block that cannot be interpreted just as it came."""
    data = cast("dict[str, Any]", block) if isinstance(block, dict) else {"value": block}
    return UnknownContent(kind=str(data.get("type", "?")), data=data, reason=reason)


def _interpret_link(link: wire.ResourceLink) -> LinkContent:
    marks = _gather_marks(link)
    if link.icons:
        marks["extras"]["icons"] = [
            icon.model_dump(by_alias=True, mode="json", exclude_none=True) for icon in link.icons
        ]
    return LinkContent(
        uri=link.uri,
        name=link.name,
        title=link.title,
        description=link.description,
        mimetype=link.mime_type,
        size=link.size,
        **marks,
    )


def _interpret_embedded(block: wire.EmbeddedResource) -> BlobContent:
    resource = block.resource
    marks = _gather_marks(block)
    if resource.meta:
        marks["extras"]["resource_meta"] = resource.meta
    name = resource.uri.rstrip("/").rpartition("/")[2] or None
    if isinstance(resource, wire.TextResourceContents):
        return BlobContent(
            data=resource.text.encode("utf-8", "surrogatepass"),
            mimetype=resource.mime_type or "text/plain",
            uri=resource.uri,
            name=name,
            encoding="utf-8",
            **marks,
        )
    return BlobContent(
        data=_decode(resource.blob),
        mimetype=resource.mime_type or "application/octet-stream",
        uri=resource.uri,
        name=name,
        **marks,
    )


def _gather_marks(block: wire.ContentBlock) -> dict[str, Any]:
    """Annotations and `_meta` of a block, as the shared fields of our contents."""
    annotations: dict[str, Any] = {}
    if block.annotations is not None:
        annotations = block.annotations.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {
        "annotations": annotations,
        "extras": {"meta": dict(block.meta)} if block.meta else {},
    }


def _decode(data: str) -> bytes:
    return base64.b64decode(data, validate=True)


def _render_structured(structured: Any) -> TextualContent:
    text = json.dumps(structured, ensure_ascii=False)
    return TextualContent(text=text, mimetype="application/json")


def _has_textual_twin(contents: Sequence[Content], structured: Any) -> bool:
    """Whether the texts already say what the structured data says, so that a model needs only one."""
    texts = [part.text for part in contents if isinstance(part, TextualContent)]
    if not texts:
        return False
    candidates = [structured]
    if isinstance(structured, dict) and len(wrapper := cast("dict[str, Any]", structured)) == 1:
        candidates.extend(wrapper.values())  # servers wrap what is no object as {"result": …}
    readings = [_read(text) for text in texts]
    return any(
        candidate in readings or candidate in texts or candidate in (readings, texts)
        for candidate in candidates
    )


def _read(text: str) -> Any:
    """The JSON value of a text, or a value that equals nothing."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _UNREADABLE


_UNREADABLE = object()
