# SPDX-License-Identifier: Apache-2.0
"""`converser conversations` in pipes and at a terminal: tables, lines and JSON, and nothing deleted unasked."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from converser import (
    AssistantCanister,
    ConversationStore,
    ImageContent,
    InvocationCanister,
    ResultCanister,
    TextualContent,
    UnknownCanister,
    Usage,
    load_canister,
    supervisor,
    user,
)
from tests.terminals import open_terminal, run

needs_terminal = pytest.mark.skipif(sys.platform == "win32", reason="There is no pty.")
FORECAST = "Fri rain\nSat clear\nSun sleet\nMon fog\nTue snow\x1b]0;gotcha\x07"
CALL = InvocationCanister(identifier="c", name="weather__forecast", arguments={"city": "Oslo"})
SAID = [
    supervisor("Be brief."),
    user("Where to on Saturday?"),
    AssistantCanister(model="m:1", usage=Usage(tokens_in=1_204, tokens_out=96)),
    CALL,
    ResultCanister(
        invocation_identifier="c",
        contents=(
            TextualContent(text=FORECAST),
            ImageContent(data=b"\x89PNG", mimetype="image/png"),
        ),
        duration=0.412,
    ),
    AssistantCanister(contents=(TextualContent(text="To **Vettakollen**.\x1b[2J"),), model="m:1"),
]


@pytest.fixture
def store(tmp_path: Path) -> ConversationStore:
    """The store that the program finds when it is run in that folder."""
    return ConversationStore(tmp_path / "data" / "converser")


@pytest.fixture
def hike(store: ConversationStore) -> str:
    """The identifier of a conversation with a call."""
    return store.create(SAID, name="A hike", model="m:1", tags=["family"]).identifier


def test_conversations_are_listed_as_lines_and_as_json(store, hike, tmp_path):
    other = store.create([user("Something\telse")]).identifier
    ended = run("conversations", cwd=tmp_path)
    assert ended.returncode == 0
    first, second = (line.split("\t") for line in ended.stdout.splitlines())
    assert [first[0], *first[2:]] == [other, "1", "", "Something else", ""]
    assert [second[0], *second[2:]] == [hike, "6", "m:1", "A hike", "family"]
    data = json.loads(
        run("conversations", "list", "--tag", "family", "--json", cwd=tmp_path).stdout
    )
    assert [(each["identifier"], each["length"], each["tags"]) for each in data] == [
        (hike, 6, ["family"])
    ]


@needs_terminal
def test_at_a_terminal_there_is_a_table(hike, tmp_path):
    with open_terminal("conversations", "list", cwd=tmp_path) as terminal:
        assert terminal.finish() == 0
    assert "title" in terminal.text
    assert hike in terminal.text
    assert "\t" not in terminal.text


def test_a_conversation_is_shown_whole_in_a_pipe(hike, tmp_path):
    ended = run("conversations", "show", "A hike", cwd=tmp_path)
    assert ended.returncode == 0
    shown = ended.stdout
    expected = (
        f"A hike\n{hike} · m:1 · ",
        "1 turn · 1 call · 1,204 tokens in, 96 out\n",
        "\n1 Supervisor\n    Be brief.\n",
        "\n2 You\n    Where to on Saturday?\n",
        '\n4 weather__forecast  success, 0.4 s\n    city = "Oslo"\n    →\n    Fri rain\n',
        "Tue snow\\x1b]0;gotcha\\x07\n    [image/png, 4 bytes]\n",
        "\n6 m:1\n    To **Vettakollen**.\\x1b[2J\n",
    )
    assert [part for part in expected if part not in shown] == []
    lines = run("conversations", "show", hike[:6], "--json", cwd=tmp_path).stdout.splitlines()
    assert [load_canister(line) for line in lines] == SAID


@needs_terminal
def test_at_a_terminal_results_are_folded_and_nothing_steers_it(hike, tmp_path):
    with open_terminal("conversations", "show", hike, cwd=tmp_path) as terminal:
        assert terminal.finish() == 0
    assert "more lines · --full shows all" in terminal.text
    assert "Tue snow" not in terminal.text
    assert "**" not in terminal.text
    assert "\\x1b[2J" in terminal.text
    with open_terminal("conversations", "show", hike, "--full", cwd=tmp_path) as terminal:
        assert terminal.finish() == 0
    assert "Tue snow\\x1b]0;gotcha\\x07" in terminal.text
    assert "\x1b]" not in terminal.text
    assert "\x1b[2J" not in terminal.text


def test_what_stands_alone_or_is_unknown_is_shown_too(store, tmp_path):
    orphan = ResultCanister(invocation_identifier="gone", structured={"degrees": 2})
    unknown = UnknownCanister(kind="hologram", data={"depth": 3})
    identifier = store.create([orphan, CALL, unknown]).identifier
    shown = run("conversations", "show", identifier, cwd=tmp_path).stdout
    assert '\n1 Result\n    {"degrees": 2}\n' in shown
    assert "\n2 weather__forecast  no result\n" in shown
    assert '\n3 hologram\n    {"depth": 3}\n' in shown


def test_words_are_found_with_their_place(hike, tmp_path):
    ended = run("conversations", "search", "on", "SATURDAY", cwd=tmp_path)
    assert ended.stdout == f"{hike}\t2\tuser\tWhere to on Saturday?\tA hike\n"
    data = json.loads(run("conversations", "search", "hike", "--json", cwd=tmp_path).stdout)
    assert [(each["conversation"], each["number"], each["kind"]) for each in data] == [
        (hike, 0, "")
    ]
    nothing = run("conversations", "search", "Bergen", cwd=tmp_path)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "Nothing was found" in nothing.stderr
    assert run("conversations", "search", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("name", "beginning"), [("x.md", "# A hike"), ("x.JSON", "{"), ("x.html", "<!DOCTYPE html>")]
)
def test_an_export_has_the_format_of_its_file_and_is_private(hike, tmp_path, name, beginning):
    ended = run("conversations", "export", hike, "--output", name, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert name in ended.stderr
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert text.startswith(beginning)
    assert "Vettakollen" in text
    assert "\x1b" not in text
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_an_export_goes_to_standard_output_and_replaces_nothing_unasked(hike, tmp_path):
    assert run("conversations", "export", hike, cwd=tmp_path).stdout.startswith("# A hike\n")
    page = run("conversations", "export", hike, "--format", "html", cwd=tmp_path).stdout
    assert page.startswith("<!DOCTYPE html>")
    (tmp_path / "x.md").write_text("mine")
    refused = run("conversations", "export", hike, "-o", "x.md", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert (tmp_path / "x.md").read_text() == "mine"
    assert (
        run("conversations", "export", hike, "-o", "x.md", "--force", cwd=tmp_path).returncode == 0
    )
    assert (tmp_path / "x.md").read_text(encoding="utf-8").startswith("# A hike")
    strange = run("conversations", "export", hike, "-o", "x.pdf", cwd=tmp_path)
    assert strange.returncode == 2
    assert ".html" in strange.stderr


def test_a_fork_writes_its_identifier(store, hike, tmp_path):
    ended = run("conversations", "fork", hike, "--at", "2", "--name", "again", cwd=tmp_path)
    forked = store.open(ended.stdout.strip())
    assert forked.load() == tuple(SAID[:2])
    assert (forked.metadata.name, forked.metadata.parent) == ("again", hike)
    wrong = run("conversations", "fork", hike, "--at", "4", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "between a call and its result" in wrong.stderr


def test_in_a_pipe_nothing_is_deleted_without_yes(store, hike, tmp_path):
    refused = run("conversations", "delete", hike, cwd=tmp_path)
    assert refused.returncode == 4
    assert "--yes" in refused.stderr
    assert len(store.list()) == 1
    other = store.create(name="other").identifier
    unknown = run("conversations", "delete", hike, "nope", "--yes", cwd=tmp_path)
    assert unknown.returncode == 2
    assert len(store.list()) == 2
    assert run("conversations", "delete", "--yes", cwd=tmp_path).returncode == 2
    assert run("conversations", "delete", "A hike", other, "--yes", cwd=tmp_path).returncode == 0
    assert store.list() == ()


@needs_terminal
def test_at_a_terminal_deleting_asks_and_only_yes_is_yes(store, hike, tmp_path):
    with open_terminal("conversations", "delete", hike, cwd=tmp_path) as terminal:
        assert "A hike" in terminal.wait_for("[y/N] ")
        terminal.type("\n")
        assert terminal.finish() == 4
    assert len(store.list()) == 1
    with open_terminal("conversations", "delete", hike, cwd=tmp_path) as terminal:
        terminal.wait_for("[y/N] ")
        terminal.type("y\n")
        assert terminal.finish() == 0
    assert store.list() == ()


def test_another_folder_can_be_named_and_damage_is_told(store, hike, tmp_path):
    elsewhere = {"CONVERSER_DATA": str(tmp_path / "elsewhere")}
    assert run("conversations", cwd=tmp_path, environment=elsewhere).stdout == ""
    for path in store.folder.glob("contents/*/*"):
        path.unlink()
    shown = run("conversations", "show", hike, cwd=tmp_path)
    assert shown.returncode == 0
    assert "Where to on Saturday?" in shown.stdout
    assert "is lost" in shown.stderr
    assert "Restore that file" in shown.stderr
    assert "Traceback" not in shown.stderr
