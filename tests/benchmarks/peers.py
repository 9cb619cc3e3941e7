# SPDX-License-Identifier: Apache-2.0
"""The same long conversation by our loop and by other engines, each in an environment of its own.

The environments are made under `.auxiliary/caches/peers` by the first run that is not a quick one; a peer that
cannot be installed is left out. All speak to the same lean server over stdio, and have a model that only calls.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.sides import lean_command

_CACHES = Path(__file__).resolve().parents[2] / ".auxiliary" / "caches" / "peers"
_LOOPS = Path(__file__).with_name("peer_loops.py")
_PEERS = {"pydantic-ai": "pydantic-ai-slim[mcp]", "openai-agents": "openai-agents"}
_EDGE = 50
HEADING = (
    f"{'engine':16}{'turns':>7}{'CPU ms a turn':>15}{'by hand':>9}{'last/first':>12}  all rounds"
)


def measure(*, quick: bool) -> Iterator[str]:
    """Rows as text, one for each engine and length; a line for each peer that is not there."""
    engines = {"by hand": sys.executable, "converser": sys.executable}
    for name, requirement in _PEERS.items():
        python = _CACHES / name / "bin" / "python"
        if not python.exists() and not quick:
            yield from _install(name, requirement)
        if python.exists():
            engines[name] = str(python)
        else:
            yield f"{name:16} is not installed"
    for turns in (5,) if quick else (200, 1_000):
        yield from _measure_length(engines, turns, 1 if quick else 3)


def _install(name: str, requirement: str) -> Iterator[str]:
    place = _CACHES / name
    install = ("-m", "uv", "pip", "install", "--quiet", "--python", str(place / "bin" / "python"))
    for command in (
        ("-m", "venv", "--without-pip", "--clear", str(place)),
        (*install, requirement),
    ):
        ended = subprocess.run(
            [sys.executable, *command], capture_output=True, encoding="utf-8", check=False
        )
        if ended.returncode:
            (place / "bin" / "python").unlink(missing_ok=True)
            yield f"{name:16} cannot be installed: {ended.stderr.strip().splitlines()[-1:]}"
            return


def _measure_length(engines: dict[str, str], turns: int, rounds: int) -> Iterator[str]:
    """Rounds in which each engine has its turn, so that a busy machine is busy for all."""
    edge = min(_EDGE, turns // 2)
    totals: dict[str, list[float]] = {name: [] for name in engines}
    edges: dict[str, list[float]] = {name: [] for name in engines}
    for number in range(rounds):
        for name in list(engines) if number % 2 else reversed(engines):
            ticks = _run(engines[name], name, turns)
            totals[name].append((ticks[-1] - ticks[0]) / turns * 1e3)
            edges[name].append((ticks[-1] - ticks[-1 - edge]) / (ticks[edge] - ticks[0]))
    base = statistics.median(totals["by hand"])
    for name, samples in totals.items():
        taken, grown = statistics.median(samples), statistics.median(edges[name])
        numbers = f"{turns:7,}{taken:15.3f}{taken / base:9.2f}{grown:12.2f}"
        yield f"{name:16}{numbers}  {' '.join(f'{sample:.3f}' for sample in samples)}"


def _run(python: str, name: str, turns: int) -> list[float]:
    command = [python, str(_LOOPS), name, str(turns), *lean_command()]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if ended.returncode:
        raise RuntimeError(f"{name} failed: {ended.stderr[-2000:]}")
    return json.loads(ended.stdout.strip().splitlines()[-1])
