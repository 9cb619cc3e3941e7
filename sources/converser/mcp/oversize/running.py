# SPDX-License-Identifier: Apache-2.0
"""Has an oversized message made small in another process, so that the event loop goes on meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
from anyio.lowlevel import RunVar

from ...excesses import STORE
from .spills import Bounds, Spill

_REDUCER = Path(__file__).with_name("reducer.py")
_AT_ONCE = 2
_PATIENCE = 60.0
_turns: RunVar[anyio.CapacityLimiter] = RunVar("converser reducers")


class Oversize(Exception):
    """A message that is too large, and could not be made small; somebody must keep or discard it."""

    remedy = "Ask it for less, or raise its `result_limit`."

    def __init__(self, spill: Spill, reason: str) -> None:
        super().__init__(reason)
        self._spill = spill
        self._reason = reason

    def keep(self) -> str:
        """Keeps the message as it came, for somebody who waits for it; says why, and where."""
        return self._spill.keep(self._reason)

    def discard(self) -> None:
        """Removes what nobody waits for."""
        self._spill.discard()


async def reduce_message(spill: Spill, bounds: Bounds) -> bytes:
    """The message with links to files in place of what is large in it."""
    spill.close()
    if spill.path is None:
        raise Oversize(spill, "it is too large")
    try:
        async with _take_turn():
            files, message = await _run(spill.path, bounds)
    except (OSError, TimeoutError, ValueError) as failure:
        words = str(failure) or "it takes too long to read"
        reason = f"it has {spill.size} bytes, which are too many or in too many parts, and {words}"
        raise Oversize(spill, reason) from None
    except BaseException:
        spill.discard()
        raise
    folder = spill.path.parent
    spill.discard()
    for name, mimetype in files:
        STORE.keep(folder / name, mimetype)
    return message


def spill_message(message: bytes, bounds: Bounds) -> Spill:
    """Puts a message into a file that is in memory, and not to be decoded there."""
    spill = Spill(bounds)
    spill.write(message)
    return spill


async def _run(path: Path, bounds: Bounds) -> tuple[list[tuple[str, str]], bytes]:
    """The files that the reducer made, with their types, and the message."""
    if not sys.executable:
        raise ValueError("there is no Python to read it in another process")
    room = bounds.memory // 4
    command = (sys.executable, "-I", "-S", str(_REDUCER), str(path), str(path.parent), str(room))
    with anyio.fail_after(_PATIENCE):
        ended = await anyio.run_process(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
    if ended.returncode != 0:
        raise ValueError(ended.stdout.decode("utf-8", "replace") or "it cannot be read")
    files, _, message = ended.stdout.partition(b"\n")
    return [(name, mimetype) for name, mimetype in json.loads(files)], message


def _take_turn() -> anyio.CapacityLimiter:
    if (turns := _turns.get(None)) is None:
        turns = anyio.CapacityLimiter(_AT_ONCE)
        _turns.set(turns)
    return turns
