# SPDX-License-Identifier: Apache-2.0
"""A language model on this machine's CPU, without a key and offline: a demonstration, and labelled so."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ..events import TextDelta
from ..exceptions import ModelFailure
from ..turns import Controls, TurnCompleted, TurnItem, TurnRequest
from .chat import ChatClient, ChatCompleted
from .constrained import (
    compose_schema,
    extract_answer,
    read_reply,
    repeats_itself,
    write_instructions,
    write_messages,
)
from .openai import compose_turn, nativize_canister
from .weights import FILE_NAME, Report, obtain_weights

CONTEXT_TOKENS = 8192
_PLAIN = "You are a helpful assistant. Answer briefly."


def _write_to_stderr(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


class EmbeddedProvider:
    """Loads the model at its first turn, off the event loop, and unloads it when it is closed."""

    def __init__(
        self,
        model: str = "",
        *,
        path: str | Path | None = None,
        download: bool = True,
        report: Report = _write_to_stderr,
    ) -> None:
        if model:
            raise ModelFailure(
                f"The embedded provider has no choice of models, such as {model!r}.",
                remedy="Say just 'embedded', or give a GGUF file of your own with path=….",
            )
        self._path = None if path is None else Path(path)
        self._download = download
        self._report = report
        self._library = _import_library()
        self._server: Any = None
        self._client: ChatClient | None = None
        self._turnstile = anyio.Lock()

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"embedded:{self._path.name if self._path else FILE_NAME}"

    async def close(self) -> None:
        """Unloads the model; the next turn would load it again."""
        client, self._client = self._client, None
        server, self._server = self._server, None
        if client is not None:
            await client.close()
        if server is not None:
            release = [server]
            del server
            await anyio.to_thread.run_sync(release.clear)

    async def stream_turn(self, request: TurnRequest) -> AsyncGenerator[TurnItem, None]:
        """One turn: with tools, held to a call or an answer; without, as the model likes."""
        client = await self._load()
        controls = _cool(request.controls)
        if not request.invokers:
            messages: list[dict[str, Any]] = [{"role": "system", "content": _PLAIN}]
            for canister in request.canisters:
                nativize_canister(canister, messages)
            stream = client.stream("embedded", messages, (), controls)
        else:
            invokers = list(request.invokers.values())
            messages = write_messages(request.canisters, write_instructions(invokers))
            only_answer = repeats_itself(request.canisters)
            schema = compose_schema(invokers, only_answer=only_answer)
            form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
            stream = client.stream("embedded", messages, (), controls, response_format=form)
        async with aclosing(stream):
            async for item in _interpret(stream) if request.invokers else stream:
                yield self._label(item) if isinstance(item, ChatCompleted) else item

    def _label(self, chat: ChatCompleted) -> TurnCompleted:
        return compose_turn(replace(chat, model=self.name))

    async def _load(self) -> ChatClient:
        async with self._turnstile:
            if self._client is not None:
                return self._client
            path = self._path or await obtain_weights(download=self._download, report=self._report)
            server, client = await anyio.to_thread.run_sync(self._start, path)
            self._server, self._client = server, client
            return client

    def _start(self, path: Path) -> tuple[Any, ChatClient]:
        """Starts the server in this process, on a free port of this machine, behind a key.

        This takes seconds, for which the library holds the interpreter's lock, in a thread too.
        """
        if not path.is_file():
            raise ModelFailure(
                f"There is no model file {str(path)!r}.", remedy="Give the path of a GGUF file."
            )
        key = secrets.token_urlsafe(32)
        parameters = self._library.CommonParams()
        parameters.model.path = str(path)
        parameters.n_ctx = CONTEXT_TOKENS
        parameters.n_parallel = 1
        parameters.port = 0
        parameters.api_keys = [key]
        parameters.verbosity = 0
        parameters.cpuparams.n_threads = _count_processors()
        parameters.cpuparams_batch.n_threads = _count_processors()
        try:
            server = self._library.Server(parameters)
        except Exception as failure:
            raise ModelFailure(
                f"The model file {str(path)!r} cannot be loaded: {failure}",
                remedy="Give another GGUF file, or free memory: it takes about 2 GB.",
            ) from failure
        url = f"{server.listening_address}/v1"
        return server, ChatClient(self.name, base_url=url, key=key)


async def _interpret(
    stream: AsyncGenerator[Any, None],
) -> AsyncGenerator[TextDelta | ChatCompleted, None]:
    """Gives the words of an answer as they arrive, and in the end the answer or the call."""
    written, told = "", ""
    async for item in stream:
        if isinstance(item, TextDelta):
            written += item.text
            answer = extract_answer(written)
            if len(answer) > len(told):
                yield TextDelta(text=answer[len(told) :])
                told = answer
        elif isinstance(item, ChatCompleted):
            text, calls = read_reply(item.text)
            reason = "tool-use" if calls else item.stop_reason
            yield replace(item, text=text, calls=calls, stop_reason=reason)


def _cool(controls: Controls) -> Controls:
    """Small models choose tools best at temperature 0, and talk on where nothing stops them."""
    return replace(
        controls,
        temperature=0.0 if controls.temperature is None else controls.temperature,
        tokens_max=controls.tokens_max or 512,
    )


def _count_processors() -> int:
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _import_library() -> Any:
    # Threads that wait actively starve everything else on a small machine; read at loading only.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        return import_module("xllamacpp")
    except ImportError as failure:
        raise ModelFailure(
            "The package 'xllamacpp' is not installed.",
            remedy="Install it: pip install 'mcp-converser[embedded]'.",
        ) from failure
