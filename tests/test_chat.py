# SPDX-License-Identifier: Apache-2.0
"""`converser chat` as a person sees it: the real program at a terminal, real servers, a real wire."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from converser.canisters import InvocationCanister, ResultCanister, UserCanister
from converser.persistence.store import ConversationStore
from tests.conversations import assert_valid
from tests.screens import Screen, open_screen
from tests.talks import list_said, will_call, will_say
from tests.terminals import run

EVIL = "\x1b]0;owned\x07\x1b[2Jplain\u202e\r\x9b31m"


@pytest.fixture
def open_chat(project: Path):
    """Opens the program at a terminal."""
    return functools.partial(open_screen, cwd=project)


@pytest.fixture
def store(project: Path) -> ConversationStore:
    return ConversationStore(project / "data" / "converser")


def leave(terminal: Screen) -> None:
    terminal.type("\x04")
    assert terminal.wait_for_end() == 0, terminal.text


def test_a_conversation_with_calls_is_shown_as_it_happens_and_is_kept(open_chat, service, store):
    will_call(service, ("awkward_add", {"a": 2, "b": 3}), ("awkward_everything", {}))
    will_say(service, "# Sum\n\nIt is **5**, see [here](https://example.com/x).\n\n- a\n", "- b\n")
    with open_chat() as terminal:
        terminal.wait_for("1 of 1 servers")
        terminal.type("What is\\\r2 + 3?\r")
        text = terminal.wait_for("• b")
        assert "● awkward.add a=2 b=3 · done, " in text
        assert '└ {"sum": 5}' in text
        assert "It is 5, see here (https://example.com/x)." in text
        assert "… 3 more lines · /show 2" in text
        saved = text.split("image saved: ")[1].partition(".png")[0].replace("\n", "")
        assert Path(f"{saved}.png").exists()
        terminal.type("/show 2\r")
        terminal.wait_for("[large.csv: memo://large.csv]")
        leave(terminal)
    (survey,) = store.list()
    assert f"converser chat --continue {survey.identifier}" in terminal.text
    canisters = store.open(survey.identifier).load()
    assert_valid(canisters)
    assert canisters[0].text == "What is\n2 + 3?"


def test_a_model_that_nobody_named_is_told_of_beside_the_prompt(open_chat, project, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    (project / "converser.toml").unlink()
    with open_chat() as terminal:
        terminal.wait_for("Model: ")
        terminal.wait_for("ANTHROPIC_API_KEY is set")
        leave(terminal)
    assert "sk-very-secret" not in terminal.text


def test_without_a_place_for_the_history_a_chat_does_without(open_chat, project, service):
    (project / "state").write_text("This is no folder.", encoding="utf-8")
    will_say(service, "Hello.")
    with open_chat() as terminal:
        terminal.wait_for("❯")
        terminal.type("Hi.\r")
        terminal.wait_for("Hello.")
        leave(terminal)
    assert (project / "state").is_file()


def list_offers(text: str) -> list[str]:
    """What is offered below what is being typed; the last line tells of the model and the servers."""
    below = text.rpartition("❯")[2].splitlines()[1:-1]
    return [line.strip() for line in below if line.strip()]


def test_commands_servers_and_tools_are_completed(open_chat):
    with open_chat("chat") as terminal:
        terminal.wait_for("openai:m-1 · 1 of 1 servers")
        terminal.type("/ser")
        text = terminal.wait_for("where each server stands")
        assert list_offers(text) == ["servers  where each server stands"]
        terminal.type("\t")
        terminal.wait_for("❯ /servers")
        terminal.type("\r")
        text = terminal.wait_for("disabled")
        rows = [line.split()[:3] for line in text.partition("/servers")[2].splitlines()]
        assert rows[1:4] == [
            ["server", "state", "tools"],
            ["awkward", "connected", "13"],
            ["broken", "disabled", "0"],
        ]
        terminal.type("/tools awkward.ad")
        text = terminal.wait_for("Adds two numbers.")
        assert list_offers(text) == ["awkward.add  Adds two numbers."]
        terminal.type("\t")
        terminal.wait_for("❯ /tools awkward.add")
        terminal.type("\r")
        text = terminal.wait_for("b  {")
        leave(terminal)
    assert text.partition("❯ /tools awkward.add\n")[2].splitlines()[:4] == [
        "add",
        "Adds two numbers.",
        "It says that it only reads.",
        'a  {"type": "number"}',
    ]


def test_a_conversation_goes_on_later(open_chat, project, service, store):
    will_call(service, ("awkward_add", {"a": 2, "b": 3}))
    will_say(service, "It is **5**.")
    assert run("ask", "--save", "What is 2 + 3?", cwd=project).returncode == 0
    will_say(service, "As I said.")
    with open_chat("chat", "--continue") as terminal:
        terminal.wait_for("Going on with 'What is 2 + 3?', 5 messages.")
        terminal.wait_for("It is **5**")
        terminal.wait_for("❯", times=2)
        terminal.type("Again?\r")
        terminal.wait_for("As I said.")
        terminal.type("/show 1\r")
        terminal.wait_for('{"sum": 5}')
        leave(terminal)
    assert "2 + 3" in "\n".join(list_said(service))
    assert len(store.open(store.list()[0].identifier).load()) == 7


def test_a_call_asks_in_place_once_always_or_no(open_chat, service):
    arguments = {"seconds": 0.01, "steps": 1}
    with open_chat("chat") as terminal:
        terminal.wait_for("1 of 1 servers")
        for number, key in enumerate("yna", 1):
            will_call(service, ("awkward_slow", {**arguments, "x": f"{EVIL}{'long ' * 40}end"}))
            will_say(service, f"Round {number}.")
            terminal.type("Go.\r")
            terminal.wait_for("Allow it?")
            assert terminal.text.replace("\n", "").count("long ") == 40 * number
            terminal.type(key)
            terminal.wait_for(f"Round {number}.")
        assert terminal.text.count("· refused") == 1
        will_call(service, ("awkward_slow", arguments))
        will_say(service, "Round 4.")
        terminal.type("Go.\r")
        terminal.wait_for("Round 4.")
        assert terminal.text.count("wants to run") == 3
        assert terminal.text.count("  allowed once") == 1
        leave(terminal)
    assert "\\u001b]0;owned" in terminal.text


def test_what_was_typed_before_a_question_is_no_answer_to_it(open_chat, service):
    will_call(
        service, ("awkward_slow", {"seconds": 0.01, "steps": 1}), ("awkward_add", {"a": 2, "b": 3})
    )
    will_say(service, "Well then.")
    with open_chat("chat") as terminal:
        terminal.wait_for("1 of 1 servers")
        terminal.type("Go.\ra, yes, thanks")
        terminal.wait_for("Allow it?")
        terminal.type("n")
        terminal.wait_for("Well then.")
        assert "not allowed" in terminal.text
        assert "● awkward.add a=2 b=3 · done" in terminal.text
        assert "Allow it?" not in terminal.text, "nothing was written behind the question"
        leave(terminal)


def test_control_c_stops_the_call_and_keeps_the_conversation_and_a_second_leaves(
    open_chat, service, store
):
    will_call(
        service, ("awkward_slow", {"seconds": 60, "steps": 600}), ("awkward_echo", {"text": "hi"})
    )
    with open_chat("chat", "--yes") as terminal:
        terminal.wait_for("1 of 1 servers")
        terminal.type("Go.\r")
        terminal.wait_for("step 2")
        terminal.wait_for("0%")
        terminal.type("\x03")
        terminal.wait_for("Stopped.")
        assert "awkward.slow seconds=60 steps=600 · cancelled" in terminal.text
        will_call(service, ("awkward_cancellations", {"at_least": 1}))
        will_say(service, "One call was cancelled.")
        terminal.type("How many?\r")
        terminal.wait_for("One call was cancelled.")
        service.will_stall(
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "delta": {"content": "Well\n\nthen"}}],
            }
        )
        terminal.type("And?\r")
        terminal.wait_for("Well")
        terminal.type("\x03")
        terminal.wait_for("Stopped.", times=2)
        terminal.type("\x03")
        assert terminal.wait_for_end() == 0
    canisters = store.open(store.list()[0].identifier).load()
    results = [each for each in canisters if isinstance(each, ResultCanister)]
    calls = [each for each in canisters if isinstance(each, InvocationCanister)]
    assert {each.invocation_identifier for each in results} == {each.identifier for each in calls}
    assert sorted(each.outcome for each in results) == ["cancelled", "success", "success"]
    assert canisters[-1].text == "And?"


def test_a_server_asks_in_place_and_its_name_is_shown(open_chat, service):
    will_call(service, ("awkward_ask", {}))
    will_say(service, "Greeted.")
    with open_chat("chat", "--yes") as terminal:
        terminal.wait_for("1 of 1 servers")
        terminal.type("Ask me.\r")
        terminal.wait_for("The server awkward asks:")
        terminal.wait_for("  Name:")
        terminal.type("Ada\r")
        terminal.wait_for("Send this to the server?")
        terminal.type("y")
        terminal.wait_for("Greeted.")
        assert "Ada" in terminal.text.split("└")[1]
        leave(terminal)


def test_commands_change_servers_model_and_conversation(open_chat, service, store):
    will_say(service, "One.")
    with open_chat("chat", "trip") as terminal:
        terminal.wait_for("1 of 1 servers")
        terminal.type("First question\r")
        terminal.wait_for("One.")
        for line, words in (
            ("/fork other", "This is a fork now"),
            ("/undo", "Taken back"),
            ("\x15/save third", "'third' is kept in"),
            ("/toggle awkward", "awkward is off."),
            ("/toggle awkward", "awkward is on, "),
            ("/toggle broken", "no-such-program-anywhere"),
            ("/reconnect awkward", "awkward is connected"),
            ("/reconnect nowhere", "has no server 'nowhere'"),
            ("/model local:m-2", "local:m-2 was asked for"),
            ("/model nothing:x", "There is no provider 'nothing'"),
            ("/nonsense", "There is no /nonsense."),
            ("/cost", "tokens of each request"),
        ):
            terminal.type(f"{line}\r")
            terminal.wait_for(words)
        terminal.type("/quit\r")
        assert terminal.wait_for_end() == 0
    names = {survey.metadata.name: survey.canisters for survey in store.list()}
    assert names == {"trip": 2, "third": 0}


def test_a_long_answer_is_in_the_scrollback_once_and_in_order(open_chat, service):
    paragraphs = [f"Paragraph {number} of many." for number in range(120)]
    items = [f"- item {number}" for number in range(60)]
    text = "\n\n".join([*paragraphs, "\n".join(items), "The end."])
    will_say(service, *(text[start : start + 7] for start in range(0, len(text), 7)))
    with open_chat("chat", "--no-tools", size=(60, 20)) as terminal:
        terminal.wait_for("❯")
        terminal.type("Tell me all.\r")
        terminal.wait_for("The end.")
        terminal.wait_for("❯", times=2)
        lines = [line.strip() for line in terminal.text.splitlines()]
        wanted = [*paragraphs, *(item.replace("- ", "• ") for item in items), "The end."]
        assert [line for line in lines if line in set(wanted)] == wanted
        leave(terminal)


def test_nothing_hostile_reaches_the_terminal_and_pasted_lines_stay_together(
    open_chat, service, store
):
    will_call(service, ("awkward_echo", {"text": EVIL, "\x1b[3J": EVIL}))
    will_say(
        service, EVIL, f"\n\n[a]({EVIL}) `{EVIL}`\n\n```{EVIL}\n{EVIL}\n```\n\nDone, all of it."
    )
    with open_chat("chat", "--yes") as terminal:
        terminal.wait_for("1 of 1 servers")
        terminal.type("\x1b[200~one\ntwo\x1b[201~\x1b\rthree\r")
        terminal.wait_for("Done, all of it.")
        terminal.type("/show 1\r")
        terminal.wait_for("❯", times=3)
        leave(terminal)
    ours = re.compile(rb"\x1b\[[0-9;]*[ABCDJKm]|\x1b\[6n|\x1b\[\?(?:1|7|12|25|2004)[hl]|\r|\x08")
    cleared = re.compile(rb"\x1b\[[23]J")
    rest = ours.sub(b"", terminal.raw).decode()
    assert not set(rest) & {*map(chr, range(9)), *map(chr, range(11, 32)), "\x9b", "\u202e"}
    assert not cleared.search(terminal.raw)
    assert "\\x1b]0;owned" in terminal.text
    assert store.open(store.list()[0].identifier).load()[0].text == "one\ntwo\nthree"


def test_in_a_pipe_each_line_is_a_question_and_commands_work(project, service):
    will_call(service, ("awkward_add", {"a": 1, "b": 1}))
    will_say(service, "Two.")
    will_call(service, ("awkward_grow", {}))
    will_say(service, "I may not.")
    ended = run("chat", cwd=project, text="What is 1 + 1?\n/cost\nGrow!\n")
    assert (ended.returncode, ended.stdout) == (0, "Two.\nI may not.\n")
    assert "awkward.add a=1 b=1: done" in ended.stderr
    assert "tokens of each request" in ended.stderr
    assert "--allow awkward.grow" in ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr
    service.will_fail(401, "no")
    assert run("chat", "--no-tools", cwd=project, text="Hello\n").returncode == 9


def test_a_killed_chat_loses_nothing_that_was_shown(open_chat, service, store):
    will_call(
        service, ("awkward_echo", {"text": "kept"}), ("awkward_slow", {"seconds": 60, "steps": 2})
    )
    with open_chat("chat", "--yes") as terminal:
        terminal.wait_for("1 of 1 servers")
        terminal.type("Go.\r")
        terminal.wait_for("└ kept")
        terminal.wait_for("started")
        terminal.process.kill()
        terminal.process.wait()
    conversation = store.open(store.list()[0].identifier)
    canisters = conversation.load()
    assert isinstance(canisters[0], UserCanister)
    assert [each.text for each in canisters if isinstance(each, ResultCanister)] == ["kept"]
    assert len([each for each in conversation.resume() if isinstance(each, ResultCanister)]) == 2


def test_a_failing_model_is_told_and_the_chat_goes_on(open_chat, service):
    service.will_fail(401, "no such key")
    with open_chat("chat", "--no-tools") as terminal:
        terminal.wait_for("❯")
        terminal.type("Hello\r")
        terminal.wait_for("refused the key")
        will_say(service, "Better now.")
        terminal.wait_for("❯", times=2)
        terminal.type("Hello?\r")
        terminal.wait_for("Better now.")
        assert "Traceback" not in terminal.text
        assert "sk-very-secret" not in terminal.text
        leave(terminal)
