# SPDX-License-Identifier: Apache-2.0
"""Thousands of tools: in the words of each provider, and found by keyword."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

import converser
from converser.invokers import InvocationResult, Invoker, Tool
from converser.providers import anthropic_messages, chat_tools, google_contents, responses_items
from converser.providers.translations import Definitions
from converser.searches import ToolIndex, index_ensemble, search_tools
from tests.benchmarks.rounds import Row, compare

_NATIVIZE: dict[str, Callable[[Invoker], dict[str, Any]]] = {
    "Messages": anthropic_messages.nativize_tool,
    "Responses": responses_items.nativize_tool,
    "Chat Completions": chat_tools.nativize_strict_tool,
    "Gemini": google_contents.nativize_tool,
}
_VERBS = "create read update delete list send fetch archive move copy".split()  # noqa: SIM905
_NOUNS = "invoice event message file ticket branch order contact page report".split()  # noqa: SIM905
_QUERY = "send the monthly report of team 77"


async def measure(*, quick: bool) -> AsyncGenerator[Row, None]:
    """All rows, as they come; the other side is what one would write by hand."""
    for count in (200,) if quick else (1_000, 10_000):
        ensemble = make_ensemble(count)
        rounds = 1 if quick else 5
        for name, nativize in _NATIVIZE.items():
            yield await _translate(ensemble, count, name, nativize, rounds)
        yield await _keep(ensemble, count, rounds)
    yield await _index(ensemble, count, rounds)
    yield await _search(ensemble, count, rounds)


def make_ensemble(count: int) -> converser.Ensemble:
    """Tools with five parameters each, one of them an object."""

    async def run(*_: Any) -> InvocationResult:
        return InvocationResult()

    def make(number: int) -> Tool:
        verb, noun = _VERBS[number % 10], _NOUNS[number // 10 % 10]
        properties: dict[str, Any] = {
            name: {"type": "string", "description": f"The {name} of the {noun}, as text."}
            for name in (f"{noun}_id", "title", "team", "since")
        }
        inner = {"type": "object", "properties": {"limit": {"type": "integer", "minimum": 1}}}
        properties["options"] = inner
        return Tool(
            name=f"{verb}_{noun}_{number}",
            description=f"Lets one {verb} the {noun} of team {number}. Use it when asked to.",
            arguments_schema={"type": "object", "properties": properties, "required": ["title"]},
        )

    return converser.Ensemble("many", tools=[(make(number), run) for number in range(count)])


async def _translate(
    ensemble: converser.Ensemble,
    count: int,
    name: str,
    nativize: Callable[[Invoker], dict[str, Any]],
    rounds: int,
) -> Row:
    invokers = ensemble.invokers

    async def by_hand() -> None:
        plain = [
            {
                "type": "function",
                "name": invoker.name,
                "description": invoker.description,
                "parameters": dict(invoker.arguments_schema),
            }
            for invoker in invokers.values()
        ]
        assert len(plain) == count

    async def ours() -> None:
        assert len(Definitions(nativize).translate(invokers)) == count

    target = 30 if name == "Gemini" else 10
    return await compare(f"{count:,} tools to {name}", by_hand, ours, target=target, rounds=rounds)


async def _keep(ensemble: converser.Ensemble, count: int, rounds: int) -> Row:
    """The next turn, for which nothing is translated again; the other side translates at each turn."""
    definitions = Definitions(responses_items.nativize_tool)
    definitions.translate(ensemble.invokers)

    async def anew() -> None:
        Definitions(responses_items.nativize_tool).translate(ensemble.invokers)

    async def kept() -> None:
        definitions.translate(ensemble.invokers)

    return await compare(f"{count:,} tools, the next turn", anew, kept, target=0.01, rounds=rounds)


async def _index(ensemble: converser.Ensemble, count: int, rounds: int) -> Row:
    async def split() -> None:
        for invoker in ensemble.invokers.values():
            re.findall(r"\w+", f"{invoker.name} {invoker.description}".lower())

    async def index() -> None:
        ToolIndex(ensemble.invokers.values())

    return await compare(f"index of {count:,} tools, once", split, index, target=15, rounds=rounds)


async def _search(ensemble: converser.Ensemble, count: int, rounds: int) -> Row:
    """A search, beside one that reads all descriptions for each word."""
    words = set(_QUERY.split())

    async def read_all() -> None:
        scores = {
            name: sum(word in f"{name} {invoker.description}".lower() for word in words)
            for name, invoker in ensemble.invokers.items()
        }
        assert len(sorted(scores, key=lambda name: -scores[name])[:5]) == 5

    async def search() -> None:
        assert len(search_tools([index_ensemble(ensemble)], _QUERY, 5)) == 5

    title = f"search over {count:,} tools"
    return await compare(title, read_all, search, target=1, rounds=rounds)
