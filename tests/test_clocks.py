# SPDX-License-Identifier: Apache-2.0
"""The clock of a call: what starts it, and what moves it."""

from __future__ import annotations

import anyio
import pytest

from converser import Context
from converser.mcp.clocks import CallClock

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("context", "first", "moved"),
    [
        (Context(timeout=5), 5, 5),
        (Context(timeout=5, idle_timeout=2), 5, 2),
        (Context(idle_timeout=2), 2, 2),
        (Context(idle_timeout=2, timeout_maximum=1), 1, 1),
        (Context(timeout_maximum=9), 9, 9),
    ],
)
async def test_a_silent_server_is_not_waited_for_without_end(
    context: Context, first: float, moved: float
) -> None:
    begun = anyio.current_time()
    clock = CallClock(context)
    assert clock.scope.deadline - begun == pytest.approx(first, abs=0.2)
    clock.note_progress()
    assert clock.scope.deadline - begun == pytest.approx(moved, abs=0.2)
