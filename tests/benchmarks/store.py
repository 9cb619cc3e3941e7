# SPDX-License-Identifier: Apache-2.0
"""A long conversation on disk: how soon it is loaded, and what its length costs whoever appends to it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator

import converser

LOAD_TARGET = 1.0
"""Seconds for a conversation of 10,000 canisters."""
APPEND_TARGET = 1.25
"""A turn appended to the long one, to a turn appended to an empty one."""


def measure(*, quick: bool) -> Iterator[str]:
    """The rows, each ready to be printed."""
    length = 100 if quick else 10_000
    rounds = 3 if quick else 300
    with tempfile.TemporaryDirectory() as folder:
        store = converser.ConversationStore(folder)
        long = store.create(each for number in range(length // 5) for each in make_turn(number))
        yield _measure_loading(long, length, 1 if quick else 5)
        yield _measure_appending(store.create(), long, rounds)


def make_turn(number: int) -> list[converser.Canister]:
    """Five canisters with a call; every fourth answer is so long that it is stored aside."""
    call = converser.InvocationCanister(name="weather__forecast", arguments={"days": number})
    result = converser.ResultCanister(
        invocation_identifier=call.identifier,
        contents=(converser.TextualContent(text=f"{number} °C " * 20),),
        structured={"days": list(range(10))},
        duration=0.125,
    )
    answer = f"Answer {number}: " + "it will rain. " * (20 if number % 4 else 200)
    return [
        converser.user(f"What about day {number}?"),
        converser.AssistantCanister(
            stop_reason="tool-use", usage=converser.Usage(tokens_in=1_000, tokens_out=50)
        ),
        call,
        result,
        converser.assistant(answer),
    ]


def _measure_loading(conversation: converser.StoredConversation, length: int, rounds: int) -> str:
    wall, cpu = list[float](), list[float]()
    for _ in range(rounds):
        begun, begun_cpu = time.perf_counter(), time.process_time()
        loaded = conversation.load()
        wall.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - begun_cpu)
        assert len(loaded) == length
        del loaded
    taken = statistics.median(wall)
    return (
        f"{f'load of {length:,} canisters':40}wall {taken * 1e3:8.1f} ms"
        f"   CPU {statistics.median(cpu) * 1e3:.1f}   target {LOAD_TARGET * 1e3:.0f}"
        f"   {'met' if taken <= LOAD_TARGET else 'MISSED'}"
    )


def _measure_appending(
    short: converser.StoredConversation, long: converser.StoredConversation, rounds: int
) -> str:
    """Alternates between the two, so that a busy machine is busy for both."""
    samples: dict[converser.StoredConversation, list[float]] = {short: [], long: []}
    for number in range(rounds):
        turn = make_turn(number * 4 + 1)
        for conversation in (short, long) if number % 2 else (long, short):
            begun = time.perf_counter()
            conversation.append(turn)
            samples[conversation].append(time.perf_counter() - begun)
    one, other = (statistics.median(samples[each]) * 1e3 for each in (short, long))
    return (
        f"{'append of a turn, to a new and to that':40}wall {one:8.2f} ms {other:8.2f} ms"
        f"   ratio {other / one:.2f}   target {APPEND_TARGET:.2f}"
        f"   {'met' if other / one <= APPEND_TARGET else 'MISSED'}"
    )
