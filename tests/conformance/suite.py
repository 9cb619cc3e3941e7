# SPDX-License-Identifier: Apache-2.0
"""The suite itself: installed from its lock, asked for its scenarios, and run one scenario at a time.

Its own way of running many starts all clients at once, which makes them time out on a small machine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers import processes, third_party

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LEGACY, MODERN, OTHER = "2025-11-25", "2026-07-28", "other"
ERAS = (LEGACY, MODERN, OTHER)
"""Two eras of the protocol; and what belongs to neither: still older versions, and extensions."""
CLIENT_SECONDS = 120
_SUITE_SECONDS = CLIENT_SECONDS + 30
_LISTED = re.compile(r"^\s+- (\S+) \[", re.MULTILINE)

EXPECTED_FAILURES: Mapping[str, str] = {
    "auth/dpop": "an extension that the SDK does not have, and that is not scored",
    "auth/dpop-nonce": "an extension that the SDK does not have, and that is not scored",
    "auth/wif-jwt-bearer": "an extension that the SDK does not have, and that is not scored",
}
UNTRIED: Mapping[str, str] = dict.fromkeys(
    (
        "sep-2640-client-no-prefetch",
        "sep-2640-client-verify-digest",
        "sep-2640-client-verify-size",
        "sep-2640-client-verify-frontmatter",
    ),
    "skills are an extension that is not scored, and that ensembles do not read",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How one scenario went."""

    era: str
    scenario: str
    passed: int
    failures: tuple[str, ...]
    skipped: int
    is_sound: bool
    """What the suite itself says, which also minds warnings and how the client ended."""
    seconds: float
    output: str

    @property
    def surprise(self) -> str:
        """Why this is not as expected; empty where it is."""
        if self.scenario in EXPECTED_FAILURES:
            return "passes, so it is to be taken off the list" if self.is_sound else ""
        if not self.is_sound:
            return "; ".join(self.failures) or "the client did not end as it should"
        return "" if self.passed or self.scenario in UNTRIED else "nothing was checked"


def list_scenarios(era: str) -> list[str]:
    """The scenarios of an era, in the order of the suite."""
    if era != OTHER:
        return _list("--spec-version", era)
    known = {*_list("--spec-version", LEGACY), *_list("--spec-version", MODERN)}
    return [scenario for scenario in _list() if scenario not in known]


def run_scenario(era: str, scenario: str) -> Report:
    """Let the suite start its server for a scenario, and our client against it."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as place:
        options = ["--scenario", scenario, "--output-dir", place]
        options += ["--timeout", str(CLIENT_SECONDS * 1000)]
        options += [] if era == OTHER else ["--spec-version", era]
        # The suite cuts the command at spaces, and has a shell run it.
        ended = _run("client", "--command", "eval $CONVERSER_CLIENT", *options)
        checks = _read_checks(Path(place))
    statuses = [check["status"] for check in checks]
    return Report(
        era=era,
        scenario=scenario,
        passed=statuses.count("SUCCESS"),
        failures=tuple(_describe(c) for c in checks if c["status"] in ("FAILURE", "WARNING")),
        skipped=statuses.count("SKIPPED"),
        is_sound=ended.returncode == 0,
        seconds=time.monotonic() - started,
        output=ended.stderr,
    )


def _list(*options: str) -> list[str]:
    ended = _run("list", "--client", *options)
    ended.check_returncode()
    return _LISTED.findall(ended.stdout)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    place = third_party.install_node_packages("conformance", HERE)
    package = place / "node_modules" / "@modelcontextprotocol" / "conformance"
    client = processes.fork_command("-m", "tests.conformance.client")
    return subprocess.run(
        [third_party.node_command(), str(package / "dist" / "index.js"), *arguments],
        cwd=ROOT,
        env={**os.environ, "CONVERSER_CLIENT": shlex.join(client)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=_SUITE_SECONDS,
        check=False,
    )


def _read_checks(place: Path) -> list[dict[str, Any]]:
    files = list(place.rglob("checks.json"))
    return json.loads(files[0].read_text(encoding="utf-8")) if files else []


def _describe(check: dict[str, Any]) -> str:
    return f"{check['id']}: {check.get('errorMessage') or check['description']}"
