# SPDX-License-Identifier: Apache-2.0
"""`converser lock`: what is written down, and how a change is told."""

from __future__ import annotations

import json
from pathlib import Path

from tests.servers import processes
from tests.servers.processes import fork_command
from tests.terminals import run

SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("s")
{}
server.run()
"""
ONE = "@server.tool()\ndef one(a: int) -> str:\n    'First.'\n    return 'x'"
OTHER = "@server.tool()\ndef one(a: int, b: int) -> str:\n    'First, changed.'\n    return 'x'"
TWO = "@server.tool()\ndef two() -> str:\n    'Second.'\n    return 'x'"


def write_server(folder: Path, *tools: str) -> None:
    (folder / "server.py").write_text(SERVER.format("\n".join(tools)), encoding="utf-8")


def test_a_lock_is_written_and_a_change_is_told_line_by_line(tmp_path):
    command = json.dumps(fork_command(str(tmp_path / "server.py")))
    toml = f'[mcp.s]\ncommand = {command}\n[mcp.off]\nenabled = false\ncommand = ["x"]\n'
    (tmp_path / "converser.toml").write_text(toml, encoding="utf-8")
    path = tmp_path / "converser.lock"
    write_server(tmp_path, ONE, TWO)

    first = run("lock", cwd=tmp_path)
    assert (first.returncode, first.stdout) == (0, "+ s: 2 tools\n")
    written = path.read_bytes()
    same = run("lock", "--check", cwd=tmp_path)
    assert (same.returncode, same.stdout) == (0, "")

    write_server(tmp_path, OTHER, TWO.replace("two", "three"))
    changed = run("lock", "--check", cwd=tmp_path)
    assert changed.returncode == 11
    lines = changed.stdout.splitlines()
    assert lines[:3] == ["- s.two", "+ s.three", "~ s.one: description, arguments_schema"]
    assert "    -First." in lines
    assert "    +First, changed." in lines
    assert '    +    "b"' in lines
    assert path.read_bytes() == written

    (tmp_path / "server.py").write_text("raise SystemExit('no')", encoding="utf-8")
    failed = run("lock", cwd=tmp_path)
    assert failed.returncode == 5
    assert path.read_bytes() == written


def test_half_a_list_is_not_written_down(tmp_path):
    command = json.dumps(processes.raw_command("torn"))
    (tmp_path / "converser.toml").write_text(f"[mcp.s]\ncommand = {command}\n", encoding="utf-8")
    torn = run("lock", cwd=tmp_path)
    assert torn.returncode != 0
    assert "Not now" in torn.stderr
    assert "s: 4 tools" not in torn.stdout
    assert '"good"' not in (tmp_path / "converser.lock").read_text(encoding="utf-8")
