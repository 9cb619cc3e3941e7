# SPDX-License-Identifier: Apache-2.0
"""`converser doctor`: what is wrong, and what to do about it."""

from __future__ import annotations

import json
import sys

from tests.servers.processes import awkward_command
from tests.terminals import run

KEYS = {"ANTHROPIC_API_KEY": "hunter2", "OPENAI_API_KEY": "", "GEMINI_API_KEY": ""}


def test_everything_that_is_broken_is_told_at_once_with_a_remedy(tmp_path):
    dying = json.dumps([sys.executable, "-c", "import sys; sys.exit('no licence')"])
    toml = f"""
[mcp.awkward]
command = {json.dumps(awkward_command())}
[mcp.dying]
command = {dying}
[mcp.absent]
command = ["no-such-program"]
[mcp.keyless]
url = "https://example.org"
headers = {{ Key = "env:NOT_SET_ANYWHERE" }}
[mcp.off]
enabled = false
command = ["no-such-program"]
"""
    (tmp_path / "converser.toml").write_text(toml, encoding="utf-8")
    ended = run("doctor", "--json", cwd=tmp_path, environment=KEYS)
    assert ended.returncode == 12
    findings = json.loads(ended.stdout)
    broken = {each["subject"]: each for each in findings if each["level"] == "broken"}
    assert set(broken) == {"dying", "absent", "keyless"}
    assert "no licence" in broken["dying"]["words"]
    assert "not on PATH" in broken["absent"]["words"]
    assert "NOT_SET_ANYWHERE is not set" in broken["keyless"]["words"]
    well = {each["subject"]: each["words"] for each in findings if each["level"] == "well"}
    assert "13 tools" in well["awkward"]
    assert "ANTHROPIC_API_KEY is set" in well["anthropic"]
    assert "hunter2" not in ended.stdout + ended.stderr


def test_a_mistake_in_the_file_is_told_with_its_line(tmp_path):
    (tmp_path / "converser.toml").write_text("\n[mpc.x]\ncommand = ['x']\n", encoding="utf-8")
    ended = run("doctor", cwd=tmp_path, environment=KEYS)
    assert ended.returncode == 12
    assert "converser.toml:2: mpc" in ended.stdout


def test_what_was_not_approved_is_not_started_and_is_no_defect(tmp_path):
    marking = json.dumps([sys.executable, "-c", "open('started', 'w')"])
    (tmp_path / "converser.toml").write_text(f"[mcp.x]\ncommand = {marking}\n", encoding="utf-8")
    ended = run("doctor", cwd=tmp_path, environment={**KEYS, "CONVERSER_TRUST": ""})
    assert ended.returncode == 0, ended.stdout
    assert "was not approved" in ended.stdout
    assert not (tmp_path / "started").exists()
