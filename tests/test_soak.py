# SPDX-License-Identifier: Apache-2.0
"""Servers die at random and no call is lost, doubled or answered wrongly; and the soak would notice if one were."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.soak import Record, Tally, find_breaches

ROOT = Path(__file__).resolve().parent.parent


def test_hundreds_of_calls_survive_servers_that_die() -> None:
    command = [sys.executable, "-m", "tests.soak", "--calls", "800", "--seconds", "20"]
    run = subprocess.run(
        [*command, "--servers", "4"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "sources")},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "calls in" in run.stdout
    assert "success: " in run.stdout
    assert re.search(r"^[1-9]\d* kills", run.stdout, re.MULTILINE)


def tally_one(**fields: object) -> Tally:
    record = Record("act", "t1", outcome="success", text="done t1")
    for name, value in fields.items():
        setattr(record, name, value)
    return Tally(records=[record], executed=Counter(["t1"]))


def test_a_sound_run_breaks_nothing() -> None:
    assert list(find_breaches(tally_one())) == []
    steady = Tally(memory=[100.0 + index % 7 for index in range(100)])
    assert list(find_breaches(steady)) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"outcome": "missing"}, "has no result"),
        ({"text": "done t2"}, "wrong result"),
        ({"token": "t3", "text": "done t3"}, "was not executed"),
        (
            {"outcome": "tool-error", "is_refused": True, "is_in_storm": True},
            "said not to have been executed",
        ),
        ({"outcome": "outcome-unknown"}, "no excuse for it"),
        ({"outcome": "timed-out", "is_in_storm": True}, "no excuse for it"),
    ],
)
def test_a_call_that_went_wrong_is_noticed(fields: dict[str, object], words: str) -> None:
    (breach,) = find_breaches(tally_one(**fields))
    assert words in breach


def test_a_storm_in_which_nobody_was_killed_is_noticed() -> None:
    calm = Tally(executed=Counter(str(number) for number in range(2_000)))
    calm.records = [
        Record("act", str(n), outcome="success", text=f"done {n}") for n in range(2_000)
    ]
    (breach,) = find_breaches(calm)
    assert "no server was killed" in breach
    calm.kills = 1
    assert list(find_breaches(calm)) == []


def test_what_a_kill_may_have_cost_is_no_breach() -> None:
    tally = tally_one(outcome="outcome-unknown", is_in_storm=True)
    assert list(find_breaches(tally)) == []


def test_a_call_that_was_executed_twice_is_noticed_unless_it_only_reads() -> None:
    tally = tally_one()
    tally.executed["t1"] = 2
    assert ["executed 2 times" in breach for breach in find_breaches(tally)] == [True]
    tally.records[0].tool = "look"
    assert list(find_breaches(tally)) == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda tally: tally.unrecovered.update(a="lost"), "server a has not come back: lost"),
        (lambda tally: tally.leaks.append("process 1"), "left behind: process 1"),
        (lambda tally: tally.complaints.append("Task"), "nobody took: Task"),
        (lambda tally: setattr(tally, "late", 0.6), "after its deadline"),
        (lambda tally: tally.memory.extend(range(100)), "MB of memory"),
    ],
)
def test_what_a_run_leaves_behind_is_noticed(spoil: Callable[[Tally], None], words: str) -> None:
    tally = Tally()
    spoil(tally)
    (breach,) = find_breaches(tally)
    assert words in breach
