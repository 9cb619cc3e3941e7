# SPDX-License-Identifier: Apache-2.0
"""Canisters and tools in the format of Anthropic's Messages, with marks for its prompt cache."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

from ..canisters import (
    DocumentCanister,
    InvocationCanister,
    ResultCanister,
    SupervisorCanister,
    UserCanister,
)
from ..contents import BlobContent, Content, ImageContent, TextualContent
from ..invokers import Invoker
from ..naming import fit_name
from .anthropic_dialect import fit_properties
from .dialects import open_top
from .pictures import PICTURES, find_image_type
from .translations import (
    OPENING,
    Message,
    Piece,
    Reveals,
    Step,
    describe_content,
    fit_identifier,
    render_result,
)

PROVIDER = "anthropic"
_MARK = {"type": "ephemeral"}
_LOOKED_BACK = 20
"""Blocks before a mark among which the service finds what it kept."""
_TITLE_MAX = 255
THINKING = ("thinking", "redacted_thinking")


class AnthropicConversation:
    """A conversation as Messages want it: instructions apart, and the two sides taking turns."""

    def __init__(self, model: str, reveals: Reveals) -> None:
        self._model = model
        self._reveals = reveals
        self.system: list[Message] = []
        self.messages: list[Message] = []

    def add(self, piece: Piece) -> None:
        """Translates one piece, and appends it."""
        match piece:
            case Step():
                self._say("assistant", self._nativize_step(piece))
            case SupervisorCanister():
                self.system += _nativize_text(piece.text)
            case UserCanister():
                self._say("user", _nativize_parts(piece.contents))
            case DocumentCanister():
                self._say("user", _nativize_document(piece))
            case ResultCanister():
                found = self._reveals.tell(piece)
                self._say("user", [_refer(piece, found) if found else _nativize_result(piece)])

    def _say(self, role: str, blocks: Sequence[Message]) -> None:
        if not blocks:
            return
        if not self.messages and role != "user":
            self._say("user", _nativize_text(OPENING))
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"].extend(blocks)
        else:
            self.messages.append({"role": role, "content": list(blocks)})

    def _nativize_step(self, step: Step) -> list[Message]:
        """The blocks of a turn in their own order where they were kept; calls fill their places."""
        kept = step.recall(PROVIDER, self._model).get("blocks")
        text = step.assistant.text if step.assistant else ""
        calls = [_nativize_invocation(invocation) for invocation in step.invocations]
        for invocation in step.invocations:
            self._reveals.is_search(invocation)  # So that its result is known as one.
        if not isinstance(kept, list):
            return [*_nativize_text(text), *calls]
        blocks: list[Message] = []
        waiting = iter(calls)
        for block in kept:  # pyright: ignore[reportUnknownVariableType]
            if block["type"] != "tool_use":
                blocks.append(dict(block))  # pyright: ignore[reportUnknownArgumentType]
            elif (call := next(waiting, None)) is not None:
                blocks.append(call)
        blocks.extend(waiting)
        while blocks and blocks[-1]["type"] in THINKING:
            blocks.pop()  # The service refuses thinking that nothing came of.
        return blocks


def mark_last(messages: Sequence[Message]) -> list[Message]:
    """Lets the cache keep everything to the end of the last message; the given ones stay as they are.

    The service looks for what it kept a few blocks back only: after a turn of many calls it is told the place.
    """
    marked = list(messages)
    is_far = sum(len(message["content"]) for message in messages[-2:]) >= _LOOKED_BACK
    for place in (-1, -3) if is_far and len(messages) > 2 else (-1,):
        if messages and messages[place]["role"] == "user":
            marked[place] = {**messages[place], "content": mark(messages[place]["content"])}
    return marked


def mark(blocks: Sequence[Message]) -> list[Message]:
    """The blocks, or definitions, with a mark for the cache on the last one."""
    return [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}] if blocks else []


def nativize_tool(invoker: Invoker) -> Message:
    """The definition of a tool."""
    schema = fit_properties(open_top(invoker.arguments_schema))
    definition = {"name": invoker.name, "input_schema": schema}
    return {**definition, "description": invoker.description} if invoker.description else definition


def _nativize_invocation(canister: InvocationCanister) -> Message:
    return {
        "type": "tool_use",
        "id": fit_identifier(canister.identifier),
        "name": fit_name(canister.name),
        "input": canister.arguments,
    }


def _refer(canister: ResultCanister, found: Iterable[Invoker]) -> Message:
    """The result of a search: references, for which the service puts the definitions."""
    references = [{"type": "tool_reference", "tool_name": invoker.name} for invoker in found]
    return {
        "type": "tool_result",
        "tool_use_id": fit_identifier(canister.invocation_identifier),
        "content": references,
    }


def _nativize_result(canister: ResultCanister) -> Message:
    native: Message = {
        "type": "tool_result",
        "tool_use_id": fit_identifier(canister.invocation_identifier),
    }
    if not any(_is_shown(part) for part in canister.contents):
        failed = {"is_error": True} if canister.error is not None else {}
        return {**native, **failed, "content": render_result(canister)}
    # The service refuses anything but text in what is marked as an error; so the words tell it.
    error = [] if canister.error is None else [f"Error ({canister.outcome}): {canister.error}"]
    words = [block for text in error for block in _nativize_text(text)]
    return {**native, "content": [*words, *_nativize_parts(canister.contents)]}


def _nativize_document(canister: DocumentCanister) -> list[Message]:
    """A document with its title; text is one too."""
    blocks: list[Message] = []
    for part in canister.contents:
        blocks += (
            _create_document(part.text, canister.name)
            if isinstance(part, TextualContent)
            else _nativize_part(part, title=canister.name)
        )
    return blocks


def _nativize_parts(contents: Iterable[Content]) -> list[Message]:
    return [block for part in contents for block in _nativize_part(part)]


def _is_shown(content: Content) -> bool:
    """Whether the format has a place for it that is better than words."""
    if isinstance(content, ImageContent):
        return find_image_type(content) in PICTURES
    return isinstance(content, BlobContent) and (
        content.mimetype == "application/pdf" or bool(content.text)
    )


def _nativize_part(content: Content, title: str | None = None) -> list[Message]:
    if not _is_shown(content):
        return _nativize_text(describe_content(content))
    if isinstance(content, ImageContent):
        kind = find_image_type(content) or content.mimetype
        return [{"type": "image", "source": _encode(content.data, kind)}]
    assert isinstance(content, BlobContent)
    title = title or content.name or content.uri
    if content.mimetype != "application/pdf":
        return _create_document(content.text or "", title)
    return [_entitle(_encode(content.data, content.mimetype), title)]


def _create_document(text: str, title: str | None) -> list[Message]:
    if not text.strip():
        return []
    return [_entitle({"type": "text", "media_type": "text/plain", "data": text}, title)]


def _entitle(source: dict[str, Any], title: str | None) -> Message:
    """A document with its title; the addresses of some resources are longer than the service takes."""
    block: Message = {"type": "document", "source": source}
    return {**block, "title": title[:_TITLE_MAX]} if title else block


def _encode(data: bytes, mimetype: str) -> dict[str, Any]:
    text = base64.b64encode(data).decode("ascii")
    return {"type": "base64", "media_type": mimetype, "data": text}


def _nativize_text(text: str) -> list[Message]:
    """A block of text; the service refuses empty ones."""
    return [{"type": "text", "text": text}] if text.strip() else []
