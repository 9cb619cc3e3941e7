# SPDX-License-Identifier: Apache-2.0
"""Canisters as messages of Chat Completions, and its answers as turns, with what must go back of them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from ..canisters import (
    AssistantCanister,
    Canister,
    DocumentCanister,
    InvocationCanister,
    ResultCanister,
    SupervisorCanister,
    UnknownCanister,
    UserCanister,
)
from ..contents import AudioContent, BlobContent, Content, ImageContent, TextualContent
from ..immutables import EMPTY
from ..naming import fit_name
from ..turns import Transcript, TurnCompleted
from .chat import SIGNATURE, ChatCompleted
from .habits import THOUGHTS, Habits
from .pictures import PICTURES, find_image_type
from .translations import (
    GO_ON,
    OPENING,
    UNSIGNED,
    Message,
    describe_content,
    fit_identifier,
    heal,
    recall,
    render_result,
)
from .veils import Places, Veil

_IDENTIFIER_MAX = 40
"""Characters that OpenAI takes here; some servers, such as vLLM, make longer ones."""
_MISTRAL = re.compile(r"[sx]tral", re.IGNORECASE)
"""Mistral, Mixtral, Devstral, …: templates with rules of their own on identifiers and on who speaks after whom."""
_TERSE = re.compile(r"[a-zA-Z0-9]{9}")
_KEPT = "chat"
_JOINED = ("user", "system", "assistant")
_IMAGES_FOLLOW = "What the results above could not show:"
_SOUNDS = {
    **dict.fromkeys(("audio/mpeg", "audio/mp3"), "mp3"),
    **dict.fromkeys(("audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"), "wav"),
}


class ChatConversation:
    """The messages that were made of a transcript so far; it takes in only what is new.

    At home, which is OpenAI itself, files are read, and instructions are heard wherever they stand.
    """

    def __init__(
        self, model: str, habits: Habits, veil: Veil, covered: Places, *, is_home: bool
    ) -> None:
        self.habits = habits
        self.covered = covered
        self._veil = veil
        self._model = model
        self._is_home = is_home
        self._count = 0
        self._messages: list[Message] = []
        self._shown: list[Message] = []
        self._own: set[str] = set()
        self._is_mistral = _MISTRAL.search(model) is not None
        self._kept: Mapping[str, Any] = EMPTY

    def update(self, transcript: Transcript) -> list[Message]:
        """The whole transcript as messages."""
        for canister in heal(self._veil.look(transcript, self._count)):
            if isinstance(canister, ResultCanister):
                shown = [part for part in canister.contents if _is_shown(part, self._is_home)]
                self._shown += [_nativize_part(part, self._is_home) for part in shown]
            else:
                self._show()
            if isinstance(canister, SupervisorCanister) and not self._is_home:
                self._instruct(canister.text)
                continue
            nativize_canister(canister, self._messages, files=self._is_home)
            self._settle()
            self._add_kept(canister)
        self._show()
        self._count = len(transcript)
        return self._messages

    def _instruct(self, text: str) -> None:
        """Puts instructions before all else, since the templates of many models take none further on."""
        if self._messages and self._messages[0]["role"] == "system":
            text = f"{self._messages.pop(0)['content']}\n\n{text}"
        self._messages.insert(0, {"role": "system", "content": text})

    def _settle(self) -> None:
        """Lets the last message follow on the one before it as all services take it."""
        _drop_silence(self._messages)
        roles = [message["role"] for message in self._messages[-2:]]
        if self._is_mistral and roles == ["tool", "user"]:
            self._messages.insert(-1, {"role": "assistant", "content": OPENING})
        _join_last(self._messages)

    def _add_kept(self, canister: Canister) -> None:
        """Gives back what came with an answer besides, and calls under the identifiers that its server made."""
        match canister:
            case AssistantCanister():
                self._kept = recall(canister, _KEPT, self._model)
                self._think()
            case InvocationCanister():
                self._think()
                self._sign(self._messages[-1]["tool_calls"])
                if self._kept.get("identified"):
                    self._own.add(canister.identifier)
                self._messages[-1]["tool_calls"][-1]["id"] = self._identify(canister.identifier)
            case ResultCanister():
                identifier = self._identify(canister.invocation_identifier)
                self._messages[-1]["tool_call_id"] = identifier
            case UserCanister():
                self._kept = EMPTY
            case _:
                pass

    def _think(self) -> None:
        """Adds what the model thought to its last message, as the server takes it."""
        if self.habits.thoughts == "refused":
            return
        message = self._messages[-1]
        message.update(self._kept.get("thoughts", EMPTY))
        if self.habits.thoughts == "demanded" and message.keys().isdisjoint(THOUGHTS):
            message[THOUGHTS[0]] = " "  # DeepSeek takes an empty one for none.

    def _sign(self, calls: list[Message]) -> None:
        """Adds what came with the last of a message's calls, or what passes for it on the first."""
        signatures = self._kept.get("signatures", ())[: len(calls)]
        if len(signatures) == len(calls) and signatures[-1]:
            calls[-1][SIGNATURE] = signatures[-1]
        elif self.habits.signs and len(calls) == 1:
            calls[0][SIGNATURE] = {"google": {"thought_signature": UNSIGNED}}

    def _identify(self, identifier: str) -> str:
        """What a call is known by: as its own server made it, else as the model's service takes it."""
        if identifier in self._own or (self._is_mistral and _TERSE.fullmatch(identifier)):
            return identifier
        if self._is_mistral:
            return hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:9]
        return _fit(identifier)

    def _show(self) -> None:
        """Shows the images of results after the last of them, since a result itself can be words only."""
        if self._shown:
            words = {"type": "text", "text": _IMAGES_FOLLOW}
            self._messages.append({"role": "user", "content": [words, *self._shown]})
            self._shown = []
            self._settle()


def end_with_user(messages: list[Message]) -> list[Message]:
    """The messages, with a word of the user's where the model spoke last: many a server wants one to ask it again."""
    if messages and _is_silent(messages[-1]):
        messages = messages[:-1]
    if not messages or messages[-1]["role"] != "assistant":
        return messages
    return [*messages, {"role": "user", "content": GO_ON}]


def _drop_silence(messages: list[Message]) -> None:
    """Leaves out an answer without words or calls that others followed: some services refuse it for good."""
    if len(messages) > 1 and _is_silent(messages[-2]):
        del messages[-2]


def _is_silent(message: Message) -> bool:
    is_spoken = message["role"] != "assistant" or message["content"].strip()
    return not is_spoken and "tool_calls" not in message


def _join_last(messages: list[Message]) -> None:
    """Makes one of two messages of the same side, which the templates of many models refuse."""
    before, last = messages[-2:] if len(messages) > 1 else ({"role": ""}, {"role": ""})
    if before["role"] not in _JOINED or before["role"] != last["role"]:
        return
    contents = [before["content"], last["content"]]
    if all(isinstance(content, str) for content in contents):
        joined: Any = "\n\n".join(contents)
    else:
        joined = [part for content in contents for part in _list_parts(content)]
    messages[-2:] = [{**before, "content": joined}]


def _list_parts(content: str | list[Message]) -> list[Message]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def compose_turn(chat: ChatCompleted, *, asked: str = "") -> TurnCompleted:
    """The end of a turn, from a whole chat completion; what a server may want back of it is kept."""
    kept: dict[str, Any] = {"thoughts": chat.thoughts, "signatures": chat.signatures}
    # Some servers read their own identifiers, which others would not take.
    kept["identified"] = any(_fit(str(call.identifier)) != call.identifier for call in chat.calls)
    kept = {key: value for key, value in kept.items() if value and asked}
    canister = AssistantCanister(
        contents=(TextualContent(text=chat.text),) if chat.text else (),
        model=chat.model,
        stop_reason=chat.stop_reason,
        usage=chat.usage,
        extras={_KEPT: {"model": asked, **kept}} if kept else EMPTY,
    )
    return TurnCompleted(canister=canister, calls=chat.calls)


def nativize_canister(canister: Canister, messages: list[Message], *, files: bool = False) -> None:
    """Adds a canister to the messages; invocations join the assistant's message before them."""
    match canister:
        case SupervisorCanister():
            messages.append({"role": "system", "content": canister.text})
        case UserCanister():
            messages.append({"role": "user", "content": _nativize_parts(canister.contents, files)})
        case DocumentCanister():
            title = TextualContent(text=f"Document {canister.name or 'without name'}:")
            contents = (title, *canister.contents)
            messages.append({"role": "user", "content": _nativize_parts(contents, files)})
        case AssistantCanister():
            messages.append({"role": "assistant", "content": canister.text})
        case InvocationCanister():
            _add_invocation(canister, messages)
        case ResultCanister():
            identifier = _fit(canister.invocation_identifier)
            content = render_result(canister)
            messages.append({"role": "tool", "tool_call_id": identifier, "content": content})
        case UnknownCanister():
            pass  # Written by a newer version; there is no telling what it would mean here.


def _add_invocation(canister: InvocationCanister, messages: list[Message]) -> None:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    function = {
        "name": fit_name(canister.name),
        "arguments": json.dumps(canister.arguments, ensure_ascii=False),
    }
    identifier = _fit(canister.identifier)
    call = {"id": identifier, "type": "function", "function": function}
    messages[-1].setdefault("tool_calls", []).append(call)


def _fit(identifier: str) -> str:
    return fit_identifier(identifier, _IDENTIFIER_MAX)


def _nativize_parts(contents: Sequence[Content], files: bool) -> str | list[Message]:
    """Plain text where there is nothing else, as the smallest servers want it."""
    if not any(_is_shown(part, files) or isinstance(part, AudioContent) for part in contents):
        return "\n".join(describe_content(part) for part in contents)
    return [_nativize_part(part, files) for part in contents]


def _is_shown(content: Content, files: bool) -> bool:
    """Whether there is a place for it that is better than words; OpenAI itself reads files, others mostly do not."""
    return _is_picture(content) or (files and _is_file(content))


def _is_file(content: Content) -> TypeGuard[BlobContent]:
    return isinstance(content, BlobContent) and content.mimetype == "application/pdf"


def _is_picture(content: Content) -> TypeGuard[ImageContent]:
    """Whether a model can be shown it; a server that refuses another kind would be taken for blind."""
    return find_image_type(content) in PICTURES


def _nativize_part(content: Content, files: bool) -> Message:
    if _is_picture(content):
        kind = find_image_type(content) or content.mimetype
        return {"type": "image_url", "image_url": {"url": _encode(content.data, kind)}}
    if files and _is_file(content):
        name = content.name or "document.pdf"
        return {
            "type": "file",
            "file": {"filename": name, "file_data": _encode(content.data, content.mimetype)},
        }
    if isinstance(content, AudioContent) and content.mimetype in _SOUNDS:
        data = base64.b64encode(content.data).decode("ascii")
        sound = {"data": data, "format": _SOUNDS[content.mimetype]}
        return {"type": "input_audio", "input_audio": sound}
    return {"type": "text", "text": describe_content(content)}


def _encode(data: bytes, mimetype: str) -> str:
    return f"data:{mimetype};base64,{base64.b64encode(data).decode('ascii')}"
