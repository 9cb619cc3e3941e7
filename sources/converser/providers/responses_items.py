# SPDX-License-Identifier: Apache-2.0
"""Canisters and tools as items of OpenAI's Responses, with reasoning in its own place."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

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
from .dialects import fit_openai, is_strict, open_top
from .pictures import PICTURES, find_image_type
from .translations import (
    Message,
    Piece,
    Reveals,
    Step,
    describe_content,
    fit_identifier,
    render_result,
)

PROVIDER = "openai"
_SEARCH_CALL = "tool_search_call"


class ResponsesConversation:
    """A conversation as a flat list of items."""

    def __init__(self, model: str, reveals: Reveals) -> None:
        self._model = model
        self._reveals = reveals
        self.items: list[Message] = []

    def add(self, piece: Piece) -> None:
        """Translates one piece, and appends it."""
        match piece:
            case Step():
                self.items += self._nativize_step(piece)
            case SupervisorCanister():
                self._say("system", [_nativize_text(piece.text)])
            case UserCanister():
                self._say("user", _nativize_parts(piece.contents))
            case DocumentCanister():
                title = TextualContent(text=f"Document {piece.name or 'without name'}:")
                self._say("user", _nativize_parts((title, *piece.contents)))
            case ResultCanister():
                self.items += self._nativize_result(piece)

    def _say(self, role: str, parts: list[Message]) -> None:
        if parts:
            self.items.append({"type": "message", "role": role, "content": parts})

    def _nativize_step(self, step: Step) -> list[Message]:
        """The items of a turn in their own order where they were kept; calls fill their places."""
        kept: Any = step.recall(PROVIDER, self._model).get("items")
        calls = iter([self._nativize_invocation(invocation) for invocation in step.invocations])
        if not isinstance(kept, list):
            text = step.assistant.text if step.assistant else ""
            words: Message = {"type": "message", "role": "assistant", "content": text}
            return [*([words] if text else []), *calls]
        items: list[Message] = []
        for item in cast("list[Message]", kept):
            if not is_call(item):
                items.append(dict(item))
            elif (call := next(calls, None)) is not None:
                # What was kept fits only where the call is still of the same kind.
                same = call["type"] == item["type"] and ("namespace" in call) >= (
                    "namespace" in item
                )
                items.append({**call, **item} if same else call)
        items.extend(calls)
        while items and items[-1]["type"] == "reasoning":
            items.pop()  # The service refuses reasoning that nothing came of.
        return items

    def _nativize_invocation(self, canister: InvocationCanister) -> Message:
        """A call; one of a tool that was found is said to be so, or the service does not know it."""
        call_id = fit_identifier(canister.identifier)
        if self._reveals.is_search(canister):
            native = {"type": _SEARCH_CALL, "call_id": call_id, "arguments": canister.arguments}
            return {**native, "execution": "client", "status": "completed"}
        native = {"type": "function_call", "call_id": call_id, "name": fit_name(canister.name)}
        native["arguments"] = json.dumps(canister.arguments, ensure_ascii=False)
        if self._reveals.has_told(canister.name):
            native["namespace"] = native["name"]
        return native

    def _nativize_result(self, canister: ResultCanister) -> list[Message]:
        """A result; that of a search has the definitions of the tools, and no place for an error."""
        if not self._reveals.is_result(canister):
            return [_nativize_result(canister)]
        tools = [
            {**nativize_tool(invoker), "defer_loading": True}
            for invoker in self._reveals.tell(canister)
        ]
        native: Message = {"type": "tool_search_output", "execution": "client", "tools": tools}
        native["call_id"] = fit_identifier(canister.invocation_identifier)
        native["status"] = "completed"
        if tools:
            return [native]
        words: Message = {"type": "message", "role": "system"}
        return [native, {**words, "content": [_nativize_text(render_result(canister))]}]


def is_call(item: Mapping[str, Any]) -> bool:
    """Whether an item is a call for us to answer; the service runs tools of its own, too."""
    if item["type"] == _SEARCH_CALL:
        return item.get("execution") == "client"
    return str(item["type"]) == "function_call"


def nativize_search(tool: Message) -> Message:
    """The definition of our search as that of the service's, which leaves the work to us."""
    native = {"type": "tool_search", "execution": "client"}
    return {**native, "description": tool["description"], "parameters": tool["parameters"]}


def nativize_tool(invoker: Invoker) -> Message:
    """The definition of a tool; strict mode where it changes nothing of what is valid."""
    parameters = fit_openai(open_top(invoker.arguments_schema))
    return {
        "type": "function",
        "name": invoker.name,
        "description": invoker.description,
        "parameters": parameters,
        "strict": is_strict(parameters),
    }


def _nativize_result(canister: ResultCanister) -> Message:
    output: str | list[Message] = render_result(canister)
    if any(_is_shown(part) for part in canister.contents):
        error = None if canister.error is None else f"Error ({canister.outcome}): {canister.error}"
        output = [
            *([_nativize_text(error)] if error else []),
            *_nativize_parts(canister.contents),
        ]
    return {
        "type": "function_call_output",
        "call_id": fit_identifier(canister.invocation_identifier),
        "output": output,
    }


def _nativize_parts(contents: Iterable[Content]) -> list[Message]:
    return [_nativize_part(part) for part in contents]


def _is_shown(content: Content) -> bool:
    """Whether the format has a place for it that is better than words."""
    if isinstance(content, ImageContent):
        return find_image_type(content) in PICTURES
    return isinstance(content, BlobContent) and content.mimetype == "application/pdf"


def _nativize_part(content: Content) -> Message:
    if isinstance(content, ImageContent) and _is_shown(content):
        return {
            "type": "input_image",
            "image_url": _encode(content.data, find_image_type(content) or content.mimetype),
            "detail": "auto",
        }
    if isinstance(content, BlobContent) and _is_shown(content):
        return {
            "type": "input_file",
            "filename": content.name or "document.pdf",
            "file_data": _encode(content.data, content.mimetype),
        }
    return _nativize_text(describe_content(content))


def _encode(data: bytes, mimetype: str) -> str:
    return f"data:{mimetype};base64,{base64.b64encode(data).decode('ascii')}"


def _nativize_text(text: str) -> Message:
    return {"type": "input_text", "text": text}
