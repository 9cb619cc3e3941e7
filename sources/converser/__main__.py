# SPDX-License-Identifier: Apache-2.0
"""The command `converser`: a word of help where its libraries are missing, else the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_LIBRARIES = ("cyclopts", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line, and gives the exit code."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # While it is still being loaded, or is leaving already.
        return 130


def _run(arguments: Sequence[str]) -> int:
    try:
        from .cli.program import run
    except ModuleNotFoundError as failure:
        if failure.name is None or failure.name.partition(".")[0] not in _LIBRARIES:
            raise
        print(  # noqa: T201
            f"The command line needs the package {failure.name!r}, which is not installed."
            " Run: pip install 'mcp-converser[cli]'",
            file=sys.stderr,
        )
        return 2
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
