# SPDX-License-Identifier: Apache-2.0
"""What a roster knows of a server beyond the moment: who it was, and how its tools have drifted."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp import types

import converser
from converser.naming import distinguish_name
from converser.rosters import keeping
from tests.places import LIMIT
from tests.rosters import Ears, call, make_server
from tests.servers import processes
from tests.servers.awkward import create_awkward_server

pytestmark = pytest.mark.anyio


def _make_server(scenario: str, **settings: Any) -> converser.MCPServer:
    return converser.MCPServer.stdio(
        "a", processes.raw_command(scenario), tool_prefix="", **settings
    )


async def _flip(roster: converser.Roster, ears: Ears) -> None:
    """Has the tools exchanged, and waits until that is heard."""
    count = len(ears.changes("a"))
    await call(roster, "a", "flip")
    await ears.wait_until(lambda: len(ears.changes("a")) > count)


async def test_a_drift_is_over_when_the_tools_are_again_as_the_catalogue_has_them(
    tmp_path: Path,
) -> None:
    lock, ears, server = tmp_path / "converser.lock", Ears(), _make_server("changing")
    with anyio.fail_after(LIMIT):
        async with converser.Roster([server], lock=lock):
            pass
        async with converser.Roster([server], lock=lock, renew_lock=False, observer=ears) as roster:
            await _flip(roster, ears)
            assert roster.survey()["a"].drift.added == ("new",)
            await _flip(roster, ears)
            assert not roster.survey()["a"].drift


async def test_tools_that_are_not_exposed_are_catalogued_too_when_they_change(
    tmp_path: Path,
) -> None:
    lock, server = tmp_path / "converser.lock", _make_server("changing", enabled_tools=["flip"])
    with anyio.fail_after(LIMIT):
        async with converser.Roster([server], lock=lock) as roster:
            await call(roster, "a", "flip")
            while not roster.survey()["a"].drift:
                await anyio.lowlevel.checkpoint()
            assert roster.survey()["a"].drift.removed == ("old",)
    tools = converser.read_catalogue(lock).servers["a"].tools
    assert [tool.name for tool in tools] == ["flip", "new", "work"]


async def test_a_server_that_was_lost_is_still_known() -> None:
    ears, server = Ears(), _make_server("mayfly", reconnect_attempts=0)
    with anyio.fail_after(LIMIT):
        async with converser.Roster([server], observer=ears) as roster:
            await ears.wait_until(lambda: "failed" in ears.states("a"))
            survey = roster.survey()["a"]
    assert (survey.server_name, survey.server_version) == ("raw", "1")
    assert survey.protocol_version == "2025-06-18"


async def test_a_server_that_was_connected_again_is_not_degraded_any_more() -> None:
    ears, server = Ears(), _make_server("weary", connect_timeout=3.0)
    with anyio.fail_after(LIMIT):
        async with converser.Roster([server], observer=ears) as roster:
            assert (await roster.check())["a"].is_degraded
            with pytest.raises(converser.ToolExecutionFailure):
                await call(roster, "a", "good")
            await ears.wait_until(lambda: ears.states("a")[2:] == ["reconnecting", "connected"])
            assert not roster.survey()["a"].is_degraded


async def test_what_two_rosters_write_into_one_catalogue_is_all_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, write = tmp_path / "converser.lock", keeping.write_catalogue

    def write_slowly(path: Path, catalogue: converser.Catalogue) -> None:
        time.sleep(0.3)  # so that the other one has read by then, if it may
        write(path, catalogue)

    monkeypatch.setattr(keeping, "write_catalogue", write_slowly)

    async def open_one(name: str) -> None:
        async with converser.Roster([make_server(name)], lock=lock):
            pass

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as group:
            for name in ("one", "two", "three"):
                group.start_soon(open_one, name)
    assert set(converser.read_catalogue(lock).servers) == {"one", "two", "three"}


async def test_tools_whose_remembered_names_collide_spoil_no_other_server(tmp_path: Path) -> None:
    lock, server = tmp_path / "converser.lock", create_awkward_server()
    names = ("x.y", "x_y", distinguish_name("x.y"))  # the last of which a server can foresee
    server.tools = {name: types.Tool(name=name, input_schema={"type": "object"}) for name in names}
    bad = converser.MCPServer.in_process("bad", server, tool_prefix="", disabled_tools=["x_y"])
    with anyio.fail_after(LIMIT):
        async with converser.Roster([bad], lock=lock) as roster:
            assert len(roster.survey()["bad"].tools) == 2
        servers = [replace(bad, disabled_tools=()), make_server("good")]
        async with converser.Roster(servers, lock=lock) as roster:
            assert isinstance(roster.survey()["bad"].error, converser.NameConflict)
            assert await call(roster, "good", "echo", text="x") == "x"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
async def test_what_another_program_is_writing_is_not_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    lock = tmp_path / "converser.lock"
    monkeypatch.setattr(keeping, "_PATIENCE", 0.0)
    with anyio.fail_after(LIMIT):
        async with converser.Roster([], lock=lock) as roster:
            folder = os.open(tmp_path, os.O_RDONLY)
            fcntl.flock(folder, fcntl.LOCK_EX)
            await roster.add(make_server("a"))
            assert "others are busy" in "".join(roster.remarks)
            assert not lock.exists()
            os.close(folder)
            await roster.add(make_server("b"))
            assert roster.remarks == ()
    assert set(converser.read_catalogue(lock).servers) == {"a", "b"}


async def test_a_mistake_that_is_mended_is_remarked_no_more_whoever_reads_the_file_first(
    tmp_path: Path,
) -> None:
    path = tmp_path / "converser.toml"
    sound = '[mcp.a]\ntransport = "stdio"\ncommand = ["true"]\nenabled = false\n'
    path.write_text(sound, "utf-8")
    with anyio.fail_after(LIMIT):
        async with converser.open_roster(path, lock=None) as roster:
            path.write_text("[mcp.a", "utf-8")
            with pytest.raises(converser.ConfigurationFailure):
                await roster.reload()
            assert "not valid TOML" in "".join(roster.remarks)
            path.write_text(sound, "utf-8")
            await roster.reload()
            assert roster.remarks == ()
