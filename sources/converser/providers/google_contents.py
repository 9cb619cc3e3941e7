# SPDX-License-Identifier: Apache-2.0
"""Canisters and tools in the format of Gemini, with the signatures of its thoughts in their places."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from ..canisters import (
    DocumentCanister,
    InvocationCanister,
    ResultCanister,
    SupervisorCanister,
    UserCanister,
)
from ..contents import AudioContent, BlobContent, Content, ImageContent, TextualContent
from ..invokers import Invoker
from ..naming import fit_name
from .gemini_dialect import translate_for_gemini
from .pictures import find_image_type
from .translations import (
    OPENING,
    UNSIGNED,
    Message,
    Piece,
    Step,
    describe_content,
    fit_identifier,
    render_result,
)

PROVIDER = "google"
SERVED = {"tool_call", "tool_response", "executable_code", "code_execution_result"}
"""What the service's own tools did in an answer, which goes back to it as it came."""
_GENERATION = re.compile(r"gemini-(\d+)")
_IMAGES = frozenset(("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"))
_SHOWN_IN_RESULTS = frozenset(("image/png", "image/jpeg", "image/webp", "application/pdf"))


def is_recent(model: str) -> bool:
    """Whether a model is of the third generation or a later one, which can do more."""
    found = _GENERATION.search(model)
    return found is None or int(found[1]) >= 3


class GoogleConversation:
    """A conversation as Gemini wants it: instructions apart, the results of a turn together."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._is_recent = is_recent(model)
        self._names: dict[str, str] = {}
        self.system: list[Message] = []
        self.contents: list[Message] = []

    def add(self, piece: Piece) -> None:
        """Translates one piece, and appends it."""
        match piece:
            case Step():
                self._say("model", self._nativize_step(piece))
            case SupervisorCanister():
                self.system += [{"text": piece.text}] if piece.text else []
            case UserCanister():
                self._say("user", nativize_parts(piece.contents))
            case DocumentCanister():
                title = TextualContent(text=f"Document {piece.name or 'without name'}:")
                self._say("user", nativize_parts((title, *piece.contents)))
            case ResultCanister():
                self._add_result(piece)

    def _say(self, role: str, parts: list[Message]) -> None:
        if parts and role != "user" and not self.contents:
            self._say("user", [{"text": OPENING}])
        last: Message = self.contents[-1] if self.contents else {"role": ""}
        # A call must come right after the user's words, or after results.
        if parts and role == last["role"] and _are_words(last["parts"]):
            last["parts"] += parts
        elif parts:
            self.contents.append({"role": role, "parts": parts})

    def _nativize_step(self, step: Step) -> list[Message]:
        """The parts of a turn in their own order where they were kept; calls fill their places."""
        calls = [self._nativize_invocation(invocation) for invocation in step.invocations]
        kept: Any = step.recall(PROVIDER, self._model).get("parts")
        if isinstance(kept, list):
            waiting = iter(calls)
            revived = [_revive(part, waiting) for part in cast("list[Mapping[str, Any]]", kept)]
            parts = [*(part for part in revived if part), *waiting]
        else:
            text = step.assistant.text if step.assistant else ""
            parts = [*([{"text": text}] if text else []), *calls]
        if calls and self._is_recent:
            calls[0].setdefault("thought_signature", UNSIGNED.encode())
        return parts

    def _nativize_invocation(self, canister: InvocationCanister) -> Message:
        name = fit_name(canister.name)
        self._names[canister.identifier] = name
        identifier = fit_identifier(canister.identifier)
        return {"function_call": {"id": identifier, "name": name, "args": canister.arguments}}

    def _add_result(self, canister: ResultCanister) -> None:
        """Adds a result to those of the same turn: the service wants as many as there are calls."""
        key = "output" if canister.error is None else "error"
        response: Message = {
            "id": fit_identifier(canister.invocation_identifier),
            "name": self._names.get(canister.invocation_identifier, "unknown"),
            "response": {key: render_result(canister)},
        }
        shown = [_inline(part) for part in canister.contents if self._is_shown(part)]
        if shown:
            response["parts"] = shown
            rest = [part for part in canister.contents if not self._is_shown(part)]
            words = [] if canister.error is None else [canister.error]
            words += [describe_content(part) for part in rest]
            response["response"] = {key: "\n".join(words) or "(see the attachment)"}
        part: Message = {"function_response": response}
        last: list[Message] = self.contents[-1]["parts"] if self.contents else []
        if last and not _are_words(last):
            last.append(part)
        else:
            self.contents.append({"role": "user", "parts": [part]})

    def _is_shown(self, content: Content) -> bool:
        return (
            self._is_recent
            and isinstance(content, (ImageContent, BlobContent))
            and _find_type(content) in _SHOWN_IN_RESULTS
        )


def _are_words(parts: list[Message]) -> bool:
    """Whether the user may go on in the same content: results of tools must be on their own."""
    return "function_response" not in parts[-1]


def _revive(part: Mapping[str, Any], calls: Iterator[Message]) -> Message | None:
    """A part as it came, with its signature; None where a call is gone."""
    native: Message = {"text": part.get("text", "")}
    if "call" in part:
        call = next(calls, None)
        if call is None:
            return None
        native = call
    if "served" in part:
        native = dict(part["served"])
    if part.get("thought"):
        native["thought"] = True
    if "signature" in part:
        native["thought_signature"] = base64.b64decode(part["signature"])
    return native


def nativize_tool(invoker: Invoker) -> Message:
    """The definition of a tool."""
    return {
        "name": invoker.name,
        "description": invoker.description,
        "parameters_json_schema": translate_for_gemini(invoker.arguments_schema),
    }


def nativize_parts(contents: Iterable[Content]) -> list[Message]:
    """Contents as parts; what the service cannot take is told in words, and empty texts are left out."""
    return [part for part in map(_nativize_part, contents) if part.get("text") != ""]


def _nativize_part(content: Content) -> Message:
    match content:
        case ImageContent() if _find_type(content) in _IMAGES:
            return _inline(content)
        case AudioContent():
            return _inline(content)
        case BlobContent() if content.mimetype == "application/pdf":
            return _inline(content)
        case _:
            return {"text": describe_content(content)}


def _inline(content: Any) -> Message:
    return {"inline_data": {"data": content.data, "mime_type": _find_type(content)}}


def _find_type(content: Any) -> str | None:
    return find_image_type(content) if isinstance(content, ImageContent) else content.mimetype
