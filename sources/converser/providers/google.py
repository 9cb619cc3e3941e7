# SPDX-License-Identifier: Apache-2.0
"""Google's Gemini through the official SDK: one streamed turn at a time, thought signatures kept."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..canisters import AssistantCanister, Usage
from ..contents import TextualContent
from ..events import TextDelta, ThoughtDelta
from ..exceptions import ModelFailure
from ..turns import STOP_FILTERED, STOP_LENGTH, Call, Controls, TurnCompleted, TurnRequest
from .clients import Clients
from .failures import TRY_AGAIN, Service, describe_place, find_key, import_sdk
from .gemini_dialect import translate_for_gemini
from .google_contents import PROVIDER, SERVED, GoogleConversation, is_recent, nativize_tool
from .streaming import Stream, StreamingProvider
from .translations import GO_ON, Message

if TYPE_CHECKING:
    from google.genai.types import GenerateContentResponse, Part

KEY_VARIABLE = "GEMINI_API_KEY"
_KEY_VARIABLES = (KEY_VARIABLE, "GOOGLE_API_KEY")
_PLACE = "https://generativelanguage.googleapis.com"
_FILTERED = (
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR"
    " IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION ESCALATION PUP_LIMITED_DISABLED"
)
_STOP_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": STOP_LENGTH,
    "CONTINUATION": STOP_LENGTH,
    **dict.fromkeys(_FILTERED.split(), STOP_FILTERED),
}
"""All others, and those that a newer service may have, are mishaps."""
_NATIVE = frozenset(("signature", "thought", "served"))
"""What parts have that must go back to the service as it came."""
_NOT_STOPPED = "FINISH_REASON_UNSPECIFIED"
_RETRY_DELAY = 0.5
_PATIENCE = 600
"""Seconds of silence that are waited for, as the other SDKs do; this one would wait for ever."""


class GoogleProvider(StreamingProvider[GoogleConversation]):
    """A model of Google's."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key: str | None = None,
        retries: int = 2,
    ) -> None:
        super().__init__(
            PROVIDER, model, create=lambda _: GoogleConversation(model), nativize=nativize_tool
        )
        sdk = import_sdk("google.genai", "google")
        found = find_key(self.name, key, base_url, PROVIDER, *_KEY_VARIABLES)
        retry = {"attempts": retries + 1, "initial_delay": _RETRY_DELAY}
        options: dict[str, Any] = {"base_url": base_url or _PLACE, "retry_options": retry}
        options["timeout"] = _PATIENCE * 1000
        self._clients = Clients(
            lambda: sdk.Client(vertexai=False, api_key=found.sent, http_options=options),
            lambda client: client.aio.aclose(),
        )
        place = describe_place(base_url or _PLACE)
        self._service = Service(name=self.name, place=place, key=found, status_attribute="code")

    def holds(self, schema: Mapping[str, Any], *, tools: bool) -> bool:
        """Whether the service holds an answer to this schema: older models do not beside tools."""
        return super().holds(schema, tools=tools) and (not tools or is_recent(self._model))

    def _compose(self, request: TurnRequest) -> dict[str, Any]:
        conversation = self._translate(request)
        if not conversation.contents:
            self._service.lack_words()
        tools = self._definitions.translate(request.invokers)
        own = [{"function_declarations": tools}] if tools else []
        config = {
            "system_instruction": conversation.system or None,
            "tools": [*own, *request.controls.extras.get("tools", ())] or None,
            "automatic_function_calling": {"disable": True},
            **_compose_format(request.answer_schema),
            **_nativize_controls(request.controls),
        }
        config = {key: value for key, value in config.items() if value is not None}
        contents = _end_with_user(conversation.contents)
        return {"model": self._model, "contents": contents, "config": config}

    async def _open(self, native: dict[str, Any]) -> Stream:
        client = await self._clients.get()
        return aclosing(await client.aio.models.generate_content_stream(**native))

    def _expect(self, request: TurnRequest) -> _Answer:
        return _Answer(self._service, self._model)

    async def _list_models(self) -> list[str]:
        client = await self._clients.get()
        pager = await client.aio.models.list(config={"page_size": 1000})
        return [str(entry.name).removeprefix("models/") for entry in pager.page]


def create_provider(
    model: str, *, base_url: str | None = None, key: str | None = None, retries: int = 2
) -> GoogleProvider:
    """A model of Google's: `google:gemini-3-pro`."""
    return GoogleProvider(model, base_url=base_url, key=key, retries=retries)


def _end_with_user(contents: list[Message]) -> list[Message]:
    """The contents, with a word of the user's where the model spoke last: the service wants one to be asked again."""
    if contents[-1]["role"] == "user":
        return contents
    return [*contents, {"role": "user", "parts": [{"text": GO_ON}]}]


def _compose_format(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Holds the answer to a schema."""
    if schema is None:
        return {}
    native = translate_for_gemini(schema)
    return {"response_mime_type": "application/json", "response_json_schema": native}


def _nativize_controls(controls: Controls) -> dict[str, Any]:
    extras = {key: value for key, value in controls.extras.items() if key != "tools"}
    return {
        "temperature": controls.temperature,
        "top_p": controls.top_p,
        "seed": controls.seed,
        "max_output_tokens": controls.tokens_max,
        "http_options": {"extra_body": extras} if extras else None,
    }


@dataclass(slots=True)
class _Answer:
    """An answer while it comes in, part by part."""

    _service: Service
    _asked: str
    _reason: str | None = None
    _parts: list[Message] = field(default_factory=list[Message])
    _calls: list[Call] = field(default_factory=list[Call])
    _usage: Usage = Usage()
    _model: str = ""

    def absorb(self, chunk: GenerateContentResponse) -> list[TextDelta | ThoughtDelta]:
        """Takes one chunk in, and gives what of it people can see."""
        self._model = chunk.model_version or self._model
        if (counts := chunk.usage_metadata) is not None:
            self._usage = Usage(
                tokens_in=(counts.prompt_token_count or 0)
                + (counts.tool_use_prompt_token_count or 0),
                tokens_out=(counts.candidates_token_count or 0)
                + (counts.thoughts_token_count or 0),
                tokens_cached=counts.cached_content_token_count or 0,
            )
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self._reason = "SAFETY"
        deltas: list[TextDelta | ThoughtDelta] = []
        for candidate in (chunk.candidates or ())[:1]:
            if candidate.finish_reason not in (None, _NOT_STOPPED):
                self._reason = str(candidate.finish_reason.value)
            for part in (candidate.content.parts if candidate.content else None) or ():
                deltas += self._add(part)
        return deltas

    def _add(self, part: Part) -> list[TextDelta | ThoughtDelta]:
        kept: Message = {}
        if part.thought_signature:
            kept["signature"] = base64.b64encode(part.thought_signature).decode("ascii")
        if (call := part.function_call) is not None:
            name, arguments = call.name or "", call.args or {}
            self._calls.append(Call(name=name, arguments=arguments, identifier=call.id or ""))
            self._parts.append({**kept, "call": True})
            return []
        if served := part.model_dump(mode="json", include=SERVED, exclude_none=True):
            self._parts.append({**kept, "served": served})
            return []
        text = part.text or ""
        if not text and not kept:
            return []
        thought = {"thought": True} if part.thought else {}
        last = self._parts[-1] if self._parts else {}
        # Parts with a signature must go back as they came; the others are pieces of one.
        if kept or not _is_open(last) or ("thought" in last) != bool(thought):
            self._parts.append({**kept, **thought, "text": text})
        else:
            last["text"] += text
        if not text:
            return []
        return [ThoughtDelta(text=text) if part.thought else TextDelta(text=text)]

    def complete(self) -> TurnCompleted | None:
        """The end of the turn, or None where it has not come."""
        if self._reason is None:
            return None
        reason = _STOP_REASONS.get(self._reason)
        if reason is None:
            raise ModelFailure(
                f"{self._service.who} stopped for the reason {self._reason}.", remedy=TRY_AGAIN
            )
        spoken = [part for part in self._parts if "text" in part and "thought" not in part]
        text = "".join(part["text"] for part in spoken)
        native = any(part.keys() & _NATIVE for part in self._parts)
        canister = AssistantCanister(
            contents=(TextualContent(text=text),) if text else (),
            model=self._model,
            stop_reason="tool-use" if self._calls and reason == "stop" else reason,
            usage=self._usage,
            extras={PROVIDER: {"model": self._asked, "parts": self._parts}} if native else {},
        )
        return TurnCompleted(canister=canister, calls=tuple(self._calls))


def _is_open(part: Message) -> bool:
    """Whether a part is a piece of text that can go on."""
    return "text" in part and "signature" not in part
