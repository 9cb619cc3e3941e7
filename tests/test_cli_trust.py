# SPDX-License-Identifier: Apache-2.0
"""A project's file starts nothing before the user has approved just that content in that folder."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from converser.cli.options import Options
from tests.servers.processes import AWKWARD
from tests.terminals import open_terminal, run

needs_terminal = pytest.mark.skipif(sys.platform == "win32", reason="There is no pty.")
QUESTION = "from now on? [y/N] "
EVIL = "\x1b]0;owned\x07\x1b[2Jplain\u202e\n"
SCRIPT = (
    "import runpy, sys; sys.argv = sys.argv[1:2]; runpy.run_path(sys.argv[0], None, '__main__')"
)
UNHEEDING = [sys.executable, "-c", SCRIPT, AWKWARD]
"""The awkward server, which knows no further arguments, with as many as one likes."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a server whose command leaves a mark when it is started."""
    folder = tmp_path / "project"
    folder.mkdir()
    write(folder, [*UNHEEDING, EVIL])
    return folder


def write(folder: Path, command: list[str]) -> None:
    toml = f"""
[mcp.awkward]
command = {json.dumps(command)}
environment = {{ TOKEN = "hunter2", OTHER = "env:HOME" }}

[mcp.remote]
enabled = false
url = "https://me:hunter2@example.org/mcp?key=hunter2"
headers = {{ Authorization = "Bearer ${{env:DATABASE_TOKEN}}", Key = "file:~/.ssh/id" }}
"""
    (folder / "converser.toml").write_text(toml, encoding="utf-8")


def untrusting(*arguments: str, cwd: Path):
    return run(*arguments, cwd=cwd, environment={"CONVERSER_TRUST": ""})


def test_without_a_terminal_an_unknown_file_is_refused_and_the_message_says_what_to_do(project):
    write(project, [sys.executable, "-c", "open('started', 'w')"])
    for words in (("call", "awkward.add"), ("tools", "--config", "converser.toml")):
        ended = untrusting(*words, cwd=project)
        assert ended.returncode == 4
        assert "converser.toml" in ended.stderr
        assert "--trust or CONVERSER_TRUST=1" in ended.stderr
        assert ended.stdout == ""
    assert not (project / "started").exists()


def test_trust_can_be_given_for_one_run(project):
    assert run("call", "awkward.add", "a=1", "b=2", cwd=project).returncode == 0
    assert untrusting("call", "awkward.add", "a=1", "b=2", "--trust", cwd=project).returncode == 0
    assert untrusting("tools", cwd=project).returncode == 4


@needs_terminal
def test_the_question_shows_all_and_is_asked_once_for_each_content(project):
    with open_terminal("call", "awkward.echo", "text=hello", cwd=project) as terminal:
        shown = terminal.wait_for(QUESTION)
        terminal.type("y\n")
        terminal.wait_for("hello")
        assert terminal.finish() == 0
    assert AWKWARD in shown.replace("\r\n", "")
    assert "\\x1b]0;owned\\x07\\x1b[2Jplain\\u{202e}\\n" in shown
    assert "TOKEN=…, OTHER=env:HOME" in shown
    assert "example.org/mcp" in shown
    assert "Authorization=env:DATABASE_TOKEN, Key=file:~/.ssh/id" in shown
    assert "hunter2" not in shown
    assert "\x1b]" not in shown
    assert untrusting("call", "awkward.echo", "text=again", cwd=project).stdout == "again\n"
    (approval,) = (project / "state").rglob("trust/*")
    assert stat.S_IMODE(approval.stat().st_mode) == 0o600
    write(project, [*UNHEEDING, "one argument more"])
    assert untrusting("call", "awkward.echo", "text=again", cwd=project).returncode == 4
    with open_terminal("tools", cwd=project) as terminal:
        assert "one argument more" in terminal.wait_for(QUESTION)
        terminal.type("\n")
        assert terminal.finish() == 4
        assert "nothing was started" in terminal.text


def test_an_approval_that_cannot_be_kept_holds_for_this_run(project):
    (project / "state").write_text("This is no folder.", encoding="utf-8")
    with open_terminal("call", "awkward.echo", "text=hello", cwd=project) as terminal:
        terminal.wait_for(QUESTION)
        terminal.type("y\n")
        terminal.wait_for("cannot be kept")
        terminal.wait_for("hello")
        assert terminal.finish() == 0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("CONVERSER_TRUST", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_users_own_file_and_one_that_says_nothing_need_no_approval(home):
    (home / "converser.toml").write_text("# Nothing yet.\n", encoding="utf-8")
    (home / "converser").mkdir()
    text = '[mcp.mine]\ncommand = ["mine"]\n'
    (home / "converser" / "converser.toml").write_text(text, encoding="utf-8")
    assert list(Options().load().servers) == ["mine"]


@pytest.mark.parametrize(
    "content",
    [
        '[mcp.a]\nserver = "package.module:attribute"',
        '[mcp.a]\nurl = "https://example.org"',
        '[provider.openai]\nbase_url = "https://example.org"',
        '[model]\nname = "openai:x"\nbase_url = "https://example.org"',
    ],
)
def test_what_imports_connects_or_diverts_a_key_needs_approval_too(home, content):
    from converser.cli.judging import Distrust

    (home / "converser.toml").write_text(content, encoding="utf-8")
    with pytest.raises(Distrust):
        Options().load()
