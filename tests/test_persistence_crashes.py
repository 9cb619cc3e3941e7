# SPDX-License-Identifier: Apache-2.0
"""A kill at any moment, a full disk, and many programs at once lose nothing that was appended, and leave no mess."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from converser import (
    ConversationStore,
    PersistenceFailure,
    StoredConversation,
    assistant,
    dump_canister,
    user,
)
from tests.persistence_worker import make_batch
from tests.places import LIMIT

ROOT = Path(__file__).resolve().parent.parent
KILLS = 12


@contextmanager
def running(
    conversation: StoredConversation, what: str, count: int = 1_000_000
) -> Iterator[subprocess.Popen[str]]:
    """Run a worker on a conversation, and end it however that goes."""
    data = conversation.folder.parent.parent
    command = [sys.executable, "-m", "tests.persistence_worker", str(data)]
    with subprocess.Popen(
        [*command, conversation.identifier, what, str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        guard = threading.Timer(LIMIT, process.kill)
        guard.start()
        try:
            yield process
        finally:
            guard.cancel()
            process.kill()


def kill_after(process: subprocess.Popen[str], lines: int) -> list[str]:
    """Kill a worker as soon as it has told of so much, and give all that it told."""
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(lines)]
    process.kill()
    return told + process.stdout.readlines()


@pytest.fixture
def store(tmp_path: Path) -> ConversationStore:
    return ConversationStore(tmp_path)


def test_a_kill_at_any_moment_loses_no_canister_whose_append_returned(store):
    chance = random.Random(0)
    for _ in range(KILLS):
        conversation = store.create()
        with running(conversation, "append") as process:
            told = kill_after(process, chance.randrange(1, 20))
        assert all(told)
        promised = [word for line in told if line.endswith("\n") for word in line.split()]
        reopened = ConversationStore(store.folder).open(conversation.identifier)
        loaded = [canister.identifier for canister in reopened.load()]
        assert loaded[: len(promised)] == promised
        assert len(loaded) <= len(promised) + 2
        reopened.append([user("and on")])
        assert reopened.load()[-1].text == "and on"


def test_a_kill_during_any_work_leaves_nothing_that_cannot_be_read(store):
    chance = random.Random(1)
    origin = store.create(make_batch(0))
    for _ in range(KILLS):
        with running(origin, "everything") as process:
            told = kill_after(process, chance.randrange(1, 30))
        assert all(told)
        for survey in store.list():
            assert survey.remarks == ()
            conversation = store.open(survey.identifier)
            assert len(conversation.load()) == survey.canisters
            assert conversation.remarks == []
            if conversation.identifier != origin.identifier:
                store.delete(conversation)
    assert [survey.identifier for survey in store.list()] == [origin.identifier]
    assert len([path for path in store.folder.glob("contents/*/*") if path.is_file()]) == 2
    assert [path.name for path in origin.folder.parent.iterdir()] == [origin.identifier]


def test_two_programs_on_one_conversation_lose_and_mix_nothing(store):
    conversation = store.create()
    with running(conversation, "append", 60) as one, running(conversation, "append", 60) as other:
        told = [process.communicate(timeout=LIMIT) for process in (one, other)]
    assert [errors for _, errors in told] == ["", ""]
    loaded = [canister.identifier for canister in conversation.load()]
    for output, _ in told:
        promised = output.split()
        assert len(promised) == 120
        places = [loaded.index(identifier) for identifier in promised]
        assert places == sorted(places)
        # A batch stays together.
        assert all(b == a + 1 for a, b in zip(places[::2], places[1::2], strict=True))
    assert len(loaded) == 240
    assert conversation.remarks == []


def test_programs_that_append_and_delete_at_once_do_not_take_each_others_content(store):
    kept, other = store.create(), store.create(make_batch(0))
    with running(kept, "append", 60) as one, running(other, "everything", 60) as two:
        told = [process.communicate(timeout=LIMIT) for process in (one, two)]
    assert [errors for _, errors in told] == ["", ""]
    assert len(kept.load()) == 120
    assert len(other.load()) == 2


def test_a_line_that_was_torn_anywhere_is_repaired_and_reported(store):
    lines = [f"{dump_canister(each)}\n".encode() for each in (user("one"), assistant("zwei ü"))]
    for length in range(len(lines[0]), len(lines[0]) + len(lines[1]) + 1):
        conversation = store.create([])
        path = conversation.folder / "messages.jsonl"
        path.write_bytes(b"".join(lines)[:length])
        whole = length >= len(lines[0]) + len(lines[1]) - 1
        expected = ["one", "zwei ü"] if whole else ["one"]
        if length % 2:
            conversation.append([user("more")])
            expected.append("more")
        assert [each.text for each in conversation.load()] == expected
        assert path.read_bytes().endswith(b"}\n")
        torn = list(conversation.folder.glob("torn-*.txt"))
        is_torn = not whole and length > len(lines[0])
        assert len(torn) == len(conversation.remarks) == is_torn
        if is_torn:
            assert torn[0].read_bytes() == lines[1][: length - len(lines[0])]
            assert torn[0].name in conversation.remarks[0]
        store.delete(conversation)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are another matter there")
def test_a_full_disk_is_told_and_the_conversation_stays_whole(store):
    conversation = store.create([user("before")])
    script = (
        "import resource, signal, sys\n"
        "from converser import ConversationStore, ConverserFailure, assistant\n"
        "conversation = ConversationStore(sys.argv[1]).open(sys.argv[2])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))\n"
        "for text in ('y' * 900, 'z' * 2_000):\n"
        "    try:\n"
        "        conversation.append([assistant(text)])\n"
        "    except ConverserFailure as failure:\n"
        "        print(type(failure).__name__, failure)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(store.folder), conversation.identifier],
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=True,
    )
    told = ended.stdout.splitlines()
    assert len(told) == 2
    assert all(line.startswith("PersistenceFailure Cannot append to") for line in told)
    assert [each.text for each in conversation.load()] == ["before"]
    assert conversation.remarks == []
    store.collect()
    assert [path for path in store.folder.glob("contents/*/*") if path.is_file()] == []


def test_a_lock_that_another_program_keeps_is_told_after_a_while(store, monkeypatch):
    from converser.persistence import files

    conversation = store.create()
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    with (
        files.hold_lock(store.folder / "lock"),
        pytest.raises(PersistenceFailure, match="Another process has held"),
    ):
        conversation.append([user("x")])
    conversation.append([user("y")])
    assert len(conversation.load()) == 1
