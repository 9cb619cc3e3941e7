# SPDX-License-Identifier: Apache-2.0
"""Sections bring instructions and tools along; what is closed costs nothing until the model opens it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

import converser
from converser.testing import ScriptedModel
from tests.conversations import converse, results_of
from tests.places import LIMIT, Marked
from tests.rosters import Server, State, make_broken, make_server
from tests.servers import processes

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def tools_in(model: ScriptedModel) -> list[list[str]]:
    return [list(request.invokers) for request in model.requests]


async def test_sections_tell_their_texts_and_bring_their_tools() -> None:
    sections = [
        converser.Section(title="Manner", text="Be brief."),
        converser.Section(title="Sums", text="Never guess.", functions=[add]),
        converser.Section(title="Echoes", servers=[make_server("inside", enabled_tools=["echo"])]),
    ]
    model = ScriptedModel([[("add", {"a": 1, "b": 2}), ("inside_echo", {"text": "hi"})], "Done."])
    with anyio.fail_after(LIMIT):
        async with converser.Briefing(sections) as briefing:
            assert briefing.supervisor.text == "# Manner\n\nBe brief.\n\n# Sums\n\nNever guess."
            reply = await converse(model, [briefing.supervisor], ensembles=briefing.ensembles)
    assert [result.text for result in results_of(reply.canisters)] == ["3", "hi"]
    assert tools_in(model)[0] == ["add", "inside_echo"]


async def test_a_closed_section_is_connected_and_shown_when_the_model_opens_it() -> None:
    server = make_server("inside", enabled_tools=["echo"])
    closed = converser.Section(
        title="Echoes", text="Shout.", summary="Says things.", servers=[server], functions=[add]
    )
    model = ScriptedModel(
        [[("open_section", {"title": "Echoes"})], [("inside_echo", {"text": "HI"})], "Done."]
    )
    with anyio.fail_after(LIMIT):
        async with converser.Briefing([closed]) as briefing:
            assert "Says things." in briefing.supervisor.text
            assert "Shout." not in briefing.supervisor.text
            assert briefing.roster.survey()["inside"].state is State.DISABLED
            reply = await converse(model, [briefing.supervisor], ensembles=briefing.ensembles)
            assert "Shout." in briefing.supervisor.text
    opened, echoed = results_of(reply.canisters)
    assert opened.text == "Shout.\n\nYou can call these tools from now on: add, inside_echo."
    assert echoed.text == "HI"
    assert tools_in(model)[:2] == [["open_section"], ["open_section", "add", "inside_echo"]]


async def test_sections_that_name_the_same_server_share_one_connection() -> None:
    marked = Marked(processes.raw_command("sound"))
    server = Server.stdio("a", marked.command)
    sections = [
        converser.Section(title="One", servers=[server]),
        converser.Section(title="Two", summary="Closed.", servers=[replace(server)]),
    ]
    with anyio.fail_after(LIMIT):
        async with converser.Briefing(sections) as first:
            alone = len(marked.find_processes())
            async with converser.Briefing(sections) as second:
                await second.open("Two")
                assert len(marked.find_processes()) == alone > 0
            assert first.roster.survey()["a"].state is State.CONNECTED
        assert marked.find_processes() == []


async def test_a_server_that_fails_is_told_to_the_model_and_tried_again_when_it_asks_again(
    tmp_path: Path,
) -> None:
    program = tmp_path / "clock"
    server = Server.stdio("clock", [str(program)])
    closed = converser.Section(title="Time", text="Name the zone.", summary="…", servers=[server])
    opening = [("open_section", {"title": "Time"})]

    def repair(_: object) -> list[tuple[str, dict[str, str]]]:
        program.write_text(f"#!/bin/sh\nexec {sys.executable} -m converser.mcp.clock\n")
        program.chmod(0o755)
        return opening

    model = ScriptedModel([opening, repair, "Done."])
    with anyio.fail_after(LIMIT):
        async with converser.Briefing([closed]) as briefing:
            reply = await converse(model, ensembles=briefing.ensembles)
    failed, mended = results_of(reply.canisters)
    assert failed.text.startswith("Name the zone.\n\nThe tools of 'clock' cannot be used now.")
    assert "from now on" not in failed.text
    assert "clock_get_time" in mended.text
    assert tools_in(model)[1] == ["open_section"]
    assert "clock_get_time" in tools_in(model)[2]


async def test_a_lazy_server_is_made_known_and_a_disabled_one_stays_so() -> None:
    servers = [
        make_server("lazy", lazy=True, enabled_tools=["echo"]),
        make_server("disabled", enabled=False),
        make_broken("broken", lazy=True),
    ]
    with anyio.fail_after(LIMIT):
        async with converser.Briefing(
            [converser.Section(title="A", summary="…", servers=servers)]
        ) as briefing:
            text = await briefing.open("A")
            assert "from now on: lazy_echo." in text
            assert "The tools of 'broken' cannot be used now." in text
            assert briefing.roster.survey()["disabled"].state is State.DISABLED


async def test_mistakes_in_sections_are_told_at_once() -> None:
    one, other = make_server("a"), make_server("a")
    with pytest.raises(converser.ConfigurationFailure, match="two sections of the title 'A'"):
        converser.Briefing([converser.Section(title="A"), converser.Section(title="A")])
    with pytest.raises(converser.ConfigurationFailure, match="different servers of the name 'a'"):
        converser.Briefing(
            [
                converser.Section(title="A", servers=[one]),
                converser.Section(title="B", servers=[other]),
            ]
        )
    briefing = converser.Briefing([converser.Section(title="Weather", summary="…")])
    with pytest.raises(converser.ConfigurationFailure, match="Did you mean 'Weather'"):
        await briefing.open("Wether")
