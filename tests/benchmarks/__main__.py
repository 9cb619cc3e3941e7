# SPDX-License-Identifier: Apache-2.0
"""Prints ratios to the bare SDK; `--quick` only shows that everything runs, and measures badly."""

from __future__ import annotations

import argparse

import anyio

from tests.benchmarks import calls, imports

CALL_TARGET = 1.10
IMPORT_TARGET = 1 / 3


def main() -> None:
    """Measure, and print as it goes."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--rounds", type=int, default=30, help="of calls; default: %(default)s")
    options = parser.parse_args()
    rounds, starts = (2, 1) if options.quick else (options.rounds, 7)
    print(f"A call, CPU of the client; in process, of both. Target: at most {CALL_TARGET:.2f}")
    print(f"{'transport':12}{'tool':8}{'SDK µs':>9}{'ours µs':>9}{'ratio':>8}{'noise':>8}")
    for transport, calls_for_sample in calls.TRANSPORTS.items():
        count = 2 if options.quick else calls_for_sample
        for row in anyio.run(calls.compare, transport, rounds, count):
            numbers = f"{row.bare:9.0f}{row.ours:9.0f}{row.ratio:8.2f}{row.noise:8.2f}"
            print(f"{row.transport:12}{row.tool:8}{numbers}", flush=True)
    print(f"\nImport, CPU in a fresh interpreter. Target: at most {IMPORT_TARGET:.2f} of mcp")
    taken = imports.compare(starts)
    for title, seconds in taken.items():
        print(f"{title:36}{seconds * 1e3:7.0f} ms   ratio {seconds / taken['mcp']:.2f}")


if __name__ == "__main__":
    main()
