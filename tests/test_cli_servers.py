# SPDX-License-Identifier: Apache-2.0
"""`converser servers`: where servers stand, and edits of the file that keep all that people wrote."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import tomli

from tests.servers.processes import awkward_command
from tests.terminals import DEADLINE, PROGRAM, create_environment, open_terminal, run

needs_terminal = pytest.mark.skipif(sys.platform == "win32", reason="There is no pty.")
TOML = f"""
# The best of all servers.
[mcp.awkward]
command = {json.dumps(awkward_command())}  # in place
timeout = 20

[mcp.broken]
command = ["no-such-program-anywhere"]

[mcp.idle]
enabled = false  # for now
command = ["no-such-program-either"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a server that works, one that cannot be started, and one that is disabled."""
    (tmp_path / "converser.toml").write_text(TOML, encoding="utf-8")
    return tmp_path


def read(folder: Path, name: str = "converser.toml"):
    return tomli.loads((folder / name).read_text(encoding="utf-8"))["mcp"]


def test_all_servers_are_shown_with_their_states(project):
    ended = run("servers", cwd=project)
    assert ended.returncode == 0
    awkward, broken, idle = (line.split("\t") for line in ended.stdout.splitlines())
    assert awkward[:2] == ["awkward", "connected"]
    assert awkward[2].startswith("20")
    assert int(awkward[3]) > 10
    assert int(awkward[4]) > 100
    assert awkward[5].endswith(" ms")
    assert broken[:2] == ["broken", "failed"]
    assert "no-such-program-anywhere" in ended.stderr
    assert idle[:2] == ["idle", "disabled"]


def test_json_has_the_same_for_programs(project):
    surveys = json.loads(run("servers", "--json", cwd=project).stdout)
    assert [each["state"] for each in surveys] == ["connected", "failed", "disabled"]
    assert "no-such-program-anywhere" in surveys[1]["error"]


def test_a_test_tells_by_its_exit_code(project):
    good = run("--verbose", "servers", "test", "awkward", cwd=project)
    assert good.returncode == 0
    assert "awkward is connected" in good.stderr
    bad = run("servers", "test", "idle", cwd=project)
    assert bad.returncode == 5
    assert "no-such-program-either" in bad.stderr


@needs_terminal
def test_the_live_table_ends_with_ctrl_c(project):
    with open_terminal(
        "servers", "--watch", cwd=project, environment={"CONVERSER_TRUST": "1"}
    ) as terminal:
        terminal.wait_for("pending")
        terminal.wait_for("connected")
        terminal.type("\x03")
        assert terminal.finish() == 130
        assert "Traceback" not in terminal.text


@pytest.mark.skipif(sys.platform == "win32", reason="Signals are others there.")
def test_in_a_pipe_each_change_is_a_line(project):
    with subprocess.Popen(
        [*PROGRAM, "servers", "--watch"],
        cwd=project,
        env=create_environment(project, {"CONVERSER_TRUST": "1"}),
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        guard = threading.Timer(DEADLINE, process.kill)
        guard.start()
        assert process.stdout is not None
        states = []
        while "connected" not in states:
            name, state = process.stdout.readline().split("\t")[:2]
            states += [state] if name == "awkward" else []
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 130
        guard.cancel()
    assert states == list(dict.fromkeys(states))


def test_edits_keep_comments_order_and_permissions(project):
    (project / "converser.toml").chmod(0o640)
    url = "https://example.org/mcp"
    added = run("servers", "add", "far", "--url", url, "--header", "Key=env:KEY", cwd=project)
    assert added.returncode == 0, added.stderr
    run("servers", "add", "new", "--env", "A=b=c", "--", "program", "--url", "-x", cwd=project)
    run("servers", "add", "mine", "--user", "--", "mine", cwd=project)
    assert read(project, "config/converser/converser.toml") == {"mine": {"command": ["mine"]}}
    run("servers", "enable", "idle", cwd=project)
    run("servers", "disable", "awkward", cwd=project)
    run("servers", "remove", "broken", cwd=project)
    text = (project / "converser.toml").read_text(encoding="utf-8")
    for comment in ("# The best of all servers.", "# in place", "# for now"):
        assert comment in text
    servers = read(project)
    assert list(servers) == ["awkward", "idle", "far", "new"]
    assert servers["far"] == {"url": url, "headers": {"Key": "env:KEY"}}
    assert servers["new"]["command"] == ["program", "--url", "-x"]
    assert servers["new"]["environment"] == {"A": "b=c"}
    assert (servers["awkward"]["enabled"], servers["idle"]["enabled"]) == (False, True)
    assert stat.S_IMODE((project / "converser.toml").stat().st_mode) == 0o640


def test_what_cannot_be_done_changes_nothing(project):
    for words, complaint in (
        (("add", "awkward", "--", "x"), "already"),
        (("add", "both", "--url", "https://example.org", "--", "x"), "either"),
        (("add", "Bad Name", "--", "x"), "name"),
        (("remove", "awkwart"), "Did you mean 'awkward'?"),
    ):
        ended = run("servers", *words, cwd=project)
        assert ended.returncode == 2
        assert complaint in ended.stderr
    assert (project / "converser.toml").read_text(encoding="utf-8") == TOML


def test_our_own_edit_of_an_approved_file_stays_approved_and_of_another_does_not(tmp_path):
    untrusting = {"CONVERSER_TRUST": ""}
    fresh, strange = tmp_path / "fresh", tmp_path / "strange"
    for folder in (fresh, strange):
        folder.mkdir()
    (strange / "converser.toml").write_text('[mcp.evil]\ncommand = ["evil"]\n', encoding="utf-8")
    for folder, code in ((fresh, 0), (strange, 4)):
        command = awkward_command()
        added = run("servers", "add", "a", "--", *command, cwd=folder, environment=untrusting)
        assert added.returncode == 0, added.stderr
        called = run("call", "a.add", "a=1", "b=2", cwd=folder, environment=untrusting)
        assert called.returncode == code, called.stderr


@pytest.fixture
def hosts(project: Path) -> Path:
    """The files of other programs: in the project, and in a home that is the same folder."""
    remote = {"type": "sse", "url": "https://example.org/sse", "headers": {"Key": "hunter2"}}
    command = {"command": "npx", "args": ["-y", "x"], "env": {"SAME": "known", "TOKEN": "hunter2"}}
    asking = {"command": "y", "env": {"T": "${input:git-token}"}}
    files = {
        ".mcp.json": {"mcpServers": {"remote": remote, "awkward": {"command": "other"}}},
        ".vscode/mcp.json": {"servers": {"asking": asking}},
        "config/Claude/claude_desktop_config.json": {"mcpServers": {"My Files": command}},
        ".cursor/mcp.json": {"mcpServers": {"remote": {"url": "https://example.org/other"}}},
        ".claude.json": {"projects": {str(project): {"mcpServers": {"own": {"command": "own"}}}}},
    }
    for name, data in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data), encoding="utf-8")
    return project


def test_servers_of_other_programs_are_found_and_no_value_is_written_without_a_word(hosts):
    ended = run("servers", "import", cwd=hosts, environment={"SAME": "known"})
    assert ended.returncode == 0, ended.stderr
    servers = read(hosts)
    assert servers["awkward"]["command"] == awkward_command()
    assert "awkward" in ended.stderr
    assert "--force" in ended.stderr
    assert servers["remote"] == {
        "transport": "sse",
        "url": "https://example.org/sse",
        "headers": {"Key": "env:REMOTE_KEY"},
    }
    environment = {"SAME": "env:SAME", "TOKEN": "env:TOKEN"}
    assert servers["my-files"] == {"command": ["npx", "-y", "x"], "environment": environment}
    assert servers["asking"]["environment"] == {"T": "${env:GIT_TOKEN}"}
    assert servers["own"] == {"command": ["own"]}
    assert "Set the variables: REMOTE_KEY, TOKEN" in ended.stderr
    assert "set the variables: GIT_TOKEN" in ended.stderr
    assert "hunter2" not in ended.stderr + (hosts / "converser.toml").read_text(encoding="utf-8")


def test_servers_of_strangers_are_not_approved_by_the_import_alone(hosts):
    untrusting = {"CONVERSER_TRUST": ""}
    (hosts / "converser.toml").unlink()
    mine = run("servers", "import", "--user", cwd=hosts, environment=untrusting)
    assert mine.returncode == 4
    assert "remote: connect to https://example.org/sse" in mine.stderr
    assert not (hosts / "config" / "converser").exists()
    assert run("servers", "import", cwd=hosts, environment=untrusting).returncode == 0
    assert run("tools", cwd=hosts, environment=untrusting).returncode == 4


@needs_terminal
def test_at_a_terminal_the_import_shows_what_servers_do_and_asks(hosts):
    claude = hosts / "config" / "Claude" / "claude_desktop_config.json"
    with open_terminal("servers", "import", claude, "--config", "new.toml", cwd=hosts) as terminal:
        assert "my-files: run npx -y x; with the variables" in terminal.wait_for("[y/N] ")
        terminal.type("y\n")
        assert "my-files: TOKEN" in terminal.wait_for("[y/N] ")
        terminal.type("n\n")
        assert terminal.finish() == 0
    assert read(hosts, "new.toml")["my-files"]["environment"]["TOKEN"] == "env:TOKEN"
    assert "hunter2" not in terminal.text


def test_values_are_written_where_it_is_asked_for_into_a_file_for_the_user_alone(hosts):
    claude = hosts / "config" / "Claude" / "claude_desktop_config.json"
    ended = run("servers", "import", claude, "--values", "--config", "new.toml", cwd=hosts)
    assert ended.returncode == 0, ended.stderr
    assert read(hosts, "new.toml")["my-files"]["environment"]["TOKEN"] == "hunter2"
    assert stat.S_IMODE((hosts / "new.toml").stat().st_mode) == 0o600
    assert "hunter2" not in ended.stderr
