# SPDX-License-Identifier: Apache-2.0
"""The benchmark command runs and prints its ratios; how large they are is for a quiet machine to say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def measure(*what: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--quick", *what],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_benchmark_prints_ratios_for_every_transport_and_import() -> None:
    printed = measure("calls", "imports")
    for transport in ("stdio", "http", "in-process"):
        for tool in ("echo", "add"):
            row = rf"^{transport} +{tool} +\d+ +\d+ +\d+\.\d\d +\d+\.\d\d$"
            assert re.search(row, printed, re.MULTILINE), printed
    assert len(re.findall(r"^\S.* ms   ratio \d+\.\d\d$", printed, re.MULTILINE)) == 4


def test_the_benchmark_prints_what_a_long_conversation_on_disk_costs() -> None:
    printed = measure("store")
    assert re.search(r"^load of 100 canisters .* ms .*(met|MISSED)$", printed, re.MULTILINE)
    assert re.search(r"^append of a turn.* ratio \d+\.\d\d .*$", printed, re.MULTILINE)


def test_the_benchmark_prints_a_ratio_and_a_target_for_all_work_beside_the_bare_sdk() -> None:
    printed = measure("warm", "listing", "starting", "conversations", "memory", "tools")
    rows = re.findall(
        r"^.{40}(?:CPU|wall|kB) +(?:\d+\.\d+ +){5}(?:met|MISSED)$", printed, re.MULTILINE
    )
    assert len(rows) == 25, printed


def test_the_benchmark_compares_engines_as_far_as_they_are_installed() -> None:
    printed = measure("peers")
    rows = re.findall(r"^(.{16}) +5 +\d+\.\d+ +\d+\.\d\d +\d+\.\d\d ", printed, re.MULTILINE)
    assert {"by hand", "converser"} <= {row.strip() for row in rows}, printed
