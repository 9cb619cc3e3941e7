# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows of the terminal is what the terminal shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminals import DEADLINE, create_environment

EXAMPLES = Path(__file__).resolve().parent.parent / "documentation" / "examples"


def read_sessions() -> list[tuple[str, str]]:
    """Each command of all sessions in order, and what it shows; dots stand for anything."""
    text = "".join(path.read_text("utf-8") for path in sorted(EXAMPLES.glob("*.console")))
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.skipif(sys.platform == "win32", reason="The sessions are of a POSIX shell.")
def test_the_sessions_show_what_they_say(tmp_path: Path) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = create_environment(tmp_path, {"PATH": path, "EXAMPLES": str(EXAMPLES)})
    sessions = read_sessions()
    assert len(sessions) > 10
    for command, expected in sessions:
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=DEADLINE,
            check=False,
        )
        pattern = re.escape(expected).replace("…", ".*?")
        assert re.fullmatch(pattern, ended.stdout, re.DOTALL), (command, ended.stdout)
