# SPDX-License-Identifier: Apache-2.0
"""Anthropic's Messages through the official SDK: one streamed turn at a time, thinking kept."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..canisters import AssistantCanister, Canister, Usage
from ..contents import TextualContent
from ..events import TextDelta, ThoughtDelta
from ..invokers import Invoker
from ..turns import (
    STOP_FILTERED,
    STOP_LENGTH,
    STOP_PAUSED,
    Call,
    Controls,
    TurnCompleted,
    TurnRequest,
    interpret_arguments,
)
from .anthropic_dialect import restore_properties, translate_for_anthropic
from .anthropic_messages import PROVIDER, AnthropicConversation, mark, mark_last, nativize_tool
from .clients import Clients, bypass_proxies
from .dialects import open_top
from .failures import Service, describe_place, find_key, import_sdk, is_since
from .streaming import Stream, StreamingProvider, join
from .translations import GO_ON, Message, join_tools

if TYPE_CHECKING:
    from anthropic.types import RawMessageStreamEvent

KEY_VARIABLE = "ANTHROPIC_API_KEY"
_URL_VARIABLE = "ANTHROPIC_BASE_URL"
TOKENS_MAX = 32_000
"""Tokens of an answer where the controls do not say: the service wants a number."""

_GENERATION = re.compile(r"claude-[a-z]+-(\d+)(?:[-.](\d{1,2})(?!\d))?")
_DEFERS_SINCE = (4, 5)
_STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool-use",
    "max_tokens": STOP_LENGTH,
    "model_context_window_exceeded": STOP_LENGTH,
    "refusal": STOP_FILTERED,
    "pause_turn": STOP_PAUSED,
}
_GROWING = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
"""Which field of a block each kind of delta continues."""


class AnthropicProvider(StreamingProvider[AnthropicConversation]):
    """A model of Anthropic's, or of a server that speaks Messages."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key: str | None = None,
        retries: int = 2,
    ) -> None:
        super().__init__(
            PROVIDER,
            model,
            create=lambda reveals: AnthropicConversation(model, reveals),
            nativize=nativize_tool,
            deferral=is_since(model, _GENERATION, _DEFERS_SINCE),
        )
        sdk = import_sdk("anthropic", "anthropic")
        found = find_key(self.name, key, base_url, PROVIDER, KEY_VARIABLE)
        options = {"api_key": found.sent, "base_url": base_url, "max_retries": retries}
        url = base_url or os.environ.get(_URL_VARIABLE)
        self._clients = Clients(
            lambda: sdk.AsyncAnthropic(**options, **bypass_proxies(sdk, url)),
            lambda client: client.close(),
        )
        place = describe_place(str(self._clients.first.base_url))
        self._service = Service(name=self.name, place=place, key=found)

    def holds(self, schema: Mapping[str, Any], *, tools: bool) -> bool:
        """Whether the service holds an answer to this schema: it knows only some."""
        return super().holds(schema, tools=tools) and translate_for_anthropic(schema) is not None

    def _compose(self, request: TurnRequest) -> dict[str, Any]:
        conversation = self._translate(request)
        if not conversation.messages:
            self._service.lack_words()
        tools, deferred = self._definitions.split(request.invokers, self._list_found(request))
        native = {
            "model": self._model,
            "messages": mark_last(_end_with_user(conversation.messages, request.canisters)),
            "system": mark(conversation.system),
            "tools": [*mark(tools), *({**tool, "defer_loading": True} for tool in deferred)],
            "stream": True,
            **_nativize_controls(request.controls, _compose_format(request.answer_schema)),
        }
        return join_tools({key: part for key, part in native.items() if part not in (None, [])})

    async def _open(self, native: dict[str, Any]) -> Stream:
        client = await self._clients.get()
        stream: Stream = await client.messages.create(**native)
        return stream

    def _expect(self, request: TurnRequest) -> _Answer:
        return _Answer(self._model, request.invokers)

    async def _list_models(self) -> list[str]:
        client = await self._clients.get()
        listing = await client.models.list(limit=100)
        return [entry.id for entry in listing.data]


def _end_with_user(messages: list[Message], canisters: Sequence[Canister]) -> list[Message]:
    """The messages, with a word of the user's where the model spoke last: to be asked again, it wants one.

    A turn that the service paused must be the last, for it goes on there.
    """
    last = canisters[-1]
    paused = isinstance(last, AssistantCanister) and last.stop_reason == STOP_PAUSED
    if messages[-1]["role"] == "user" or paused:
        return messages
    return [*messages, {"role": "user", "content": [{"type": "text", "text": GO_ON}]}]


def create_provider(
    model: str, *, base_url: str | None = None, key: str | None = None, retries: int = 2
) -> AnthropicProvider:
    """A model of Anthropic's: `anthropic:claude-sonnet-5`."""
    return AnthropicProvider(model, base_url=base_url, key=key, retries=retries)


def _compose_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Holds the answer to a schema."""
    if schema is None:
        return None
    return {"format": {"type": "json_schema", "schema": translate_for_anthropic(schema)}}


def _nativize_controls(controls: Controls, output: dict[str, Any] | None) -> dict[str, Any]:
    """Controls as they are called there; there is no seed.

    The SDK has given up the sampling ones, but many models and compatible servers have not.
    """
    sampling = {"temperature": controls.temperature, "top_p": controls.top_p}
    extras = {key: value for key, value in sampling.items() if value is not None}
    extras |= join(controls.extras, output_config=output)
    return {"max_tokens": controls.tokens_max or TOKENS_MAX, "extra_body": extras or None}


def _is_sound(block: Message) -> bool:
    """Whether the service takes a block back: it refuses empty texts."""
    return block["type"] != "text" or bool(block["text"].strip())


def _fill(block: Message, written: str) -> list[Message]:
    """A block with the input that was written for it; none where that was cut off."""
    if not written:
        return [block]
    try:
        return [{**block, "input": json.loads(written)}]
    except ValueError:
        return []


@dataclass(slots=True)
class _Answer:
    """An answer while it comes in, block by block."""

    _asked: str
    _invokers: Mapping[str, Invoker]
    _stop_reason: str | None = None
    _blocks: dict[int, Message] = field(default_factory=dict[int, Message])
    _arguments: dict[int, list[str]] = field(default_factory=dict[int, "list[str]"])
    _usage: dict[str, int] = field(default_factory=dict[str, int])
    _model: str = ""

    def absorb(self, event: RawMessageStreamEvent) -> list[TextDelta | ThoughtDelta]:
        """Takes one event in, and gives what of it people can see."""
        match event.type:
            case "message_start":
                self._model = event.message.model
                self._count(event.message.usage)
            case "content_block_start":
                self._blocks[event.index] = event.content_block.to_dict(mode="json", warnings=False)
                self._arguments[event.index] = []
            case "content_block_delta":
                return self._grow(event.index, event.delta)
            case "message_delta":
                self._stop_reason = event.delta.stop_reason or self._stop_reason
                self._count(event.usage)
            case _:
                pass  # Ends of blocks, and what a newer version of the service may send.
        return []

    def _grow(self, index: int, delta: Any) -> list[TextDelta | ThoughtDelta]:
        block = self._blocks[index]
        if delta.type == "input_json_delta":
            self._arguments[index].append(delta.partial_json)
        elif delta.type == "citations_delta":
            citation = delta.citation.to_dict(mode="json")
            citation.pop("file_id", None)  # The service tells it, but does not take it back.
            block["citations"] = [*(block.get("citations") or ()), citation]
        elif (place := _GROWING.get(delta.type)) is not None:
            text: str = getattr(delta, place)
            block[place] = (block.get(place) or "") + text
            if place == "text":
                return [TextDelta(text=text)]
            if place == "thinking":
                return [ThoughtDelta(text=text)]
        return []

    def _count(self, usage: Any) -> None:
        """Counts are totals, and each may come at the start, at the end, or both."""
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ):
            if (value := getattr(usage, name, None)) is not None:
                self._usage[name] = value

    def complete(self) -> TurnCompleted | None:
        """The end of the turn; blocks are kept as they came, for this model demands them back."""
        if not self._stop_reason:
            return None
        blocks: list[Message] = []
        calls: list[Call] = []
        for index, block in sorted(self._blocks.items()):
            written = "".join(self._arguments[index])
            if block["type"] == "tool_use":
                arguments: Any = written or block.get("input") or {}
                calls.append(self._restore(block, arguments))
                blocks.append({"type": "tool_use"})
            elif _is_sound(block):
                blocks += _fill(block, written)
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        native = any(block["type"] not in ("text", "tool_use") for block in blocks)
        canister = AssistantCanister(
            contents=tuple(TextualContent(text=text) for text in texts),
            model=self._model,
            stop_reason=_STOP_REASONS.get(self._stop_reason, self._stop_reason),
            usage=self._sum_up(),
            extras={PROVIDER: {"model": self._asked, "blocks": blocks}} if native else {},
        )
        return TurnCompleted(canister=canister, calls=tuple(calls))

    def _restore(self, block: Message, arguments: Mapping[str, Any] | str) -> Call:
        """A call as the model wrote it, but with the tool's own names for the arguments."""
        call = Call(name=block["name"], arguments=arguments, identifier=block["id"])
        if (invoker := self._invokers.get(call.name)) is None:
            return call
        given, flaw = interpret_arguments(arguments)
        restored = restore_properties(open_top(invoker.arguments_schema), given)
        return call if flaw or restored is given else replace(call, arguments=restored)

    def _sum_up(self) -> Usage:
        """All that went in: the service tells apart what is new, written to its cache, and read."""
        used = self._usage.get
        cached, written = used("cache_read_input_tokens", 0), used("cache_creation_input_tokens", 0)
        return Usage(
            tokens_in=used("input_tokens", 0) + cached + written,
            tokens_out=used("output_tokens", 0),
            tokens_cached=cached,
            extras={"tokens_cache_written": written} if written else {},
        )
