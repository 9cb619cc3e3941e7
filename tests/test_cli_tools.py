# SPDX-License-Identifier: Apache-2.0
"""`converser tools` and `converser call` for people and for programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from converser.cli.screen import build_table
from tests.servers.processes import awkward_command, serve_awkward
from tests.terminals import open_terminal, run

needs_terminal = pytest.mark.skipif(sys.platform == "win32", reason="There is no pty.")
TRUSTED = {"CONVERSER_TRUST": "1"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    toml = f"[mcp.awkward]\ncommand = {json.dumps(awkward_command())}\n"
    (tmp_path / "converser.toml").write_text(toml, encoding="utf-8")
    return tmp_path


def test_one_tool_is_shown_with_signature_hints_cost_and_an_example_that_works(project):
    shown = run("tools", "awkward.add", cwd=project).stdout
    assert shown.startswith("awkward.add(a: float, b: float)\n\nAdds two numbers.\n")
    assert "sum: float" in shown
    assert "only reads, safe to repeat" in shown
    assert "tokens" in shown
    example = shown.rsplit("converser ", 1)[1].split()
    assert json.loads(run(*example, cwd=project).stdout)["sum"] == 2
    assert run("tools", "awkward", "add", cwd=project).stdout == shown


@pytest.mark.parametrize("width", [40, 80])
def test_long_cells_leave_room_for_the_names(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [("s.short", "", "Does it."), ("s.long" * 30, "argument" * 30, "x" * 300)]
    console = Console(width=width)
    with console.capture() as capture:
        console.print(build_table(("tool", "arguments", "description"), rows))
    shown = capture.get()
    assert "s.short" in shown
    assert "Does it." in shown
    assert max(map(len, shown.splitlines())) <= width


def test_tools_as_json_have_their_schemas(project):
    listing = json.loads(run("tools", "--json", cwd=project).stdout)
    add = next(tool for tool in listing if tool["name"] == "add")
    assert add["arguments_schema"]["required"] == ["a", "b"]
    assert add["annotations"] == {"read_only": True, "idempotent": True}
    assert json.loads(run("tools", "awkward.add", "--json", cwd=project).stdout) == add


def test_a_tool_that_is_not_there_is_told_with_the_nearest(project):
    ended = run("tools", "awkward.ad", cwd=project)
    assert ended.returncode == 2
    assert "Did you mean 'add'" in ended.stderr


def test_a_result_as_json_has_contents_and_structure(project):
    result = json.loads(run("call", "awkward.dual", "--json", cwd=project).stdout)
    assert result["structured"] == {"city": "Oslo", "celsius": 21.5}
    assert result["contents"][0]["kind"] == "text"


def test_an_image_is_saved_and_named(project):
    environment = {"XDG_CACHE_HOME": str(project / "cache")}
    shown = run("call", "awkward.everything", cwd=project, environment=environment).stdout
    (image,) = (project / "cache").rglob("*.png")
    assert str(image) in shown
    assert image.read_bytes().startswith(b"\x89PNG")


@needs_terminal
def test_at_a_terminal_json_has_colours_unless_they_are_unwanted(project):
    for more, is_coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        with open_terminal(
            "call", "awkward.dual", cwd=project, environment={**TRUSTED, **more}
        ) as terminal:
            assert terminal.finish() == 0
        shown = terminal.text[terminal.text.rindex("{") :]
        assert ("\x1b[32m" in shown) is is_coloured
        assert "Oslo" in shown


@needs_terminal
def test_progress_is_shown_and_ctrl_c_cancels_the_call_on_the_server(tmp_path):
    with serve_awkward("http") as server:
        toml = f'[mcp.awkward]\nurl = "{server.url}"\n'
        (tmp_path / "converser.toml").write_text(toml, encoding="utf-8")
        with open_terminal(
            "call", "awkward.slow", "--verbose", cwd=tmp_path, environment=TRUSTED
        ) as terminal:
            terminal.wait_for("awkward is connected after")
            terminal.wait_for("started")
            terminal.type("\x03")
            assert terminal.finish() == 130
            assert "Traceback" not in terminal.text
        noticed = run("call", "awkward.cancellations", "at_least=1", cwd=tmp_path)
        assert noticed.stdout == "1\n"


@needs_terminal
def test_what_a_server_asks_back_is_answered_at_the_terminal(project):
    with open_terminal("call", "awkward.ask", cwd=project, environment=TRUSTED) as terminal:
        terminal.wait_for("Name 1?")
        terminal.wait_for("Name:")
        terminal.type("Ada\r")
        terminal.wait_for("Send this to the server?")
        terminal.type("y")
        terminal.wait_for("Hello, Ada!")
        assert terminal.finish() == 0
