# SPDX-License-Identifier: Apache-2.0
"""`converser init`, `converser completion`, and the help that teaches by example."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cyclopts import Parameter

from converser.cli.program import app
from tests.terminals import DEADLINE, create_environment, open_terminal, run


def test_init_writes_a_file_whose_server_works_at_once_and_never_writes_over_one(tmp_path):
    untrusting = {"CONVERSER_TRUST": ""}
    begun = run("init", cwd=tmp_path, environment=untrusting)
    assert begun.returncode == 0, begun.stderr
    written = (tmp_path / "converser.toml").read_bytes()
    example = begun.stdout.split("converser call ")[1].split()[:2]
    called = run("call", *example, cwd=tmp_path, environment=untrusting)
    assert called.returncode == 0, called.stderr
    assert json.loads(called.stdout)["timezone"] == "Europe/Oslo"
    mistaken = run("call", "clock.get_time", "timezone=Europe/Olso", cwd=tmp_path)
    assert mistaken.returncode == 3
    assert "Did you mean Europe/Oslo" in mistaken.stderr
    assert "Traceback" not in mistaken.stderr
    again = run("init", cwd=tmp_path)
    assert again.returncode == 2
    assert (tmp_path / "converser.toml").read_bytes() == written


def test_the_commented_examples_in_the_first_file_are_valid_too(tmp_path):
    from converser.cli.beginning import _TEXT
    from converser.configuration import load_configuration

    path = tmp_path / "converser.toml"
    lines = [line.removeprefix("# ") for line in _TEXT.splitlines()]
    start = lines.index("[mcp.github]")
    code = [line for line in lines[start:] if line.startswith("[") or " = " in line]
    path.write_text("\n".join(code), encoding="utf-8")
    configuration = load_configuration(path)
    assert list(configuration.servers) == ["github", "search"]
    assert configuration.tables["model"]["name"]


def test_a_clock_is_a_server_of_its_own_too(tmp_path):
    command = [sys.executable, "-m", "converser.mcp.clock"]
    toml = f"[mcp.clock]\ncommand = {json.dumps(command)}\n"
    (tmp_path / "converser.toml").write_text(toml, encoding="utf-8")
    days = run("call", "clock.count_days", "start=2026-01-01", "end=2026-12-24", cwd=tmp_path)
    assert days.stdout.strip() == "357"


def test_completion_that_cannot_be_installed_says_why(tmp_path):
    (tmp_path / ".local").write_text("This is no folder.", encoding="utf-8")
    ended = run("completion", "bash", "--install", cwd=tmp_path)
    assert ended.returncode == 2
    assert "converser completion > FILE" in ended.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="There is no bash.")
def test_bash_completes_commands_servers_and_tools(tmp_path):
    run("init", cwd=tmp_path)
    run("lock", cwd=tmp_path)
    script = tmp_path / "completion.bash"
    script.write_text(run("completion", "bash", cwd=tmp_path).stdout, encoding="utf-8")
    lines = ["converser se", "converser servers disable ", "converser call clock.g"]
    code = f"source {shlex.quote(str(script))}\n"
    for line in lines:
        words = line.split(" ")
        code += f"COMP_WORDS=({' '.join(shlex.quote(word) for word in words)})\n"
        code += f"COMP_CWORD={len(words) - 1}; COMP_LINE={shlex.quote(line)}\n"
        code += "COMPREPLY=(); _converser 2>/dev/null; echo ${COMPREPLY[@]}\n"
    folder = str(Path(sys.executable).parent)
    path = os.pathsep.join((folder, os.environ["PATH"]))
    ended = subprocess.run(
        ["bash", "--norc", "-c", code],
        cwd=tmp_path,
        env=create_environment(tmp_path, {"PATH": path}),
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE,
        check=False,
    )
    commands, servers, tools = ended.stdout.splitlines()
    assert commands == "servers"
    if hasattr(Parameter, "completer"):  # which the cyclopts for Python 3.10 has not
        assert (servers, tools) == ("clock", "clock.get_time")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts_too(shell, capsys):
    from converser.cli.completing import completion

    completion(shell)
    assert "converser" in capsys.readouterr().out


def test_each_command_teaches_by_example(capsys):
    for name in ("", *(each for each in app if not each.startswith("-"))):
        app.help_print([name] if name else [])
        shown = capsys.readouterr().out
        assert "Examples:" in shown, name
        assert f"  converser {name}".rstrip() in shown


@pytest.mark.skipif(sys.platform == "win32", reason="There is no pty.")
def test_help_has_colours_at_a_terminal_and_keeps_to_its_width(tmp_path):
    with open_terminal("--help", cwd=tmp_path, environment={"COLUMNS": "60"}) as terminal:
        assert terminal.finish() == 0
    assert "\x1b[" in terminal.text
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.text)
    assert max(map(len, shown.splitlines())) <= 60
    plain = run("--help", cwd=tmp_path).stdout
    assert not set("\x1b╭│") & set(plain)
