# SPDX-License-Identifier: Apache-2.0
"""What a terminal gets to see of models and servers: all of it, and nothing that steers the terminal."""

from __future__ import annotations

import os
import re
import sys
import threading
from base64 import b64encode

import pytest
from hypothesis import given, settings, strategies as st
from rich.console import Console

from converser.canisters import AssistantCanister, InvocationCanister, ResultCanister, assistant
from converser.cli.conversing.displays import PlainDisplay
from converser.cli.conversing.elicitations import create_elicitor
from converser.cli.conversing.images import encode_for_iterm, encode_for_kitty, find_protocol
from converser.cli.conversing.live import LiveDisplay
from converser.cli.conversing.markdown import THEME, SafeMarkdown, split_blocks
from converser.contents import TextualContent
from converser.events import (
    InvocationCompleted,
    InvocationProgressed,
    InvocationRequested,
    InvocationStarted,
    MessageCompleted,
    TextDelta,
)
from converser.mcp.handlers import Elicitation, ElicitationAnswer
from tests.servers.awkward import PNG

pytestmark = pytest.mark.anyio

OURS = re.compile(rb"\x1b\[[0-9;]*m|\x1b\[\d*A|\x1b\[2K|\x1b\[\?25[lh]|\r")
"""Colours; one line up, and empty it; hide and show the cursor; back to the left."""
TREACHEROUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
SNIPPETS = (
    *("\x1b]0;title\x07", "\x1b]52;c;aGk=\x07", "\x1b[2J", "\x1b[1A", "\x9b31m", "\x1bPq\x1b\\"),
    *("\x1b]8;;https://evil.example\x07bank\x1b]8;;\x07", "\r", "\x08", "\x7f", "\u202e", "\ufeff"),
    *("&#27;[2J", "&#13;", "&#x202e;", "&#x9b;2J", "&#8203;", "<b>", "<!-- x -->", "![a](\x1b)"),
    *("[a](https://b.example 't\x1b')", "```py\x1b x\n", "\n\n", "# ", "- ", "| a |\n|---|\n", "`"),
)
hostile = st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=20), max_size=12).map("".join)


class Pty:
    """A pseudo-terminal, and all that was written to it."""

    def __init__(self) -> None:
        import pty

        self._master, slave = pty.openpty()
        self.file = os.fdopen(slave, "w", encoding="utf-8", errors="backslashreplace")
        self._data = b""
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 65536):
                self._data += data
        except OSError:
            pass  # The other end is closed.

    def close(self) -> bytes:
        self.file.close()
        self._thread.join(10)
        os.close(self._master)
        return self._data


async def show(text: str, name: str, arguments: dict, result: str) -> bytes:
    """A whole turn, through the display that people see, on a real terminal."""
    terminal = Pty()
    console = Console(
        file=terminal.file, force_terminal=True, width=60, height=20, theme=THEME, highlight=False
    )
    display = LiveDisplay(console)
    invocation = InvocationCanister(name=name, arguments=arguments)
    call = {"invocation": invocation, "ensemble": "server"}
    content = TextualContent(text=result)
    ended = ResultCanister(invocation_identifier=invocation.identifier, contents=(content,))
    async with display.running():
        display.hear(InvocationRequested(**call))
        display.hear(InvocationStarted(**call))
        display.hear(InvocationProgressed(**call, progress=1, total=2, message=text))
        display._live.refresh()
        display.hear(InvocationCompleted(**call, result=ended))
        for start in range(0, len(text), 5):
            display.hear(TextDelta(text=text[start : start + 5]))
            display._live.refresh()
        display.hear(MessageCompleted(turn=1, canister=AssistantCanister()))
        display.tell(text)
        display.announce(text)
        display._live.refresh()
    return terminal.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@settings(max_examples=60)
@given(hostile, hostile, hostile, hostile)
async def test_nothing_steers_the_terminal(text, name, argument, result):
    data = await show(text, name, {argument: [argument, {"x": argument}]}, result)
    rest = OURS.sub(b"", data).decode()
    assert not TREACHEROUS.search(rest), rest


def render(text: str) -> str:
    console = Console(width=100, theme=THEME, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(SafeMarkdown(text))
    return capture.get()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[bank](https://evil.example)", "bank (https://evil.example)"),
        ("<https://a.example>", "https://a.example"),
        ('[a](https://b.example "and more")', 'a (https://b.example "and more")'),
        ("![cat](https://spy.example/pixel.png)", "[image: cat https://spy.example/pixel.png]"),
        ("before <!-- secret --> after", "before <!-- secret --> after"),
        ("<div hidden>words</div>", "<div hidden>words</div>"),
        ("[x]: https://evil.example 'hidden'", "[x]: https://evil.example 'hidden'"),
        ("```py hidden words\n1\n```", "hidden words"),
        ("a &#x202e; b", "a \\u{202e} b"),
        ("a&#13;b", "a\\x0db"),
        ("[bold]not markup[/bold] :smile:", "[bold]not markup[/bold] :smile:"),
    ],
)
def test_markdown_hides_nothing(text, shown):
    assert shown in " ".join(render(text).split())


@given(
    st.lists(st.sampled_from((*SNIPPETS, "words ", "more\n", "1. x\n", "    code\n")), max_size=25)
)
def test_blocks_are_cut_without_loss_however_the_text_arrives(pieces):
    text = "".join(pieces)
    blocks, rest = [], ""
    for piece in pieces:
        found, rest = split_blocks(rest + piece)
        blocks += found
    found, rest = split_blocks(rest, is_complete=True)
    blocks += found
    assert rest == ""
    assert "".join("".join(blocks).split()) == "".join(text.split())


def test_pictures_are_for_terminals_that_take_them():
    assert find_protocol({"TERM": "xterm-kitty"}) == "kitty"
    assert find_protocol({"TERM_PROGRAM": "iTerm.app", "TERM": "xterm-256color"}) == "iterm"
    assert find_protocol({"TERM_PROGRAM": "iTerm.app", "TMUX": "1"}) == ""
    assert find_protocol({"TERM": "xterm-256color"}) == ""
    encoded = b64encode(PNG).decode()
    assert encode_for_kitty(PNG, 60) == f"\x1b_Gf=100,a=T,q=2,m=0;{encoded}\x1b\\"
    assert encode_for_iterm(PNG, 60).endswith(f"width=auto:{encoded}\x07")
    pieces = encode_for_kitty(PNG * 200, 60).split("\x1b\\")
    assert [part.partition(";")[0][-3:] for part in pieces[:-1]] == [
        "m=1",
        "m=1",
        "m=1",
        "m=1",
        "m=0",
    ]


class Person:
    """Who answers questions with what was written down before, and keeps what was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def choose(self, words, keys):
        self.asked.append(words)
        return self.answers.pop(0)

    async def read(self, words, *, default="", options=()):
        self.asked.append(words)
        answer = self.answers.pop(0)
        return default if answer == "" else answer


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your \x1b[2Jname", "minLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "spam": {"type": "boolean", "default": False},
        "langs": {"type": "array", "items": {"enum": ["en", "no"]}},
        "note": {"type": "string"},
    },
    "required": ["name", "age"],
}


async def elicit(person, **question):
    handler = create_elicitor(PlainDisplay(), person)
    return await handler(Elicitation(server="s", message="Please.", **question))


async def test_a_form_is_asked_field_by_field_until_it_fits(capsys):
    person = Person("A", "Ada", "old", "36", "red", "", "en, no", "", "y")
    given = await elicit(person, form=FORM)
    values = {"name": "Ada", "age": 36, "colour": "red", "spam": False, "langs": ["en", "no"]}
    assert given == ElicitationAnswer(action="accept", values=values)
    said = capsys.readouterr().err
    assert "The server s asks: Please." in said
    assert "one of: red, green" in said
    assert "at least 2 characters is wanted" in said
    assert "\x1b" not in said
    assert "Your \\x1b[2Jname" in person.asked[0]


async def test_a_form_can_be_left_and_is_sent_only_after_a_yes():
    assert (await elicit(Person("Ada", None), form=FORM)).action == "decline"
    answers = ("Ada", "1", "", "", "", "", "n")
    assert (await elicit(Person(*answers), form=FORM)).action == "decline"


async def test_a_page_is_opened_only_after_a_yes(monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    page = "https://login.example/?a=b"
    assert (await elicit(Person("n"), url=page)).action == "decline"
    assert (await elicit(Person(), url="file:///etc/passwd")).action == "decline"
    assert opened == []
    assert (await elicit(Person("y"), url=page)).action == "accept"
    assert opened == [page]
    assert page in capsys.readouterr().err


def test_words_that_did_not_stream_are_shown_when_the_message_is_whole(capsys):
    display = PlainDisplay()
    for event in (TextDelta(text="a"), None, None):
        if event:
            display.hear(event)
        display.hear(MessageCompleted(turn=1, canister=assistant("a")))
    assert capsys.readouterr().out == "a\n" * 3
