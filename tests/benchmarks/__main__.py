# SPDX-License-Identifier: Apache-2.0
"""Prints ratios to the bare SDK; `--quick` only shows that everything runs, and measures badly."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import anyio

from tests.benchmarks import (
    calls,
    conversations,
    imports,
    listing,
    memory,
    peers,
    rounds,
    starting,
    store,
    tools,
    warm,
)

CALL_TARGET = 1.10
IMPORT_TARGET = 1 / 3
ROOMS = {"warm": warm, "listing": listing, "starting": starting, "conversations": conversations}
"""What is measured with a server that costs next to nothing."""
OWN_ROOMS = {"memory": memory, "tools": tools}
"""What is measured beside plain code, without a server."""


def main() -> None:
    """Measure, and print as it goes."""
    names = ("calls", "imports", "store", *ROOMS, *OWN_ROOMS, "peers")
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--rounds", type=int, default=30, help="of calls; default: %(default)s")
    parser.add_argument("only", nargs="*", metavar="what", help=f"of {', '.join(names)}")
    options = parser.parse_args()
    if strange := set(options.only) - set(names):
        parser.error(f"there is no {', '.join(sorted(strange))}")
    wanted = options.only or names
    if "calls" in wanted:
        print_calls(options.rounds, quick=options.quick)
    if "imports" in wanted:
        print_imports(1 if options.quick else 7)
    if "store" in wanted:
        print("A conversation on disk")
        for row in store.measure(quick=options.quick):
            print(row, flush=True)
        print()
    print_rooms(ROOMS, "the bare SDK, with a lean server at the far end", wanted, options.quick)
    print_rooms(OWN_ROOMS, "what one would write by hand", wanted, options.quick)
    if "peers" in wanted:
        print(f"One call in each turn, over stdio\n{peers.HEADING}")
        for row in peers.measure(quick=options.quick):
            print(row, flush=True)


def print_rooms(rooms: dict[str, Any], beside: str, wanted: Sequence[str], quick: bool) -> None:
    """Print the rows of those rooms that are wanted."""
    if chosen := [name for name in rooms if name in wanted]:
        print(f"Beside {beside}\n{rounds.HEADING}")
        for name in chosen:
            anyio.run(print_room, rooms[name], quick)
        print()


async def print_room(room: Any, quick: bool) -> None:
    """Print each row of a room when it is there."""
    async for row in room.measure(quick=quick):
        print(row, flush=True)


def print_calls(count_of_rounds: int, *, quick: bool) -> None:
    """A call on a server of the SDK's."""
    count_of_rounds = 2 if quick else count_of_rounds
    print(f"A call, CPU of the client; in process, of both. Target: at most {CALL_TARGET:.2f}")
    print(f"{'transport':12}{'tool':8}{'SDK µs':>9}{'ours µs':>9}{'ratio':>8}{'noise':>8}")
    for transport, calls_for_sample in calls.TRANSPORTS.items():
        count = 2 if quick else calls_for_sample
        for row in anyio.run(calls.compare, transport, count_of_rounds, count):
            numbers = f"{row.bare:9.0f}{row.ours:9.0f}{row.ratio:8.2f}{row.noise:8.2f}"
            print(f"{row.transport:12}{row.tool:8}{numbers}", flush=True)
    print()


def print_imports(starts: int) -> None:
    """What it takes to import us."""
    print(
        f"Import, CPU in a fresh interpreter. Target: at most {IMPORT_TARGET:.2f} of mcp; --help 0.50"
    )
    taken = imports.compare(starts)
    for title, seconds in taken.items():
        print(f"{title:36}{seconds * 1e3:7.0f} ms   ratio {seconds / taken['mcp']:.2f}")
    print()


if __name__ == "__main__":
    main()
