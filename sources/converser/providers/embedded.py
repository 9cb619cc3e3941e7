# SPDX-License-Identifier: Apache-2.0
"""A language model on this machine's CPU, without a key and offline: a demonstration, and labelled so."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from ..canisters import SupervisorCanister, Usage, UserCanister
from ..exceptions import ModelFailure
from ..immutables import EMPTY
from ..invokers import Invoker
from ..turns import Call, Capabilities, Controls, TurnCompleted, TurnItem, TurnRequest
from .automatic import is_installed
from .chat import ChatClient, ChatCompleted, ChatItem
from .chat_messages import compose_turn, nativize_canister
from .constrained import (
    begin_value,
    compose_arguments,
    drop_inventions,
    find_borrowed,
    heed_choices,
    is_copied,
    list_open_words,
    loosen,
    may_be_any_text,
    move_numbers,
    quote_request,
    read_object,
    repeats,
    search_deeply,
)
from .guidance import Guide, count_served, read_question
from .introductions import HIDDEN, explain_parameter, get_properties, present_tool
from .llama import LlamaServer
from .planning import (
    PARTS_TOKENS,
    STOP,
    TASK_TOKENS,
    has_joints,
    join_next,
    read_parts,
    read_task,
    write_parts,
    write_task,
)
from .shortlisting import is_in_doubt, list_best, write_shortlist
from .translations import Message
from .weighing import average, rank_names
from .weights import Confirm, Report, Weights

RESULT_TOKENS = 1500
_MODEL = "embedded"
_PIECES_MAX = 100
_RANKS_MAX = 8
_FORM = "Answer with one JSON object that fits this JSON Schema: "
_PLAIN = "You are a helpful assistant. Answer briefly."


def _write_to_stderr(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


def _can_draw(report: Report) -> bool:
    """Whether there is a terminal that is ours alone, for a bar."""
    return report is _write_to_stderr and sys.stderr.isatty() and is_installed("rich")


class EmbeddedProvider:
    """Loads the model at its first turn, off the event loop, and unloads it when it is closed."""

    capabilities = Capabilities(vision=False, answer_schema=True, result_budget=RESULT_TOKENS)

    def __init__(
        self,
        model: str = "",
        *,
        path: str | Path | None = None,
        source: str | None = None,
        sha256: str | None = None,
        download: bool = True,
        confirm: Confirm | None = None,
        progress: bool | None = None,
        report: Report = _write_to_stderr,
    ) -> None:
        if model:
            raise ModelFailure(
                f"The embedded provider has no choice of models, such as {model!r}.",
                remedy="Say just 'embedded', or give a GGUF file of your own with path=….",
            )
        self._weights = Weights(
            path=None if path is None else Path(path),
            source=source,
            sha256=sha256,
            download=download,
            confirm=confirm,
            progress=_can_draw(report) if progress is None else progress,
        )
        self._report = report
        self._server: LlamaServer | None = None
        self._client: ChatClient | None = None
        self._turnstile = anyio.Lock()
        self._plans: dict[str, list[str]] = {}
        _demand_library()

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"embedded:{self._weights.file_name}"

    async def close(self) -> None:
        """Unloads the model; the next turn would load it again."""
        client, self._client = self._client, None
        server, self._server = self._server, None
        try:
            if client is not None:
                await client.close()
        finally:
            if server is not None:
                await server.close()

    async def stream_turn(self, request: TurnRequest) -> AsyncGenerator[TurnItem, None]:
        """One turn: with tools, led to a call or an answer; without, as the model likes."""
        turn = _Turn(await self._load(), request, self._plans)
        async with aclosing(turn.talk() if not request.invokers else turn.decide()) as items:
            async for item in items:
                yield item if not isinstance(item, ChatCompleted) else self._label(item, turn)

    def _label(self, chat: ChatCompleted, turn: _Turn) -> TurnCompleted:
        return compose_turn(replace(chat, model=self.name, usage=turn.usage))

    async def _load(self) -> ChatClient:
        async with self._turnstile:
            if self._client is not None and self._server is not None and self._server.is_alive:
                return self._client
            await self.close()
            path = await self._weights.obtain(self._report)
            self._server = await LlamaServer.start(path)
            self._client = ChatClient(self.name, base_url=self._server.url, key=self._server.key)
            return self._client


class _Turn:
    """One turn of the model: one request to its server, or several which follow one another."""

    def __init__(
        self, client: ChatClient, request: TurnRequest, plans: dict[str, list[str]]
    ) -> None:
        self.usage = Usage()
        self._client = client
        self._canisters = request.canisters
        self._controls = _cool(request.controls)
        self._answer_schema = request.answer_schema
        self._guide = Guide(request.invokers)
        self._invokers = self._guide.select(request.canisters)
        self._plans = plans

    async def talk(self) -> AsyncGenerator[ChatItem, None]:
        """Lets the model say what it likes."""
        messages: list[Message] = [{"role": "system", "content": _PLAIN}]
        for canister in self._canisters:
            nativize_canister(canister, messages)
        async with aclosing(self._answer(messages)) as items:
            async for item in items:
                yield item

    async def decide(self) -> AsyncGenerator[ChatItem, None]:
        """Lets the model serve the next part of the request by a call, or answer when all are served."""
        parts = await self._divide()
        at = count_served(self._canisters)
        while at < len(parts):
            part = "" if len(parts) == 1 else parts[at]
            messages = self._guide.write_messages(self._canisters, self._invokers, part)
            name = await self._pick(messages, parts[at])
            if name != self._guide.answer:
                completed = await self._call(messages, name, parts[at], part)
                if completed is not None:
                    yield completed
                    return
            elif at + 1 < len(parts):
                join_next(parts, at, read_question(self._canisters))
                continue
            at += 1
        messages = self._guide.write_messages(self._canisters, self._invokers)
        longer = self._guide.write_choice(messages, self._guide.answer, self._canisters)
        async with aclosing(self._answer(longer)) as items:
            async for item in items:
                yield item

    async def _divide(self) -> list[str]:
        """The parts of the user's request; the last plan is kept, since the next turns follow it."""
        request = read_question(self._canisters)
        if request not in self._plans:
            self._plans.clear()
            joined = has_joints(request)
            text = await self._go_on(write_parts(request), PARTS_TOKENS) if joined else ""
            self._plans[request] = read_parts(request, text)
        return self._plans[request]

    async def _pick(self, messages: Sequence[Message], request: str) -> str:
        """The name of the tool that serves a request, or of the answer where none is needed."""
        names = (self._guide.answer, *(invoker.name for invoker in self._invokers))
        rankings = [
            await self._rank(messages, self._guide.begin_choice(task), names)
            for task in await self._name_task(request)
        ]
        return await self._choose(request, average(rankings))

    async def _choose(self, request: str, ranks: Mapping[str, float]) -> str:
        """The best name, after a second look at the few best where the first leaves doubt."""
        guide = self._guide
        scores = guide.score(request, ranks, self._canisters)
        if is_in_doubt(scores):
            likely = list_best(scores, guide.answer)
            best = [name for name in guide.invokers if name in likely]
            lines = [present_tool(guide.invokers[name]) for name in best]
            text = write_shortlist(request, lines, guide.answer)
            again = await self._rank(text, "", (guide.answer, *best))
            ranks = average((ranks, ranks, again))  # The second look is the rasher one.
            scores = guide.score(request, ranks, self._canisters)
        return max(scores, key=lambda name: scores[name])

    async def _name_task(self, request: str) -> list[str]:
        """What kind of task the model takes a request for, with and without a word on its tools: both err at times."""
        tasks = [
            read_task(await self._go_on(write_task(request, fields), TASK_TOKENS))
            for fields in ((), self._guide.list_fields())
        ]
        return list(dict.fromkeys(tasks))

    async def _rank(
        self, before: Sequence[Message] | str, beginning: str, names: Iterable[str]
    ) -> dict[str, float]:
        """How likely the model goes on with each of some names, in a conversation or in a text."""

        async def weigh(path: str) -> Mapping[str, float]:
            pieces, usage = await self._client.weigh(_MODEL, before, beginning + path, _PIECES_MAX)
            self.usage = self.usage + usage
            return pieces

        return await rank_names(weigh, names, _RANKS_MAX)

    async def _go_on(self, text: str, tokens_max: int) -> str:
        """How the model goes on with a text, to the end of the line."""
        options = {"max_tokens": tokens_max, "temperature": 0, "stop": STOP}
        words, usage = await self._client.complete(_MODEL, text, **options)
        self.usage = self.usage + usage
        return words

    def _answer(self, messages: list[Message]) -> AsyncGenerator[ChatItem, None]:
        """Lets the model answer: in words, or in the form that was asked for."""
        if self._answer_schema is None:
            return self._ask(messages)
        schema = loosen(self._answer_schema)
        *before, last = messages
        content = f"{last['content']}\n{_FORM}{json.dumps(schema, ensure_ascii=False)}"
        return self._ask([*before, {**last, "content": content}], schema)

    async def _call(
        self, messages: Sequence[Message], name: str, request: str, part: str
    ) -> ChatCompleted | None:
        """The call of a tool, or None where the model has made that call already."""
        invoker = self._guide.invokers[name]
        completed = _NOTHING
        arguments: Mapping[str, Any] | str = EMPTY
        if compose_arguments(invoker) is not None:
            completed = await self._write(messages, invoker, part)
            written = read_object(completed.text)
            if written is not None:
                written = heed_choices(quote_request(written, request), invoker, request)
                written = await self._rewrite(messages, written, invoker, part)
                longer = self._guide.write_choice(messages, name, self._canisters, part)
                written = await self._reconsider(longer, written, request, invoker)
            arguments = completed.text if written is None else written
        if isinstance(arguments, Mapping):
            arguments = drop_inventions(arguments, invoker, self._list_words())
            arguments = search_deeply(move_numbers(arguments, invoker, request), invoker)
            if repeats(self._canisters, name, arguments):
                return None
        call = Call(name=name, arguments=arguments)
        return replace(completed, text="", calls=(call,), stop_reason="tool-use")

    async def _rewrite(
        self, messages: Sequence[Message], arguments: dict[str, Any], invoker: Invoker, part: str
    ) -> dict[str, Any]:
        """The arguments, where what was copied from an example is written once more without that example."""
        words = self._list_words()
        copied = {
            name: value
            for name, value in arguments.items()
            if name in get_properties(invoker)
            and is_copied(value, explain_parameter(invoker, name), words)
        }
        if not copied:
            return arguments
        completed = await self._write(messages, invoker, part, hidden=copied.values())
        again = read_object(completed.text) or {}
        better = {name: again[name] for name in copied if again.get(name, HIDDEN) != HIDDEN}
        return {**arguments, **better}

    async def _reconsider(
        self,
        messages: Sequence[Message],
        arguments: dict[str, Any],
        request: str,
        invoker: Invoker,
    ) -> dict[str, Any]:
        """The arguments, where what an application's note says is held against the words of the request."""
        notes = "\n".join(
            each.text for each in self._canisters if isinstance(each, SupervisorCanister)
        )
        properties = get_properties(invoker)
        for name in find_borrowed(arguments, request, notes):
            if not may_be_any_text(properties.get(name)):
                continue
            others = [str(value) for key, value in arguments.items() if key != name]
            words = list_open_words(request, "\n".join((notes, *others)))
            beginning = begin_value(arguments, name)
            ranks = await self._rank(messages, beginning, (arguments[name], *words))
            arguments = {**arguments, name: max(ranks, key=lambda word: ranks[word])}
        return arguments

    def _list_words(self) -> str:
        return "\n".join(each.text for each in self._canisters if isinstance(each, UserCanister))

    async def _write(
        self,
        messages: Sequence[Message],
        invoker: Invoker,
        part: str,
        hidden: Iterable[str] = (),
    ) -> ChatCompleted:
        """What the model writes as the arguments of a tool."""
        longer = self._guide.write_choice(messages, invoker.name, self._canisters, part, hidden)
        async with aclosing(self._ask(longer, compose_arguments(invoker))) as items:
            async for item in items:
                if isinstance(item, ChatCompleted):
                    return item
        raise AssertionError  # The client gives a whole answer, or raises.

    async def _ask(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[ChatItem, None]:
        form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        options = {} if schema is None else {"response_format": form}
        stream = self._client.stream(_MODEL, messages, (), self._controls, **options)
        async with aclosing(stream):
            async for item in stream:
                if isinstance(item, ChatCompleted):
                    self.usage = self.usage + item.usage
                yield item


_NOTHING = ChatCompleted(text="", calls=(), stop_reason="", usage=Usage(), model="")


def _cool(controls: Controls) -> Controls:
    """Small models choose tools best at temperature 0, and talk on where nothing stops them."""
    return replace(
        controls,
        temperature=0.0 if controls.temperature is None else controls.temperature,
        tokens_max=controls.tokens_max or 512,
    )


def _demand_library() -> None:
    if not is_installed("xllamacpp"):
        raise ModelFailure(
            "The package 'xllamacpp' is not installed.",
            remedy="Install it: pip install 'mcp-converser[embedded]'.",
        )
