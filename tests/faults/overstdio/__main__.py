# SPDX-License-Identifier: Apache-2.0
"""Runs one server: `python tests/faults/overstdio NAME`; it needs nothing but the standard library."""

from __future__ import annotations

import sys
from pathlib import Path

# Run by its folder, without `site`, so that it starts as quickly as Python can.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from overstdio import answers, contents, processes, sound  # noqa: E402


def main() -> None:
    """Serves the fault that the command line names."""
    sound.note("start")
    rooms = (answers, contents, processes)
    server: sound.Server = next(getattr(r, sys.argv[1]) for r in rooms if hasattr(r, sys.argv[1]))()
    server.serve()


main()
