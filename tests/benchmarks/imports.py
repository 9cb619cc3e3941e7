# SPDX-License-Identifier: Apache-2.0
"""What imports cost: each in a fresh interpreter, in turns, less what the interpreter itself costs."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Mapping

IMPORTS: Mapping[str, str] = {
    "mcp": "import mcp",
    "converser": "import converser",
    "converser, every name without MCP": (
        "import converser\n"
        "for name, room in converser._HOMES.items():\n"
        "    room.startswith('mcp') or getattr(converser, name)\n"
        "import sys\n"
        "assert 'mcp' not in sys.modules, 'mcp was imported'"
    ),
    "converser --help": (
        "import contextlib, io\n"
        "from converser.__main__ import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    assert main(['--help']) == 0"
    ),
}
_PROBE = """
import time
started = time.process_time()
{statement}
print(time.process_time() - started)
"""


def measure(statement: str) -> float:
    """Give the CPU seconds of a statement in a fresh interpreter."""
    command = [sys.executable, "-c", _PROBE.format(statement=statement)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return float(ended.stdout)


def compare(rounds: int) -> dict[str, float]:
    """Give the median CPU seconds of each import; the first round only fills caches."""
    samples: dict[str, list[float]] = {title: [] for title in IMPORTS}
    for number in range(rounds + 1):
        for title, statement in IMPORTS.items():
            taken = measure(statement)
            if number:
                samples[title].append(taken)
    return {title: statistics.median(taken) for title, taken in samples.items()}
