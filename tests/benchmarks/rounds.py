# SPDX-License-Identifier: Apache-2.0
"""Measures two sides in turns, and says how they compare.

A busy machine is then busy for both, and the bare side against itself tells how far to trust a ratio.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Cleanup = Callable[[], Awaitable[None]]
Work = Callable[[], "Awaitable[Cleanup | None]"]
"""Something to time; it may give a way to clean up after it, which is not timed."""
Clock = Callable[[], float]

CPU: Clock = time.process_time
"""Of this process: over a wire, that is the client alone."""
WALL: Clock = time.perf_counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one unit of work takes on either side, in milliseconds, and the ratio that was hoped for."""

    title: str
    clock: str
    bare: float
    ours: float
    noise: float
    target: float

    @property
    def ratio(self) -> float:
        """Ours to bare: less is better."""
        return self.ours / self.bare

    def __str__(self) -> str:
        verdict = "met" if self.ratio <= self.target else "MISSED"
        numbers = f"{self.bare:10.3f}{self.ours:10.3f}{self.ratio:7.2f}{self.target:8.2f}"
        return f"{self.title:40}{self.clock:5}{numbers}{self.noise:7.2f}  {verdict}"


HEADING = (
    f"{'work':40}{'clock':5}{'bare ms':>10}{'ours ms':>10}{'ratio':>7}{'target':>8}{'noise':>7}"
)


async def compare(
    title: str,
    bare: Work,
    ours: Work,
    *,
    target: float,
    rounds: int,
    units: int = 1,
    clock: Clock = CPU,
) -> Row:
    """Medians of rounds in which each side has its turn, the order changing; one `Work` is so many units."""
    sides = {"first": bare, "ours": ours, "second": bare}
    samples: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        for side in list(sides) if number % 2 else reversed(sides):
            gc.collect()
            taken = await _time(sides[side], clock)
            if number:  # the first round only warms up
                samples[side].append(taken / units * 1e3)
    first, second = statistics.median(samples["first"]), statistics.median(samples["second"])
    return Row(
        title=title,
        clock="CPU" if clock is CPU else "wall",
        bare=statistics.median(samples["first"] + samples["second"]),
        ours=statistics.median(samples["ours"]),
        noise=second / first,
        target=target,
    )


async def _time(work: Work, clock: Clock) -> float:
    started = clock()
    clean_up = await work()
    taken = clock() - started
    if clean_up is not None:
        await clean_up()
    return taken
