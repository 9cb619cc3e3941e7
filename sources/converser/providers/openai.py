# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Chat Completions, as OpenAI and compatible servers (Ollama, vLLM, llama.cpp, …) speak it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

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
from ..contents import (
    AudioContent,
    BlobContent,
    Content,
    ImageContent,
    LinkContent,
    TextualContent,
)
from ..exceptions import ModelFailure
from ..immutables import EMPTY
from ..naming import fit_name
from ..turns import (
    Capabilities,
    Concession,
    Provider,
    Transcript,
    TurnCompleted,
    TurnItem,
    TurnRequest,
)
from .chat import NEWER_TOKENS_KEY, SIGNATURE, USAGE_OPTION, ChatClient, ChatCompleted, is_elsewhere
from .chat_tools import nativize_fitted_tool, nativize_strict_tool, nativize_tool
from .dialects import form_answer
from .pictures import PICTURES, find_image_type
from .streaming import Concessions
from .translations import GO_ON, Definitions, fit_identifier, heal, recall

Message = dict[str, Any]

TOOLS_MAX = 128
"""How many tools OpenAI takes; compatible servers have no such limit."""
_IDENTIFIER_MAX = 40
"""Characters that OpenAI takes here; some servers, such as vLLM, make longer ones."""
_MISTRAL = re.compile(r"(mis|mix|minis|magis|pix|codes|devs)tral", re.IGNORECASE)
"""The family whose service, and templates, take identifiers of nine characters only."""
_TERSE = re.compile(r"[a-zA-Z0-9]{9}")
_KEPT = "chat"
_JOINED = ("user", "system", "assistant")
_IMAGES_FOLLOW = "What the results above could not show:"
_SOUNDS = {
    **dict.fromkeys(("audio/mpeg", "audio/mp3"), "mp3"),
    **dict.fromkeys(("audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"), "wav"),
}
OLLAMA_URL = "http://127.0.0.1:11434/v1"
LLAMACPP_URL = "http://127.0.0.1:8080/v1"
LMSTUDIO_URL = "http://127.0.0.1:1234/v1"


class OpenAIProvider:
    """A model behind Chat Completions; each canister and each tool is translated once."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key: str | None = None,
        retries: int = 2,
        label: str = "openai",
    ) -> None:
        self._model = model
        self._label = label
        self._client = ChatClient(self.name, base_url=base_url, key=key, retries=retries)
        self._translations: WeakKeyDictionary[Transcript, _Translation] = WeakKeyDictionary()
        self._compatible = compatible = self._client.is_compatible
        elsewhere = nativize_fitted_tool if label == "openai" else nativize_tool
        self._definitions = Definitions(elsewhere if compatible else nativize_strict_tool)
        self._concessions = Concessions(blindness=compatible)

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self._label}:{self._model}"

    @property
    def capabilities(self) -> Capabilities:
        """What is not refused."""
        return Capabilities(
            vision=self._concessions.vision,
            answer_schema=True,
            tools_max=None if self._client.is_compatible else TOOLS_MAX,
        )

    def holds(self, schema: Mapping[str, Any], *, tools: bool) -> bool:
        """Whether the service holds an answer to this schema.

        Many a compatible server would then have the model write nothing else, and so call no tools.
        """
        return self._concessions.holds(schema) and not (tools and self._client.is_compatible)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def stream_turn(self, request: TurnRequest) -> AsyncGenerator[TurnItem, None]:
        """One chat completion; calls are given only after the finish reason has arrived."""
        fresh = _Translation(self._model, files=not self._compatible)
        messages = self._translations.setdefault(request.canisters, fresh).update(request.canisters)
        tools = self._definitions.translate(request.invokers)
        form = _compose_format(request.answer_schema)
        messages = _end_with_user(messages)
        stream = self._client.stream(self._model, messages, tools, request.controls, **form)
        asks_for_usage, tokens_key = self._client.asks_for_usage, self._client.tokens_key
        try:
            async with aclosing(stream):
                async for item in stream:
                    if isinstance(item, ChatCompleted):
                        yield compose_turn(item, asked=self._model)
                    else:
                        yield item
        except ModelFailure as failure:
            words = str(failure.__cause__)
            if asks_for_usage and USAGE_OPTION in words:
                self._client.asks_for_usage = False  # As Mistral's service demands.
                raise Concession from failure
            if tokens_key != NEWER_TOKENS_KEY and f"'{NEWER_TOKENS_KEY}' instead" in words:
                self._client.tokens_key = NEWER_TOKENS_KEY  # As OpenAI's models at Azure demand.
                raise Concession from failure
            self._concessions.concede(getattr(failure.__cause__, "status_code", None), request)
            raise


def _end_with_user(messages: list[Message]) -> list[Message]:
    """The messages, with a word of the user's where the model spoke last: many a server wants one to ask it again."""
    if messages and _is_silent(messages[-1]):
        messages = messages[:-1]
    if not messages or messages[-1]["role"] != "assistant":
        return messages
    return [*messages, {"role": "user", "content": GO_ON}]


def _compose_format(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Holds the answer to a schema: to the letter where strict mode takes it as it is."""
    if schema is None:
        return {}
    fitted, strict = form_answer(schema)
    form = {"name": "answer", "schema": fitted, "strict": strict}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def create_provider(
    model: str,
    *,
    base_url: str | None = None,
    key: str | None = None,
    retries: int = 2,
    api: str | None = None,
) -> Provider:
    """A model of OpenAI's over Responses; with `base_url`, of a server over Chat Completions.

    `api` ("responses" or "chat") chooses otherwise.
    """
    if api is None:
        api = "chat" if is_elsewhere(base_url) else "responses"
    if api == "responses":
        from .responses import ResponsesProvider

        return ResponsesProvider(model, base_url=base_url, key=key, retries=retries)
    if api == "chat":
        return OpenAIProvider(model, base_url=base_url, key=key, retries=retries)
    raise ModelFailure(f"OpenAI has no API {api!r}.", remedy="Say 'responses' or 'chat'.")


def create_ollama_provider(
    model: str, *, base_url: str = OLLAMA_URL, key: str | None = None, retries: int = 2
) -> Provider:
    """A model of Ollama's on this machine: `ollama:qwen3`."""
    return OpenAIProvider(model, base_url=base_url, key=key, retries=retries, label="ollama")


def create_llamacpp_provider(
    model: str, *, base_url: str = LLAMACPP_URL, key: str | None = None, retries: int = 2
) -> Provider:
    """The model of a llama.cpp server on this machine; it has one, whatever it is called."""
    return OpenAIProvider(model, base_url=base_url, key=key, retries=retries, label="llamacpp")


def create_lmstudio_provider(
    model: str, *, base_url: str = LMSTUDIO_URL, key: str | None = None, retries: int = 2
) -> Provider:
    """A model of LM Studio's on this machine."""
    return OpenAIProvider(model, base_url=base_url, key=key, retries=retries, label="lmstudio")


class _Translation:
    """The messages that were made of a transcript so far; it takes in only what is new."""

    def __init__(self, model: str, *, files: bool) -> None:
        self._model = model
        self._files = files
        self._count = 0
        self._messages: list[Message] = []
        self._shown: list[Message] = []
        self._own: set[str] = set()
        self._is_terse = _MISTRAL.search(model) is not None
        self._kept: Mapping[str, Any] = EMPTY

    def update(self, transcript: Transcript) -> list[Message]:
        for canister in heal(transcript[self._count :]):
            if isinstance(canister, ResultCanister):
                shown = [part for part in canister.contents if _is_shown(part, self._files)]
                self._shown += [_nativize_part(part, self._files) for part in shown]
            else:
                self._show()
            nativize_canister(canister, self._messages, files=self._files)
            _drop_silence(self._messages)
            _join_last(self._messages)
            self._add_kept(canister)
        self._show()
        self._count = len(transcript)
        return self._messages

    def _add_kept(self, canister: Canister) -> None:
        """Gives back what came with an answer besides, and calls under the identifiers that its server made."""
        match canister:
            case AssistantCanister():
                self._kept = recall(canister, _KEPT, self._model)
            case InvocationCanister():
                _sign_last_call(self._messages[-1], self._kept)
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

    def _identify(self, identifier: str) -> str:
        """What a call is known by: as its own server made it, else as the model's service takes it."""
        if identifier in self._own or (self._is_terse and _TERSE.fullmatch(identifier)):
            return identifier
        if self._is_terse:
            return hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:9]
        return _fit(identifier)

    def _show(self) -> None:
        """Shows the images of results after the last of them, since a result itself can be words only."""
        if self._shown:
            words = {"type": "text", "text": _IMAGES_FOLLOW}
            self._messages.append({"role": "user", "content": [words, *self._shown]})
            self._shown = []


def _sign_last_call(message: Message, kept: Mapping[str, Any]) -> None:
    """Adds what came with the last of a message's calls, and with all of them."""
    message.update(kept.get("thoughts", EMPTY))
    calls = message["tool_calls"]
    signatures = kept.get("signatures", ())[: len(calls)]
    if len(signatures) == len(calls) and signatures[-1]:
        calls[-1][SIGNATURE] = signatures[-1]


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
    """The end of a turn, from a whole chat completion; what a server may want back of thoughts is kept."""
    kept: dict[str, Any] = {"thoughts": chat.thoughts, "signatures": chat.signatures}
    # Some servers read their own identifiers, which others would not take.
    kept["identified"] = any(_fit(str(call.identifier)) != call.identifier for call in chat.calls)
    kept = {key: value for key, value in kept.items() if value and asked and chat.calls}
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


def render_result(canister: ResultCanister) -> str:
    """A result as text: what went wrong, if something did, and all that the tool had to say."""
    parts = [] if canister.error is None else [f"Error ({canister.outcome}): {canister.error}"]
    parts.extend(describe_content(part) for part in canister.contents)
    if not canister.contents and canister.structured is not None:
        parts.append(json.dumps(canister.structured, ensure_ascii=False))
    words = "\n".join(parts)
    return words if words.strip() else "(no output)"  # Anthropic refuses white space alone.


def describe_content(content: Content) -> str:
    """A content as text; what is no text is named, so that the model knows that it is there."""
    match content:
        case TextualContent():
            return content.text
        case BlobContent():
            name = content.name or content.uri or "unnamed"
            text = content.text
            return f"[{name}: {content.mimetype}, {len(content.data)} bytes]" + (
                "" if text is None else f"\n{text}"
            )
        case LinkContent():
            return f"[link to {content.title or content.name}: {content.uri}]"
        case ImageContent() | AudioContent():
            kind = content.mimetype
            return f"[{kind}, {len(content.data)} bytes, which cannot be shown here]"
        case _:
            return f"[content of the unknown kind {content.kind!r}]"


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
