# SPDX-License-Identifier: Apache-2.0
"""Other people's servers, from the registries and pinned, do what they promise through our ensembles."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

import converser
from tests.places import LIMIT

pytestmark = pytest.mark.anyio


async def answer(question: converser.Elicitation) -> converser.ElicitationAnswer:
    return converser.ElicitationAnswer(values={"name": "Ada", "check": True})


async def call(ensemble: converser.Ensemble, name: str, **arguments: Any) -> Any:
    with anyio.fail_after(LIMIT):
        return await ensemble.access_invoker(name)(arguments)


# --- npm: server-everything ---------------------------------------------------------------------


@pytest.fixture(scope="module", params=["stdio", "sse", "http"])
async def everything(request: pytest.FixtureRequest) -> AsyncGenerator[converser.Ensemble]:
    client: converser.MCPClient
    if request.param == "stdio":
        command = request.getfixturevalue("everything_command")
        client = converser.StdioMCPClient(command, elicit=answer)
    elif request.param == "sse":
        url = request.getfixturevalue("everything_sse").url
        client = converser.SseMCPClient(url, elicit=answer)
    else:
        url = request.getfixturevalue("everything_http").url
        client = converser.HttpMCPClient(url, elicit=answer)
    with anyio.fail_after(LIMIT):
        ensemble = await converser.discover_mcp_tools(client, "everything")
    yield ensemble
    with anyio.fail_after(LIMIT):
        await ensemble.disconnect()


async def test_everything_is_spoken_to_in_the_older_era(everything: converser.Ensemble) -> None:
    client: Any = everything.connection
    assert client.protocol_version == "2025-11-25"
    assert "everything" in client.server_info[0]


async def test_everything_lists_its_tools(everything: converser.Ensemble) -> None:
    assert {"echo", "get-sum", "get-tiny-image", "get-structured-content"} <= set(
        everything.invokers
    )
    assert everything.access_invoker("echo").arguments_schema["required"] == ["message"]
    assert dict(everything.disabled) == {}


async def test_everything_echoes_and_adds(everything: converser.Ensemble) -> None:
    assert (await call(everything, "echo", message="Grüße")).text == "Echo: Grüße"
    assert "5" in (await call(everything, "get-sum", a="2", b=3)).text


async def test_everything_gives_a_picture(everything: converser.Ensemble) -> None:
    result = await call(everything, "get-tiny-image")
    (picture,) = (part for part in result.contents if isinstance(part, converser.ImageContent))
    assert picture.mimetype == "image/png"
    assert picture.data.startswith(b"\x89PNG")
    assert len(result.contents) == 3


async def test_everything_gives_structured_data_once(everything: converser.Ensemble) -> None:
    result = await call(everything, "get-structured-content", location="New York")
    assert set(result.structured) == {"temperature", "conditions", "humidity"}
    assert len(result.contents) == 1
    assert json.loads(result.text) == result.structured
    assert result.remarks == ()


async def test_everything_gives_links_and_embedded_resources(
    everything: converser.Ensemble,
) -> None:
    links = await call(everything, "get-resource-links", count=3)
    assert sum(isinstance(part, converser.LinkContent) for part in links.contents) == 3
    reference = await call(everything, "get-resource-reference", resourceType="Text", resourceId=1)
    (blob,) = (part for part in reference.contents if isinstance(part, converser.BlobContent))
    assert blob.uri
    assert blob.text


async def test_everything_marks_what_it_gives(everything: converser.Ensemble) -> None:
    result = await call(everything, "get-annotated-message", messageType="error")
    assert result.contents[0].annotations["priority"] == 1
    assert result.contents[0].annotations["audience"] == ["user", "assistant"]


async def test_everything_reports_progress(everything: converser.Ensemble) -> None:
    heard: list[float] = []
    is_done = anyio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)
        if progress == total:
            is_done.set()

    invoker = everything.access_invoker("trigger-long-running-operation")
    context = converser.Context(on_progress=hear)
    with anyio.fail_after(LIMIT):
        result = await invoker({"duration": 0.2, "steps": 2}, context=context)
        await is_done.wait()
    assert "completed" in result.text.lower()
    assert sorted(heard)[-1] == 2


async def test_everything_asks_and_is_answered(everything: converser.Ensemble) -> None:
    result = await call(everything, "trigger-elicitation-request")
    assert "Ada" in result.text


async def test_everything_stays_usable_after_a_timeout(everything: converser.Ensemble) -> None:
    slow = everything.access_invoker("trigger-long-running-operation")
    context = converser.Context(timeout=0.3)
    with anyio.fail_after(LIMIT), pytest.raises(converser.ToolExecutionFailure) as caught:
        await slow({"duration": 20, "steps": 2}, context=context)
    assert caught.value.outcome is converser.Outcome.TIMED_OUT
    assert (await call(everything, "echo", message="still")).text == "Echo: still"


async def test_everything_never_sees_arguments_that_do_not_fit(
    everything: converser.Ensemble,
) -> None:
    with pytest.raises(converser.ToolExecutionFailure, match="A valid example") as caught:
        await call(everything, "get-sum", a="two", b=3)
    assert caught.value.outcome is converser.Outcome.INVALID


# --- npm: server-filesystem, server-memory ------------------------------------------------------


async def test_filesystem_writes_and_reads(filesystem_command: list[str], tmp_path: Path) -> None:
    folder = await anyio.Path(tmp_path).resolve()
    client = converser.StdioMCPClient([*filesystem_command, str(folder)])
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "files") as files:
            path = str(folder / "note.txt")
            await call(files, "write_file", path=path, content="Grüße\n")
            read = await call(files, "read_text_file", path=path)
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await call(files, "read_text_file", path="/etc/hostname")
    assert await (folder / "note.txt").read_text("utf-8") == "Grüße\n"
    assert read.text == "Grüße\n"
    assert len(read.contents) == 1
    assert read.remarks == ()
    assert isinstance(caught.value.__cause__, converser.MCPExecutionFailure)
    assert "denied" in str(caught.value).lower()
    assert files.access_invoker("read_text_file").annotations.read_only is True


async def test_memory_remembers(memory_command: list[str], tmp_path: Path) -> None:
    environment = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    entity = {"name": "Ada", "entityType": "person", "observations": ["wrote a program"]}
    with anyio.fail_after(LIMIT):
        for is_first in (True, False):
            client = converser.StdioMCPClient(memory_command, environment)
            async with await converser.discover_mcp_tools(client, "memory") as memory:
                if is_first:
                    await call(memory, "create_entities", entities=[entity])
                else:
                    graph = await call(memory, "read_graph")
    assert graph.structured["entities"] == [entity]


# --- PyPI: mcp-server-time, mcp-server-git ------------------------------------------------------


async def test_time_is_told_as_structured_data(time_command: list[str]) -> None:
    client = converser.StdioMCPClient(time_command)
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "time") as clock:
            assert client.protocol_version == "2026-07-28"
            now = await call(clock, "get_current_time", timezone="Europe/Oslo")
            with pytest.raises(converser.ToolExecutionFailure):
                await call(clock, "get_current_time", timezone="Mars/Olympus")
    assert now.structured["timezone"] == "Europe/Oslo"
    assert len(now.contents) == 1
    assert json.loads(now.text) == now.structured
    assert now.remarks == ()


async def test_git_tells_the_status_of_a_repository(git_command: list[str], tmp_path: Path) -> None:
    await anyio.run_process(["git", "init", "--quiet", str(tmp_path)])
    (tmp_path / "new-file.txt").write_text("new")
    client = converser.StdioMCPClient([*git_command, "--repository", str(tmp_path)])
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "git") as git:
            status = await call(git, "git_status", repo_path=str(tmp_path))
    assert "new-file.txt" in status.text
    assert git.access_invoker("git_status").annotations.read_only is True
