# SPDX-License-Identifier: Apache-2.0
"""The clock of a call: what starts it, and what moves it."""

from __future__ import annotations

import math

import anyio
import anyio.lowlevel
import pytest

from converser import Context
from converser.mcp.deadlines import CallClock, Deadlines, PatientTime

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


async def test_a_clock_goes_on_only_when_every_question_has_its_answer() -> None:
    clock = CallClock(Context(timeout=5, timeout_maximum=9))
    clock.pause()
    clock.pause()  # a second question, of this call or of another one
    clock.resume()
    assert clock.scope.deadline == math.inf
    assert not clock.has_run_out
    clock.resume()
    assert clock.scope.deadline - anyio.current_time() == pytest.approx(5, abs=0.2)


def test_time_stands_still_while_anybody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, now = PatientTime(), [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    begun = clock.now()
    with clock.hold():
        now[0] += 3
        with clock.hold():
            now[0] += 30
        now[0] += 300
        assert clock.now() == begun
    now[0] += 2
    assert clock.now() == begun + 2


async def test_deadlines_stand_still_together_while_a_person_is_waited_for() -> None:
    deadlines = Deadlines()
    with deadlines.within(5) as early, deadlines.within(9) as free:
        with deadlines.hold():
            assert early.deadline == math.inf
            with deadlines.within(3) as late, deadlines.hold():
                assert late.deadline == math.inf
            assert early.deadline == math.inf  # somebody else still holds
            deadlines.lift(free)
        now = anyio.current_time()
        assert early.deadline - now == pytest.approx(5, abs=0.2)
        assert free.deadline == math.inf
        with deadlines.within(2) as last:
            assert last.deadline - now == pytest.approx(2, abs=0.2)


async def test_a_deadline_that_is_over_ends_its_block_only() -> None:
    deadlines = Deadlines()
    with deadlines.within(60) as outer:
        with deadlines.within(0.01) as inner:
            await anyio.sleep(30)
        assert inner.cancelled_caught
        await anyio.lowlevel.checkpoint()
    assert not outer.cancelled_caught
