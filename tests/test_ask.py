# SPDX-License-Identifier: Apache-2.0
"""`converser ask` as a person or a script runs it: the real program in pipes, real servers, a real wire."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import platformdirs
import pytest

from converser import open_roster
from converser.canisters import DocumentCanister, InvocationCanister, ResultCanister
from converser.codec import load_canister
from converser.providers.weights import FILE_NAME
from tests.servers.awkward import PNG
from tests.talks import list_said, will_call, will_say
from tests.terminals import run

EVIL = "\x1b]0;owned\x07\x1b[2Jplain\u202e"
EXAMPLES = Path(__file__).resolve().parent.parent / "documentation" / "examples"
WEIGHTS = Path(platformdirs.user_cache_dir("converser")) / "models" / FILE_NAME


def test_the_answer_is_on_standard_output_and_the_call_on_standard_error(project, service):
    will_call(service, ("awkward_add", {"a": 2, "b": 3}))
    will_say(service, "It is ", "**5**.")
    ended = run("ask", "What is 2 + 3?", cwd=project)
    assert (ended.returncode, ended.stdout) == (0, "It is **5**.\n")
    first, second = ended.stderr.splitlines()
    assert first.startswith("awkward.add a=2 b=3: done, ")
    assert second.strip() == '{"sum": 5}'
    assert "\x1b" not in ended.stderr


def test_standard_input_and_files_are_documents_and_images_are_images(project, service):
    (project / "notes.md").write_text("Remember the milk.", encoding="utf-8")
    (project / "dot.bin").write_bytes(PNG)
    will_say(service, "Seen.")
    given = ("-f", "notes.md", "--file", "dot.bin", "--no-tools")
    ended = run("ask", *given, "What is this?", cwd=project, text="piped words")
    assert (ended.returncode, ended.stdout) == (0, "Seen.\n")
    sent = "\n".join(list_said(service))
    for words in ("Remember the milk.", "piped words", "notes.md", "image_url", "What is this?"):
        assert words in sent
    assert "tools" not in service.bodies[-1]


def test_without_words_what_is_piped_in_is_the_question(project, service):
    will_say(service, "Yes.")
    assert run("ask", "--no-tools", cwd=project, text="Is it?").stdout == "Yes.\n"
    assert "Is it?" in list_said(service)[-1]


def test_json_gives_every_canister(project, service):
    will_call(service, ("awkward_echo", {"text": "hi"}))
    will_say(service, "Done.")
    (project / "a.txt").write_text("a", encoding="utf-8")
    ended = run("ask", "--json", "-f", "a.txt", "Echo", "hi", cwd=project)
    canisters = [load_canister(line) for line in ended.stdout.splitlines()]
    assert isinstance(canisters[0], DocumentCanister)
    assert [c.text for c in (canisters[1], canisters[-1])] == ["Echo hi", "Done."]
    assert [c.name for c in canisters if isinstance(c, InvocationCanister)] == ["awkward_echo"]
    assert [c.text for c in canisters if isinstance(c, ResultCanister)] == ["hi"]


@pytest.mark.parametrize(
    ("option", "code", "words"),
    [
        ((), 4, "--allow awkward.grow"),
        (("--allow", "awkward.g*"), 0, "awkward.grow: done"),
    ],
)
def test_in_a_pipe_a_tool_that_does_more_than_read_needs_leave(
    project, service, option, code, words
):
    will_call(service, ("awkward_grow", {}))
    will_say(service, "That is that.")
    ended = run("ask", *option, "Grow!", cwd=project)
    assert (ended.returncode, ended.stdout) == (code, "That is that.\n")
    assert words in ended.stderr


def test_nothing_of_a_model_or_a_server_steers_the_terminal_and_no_secret_is_shown(
    project, service
):
    will_call(service, ("awkward_echo", {"text": EVIL}))
    will_say(service, "It said\r", "\n", EVIL, "\r")
    ended = run("ask", "Say it.", cwd=project)
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0
    assert "It said\n\\x1b]0;owned\\x07\\x1b[2Jplain\\u{202e}\\x0d\n" in said
    assert not set("\x1b\x07\r\u202e") & set(said)
    assert "sk-very-secret" not in said


def test_exit_codes_tell_failures_apart(project, service):
    will_say(service, "Once upon", finish="length")
    cut = run("ask", "--no-tools", "A story", cwd=project)
    assert (cut.returncode, cut.stdout) == (10, "Once upon\n")
    assert "cut off" in cut.stderr
    service.will_fail(401, "bad key")
    failed = run("ask", "--no-tools", "Hello", cwd=project)
    assert (failed.returncode, failed.stdout) == (9, "")
    assert "Traceback" not in failed.stderr
    unreachable = run("ask", "--server", "broken", "Hello", cwd=project)
    assert unreachable.returncode == 5
    assert "no-such-program-anywhere" in unreachable.stderr
    for arguments in (("ask",), ("ask", "-f", "absent", "x")):
        assert run(*arguments, cwd=project).returncode == 2


def test_a_conversation_is_kept_and_goes_on(project, service):
    will_say(service, "I will remember.")
    assert (
        run("ask", "--no-tools", "--conversation", "trip", "I like Oslo.", cwd=project).returncode
        == 0
    )
    will_say(service, "Another.")
    assert run("ask", "--no-tools", "--save", "Something else.", cwd=project).returncode == 0
    will_say(service, "Oslo.")
    named = run(
        "ask", "--no-tools", "--continue", "--conversation", "trip", "What do I like?", cwd=project
    )
    assert (named.returncode, named.stdout) == (0, "Oslo.\n")
    assert [each for each in list_said(service) if "I like Oslo." in each]
    will_say(service, "Still Oslo.")
    run("ask", "--no-tools", "-c", "And now?", cwd=project)
    sent = "\n".join(list_said(service))
    assert "What do I like?" in sent
    assert "Something else." not in sent


def test_a_server_whose_tools_the_lock_knows_is_not_started_before_it_is_called(project, service):
    will_say(service, "Hello.")
    assert run("ask", "Hi", cwd=project).returncode == 0
    lock = project / "converser.lock"
    assert not lock.exists()

    async def note_tools():
        async with open_roster(project / "converser.toml"):
            pass

    anyio.run(note_tools)
    known = lock.read_bytes()
    config = project / "converser.toml"
    text = config.read_text(encoding="utf-8").replace("[mcp.awkward]", '[mcp.awkward]\ncwd = "x"')
    config.write_text(text, encoding="utf-8")  # It could not even be started any more.
    will_say(service, "Hello again.")
    ended = run("ask", "Hi", cwd=project)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "Hello again.\n", "")
    names = [tool["function"]["name"] for tool in service.bodies[-1]["tools"]]
    assert "awkward_add" in names
    assert lock.read_bytes() == known


def test_the_embedded_model_is_not_fetched_without_leave(tmp_path):
    nowhere = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    ended = run("ask", "-m", "embedded", "Hello", cwd=tmp_path, environment=nowhere)
    assert (ended.returncode, ended.stdout) == (9, "")
    assert "GB" in ended.stderr
    assert "--yes" in ended.stderr
    source = 'source = "http://127.0.0.1:9/other.gguf"'
    (tmp_path / "converser.toml").write_text(f"[provider.embedded]\n{source}\n", "utf-8")
    other = run("ask", "-m", "embedded", "Hello", cwd=tmp_path, environment=nowhere)
    assert other.returncode == 9
    assert "other.gguf from 127.0.0.1" in other.stderr.replace("http://", "")
    assert not (tmp_path / "cache" / "converser" / "models").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_at_a_terminal_it_asks_in_place_and_control_c_ends_it(project, service):
    from tests.screens import open_screen

    will_call(service, ("awkward_grow", {}))
    will_call(service, ("awkward_slow", {"seconds": 60, "steps": 600}))
    with open_screen("ask", "--allow", "*.slow", "Grow!", cwd=project) as terminal:
        terminal.wait_for("awkward.grow wants to run")
        terminal.wait_for("Allow it?")
        terminal.type("y")
        terminal.wait_for("● awkward.grow · done")
        terminal.wait_for("step 2")
        terminal.type("\x03")
        assert terminal.wait_for_end() == 130
        assert "Traceback" not in terminal.text
    service.will_fail(401, "no")
    with open_screen("ask", "--no-tools", "Hello", cwd=project) as terminal:
        terminal.wait_for("refused the key")
        assert terminal.wait_for_end() == 9


@pytest.mark.skipif(
    "CONVERSER_TEST_EMBEDDED" not in os.environ or not WEIGHTS.exists(),
    reason="takes a minute and 2 GB: fetch the embedded model, and set CONVERSER_TEST_EMBEDDED=1",
)
def test_the_embedded_model_answers_with_the_result_beside_it(tmp_path):
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # As activated.
    places = {"XDG_CACHE_HOME": str(WEIGHTS.parent.parent.parent), "PATH": path}
    given = ("--config", EXAMPLES / "chat.toml", "What's the weather in Oslo?")
    ended = run("ask", *given, cwd=tmp_path, environment=places)
    assert ended.returncode == 0, ended.stderr
    assert 'weather.get_weather city="Oslo": done' in ended.stderr
    assert '"celsius": 7' in ended.stderr
    assert "7" in ended.stdout
