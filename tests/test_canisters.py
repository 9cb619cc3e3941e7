# SPDX-License-Identifier: Apache-2.0
"""Canisters and contents are values: equal by what they hold, hashable, and never changed."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from datetime import datetime, timedelta, timezone
from typing import get_args
from zoneinfo import ZoneInfo

import pytest

from converser.canisters import (
    AssistantCanister,
    Canister,
    DocumentCanister,
    InvocationCanister,
    ResultCanister,
    SupervisorCanister,
    UnknownCanister,
    Usage,
    UserCanister,
    assistant,
    document,
    supervisor,
    user,
)
from converser.codec import dump_canister, load_canister
from converser.contents import (
    AudioContent,
    BlobContent,
    Content,
    ImageContent,
    LinkContent,
    TextualContent,
    UnknownContent,
)
from converser.exceptions import CanisterInvalidity
from converser.outcomes import Outcome

NESTED = {"x": [1, {"y": [2]}]}


def make_contents() -> list[Content]:
    """One of each, from plain data that is made anew each time."""
    return [
        TextualContent(text="t", annotations={"audience": ["user"]}),
        ImageContent(data=b"i", mimetype="image/png"),
        AudioContent(data=b"a", mimetype="audio/wav"),
        BlobContent(data=b"b", uri="file:///b", name="b"),
        LinkContent(uri="file:///l", name="l", size=1),
        UnknownContent(kind="smell", data={"of": ["rain"]}),
    ]


def make_canisters() -> list[Canister]:
    """One of each, with the same identity each time."""
    same = {"identifier": "i", "timestamp": datetime(2026, 1, 31, 12, tzinfo=timezone.utc)}
    contents = tuple(make_contents())
    return [
        UserCanister(contents=contents, extras={"novel": [1]}, **same),
        AssistantCanister(contents=contents, usage=Usage(tokens_in=1), model="m", **same),
        SupervisorCanister(contents=contents, **same),
        DocumentCanister(contents=contents, name="d", **same),
        InvocationCanister(name="n", arguments=copy.deepcopy(NESTED), **same),
        ResultCanister(
            invocation_identifier="i", contents=contents, structured=[{"a": [1]}], **same
        ),
        UnknownCanister(kind="hologram", data={"depth": [3]}, **same),
    ]


VALUES = [*make_contents(), *make_canisters(), Usage(tokens_in=1, extras={"novel": [1]})]
each_value = pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)


def test_every_kind_is_tried_here():
    assert {type(value) for value in VALUES} == {*get_args(Canister), *get_args(Content), Usage}


def test_values_of_equal_parts_are_equal_and_hash_alike():
    assert make_contents() == make_contents()
    assert make_canisters() == make_canisters()
    assert {*make_canisters(), *make_contents()} == {*make_canisters(), *make_contents()}
    assert len({*make_canisters(), *make_canisters()}) == 7


def test_values_of_different_kinds_or_parts_are_not_equal():
    canisters = make_canisters()
    assert all(one != other for one in canisters for other in canisters if one is not other)
    assert ImageContent(data=b"x", mimetype="m") != AudioContent(data=b"x", mimetype="m")
    assert TextualContent(text="a") != TextualContent(text="a", mimetype="text/markdown")


@each_value
def test_a_value_refuses_new_old_and_deleted_attributes(value):
    field = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, field, "changed")
    with pytest.raises(dataclasses.FrozenInstanceError):
        delattr(value, field)
    with pytest.raises((AttributeError, TypeError)):
        value.novel = 1
    assert not hasattr(value, "__dict__")


@each_value
def test_a_value_survives_pickle_and_copy(value):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        revived = pickle.loads(pickle.dumps(value, protocol))
        assert revived == value
        assert hash(revived) == hash(value)
    assert copy.copy(value) == copy.deepcopy(value) == value
    assert hash(copy.deepcopy(value)) == hash(value)


@each_value
def test_a_changed_copy_can_be_made_and_leaves_the_original(value):
    changed = dataclasses.replace(value, extras={"changed": True})
    assert changed != value
    assert value.extras != {"changed": True}


def test_nothing_nested_can_be_changed_even_after_pickle_and_copy():
    canister = InvocationCanister(name="n", arguments=NESTED)
    for each in (canister, copy.deepcopy(canister), pickle.loads(pickle.dumps(canister))):
        with pytest.raises(TypeError, match="immutable"):
            each.arguments["x"].append(3)
        with pytest.raises(TypeError, match="immutable"):
            each.arguments["x"][1]["y"][0] = 3
        with pytest.raises(TypeError, match="immutable"):
            each.arguments["z"] = 3


@pytest.mark.parametrize(
    "data",
    [
        ResultCanister(invocation_identifier="i", structured={"a": [1]}).structured["a"],
        UserCanister(extras={"a": [1]}).extras["a"],
        UnknownCanister(kind="k", data={"a": [1]}).data["a"],
        UnknownContent(kind="k", data={"a": [1]}).data["a"],
        TextualContent(text="t", annotations={"a": [1]}).annotations["a"],
        TextualContent(text="t", extras={"a": [1]}).extras["a"],
        Usage(extras={"a": [1]}).extras["a"],
    ],
)
def test_data_in_any_field_is_frozen(data):
    with pytest.raises(TypeError, match="immutable"):
        data.append(2)


def test_the_callers_own_data_is_copied_and_stays_changeable():
    arguments = {"x": [1]}
    parts = [TextualContent(text="a")]
    invocation = InvocationCanister(name="n", arguments=arguments)
    said = UserCanister(contents=parts)
    arguments["x"].append(2)
    parts.clear()
    assert invocation.arguments == {"x": [1]}
    assert said.text == "a"


def test_a_naive_timestamp_is_refused_with_a_remedy():
    with pytest.raises(CanisterInvalidity, match=r"canister 'i' has no time zone.*timezone\.utc"):
        UserCanister(identifier="i", timestamp=datetime(2026, 1, 31))


def test_a_canister_gets_its_own_identifier_and_the_present_time():
    before = datetime.now(timezone.utc)
    one, other = user("a"), user("a")
    assert one.identifier != other.identifier
    assert before <= one.timestamp <= datetime.now(timezone.utc)
    assert one.timestamp.utcoffset() == timedelta(0)


def test_a_time_in_a_repeated_hour_equals_itself_after_a_round_trip():
    berlin = ZoneInfo("Europe/Berlin")
    for fold, offset in ((0, 2), (1, 1)):
        canister = UserCanister(timestamp=datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=berlin))
        assert canister.timestamp.utcoffset() == timedelta(hours=offset)
        revived = load_canister(dump_canister(canister))
        assert revived == canister
        assert hash(revived) == hash(canister)


def test_a_result_has_an_error_exactly_where_it_is_no_success():
    for outcome in Outcome:
        error = None if outcome is Outcome.SUCCESS else "why"
        wrong = "why" if error is None else None
        result = ResultCanister(invocation_identifier="i", outcome=outcome, error=error)
        assert (result.outcome, result.error) == (outcome, error)
        with pytest.raises(CanisterInvalidity, match="Give an error exactly where"):
            ResultCanister(invocation_identifier="i", outcome=outcome, error=wrong)


@pytest.mark.parametrize(
    ("make", "family"),
    [
        (user, UserCanister),
        (assistant, AssistantCanister),
        (supervisor, SupervisorCanister),
        (document, DocumentCanister),
    ],
)
def test_bare_strings_become_textual_contents(make, family):
    picture = ImageContent(data=b"", mimetype="image/png")
    canister = make("one", picture, TextualContent(text="two"))
    assert type(canister) is family
    assert canister.contents == (TextualContent(text="one"), picture, TextualContent(text="two"))
    assert canister.text == "one\ntwo"
    assert document("d", name="n").name == "n"


def test_bytes_and_extras_do_not_flood_a_representation():
    image = ImageContent(data=b"secret" * 1000, mimetype="image/png", extras={"k": "secret"})
    assert "secret" not in repr(user(image))
    assert "image/png" in repr(user(image))


def test_a_blob_that_came_as_text_gives_its_text():
    assert BlobContent(data="é".encode(), encoding="utf-8").text == "é"
    assert BlobContent(data=b"\xff").text is None


def test_outcomes_are_strings_of_their_values():
    assert f"{Outcome.UNKNOWN}" == str(Outcome.UNKNOWN) == Outcome.UNKNOWN == "outcome-unknown"


@pytest.mark.parametrize("part", [5, None, ["a", "b"], user("x")])
def test_what_is_neither_text_nor_content_is_told(part):
    with pytest.raises(CanisterInvalidity, match=rf"type {type(part).__name__}\."):
        user("Look:", part)
