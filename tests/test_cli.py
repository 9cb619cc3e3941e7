# SPDX-License-Identifier: Apache-2.0
"""The command line as a person runs it: the real program, real servers, pipes."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

import converser
from tests.servers.processes import awkward_command
from tests.terminals import run

EVIL = "\x1b]0;owned\x07\x1b[2Jplain\u202e"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a server that works, and one that cannot be started."""
    (tmp_path / "converser.toml").write_text(
        f"""
[mcp.awkward]
transport = "stdio"
command = {json.dumps(awkward_command())}
timeout = 20

[mcp.broken]
enabled = false
transport = "stdio"
command = ["no-such-program-anywhere"]
""",
        encoding="utf-8",
    )
    return tmp_path


def test_the_version_is_told(tmp_path: Path) -> None:
    ended = run("--version", cwd=tmp_path)
    assert (ended.returncode, ended.stdout.strip()) == (0, converser.__version__)


def test_help_names_the_commands_and_loads_no_mcp(tmp_path: Path) -> None:
    ended = run("--help", cwd=tmp_path, environment={"PYTHONPROFILEIMPORTTIME": "1"})
    assert ended.returncode == 0
    for command in ("tools", "call", "stubs", "--trace", "--version"):
        assert command in ended.stdout
    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "converser.cli.program" in loaded
    assert not {"mcp", "pydantic", "jsonschema_rs", "frigid"} & loaded


def test_tools_are_listed_a_line_each_in_a_pipe(project: Path) -> None:
    ended = run("tools", "awkward", cwd=project)
    assert ended.returncode == 0, ended.stderr
    lines = dict(line.split("\t", 1) for line in ended.stdout.splitlines())
    assert lines["awkward.add"] == "a b\tAdds two numbers."
    assert lines["awkward.slow"].startswith("seconds? steps?\t")


def test_one_server_that_cannot_start_does_not_hide_the_others(project: Path) -> None:
    text = (project / "converser.toml").read_text(encoding="utf-8")
    other = project / "other.toml"
    other.write_text(text.replace("enabled = false", ""), encoding="utf-8")
    ended = run("tools", "--config", other, cwd=project)
    assert "awkward.add" in ended.stdout
    assert "no-such-program-anywhere" in ended.stderr
    assert ended.returncode == 5


def test_a_call_prints_the_result(project: Path) -> None:
    ended = run("call", "awkward.add", "a=2", "b=3.5", cwd=project)
    assert (ended.returncode, json.loads(ended.stdout)) == (0, {"sum": 5.5})


def test_a_call_takes_one_json_object(project: Path) -> None:
    ended = run("call", "awkward.echo", '{"text": "a=b"}', cwd=project)
    assert (ended.returncode, ended.stdout) == (0, "a=b\n")


def test_what_a_server_says_cannot_steer_the_terminal(project: Path) -> None:
    ended = run("call", "awkward.echo", json.dumps({"text": EVIL}), cwd=project)
    assert ended.returncode == 0
    assert "\\x1b]0;owned\\x07\\x1b[2Jplain\\u{202e}" in ended.stdout
    assert not set("\x1b\x07\u202e") & set(ended.stdout + ended.stderr)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("call", "awkward.fail"), 3, "failed on purpose"),
        (("call", "awkward.rpc_error"), 3, "Refused on purpose"),
        (("call", "broken.anything"), 5, "no-such-program-anywhere"),
        (("call", "awkward.add", "a=two", "b=3"), 6, "a: expected number"),
        (("call", "awkward.slow", "--config", "hasty.toml"), 7, "made no progress within"),
        (("call", "awkward.crash"), 8, "outcome is unknown"),
        (("call", "awkward.ad"), 2, "has no tool 'ad'"),
        (("call", "akward.add"), 2, "known: awkward, broken"),
        (("call", "awkward"), 2, "SERVER.TOOL"),
        (("call", "awkward.add", "a"), 2, "key=value"),
        (("call", "awkward.add", "{a}"), 2, "no valid JSON"),
        (("tools", "--config", "absent.toml"), 2, "cannot be read"),
        (("stubs", "awkward", "--output", "absent/file.py"), 2, "cannot be written"),
        (("bogus",), 2, "bogus"),
    ],
)
def test_exit_codes_tell_failures_apart_and_no_traceback_is_shown(
    project: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    text = (project / "converser.toml").read_text(encoding="utf-8")
    (project / "hasty.toml").write_text(text.replace("= 20", "= 0.3"), encoding="utf-8")
    ended = run(*arguments, cwd=project)
    said = " ".join((ended.stdout + ended.stderr).split())
    assert words in said
    assert "Traceback" not in said
    assert ended.returncode == code


def test_a_trace_is_shown_where_it_is_asked_for(project: Path) -> None:
    ended = run("--trace", "call", "broken.anything", cwd=project)
    assert "Traceback (most recent call last)" in ended.stderr
    assert ended.returncode == 5


def test_a_folder_without_configuration_gets_a_remedy(tmp_path: Path) -> None:
    ended = run("tools", cwd=tmp_path)
    assert "[mcp.NAME]" in ended.stderr
    assert ended.returncode == 2


def test_stubs_are_python_and_go_where_they_are_asked_to(project: Path) -> None:
    printed = run("stubs", "awkward", cwd=project)
    assert printed.returncode == 0, printed.stderr
    names = {getattr(node, "name", "") for node in ast.parse(printed.stdout).body}
    assert {"AddArguments", "add"} <= names
    written = run("stubs", "awkward", "--output", "typed.py", cwd=project)
    assert (written.returncode, written.stdout) == (0, "")
    assert (project / "typed.py").read_text(encoding="utf-8") == printed.stdout


def test_a_missing_extra_is_told_with_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "cyclopts.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'cyclopts'\", name='cyclopts')\n",
        encoding="utf-8",
    )
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    ended = run("tools", cwd=tmp_path, environment={"PYTHONPATH": path})
    assert "pip install 'mcp-converser[cli]'" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 2
