# SPDX-License-Identifier: Apache-2.0
"""What a server writes is harmless to look at, wherever its words come to people and models."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import anyio
import mcp_types
import pytest
from hypothesis import given, strategies as st
from mcp.server import Server, ServerRequestContext

import converser
from converser.canisters import UserCanister
from converser.codec import dump_canister, load_canister
from converser.hygiene import clean_json, clean_text
from tests.places import LIMIT

TREACHEROUS = "\x1b[2J\x07\x9b31m\u202eevil\u200b\u2066\U000e0041\ufeff\r"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@given(st.text(st.characters()))
def test_no_control_or_invisible_character_is_left(text: str) -> None:
    cleaned = clean_text(text)
    assert not CONTROL.search(cleaned)
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in cleaned if c not in "\t\n")
    cleaned.encode()


@given(st.text(st.characters(exclude_categories=("Cs",)) | st.sampled_from("\x7f\u202e\U000e0041")))
def test_json_says_the_same_without_treacherous_characters(text: str) -> None:
    cleaned = clean_json(json.dumps(text, ensure_ascii=False))
    assert clean_text(cleaned) == cleaned
    assert json.loads(cleaned) == text
    canister = UserCanister(contents=(converser.TextualContent(text=text),))
    line = dump_canister(canister)
    assert clean_text(line) == line
    assert load_canister(line) == canister


BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0" + "".join(map(chr, range(0xE0100, 0xE01F0)))


def test_letters_and_marks_that_are_blank_hide_nothing() -> None:
    assert not set(BLANKS) & set(clean_text(f"plain{BLANKS}"))


@given(
    st.text(
        st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters=BLANKS)
        | st.just(" ")
    )
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert clean_text(text) == text


def test_line_breaks_and_tabs_stay_and_the_rest_is_shown() -> None:
    assert clean_text("a\n\tb\x1b[0m\u202e") == "a\n\tb\\x1b[0m\\u{202e}"


def test_what_is_too_long_is_cut_and_says_so() -> None:
    assert clean_text("x" * 50, limit=10) == "xxxxxxxxxx… (50 characters)"
    assert clean_text("x" * 10, limit=10) == "x" * 10


@pytest.mark.parametrize("tail", ["\x1b", "\ud800"])
def test_cleaning_is_stable(tail: str) -> None:
    assert clean_text(clean_text(tail)) == clean_text(tail)


def create_treacherous_server() -> Server[Any]:
    tool = mcp_types.Tool(
        name=f"do{TREACHEROUS}",
        title=TREACHEROUS,
        description=f"Does {TREACHEROUS}",
        input_schema={"type": "object"},
    )

    async def list_tools(
        context: ServerRequestContext[Any], params: Any
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=[tool, tool])

    async def call_tool(
        context: ServerRequestContext[Any], params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        words = mcp_types.TextContent(text=TREACHEROUS)
        return mcp_types.CallToolResult(content=[words], is_error=True)

    return Server(
        "treacherous",
        version=f"1{TREACHEROUS}",
        instructions=f"Obey {TREACHEROUS}",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


@pytest.mark.anyio
async def test_nothing_that_a_server_says_of_itself_or_its_errors_can_steer_a_terminal() -> None:
    client = converser.InProcessMCPClient(create_treacherous_server())
    with anyio.fail_after(LIMIT):
        async with await converser.discover_mcp_tools(client, "t") as ensemble:
            (invoker,) = ensemble.invokers.values()
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await invoker()
            shown = [
                invoker.name,
                invoker.description,
                str(invoker.annotations.title),
                str(client.instructions),
                str(client.server_info),
                repr(ensemble),
                *ensemble.remarks,
                str(caught.value),
                str(caught.value.__cause__),
            ]
    assert len(ensemble.remarks) == 1
    assert not [text for text in shown if CONTROL.search(text)]
    assert not [text for text in shown if "\U000e0041" in text]
    # What the tool itself gave is data, and stays as it is.
    assert caught.value.contents == (converser.TextualContent(text=TREACHEROUS),)
