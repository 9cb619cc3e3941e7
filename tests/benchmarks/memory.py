# SPDX-License-Identifier: Apache-2.0
"""What a conversation takes of memory, canister by canister, beside plain dictionaries with the same in them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncGenerator, Callable
from typing import Any

from converser.canisters import (
    AssistantCanister,
    InvocationCanister,
    ResultCanister,
    Usage,
    assistant,
    user,
)
from converser.contents import TextualContent
from tests.benchmarks.rounds import Row

_TEXT = "some words that a message has"


async def measure(*, quick: bool) -> AsyncGenerator[Row, None]:
    """One row for each kind of canister."""
    count = 100 if quick else 10_000
    for title, (bare, ours) in _KINDS.items():
        plain, taken = (_weigh(make, count) for make in (bare, ours))
        yield Row(title=title, clock="kB", bare=plain, ours=taken, noise=1.0, target=3)


def _weigh(make: Callable[[int], Any], count: int) -> float:
    """Kilobytes for each of many objects, all kept."""
    make(-1)
    gc.collect()
    tracemalloc.start()
    try:
        kept = [make(number) for number in range(count)]
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == count
    return size / count / 1_000


def _say(role: str) -> Callable[[int], Any]:
    return lambda number: {"role": role, "content": f"{_TEXT} {number}", "id": f"{number:032}"}


def _call(number: int) -> Any:
    call = {"id": f"call-{number}", "name": "echo", "arguments": {"text": f"{_TEXT} {number}"}}
    return {"role": "assistant", "tool_calls": [call]}


def _answer(number: int) -> Any:
    content = f"{_TEXT} {number}"
    return {"role": "tool", "tool_call_id": f"call-{number}", "content": content, "id": "0" * 32}


def _assistant(number: int) -> AssistantCanister:
    return AssistantCanister(
        contents=assistant(f"{_TEXT} {number}").contents,
        model="model",
        stop_reason="stop",
        usage=Usage(tokens_in=1000 + number, tokens_out=500 + number),
    )


def _invocation(number: int) -> InvocationCanister:
    return InvocationCanister(
        identifier=f"call-{number}", name="echo", arguments={"text": f"{_TEXT} {number}"}
    )


def _result(number: int) -> ResultCanister:
    contents = (TextualContent(text=f"{_TEXT} {number}"),)
    return ResultCanister(invocation_identifier=f"call-{number}", contents=contents)


_KINDS: dict[str, tuple[Callable[[int], Any], Callable[[int], Any]]] = {
    "memory of a user canister": (_say("user"), lambda number: user(f"{_TEXT} {number}")),
    "memory of an assistant canister": (_say("assistant"), _assistant),
    "memory of an invocation canister": (_call, _invocation),
    "memory of a result canister": (_answer, _result),
}
