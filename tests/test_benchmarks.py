# SPDX-License-Identifier: Apache-2.0
"""The benchmark command runs and prints its ratios; how large they are is for a quiet machine to say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_benchmark_prints_ratios_for_every_transport_and_import() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--quick"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for transport in ("stdio", "http", "in-process"):
        for tool in ("echo", "add"):
            row = rf"^{transport} +{tool} +\d+ +\d+ +\d+\.\d\d +\d+\.\d\d$"
            assert re.search(row, ended.stdout, re.MULTILINE), ended.stdout
    assert len(re.findall(r"^\S.* ms   ratio \d+\.\d\d$", ended.stdout, re.MULTILINE)) == 3
