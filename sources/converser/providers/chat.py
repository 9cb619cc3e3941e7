# SPDX-License-Identifier: Apache-2.0
"""One streamed chat completion through the official `openai` SDK, with every way to fail made one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from ..canisters import Usage
from ..events import TextDelta, ThoughtDelta
from ..immutables import FrozenDictionary
from ..turns import STOP_FILTERED, STOP_LENGTH, Call, Controls
from .clients import Clients, bypass_proxies
from .failures import Service, describe_place, find_key, import_sdk, is_home
from .habits import NEWER_TOKENS_KEY, THOUGHTS, USAGE_OPTION, Habits
from .translations import join_tools

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
"""Where the SDK looks for another server."""
_SERVICE = "openai"
_HINT = (
    "; or give base_url=… for a server of your own, such as http://127.0.0.1:11434/v1 for Ollama"
)
_DETAILS = "reasoning_details"
"""What OpenRouter sends beside them, and wants back: pieces with signatures of the services behind it."""
_GROWING = ("text", "summary")
"""The parts of such a piece that come bit by bit."""
SIGNATURE = "extra_content"
"""What Gemini sends with a call over this wire, and wants back: the signature of its thought."""
_STOP_REASONS = {
    "stop": "stop",
    "tool_calls": "tool-use",
    "function_call": "tool-use",
    **dict.fromkeys(("length", "model_length", "repetition"), STOP_LENGTH),
    **dict.fromkeys(("content_filter", "sensitive"), STOP_FILTERED),
}
_MISHAP = re.compile(r"abort|error|insufficient_system_resource|network_error|.*MALFORMED.*")
"""How vLLM, OpenRouter, DeepSeek, Gemini and others end a stream in which the model was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCompleted:
    """A whole answer: given only after the service has said why the model stopped."""

    text: str
    calls: tuple[Call, ...]
    stop_reason: str
    usage: Usage
    model: str
    thoughts: Mapping[str, Any] = field(default_factory=FrozenDictionary)
    """What it thought, by the name of the field in which it came."""
    signatures: tuple[Any, ...] = ()
    """What came with each call besides, where something did with one of them."""


ChatItem = Union[TextDelta, ThoughtDelta, ChatCompleted]


def is_elsewhere(base_url: str | None) -> bool:
    """Whether another server than OpenAI's own is meant."""
    url = base_url or os.environ.get(URL_VARIABLE)
    return bool(url and not is_home(_SERVICE, url))


def connect(
    name: str, *, base_url: str | None, key: str | None, retries: int
) -> tuple[Clients, Service]:
    """The clients of the SDK, and how messages call the other end; the key is looked for here."""
    sdk = import_sdk("openai", "openai")
    found = find_key(name, key, base_url, _SERVICE, KEY_VARIABLE, hint=_HINT)
    options = {"api_key": found.sent, "base_url": base_url, "max_retries": retries}
    url = base_url or os.environ.get(URL_VARIABLE)
    clients = Clients(
        lambda: sdk.AsyncOpenAI(**options, **bypass_proxies(sdk, url)),
        lambda client: client.close(),
    )
    place = describe_place(str(clients.first.base_url))
    return clients, Service(name=name, place=place, key=found, path="/v1")


class ChatClient:
    """Speaks to one service that understands Chat Completions: OpenAI, or a compatible server."""

    def __init__(
        self, name: str, *, base_url: str | None = None, key: str | None = None, retries: int = 2
    ) -> None:
        self.is_compatible = is_elsewhere(base_url)
        tokens_key = "max_tokens" if self.is_compatible else NEWER_TOKENS_KEY
        self.habits = Habits(tokens_key=tokens_key)
        self._clients, self._service = connect(name, base_url=base_url, key=key, retries=retries)

    async def close(self) -> None:
        """Closes the connections."""
        await self._clients.close()

    def learn(self, habits: Habits, words: str) -> bool:
        """Whether a refusal in these words, of a request by these habits, tells what to do otherwise."""
        if habits.learn(words) is None:
            return False
        # Another request may have come to the same meanwhile.
        self.habits = self.habits.learn(words) or self.habits
        return True

    async def stream(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        controls: Controls,
        **options: Any,
    ) -> AsyncGenerator[ChatItem, None]:
        """Deltas as they come, then the whole; raises `ModelFailure` and nothing else."""
        answer = _Answer()
        request = {**self._nativize_controls(controls), **options}
        if self.habits.asks_for_usage:
            request[USAGE_OPTION] = {"include_usage": True}
        if tools:
            request["tools"] = tools
        request = join_tools(request)
        heard = False
        try:
            client = await self._clients.get()
            async with await client.chat.completions.create(
                model=model, messages=messages, stream=True, **request
            ) as chunks:
                async for chunk in chunks:
                    heard = True
                    for delta in answer.absorb(chunk):
                        yield delta
        except Exception as failure:
            await self._service.fail(failure, model, self._list_models, heard=heard)
        if answer.finish_reason is None or _MISHAP.fullmatch(answer.finish_reason):
            self._service.break_off(heard=heard)
        yield answer.complete()

    async def complete(self, model: str, prompt: str, **options: Any) -> tuple[str, Usage]:
        """How a plain text goes on."""
        try:
            client = await self._clients.get()
            answer = await client.completions.create(model=model, prompt=prompt, **options)
        except Exception as failure:
            await self._service.fail(failure, model, self._list_models, heard=False)
        return answer.choices[0].text, _sum_up(answer.usage)

    async def weigh(
        self, model: str, before: Sequence[Mapping[str, Any]] | str, beginning: str, most: int
    ) -> tuple[dict[str, float], Usage]:
        """The likely next pieces of an answer, or of a text, with the logarithms of their probabilities."""
        options: dict[str, Any] = {"model": model, "max_tokens": 1, "temperature": 0}
        try:
            client = await self._clients.get()
            if isinstance(before, str):
                answer = await client.completions.create(
                    prompt=before + beginning, logprobs=most, **options
                )
            else:
                begun = {"role": "assistant", "content": beginning}
                answer = await client.chat.completions.create(
                    messages=[*before, begun], logprobs=True, top_logprobs=most, **options
                )
        except Exception as failure:
            await self._service.fail(failure, model, self._list_models, heard=False)
        return _read_weights(answer.choices[0].logprobs), _sum_up(answer.usage)

    def _nativize_controls(self, controls: Controls) -> dict[str, Any]:
        native = {
            "temperature": controls.temperature,
            "top_p": controls.top_p,
            "seed": controls.seed,
            self.habits.tokens_key: controls.tokens_max,
            "extra_body": dict(controls.extras) or None,
        }
        return {key: value for key, value in native.items() if value is not None}

    async def _list_models(self) -> list[str]:
        client = await self._clients.get()
        listing = await client.models.list()
        return [entry.id for entry in listing.data]


@dataclass(slots=True)
class _Answer:
    """An answer while it comes in."""

    finish_reason: str | None = None
    _texts: list[str] = field(default_factory=list[str])
    _calls: list[_PartialCall] = field(default_factory=list["_PartialCall"])
    _thoughts: dict[str, str] = field(default_factory=dict[str, str])
    _details: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _usage: Usage = Usage()
    _model: str = ""
    _refused: bool = False

    def absorb(self, chunk: ChatCompletionChunk) -> list[TextDelta | ThoughtDelta]:
        """Takes one chunk in, and gives what of it people can see."""
        self._model = chunk.model or self._model
        if chunk.usage is not None:
            self._usage = _sum_up(chunk.usage)
        deltas: list[TextDelta | ThoughtDelta] = []
        # Compatible servers leave out, or make null, what the SDK takes for granted.
        choices: Any = chunk.choices
        for choice in (choices or ())[:1]:
            self.finish_reason = choice.finish_reason or self.finish_reason
            if (delta := choice.delta) is not None:
                deltas += self._absorb_delta(delta)
        return deltas

    def _absorb_delta(self, delta: Any) -> list[TextDelta | ThoughtDelta]:
        deltas: list[TextDelta | ThoughtDelta] = [*self._think(delta.model_extra or {})]
        self._refused = self._refused or bool(delta.refusal)
        content: Any = delta.content
        if isinstance(content, list) and (thought := _read_text(content, "thinking")):
            deltas.append(ThoughtDelta(text=thought))
        for text in (_read_text(content), delta.refusal):
            if text:
                self._texts.append(text)
                deltas.append(TextDelta(text=text))
        for call in delta.tool_calls or ():
            function = call.function
            self._extend_call(
                call.index,
                call.id or "",
                (function.name if function else None) or "",
                _write_arguments(function.arguments if function else None),
                getattr(call, SIGNATURE, None),
            )
        return deltas

    def _think(self, extra: Mapping[str, Any]) -> list[ThoughtDelta]:
        """Takes in thinking, for which servers have two names; some send it under both."""
        details: Any = extra.get(_DETAILS)
        for piece in details or ():
            self._add_detail(piece)
        for field_name in THOUGHTS:
            if thought := extra.get(field_name):
                self._thoughts[field_name] = self._thoughts.get(field_name, "") + str(thought)
                return [ThoughtDelta(text=str(thought))]
        return []

    def _add_detail(self, piece: Mapping[str, Any]) -> None:
        """Adds a piece of thinking, to the one before it where it continues that."""
        last: dict[str, Any] = self._details[-1] if self._details else {}
        same = all(last.get(key) == piece.get(key) for key in ("type", "index"))
        if not same or last.keys().isdisjoint(_GROWING):
            self._details.append(dict(piece))
            return
        for key, value in piece.items():
            if key in _GROWING:
                last[key] = f"{last.get(key) or ''}{value or ''}"
            elif value is not None:
                last[key] = value

    def _extend_call(
        self, index: int | None, identifier: str, name: str, arguments: str, signature: Any
    ) -> None:
        """Adds a piece to its call; some servers give all calls one index or none, and no identifiers.

        Others give each piece of a call an identifier of its own: what has no name begins no call.
        """
        for call in reversed(self._calls):
            if call.index == index and (identifier in ("", call.identifier) or not name):
                if not identifier and name and arguments.startswith("{") and call.is_whole():
                    break
                call.arguments.append(arguments)
                call.name = call.name or name
                call.signature = signature or call.signature
                return
        self._calls.append(_PartialCall(index, identifier, name, [arguments], signature))

    def complete(self) -> ChatCompleted:
        """The whole answer."""
        calls = tuple(
            Call(name=call.name, arguments="".join(call.arguments), identifier=call.identifier)
            for call in self._calls
        )
        reason = self.finish_reason or ""
        details = {_DETAILS: self._details} if self._details else {}
        signatures = tuple(call.signature for call in self._calls)
        return ChatCompleted(
            text="".join(self._texts),
            calls=calls,
            stop_reason=STOP_FILTERED
            if self._refused
            else _STOP_REASONS.get(reason.partition(":")[0], reason),
            usage=self._usage,
            model=self._model,
            thoughts={**self._thoughts, **details},
            signatures=signatures if any(signatures) else (),
        )


@dataclass(slots=True)
class _PartialCall:
    index: int | None
    identifier: str
    name: str
    arguments: list[str]
    signature: Any = None

    def is_whole(self) -> bool:
        """Whether nothing can be added to the arguments, as they are JSON already."""
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True


def _sum_up(usage: Any) -> Usage:
    """The tokens that were counted; not every server counts all of them."""
    if usage is None:
        return Usage()
    details = usage.prompt_tokens_details
    return Usage(
        tokens_in=usage.prompt_tokens or 0,
        tokens_out=usage.completion_tokens or 0,
        tokens_cached=(details.cached_tokens or 0) if details else 0,
    )


def _read_weights(logprobs: Any) -> dict[str, float]:
    """The weights of the first piece; llama.cpp has one form for texts and for conversations."""
    content = logprobs.model_dump()["content"]
    return {each["token"]: each["logprob"] for each in content[0]["top_logprobs"]}


def _read_text(content: Any, key: str = "text") -> str:
    """The words of a delta, which some servers send as a list of parts; Mistral's thoughts are lists in such."""
    if isinstance(content, list):
        parts: list[Any] = content  # pyright: ignore[reportUnknownVariableType]
        return "".join(_read_text(part.get(key)) for part in parts if isinstance(part, dict))  # pyright: ignore[reportUnknownMemberType]
    return content or ""


def _write_arguments(arguments: Any) -> str:
    """Arguments as text, where a server sends the object itself."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)
