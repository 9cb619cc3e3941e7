# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Chat Completions, as OpenAI and compatible servers (Ollama, vLLM, llama.cpp, …) speak it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

from ..exceptions import ModelFailure
from ..turns import (
    Capabilities,
    Concession,
    Provider,
    Transcript,
    TurnItem,
    TurnRequest,
)
from .chat import ChatClient, ChatCompleted, is_elsewhere
from .chat_messages import ChatConversation, compose_turn, end_with_user
from .chat_tools import nativize_fitted_tool, nativize_strict_tool, nativize_tool
from .dialects import form_answer
from .habits import Habits
from .streaming import Concessions
from .translations import Definitions, Message
from .veils import Veil

TOOLS_MAX = 128
"""How many tools OpenAI takes; compatible servers have no such limit."""
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
        self._translations: WeakKeyDictionary[Transcript, ChatConversation]
        self._translations = WeakKeyDictionary()
        compatible = self._client.is_compatible
        elsewhere = nativize_fitted_tool if label == "openai" else nativize_tool
        self._definitions = Definitions(elsewhere if compatible else nativize_strict_tool)
        self._concessions = Concessions(blindness=compatible)
        self._veil = Veil(blindness=compatible)

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
        habits = self._client.habits
        messages = end_with_user(self._translate(request.canisters, habits))
        tools = self._definitions.translate(request.invokers)
        form = _compose_format(request.answer_schema)
        stream = self._client.stream(self._model, messages, tools, request.controls, **form)
        try:
            async with aclosing(stream):
                async for item in stream:
                    if isinstance(item, ChatCompleted):
                        yield compose_turn(item, asked=self._model)
                    else:
                        yield item
        except ModelFailure as failure:
            if self._client.learn(habits, str(failure.__cause__)):
                raise Concession from failure
            status = getattr(failure.__cause__, "status_code", None)
            self._veil.draw(request.canisters, status, str(failure.__cause__), request.conceded)
            self._concessions.concede(status, request)
            raise

    def _translate(self, canisters: Transcript, habits: Habits) -> list[Message]:
        """The conversation, anew where its server turned out to want it otherwise."""
        known = self._translations.get(canisters)
        covered = self._veil.find(canisters)
        if known is None or known.habits is not habits or known.covered != covered:
            home = not self._client.is_compatible
            known = ChatConversation(self._model, habits, self._veil, covered, is_home=home)
            self._translations[canisters] = known
        return known.update(canisters)


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
