# SPDX-License-Identifier: Apache-2.0
"""Conversations on disk are found, changed, shared, searched and deleted, and people may edit them by hand."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

import converser
from converser import (
    BlobContent,
    ConversationAbsence,
    ConversationStore,
    ImageContent,
    InvocationCanister,
    Outcome,
    PersistenceFailure,
    ResultCanister,
    TextualContent,
    UnknownContent,
    assistant,
    document,
    supervisor,
    user,
)
from converser.persistence import lines
from tests.test_codec import any_canister, json_data

PICTURE = ImageContent(data=b"\x89PNG" + bytes(range(256)), mimetype="image/png")
LONG = "All work and no play. " * 100
CALL = InvocationCanister(identifier="call", name="weather", arguments={"city": "Oslo"})
RESULT = ResultCanister(invocation_identifier="call", contents=(TextualContent(text="7 °C"),))


@pytest.fixture
def store(tmp_path: Path) -> ConversationStore:
    return ConversationStore(tmp_path / "data")


def find_contents(store: ConversationStore) -> list[Path]:
    return sorted(path for path in store.folder.glob("contents/*/*") if path.is_file())


def read_lines(conversation: converser.StoredConversation) -> list[str]:
    text = (conversation.folder / "messages.jsonl").read_text(encoding="utf-8")
    return text.splitlines()


def rewrite(conversation: converser.StoredConversation, old: str, new: str) -> None:
    """Edit the messages as a person would."""
    path = conversation.folder / "messages.jsonl"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8", newline="\n")


# What is written comes back


def test_what_was_appended_is_loaded_by_whoever_opens_it_next(store):
    conversation = store.create([user("Hello")], name="greeting")
    said = [assistant("Hello to you", PICTURE), CALL, RESULT]
    conversation.append(said)
    again = ConversationStore(store.folder).open("greeting")
    assert again.load()[1:] == tuple(said)
    assert again.remarks == []


@settings(
    max_examples=80,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(canisters=st.lists(any_canister, max_size=3), large=st.sampled_from([0, 8, 1_024]))
def test_arbitrary_canisters_come_back_whatever_is_put_aside(
    tmp_path, monkeypatch, canisters, large
):
    monkeypatch.setattr(lines, "LARGE", large)
    conversation = ConversationStore(tmp_path).create(canisters)
    loaded = conversation.load()
    assert loaded == tuple(canisters)
    # Equality takes True for 1 and 1.0; text does not.
    assert [*map(converser.dump_canister, loaded)] == [*map(converser.dump_canister, canisters)]
    assert conversation.salvage() == loaded
    assert conversation.remarks == []


@pytest.mark.parametrize(
    "value", [{"$content": "sha256:" + "0" * 64, "as": "text"}, {"$content": 5}, {"$content": None}]
)
def test_data_that_looks_like_a_reference_is_only_data(store, value):
    said = [
        InvocationCanister(name="n", arguments=value),
        ResultCanister(invocation_identifier="n", structured=value),
        converser.UserCanister(contents=(TextualContent(text="t", annotations=value),)),
        converser.UnknownCanister(kind="user", data={"contents": value}),
        converser.UnknownCanister(kind="hologram", data={"contents": [value, [value]], "x": value}),
        converser.UserCanister(extras={"novel": value}),
    ]
    assert store.create(said).load() == tuple(said)


def test_what_is_large_binary_or_an_instruction_is_stored_once_for_all(store):
    said = [supervisor("Be brief."), user(LONG, PICTURE), user("short")]
    conversation = store.create(said)
    assert len(find_contents(store)) == 3
    text = "\n".join(read_lines(conversation))
    assert "short" in text
    assert "Be brief" not in text
    assert "All work" not in text
    assert {path.read_bytes() for path in find_contents(store)} == {
        b"Be brief.",
        LONG.encode(),
        PICTURE.data,
    }
    conversation.append(said)
    conversation.fork()
    store.create(said)
    assert len(find_contents(store)) == 3


def test_large_arguments_and_structured_results_are_put_aside_too(store):
    said = [
        InvocationCanister(name="write", arguments={"text": LONG}),
        ResultCanister(invocation_identifier="x", outcome=Outcome.TOOL_ERROR, error=LONG),
        ResultCanister(invocation_identifier="x", structured=[LONG]),
    ]
    conversation = store.create(said)
    assert "All work" not in "".join(read_lines(conversation))
    assert conversation.load() == tuple(said)


def test_a_line_is_a_canister_that_a_person_can_read(store):
    conversation = store.create([user("Grüße an “Zoë”")])
    (line,) = read_lines(conversation)
    assert json.loads(line)["contents"] == [{"kind": "text", "text": "Grüße an “Zoë”"}]
    assert "Grüße an “Zoë”" in line


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another matter there")
def test_only_their_user_can_read_conversations(store):
    conversation = store.create([user(LONG)])
    conversation.revise(name="private")
    conversation.fork()
    rewrite(conversation, "\n", "\n{torn")
    conversation.load()
    assert list(conversation.folder.glob("torn-*"))
    for path in [store.folder, *store.folder.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


# Where they are, and how they are found


def test_the_folder_is_given_or_in_the_environment_or_the_users_own(monkeypatch, tmp_path):
    assert ConversationStore(tmp_path).folder == tmp_path
    monkeypatch.setenv("CONVERSER_DATA", str(tmp_path / "elsewhere"))
    assert ConversationStore().folder == tmp_path / "elsewhere"
    monkeypatch.delenv("CONVERSER_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    assert ConversationStore().folder.name == "converser"


def test_looking_at_nothing_makes_nothing(store):
    assert store.list() == ()
    assert list(store.search("x")) == []
    with pytest.raises(ConversationAbsence, match="There is no conversation 'x'; there are: none"):
        store.open("x")
    assert not store.folder.exists()


def test_a_conversation_is_opened_by_identifier_prefix_or_name(store):
    one, other = store.create(name="one"), store.create(name="other")
    assert store.open(one.identifier).identifier == one.identifier
    assert store.open(other.identifier[:8]).identifier == other.identifier
    assert store.open("one").identifier == one.identifier


def test_a_name_that_fits_two_is_refused_and_both_are_told(store):
    identifiers = [store.create(name="twin").identifier for _ in range(2)]
    with pytest.raises(ConversationAbsence, match="may be any of 2") as caught:
        store.open("twin")
    assert all(identifier in str(caught.value) for identifier in identifiers)


@pytest.mark.parametrize("reference", ["", "..", "../conversations", "/", ".", "nope\x1b[2J"])
def test_what_names_no_conversation_opens_nothing(store, reference):
    store.create(name="x")
    with pytest.raises(ConversationAbsence) as caught:
        store.open(reference)
    assert "\x1b" not in str(caught.value)


def test_the_list_has_the_latest_first_and_a_title_for_each(store):
    older = store.create([supervisor("S"), user("What  is\nthe weather?")])
    newer = store.create([user("x")], name="named", model="m", servers=["b", "a"], tags=["t", "t"])
    os.utime(older.folder / "messages.jsonl", (1, 1))
    first, second = store.list()
    assert (first.identifier, first.title, first.canisters) == (newer.identifier, "named", 1)
    assert (second.identifier, second.title, second.canisters) == (
        older.identifier,
        "What is the weather?",
        2,
    )
    assert first.metadata.servers == ("b", "a")
    assert first.metadata.tags == ("t",)
    assert first.updated.tzinfo is timezone.utc


def test_search_finds_words_in_names_messages_calls_and_results(store):
    found = store.create(
        [
            user("Is it raining in OSLO?"),
            CALL,
            RESULT,
            assistant(f"{LONG} oslo {LONG}"),
            user("Hi"),
        ],
        name="Trip to Oslo",
    )
    store.create([user("Bergen"), user(PICTURE)])
    findings = list(store.search("oslo"))
    assert [(each.survey.identifier, each.number) for each in findings] == [
        (found.identifier, number) for number in (0, 1, 2, 4)
    ]
    assert findings[1].excerpt == "Is it raining in OSLO?"
    assert re.fullmatch("….{20,70} oslo .{20,70}…", findings[3].excerpt)
    assert [each.number for each in store.search("7 °c")] == [3]
    assert list(store.search("Stavanger")) == []


# What can be done with them


def test_undo_drops_whole_turns_and_gives_them_back(store):
    turns = [
        [document("facts"), user("one"), assistant("1")],
        [user("two"), CALL, RESULT, assistant("2")],
        [user("three")],
    ]
    conversation = store.create([supervisor("S")])
    for turn in turns:
        conversation.append(turn)
    assert conversation.undo() == tuple(turns[2])
    assert conversation.undo(2) == tuple(turns[0] + turns[1])
    assert [each.text for each in conversation.load()] == ["S"]
    assert conversation.undo() == ()


def test_a_fork_has_the_beginning_and_goes_its_own_way(store):
    said = [user(LONG), assistant("1"), user("two")]
    parent = store.create(said, name="parent", model="m", servers=["s"], tags=["t"])
    child = parent.fork(2)
    child.append([user("other")])
    assert [each.text for each in child.load()] == [LONG, "1", "other"]
    assert parent.load() == tuple(said)
    metadata = child.metadata
    assert (metadata.name, metadata.parent) == ("parent (fork)", parent.identifier)
    assert (metadata.model, metadata.servers, metadata.tags) == ("m", ("s",), ("t",))
    assert parent.fork(name="mine").load() == tuple(said)
    assert parent.fork(0).load() == ()


@pytest.mark.parametrize(("at", "why"), [(2, "between a call"), (5, "from 0 to 4"), (-1, "from 0")])
def test_a_fork_that_would_make_no_sense_is_refused(store, at, why):
    conversation = store.create([user("x"), CALL, RESULT, assistant("y")])
    with pytest.raises(converser.ConfigurationFailure, match=why):
        conversation.fork(at)


def test_deleting_keeps_what_others_use_and_collects_the_rest(store):
    parent = store.create([user(LONG)])
    child = parent.fork()
    child.append([user(PICTURE)])
    store.delete(parent)
    assert child.load()[0].text == LONG
    assert [survey.identifier for survey in store.list()] == [child.identifier]
    store.delete(child)
    assert find_contents(store) == []
    with pytest.raises(PersistenceFailure, match=r"Cannot append to .*deleted"):
        child.append([user("too late")])
    with pytest.raises(PersistenceFailure, match="Cannot delete"):
        store.delete(child)


def test_collecting_removes_what_an_undo_left(store):
    conversation = store.create([user("x"), user(LONG)])
    conversation.undo()
    assert store.collect() == 1
    assert find_contents(store) == []


def test_leftovers_of_a_killed_program_are_no_conversations_and_are_collected(store):
    conversation = store.create([user(LONG)])
    conversation.folder.with_name(".draft").mkdir()
    (conversation.folder.with_name(".draft") / "messages.jsonl").write_text("{")
    half = find_contents(store)[0].with_name(".half")
    half.write_bytes(b"half")
    assert len(store.list()) == 1
    store.collect()
    assert not half.exists()
    assert sorted(conversation.folder.parent.iterdir()) == [conversation.folder]
    assert conversation.load()[0].text == LONG


def test_a_model_can_go_on_after_a_call_that_was_cut_off(store):
    other = InvocationCanister(identifier="other", name="n")
    conversation = store.create([user("x"), CALL, other, RESULT, user("y")])
    resumed = conversation.resume()
    kinds = [type(each).__name__.removesuffix("Canister") for each in resumed]
    assert kinds == ["User", "Invocation", "Invocation", "Result", "Result", "User"]
    result = resumed[4]
    assert isinstance(result, ResultCanister)
    assert (result.invocation_identifier, result.outcome) == ("other", Outcome.UNKNOWN)
    assert len(conversation.load()) == 5


def test_revising_keeps_comments_and_what_others_wrote(store):
    conversation = store.create(name="before", tags=["a"])
    path = conversation.folder / "metadata.toml"
    path.write_text(f"# mine\n{path.read_text()}mood = 'calm'  # theirs\n")
    revised = conversation.revise(name="after")
    assert (revised.name, revised.tags) == ("after", ("a",))
    assert conversation.metadata == revised
    text = path.read_text()
    assert text.startswith("# mine\n")
    assert text.endswith("mood = 'calm'  # theirs\n")


@given(words=st.text(st.characters(), max_size=20))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_is_kept_on_one_line_without_anything_treacherous(tmp_path, words):
    conversation = ConversationStore(tmp_path).create(name=words, tags=[words, "x"])
    metadata = conversation.metadata
    assert conversation.remarks == []
    assert len(metadata.name.splitlines()) <= 1
    assert converser.ConversationMetadata(name=words).name == metadata.name
    assert "x" in metadata.tags


# What people do to the files


def test_a_hand_edit_of_the_messages_is_obeyed(store):
    conversation = store.create([user("Hello"), user(LONG)])
    rewrite(conversation, "Hello", "Good day")
    rewrite(conversation, "\n", "\r\n\n")
    path = conversation.folder / "messages.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().rstrip())
    conversation.append([user("more")])
    assert [each.text for each in conversation.load()] == ["Good day", LONG, "more"]
    assert conversation.remarks == []


def test_a_reference_may_be_replaced_by_text(store):
    conversation = store.create([supervisor("Be brief.")])
    (line,) = read_lines(conversation)
    reference = re.search(r'\{"\$content".*?\}', line)
    assert reference is not None
    rewrite(conversation, reference[0], '"Be long."')
    assert conversation.load()[0].text == "Be long."


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"kind":"user"', '"kind":user', "not JSON"),
        ('"kind":"user"', '"kind":5', "expected a string"),
        ('"text":"2"', '"text":[]', "field contents"),
    ],
)
def test_a_broken_line_is_told_with_its_number_and_the_rest_is_readable(store, old, new, why):
    conversation = store.create([assistant("1"), user("2"), assistant("3")])
    rewrite(conversation, old, new)
    with pytest.raises(
        PersistenceFailure, match=rf"Line 2 of .*messages\.jsonl: .*{why}"
    ) as caught:
        conversation.load()
    assert "salvage" in caught.value.remedy
    assert [each.text for each in conversation.salvage()] == ["1", "3"]
    assert len(conversation.remarks) == 1
    assert "Line 2" in conversation.remarks[0]
    conversation.append([user("4")])
    assert len(read_lines(conversation)) == 4


broken_lines = st.one_of(
    st.binary(max_size=30),
    json_data.map(lambda data: json.dumps(data).encode()),
    st.builds(
        lambda canister, key, value: json.dumps(
            {**converser.encode_canister(canister), key: value}
        ).encode(),
        any_canister,
        st.sampled_from(["kind", "identifier", "contents", "arguments", "invocation_identifier"]),
        st.one_of(
            json_data,
            st.builds(lambda name, form: {"$content": name, "as": form}, json_data, json_data),
            json_data.map(lambda data: [{"kind": "text", "text": {"$content": data}}]),
        ),
    ),
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@example(broken=[b'{"kind": "result", "invocation_identifier": []}'] * 2, ending=b"\n")
@given(broken=st.lists(broken_lines, max_size=4), ending=st.sampled_from([b"", b"\n"]))
def test_whatever_is_in_a_file_the_rest_is_usable_and_nothing_else_is_raised(store, broken, ending):
    conversation = store.create([user("before")])
    path = conversation.folder / "messages.jsonl"
    path.write_bytes(path.read_bytes() + b"\n".join(broken) + ending)
    with contextlib.suppress(PersistenceFailure):
        conversation.load()
    with contextlib.suppress(converser.ConfigurationFailure):
        conversation.fork(len(broken) // 2 + 1)
    conversation.append([user("after")])
    texts = [getattr(canister, "text", "") for canister in conversation.salvage()]
    assert (texts[0], texts[-1]) == ("before", "after")
    assert conversation.resume()[-1].text == "after"
    assert list(store.search("after"))
    for form in converser.ExportFormat:
        assert "after" in converser.export_conversation(conversation, form)
    assert conversation.undo()[-1].text == "after"
    for survey in store.list():
        store.delete(store.open(survey.identifier))


def test_a_conversation_that_cannot_be_read_at_all_does_not_hide_the_others(store):
    broken, sound = store.create(), store.create([user("sound")])
    (broken.folder / "messages.jsonl").unlink()
    (broken.folder / "messages.jsonl").mkdir()
    first, second = store.list()
    assert (first.identifier, first.remarks) == (sound.identifier, ())
    assert second.identifier == broken.identifier
    assert "Cannot read" in second.remarks[0]
    assert [each.number for each in store.search("sound")] == [1]
    with pytest.raises(PersistenceFailure, match="Cannot read"):
        store.open(broken.identifier).load()


def damage(path: Path) -> None:
    path.write_bytes(b"something else")


@pytest.mark.parametrize(("harm", "why"), [(Path.unlink, "is lost"), (damage, "is damaged")])
def test_lost_or_damaged_content_is_told_and_the_rest_is_readable(store, harm, why):
    said = [user("see", PICTURE), InvocationCanister(name="n", arguments={"text": LONG})]
    conversation = store.create([*said, assistant("I see")])
    for path in find_contents(store):
        harm(path)
    with pytest.raises(PersistenceFailure, match=f"Line 1 of .*{why}") as caught:
        conversation.load()
    assert "Restore that file" in caught.value.remedy
    picture, call, answer = conversation.salvage()
    assert picture.text == "see"
    kept = picture.contents[1]
    assert isinstance(kept, UnknownContent)
    assert kept.kind == "image"
    assert why in kept.reason
    assert isinstance(call, InvocationCanister)
    assert call.arguments == {}
    assert answer.text == "I see"
    assert len(conversation.remarks) == 2


def test_damaged_content_is_healed_when_the_same_is_appended_again(store):
    conversation = store.create([user(PICTURE)])
    damage(find_contents(store)[0])
    conversation.append([user(PICTURE)])
    assert [each.contents for each in conversation.load()] == [(PICTURE,)] * 2


@pytest.mark.parametrize("name", ["sha256:../../../etc/passwd", "md5:1", 7])
def test_a_reference_leads_nowhere_but_into_the_store(store, name):
    conversation = store.create([user("x")])
    rewrite(conversation, '"text":"x"', f'"text":{{"$content":{json.dumps(name)},"as":"text"}}')
    with pytest.raises(PersistenceFailure, match="is no name of content"):
        conversation.load()


def test_content_of_another_form_than_said_is_told(store):
    conversation = store.create([user(LONG)])
    rewrite(conversation, '"as":"text"', '"as":"json"')
    with pytest.raises(PersistenceFailure, match="is not json"):
        conversation.load()


@pytest.mark.parametrize("text", ["name = ", "\xff", "name = 5\ntags = [1]\ncreated = 2026-01-01"])
def test_broken_metadata_harms_nothing_else(store, text):
    conversation = store.create([user("Hello")], name="x", servers=["s"])
    (conversation.folder / "metadata.toml").write_text(text, encoding="latin-1")
    (survey,) = store.list()
    assert (survey.title, survey.canisters) == ("Hello", 1)
    assert survey.remarks
    assert all("metadata.toml" in remark for remark in survey.remarks)
    assert store.open(conversation.identifier).load()[0].text == "Hello"


def test_metadata_that_is_broken_is_not_overwritten(store):
    conversation = store.create(name="x")
    path = conversation.folder / "metadata.toml"
    path.write_text("name = 'unfinished")
    with pytest.raises(PersistenceFailure, match=r"not valid TOML.*Correct it"):
        conversation.revise(name="y")
    assert path.read_text() == "name = 'unfinished"
    path.unlink()
    assert conversation.revise(name="y").name == "y"


def test_a_time_without_offset_is_one_of_this_machine(store):
    conversation = store.create()
    (conversation.folder / "metadata.toml").write_text("created = 2026-01-31 12:00:00")
    local = datetime(2026, 1, 31, 12).astimezone()
    assert conversation.metadata.created == local


def test_a_blob_that_was_text_stays_text(store):
    blob = BlobContent(data=LONG.encode(), mimetype="text/x-log", encoding="utf-8", name="log")
    assert store.create([user(blob)]).load()[0].contents == (blob,)


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="nothing is forbidden to this user"
)
def test_a_folder_that_must_not_be_written_is_told_with_a_remedy(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PersistenceFailure, match="CONVERSER_DATA"):
            ConversationStore(tmp_path / "data").create()
    finally:
        tmp_path.chmod(0o700)
