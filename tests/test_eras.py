# SPDX-License-Identifier: Apache-2.0
"""A server of the older era that does badly when asked for its era is asked once, and never again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

import converser
from converser.mcp import sessions
from converser.mcp.eras import EraMemory
from tests.faults.overhttp.statuses import IgnoresUnknownMethods
from tests.faults.overhttp.wire import HttpServer
from tests.servers import processes

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def _create_client(scenario: str) -> converser.StdioMCPClient:
    return converser.StdioMCPClient(processes.raw_command(scenario), connect_timeout=3.0)


async def _ask(client: converser.MCPClient) -> str:
    """What a server was asked since it was started."""
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "old") as ensemble:
            return (await ensemble.access_invoker("good")()).text


@pytest.mark.parametrize("scenario", ["reticent", "touchy"])
async def test_the_era_is_known_to_the_next_client(scenario: str) -> None:
    first, second = [await _ask(_create_client(scenario)) for _ in range(2)]
    assert "server/discover" in first or scenario == "touchy"  # which has forgotten, having died
    assert second.split()[0] == "initialize"


async def test_a_server_that_answers_is_not_remembered(place: Path) -> None:
    await _ask(_create_client("sound"))
    assert not (place / "converser").exists()


async def test_a_server_that_was_slow_to_start_is_not_remembered(place: Path) -> None:
    """Such as one that is fetched and installed at its first start: it does well when it is asked."""
    client = _create_client("tardy")
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "slow"):
            assert client.protocol_version == "2025-06-18"
    assert not (place / "converser").exists()


async def test_a_server_that_ignores_the_question_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "_QUESTION_TIME_MAX", 0.2)
    client = converser.StdioMCPClient(processes.raw_command("reticent"), connect_timeout=300.0)
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "old"):
            assert client.protocol_version == "2025-06-18"


async def test_a_modern_server_that_is_slow_to_start_is_not_taken_for_an_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "_QUESTION_TIME_MAX", 0.001)
    client = converser.StdioMCPClient(processes.raw_command("modern"), connect_timeout=300.0)
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "new"):
            assert client.protocol_version == "2026-07-28"


async def test_the_era_is_known_to_the_next_roster() -> None:
    server = converser.MCPServer.stdio(
        "old", processes.raw_command("reticent"), connect_timeout=3.0
    )
    asked: list[str] = []
    with anyio.fail_after(30):
        for _ in range(2):
            async with converser.Roster([server]) as roster:
                asked.append((await roster.access_ensemble("old").access_invoker("good")()).text)
    assert ["server/discover" in words for words in asked] == [True, False]


async def test_a_silent_http_server_is_asked_once_by_clients_and_rosters_together() -> None:
    with HttpServer(IgnoresUnknownMethods()).running() as old, anyio.fail_after(30):
        url = f"{old.origin}/mcp"
        client = converser.HttpMCPClient(url, connect_timeout=3.0)
        async with await converser.discover_mcp_tools(client, "old"):
            asked = old.notes["discover"]
        server = converser.MCPServer.http("old", url, connect_timeout=3.0)
        async with converser.Roster([server]) as roster:
            assert roster.survey()["old"].state == "connected"
        assert old.notes["discover"] == asked


async def test_a_server_that_became_modern_is_connected_and_forgotten() -> None:
    memory = EraMemory(processes.raw_command("modern"), None)
    memory.note(legacy=True)
    client = _create_client("modern")
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "new"):
            assert client.protocol_version == "2026-07-28"
    assert not memory.recall()


@pytest.mark.parametrize("damage", [b"", b"{", b"3", b'[1, "x"]', b"[" * 100_000])
async def test_a_damaged_file_is_like_none(place: Path, damage: bytes) -> None:
    file = place / "converser" / "legacy-servers.json"
    file.parent.mkdir()
    file.write_bytes(damage)
    memory = EraMemory(["x"], None)
    assert not memory.recall()
    memory.note(legacy=True)
    assert memory.recall()


async def test_a_file_that_cannot_be_written_harms_nothing(place: Path) -> None:
    (place / "converser").write_text("a file where a folder is due")
    memory = EraMemory(["x"], None)
    memory.note(legacy=True)
    assert not memory.recall()


@pytest.mark.parametrize(
    "other",
    [lambda: EraMemory(["x", "y"], None), lambda: EraMemory(["x"], "/tmp")],
)
async def test_another_command_is_another_server(other: Callable[[], EraMemory]) -> None:
    EraMemory(["x"], None).note(legacy=True)
    assert not other().recall()
    EraMemory(["x"], None).note(legacy=False)
    assert not EraMemory(["x"], None).recall()
