# SPDX-License-Identifier: Apache-2.0
"""What is written can be read again as the same, by this version and past it."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from converser import canisters, contents
from converser.canisters import (
    AssistantCanister,
    DocumentCanister,
    InvocationCanister,
    ResultCanister,
    SupervisorCanister,
    UnknownCanister,
    Usage,
    UserCanister,
)
from converser.codec import (
    decode_canister,
    decode_content,
    dump_canister,
    encode_canister,
    encode_content,
    load_canister,
)
from converser.contents import (
    AudioContent,
    BlobContent,
    ImageContent,
    LinkContent,
    TextualContent,
    UnknownContent,
)
from converser.exceptions import CanisterInvalidity
from converser.outcomes import Outcome

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
thorough = settings(
    max_examples=150, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)

# Every code point, lone surrogates included; and what lines, terminals and JSON find awkward.
texts = st.one_of(
    st.text(st.characters(), max_size=12),
    st.text('\x00\x1b\x7f\x85\n\r\u2028\u2029\ud83d\ude00\udfff😀é\\"', max_size=6),
)
maybe_text = st.none() | texts
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
json_data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_data, max_size=3)
# No field is called so in any kind.
extras = st.dictionaries(texts.map("novel-".__add__), json_data, max_size=2)
offsets = st.integers(-86_399, 86_399) | st.sampled_from([0, 3_600, 20_700])
times = st.datetimes(timezones=offsets.map(lambda offset: timezone(timedelta(seconds=offset))))
tokens = st.integers(min_value=0)
usages = st.builds(Usage, tokens_in=tokens, tokens_out=tokens, tokens_cached=tokens, extras=extras)
kinds = texts | st.sampled_from(["text", "image", "user", "result", "unknown", "hologram"])
# Names that are fields elsewhere, so that unknown data collides with them.
open_data = st.dictionaries(
    texts | st.sampled_from(["kind", "version", "identifier", "timestamp", "text", "data"]),
    json_data,
    max_size=3,
)

common: dict[str, Any] = {"annotations": json_objects, "extras": extras}
data_and_type: dict[str, Any] = {"data": st.binary(), "mimetype": texts, **common}
names: dict[str, Any] = {"uri": maybe_text, "name": maybe_text, "encoding": maybe_text}
titles: dict[str, Any] = {"title": maybe_text, "description": maybe_text, "mimetype": maybe_text}
sizes = st.none() | st.integers()
unknown: dict[str, Any] = {"kind": kinds, "data": open_data}
arbitrary_contents = {
    TextualContent: {"text": texts, "mimetype": st.just("text/plain") | texts, **common},
    ImageContent: data_and_type,
    AudioContent: data_and_type,
    BlobContent: {**data_and_type, **names},
    LinkContent: {"uri": texts, "name": texts, "size": sizes, **titles, **common},
    UnknownContent: {**unknown, "reason": st.just("") | texts, **common},
}
any_content = st.one_of(
    *(st.builds(family, **values) for family, values in arbitrary_contents.items()),
    st.builds(UnknownContent, **unknown),
)

base: dict[str, Any] = {"identifier": texts, "timestamp": times, "extras": extras}
body: dict[str, Any] = {**base, "contents": st.lists(any_content, max_size=3)}
durations = st.none() | st.floats(min_value=0, max_value=1e9)
result: dict[str, Any] = {
    "invocation_identifier": texts,
    "structured": json_data,
    "duration": durations,
    **body,
}
usage = st.none() | usages
failures = st.sampled_from([each for each in Outcome if each is not Outcome.SUCCESS])
arbitrary_canisters = {
    UserCanister: body,
    SupervisorCanister: body,
    DocumentCanister: {"name": maybe_text, **body},
    AssistantCanister: {"model": maybe_text, "stop_reason": maybe_text, "usage": usage, **body},
    InvocationCanister: {"name": texts, "arguments": json_objects, **base},
    ResultCanister: result,
    UnknownCanister: {**unknown, **base},
}
any_canister = st.one_of(
    *(st.builds(family, **values) for family, values in arbitrary_canisters.items()),
    st.builds(ResultCanister, outcome=failures, error=texts, **result),
    st.builds(UnknownCanister, identifier=texts, timestamp=times, **unknown),
)


def test_every_field_of_every_kind_is_arbitrary_here():
    arbitrary = {**arbitrary_canisters, **arbitrary_contents}
    assert arbitrary.keys() == set(get_args(canisters.Canister) + get_args(contents.Content))
    for family, values in arbitrary.items():
        ruled = {"outcome", "error"} if family is ResultCanister else set()
        assert {field.name for field in fields(family)} == values.keys() | ruled


@thorough
@given(any_canister)
def test_every_canister_is_read_back_as_it_was_written(canister):
    line = dump_canister(canister)
    revived = load_canister(line)
    assert revived == canister
    assert type(revived) is type(canister)
    assert revived.timestamp.utcoffset() == canister.timestamp.utcoffset()
    assert dump_canister(revived) == line  # Equality takes True for 1 and 1.0; text does not.


@thorough
@given(any_content)
def test_every_content_is_read_back_as_it_was_written(content):
    data = encode_content(content)
    assert json.loads(json.dumps(data, ensure_ascii=False, allow_nan=False)) == data
    revived = decode_content(data)
    assert revived == content
    assert type(revived) is type(content)
    assert repr(encode_content(revived)) == repr(data)


@thorough
@given(any_canister)
def test_a_line_is_one_line_and_plain_data_needs_no_codec(canister):
    line = dump_canister(canister)
    assert line.splitlines() == [line]
    assert decode_canister(encode_canister(canister)) == canister


@thorough
@given(st.text(st.characters(), max_size=4).filter(lambda text: not _has_split_pair(text)))
def test_a_line_fits_in_utf8_even_with_lone_surrogates(text):
    line = dump_canister(canisters.user(text))
    assert load_canister(line.encode().decode()).text == text


@pytest.mark.parametrize("text", ["\ud800", "\udbff!", "?\udc00", "\udfff\ud83d", "😀\ude00"])
def test_a_lone_surrogate_is_escaped(text):
    line = dump_canister(canisters.user(text))
    assert load_canister(line.encode().decode()).text == text


def _has_split_pair(text: str) -> bool:
    return any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))


def test_two_surrogates_side_by_side_do_not_melt_into_one_character():
    canister = canisters.user("\ud83d\ude00 is not 😀")
    assert load_canister(dump_canister(canister)) == canister


def test_the_form_on_disk_is_this_one():
    canister = AssistantCanister(
        identifier="a1",
        timestamp=NOON,
        contents=(
            TextualContent(text="hé"),
            ImageContent(data=b"\x00\xff", mimetype="image/png", annotations={"priority": 1}),
            LinkContent(uri="file:///x", name="x", size=0),
        ),
        model="m",
        usage=Usage(tokens_in=3),
    )
    assert dump_canister(canister) == (
        '{"version":1,"kind":"assistant","identifier":"a1","timestamp":"2026-01-31T12:00:00+00:00",'
        '"contents":[{"kind":"text","text":"hé"},'
        '{"kind":"image","annotations":{"priority":1},"data":"AP8=","mimetype":"image/png"},'
        '{"kind":"link","uri":"file:///x","name":"x","size":0}],'
        '"model":"m","usage":{"tokens_in":3}}'
    )


@pytest.mark.parametrize(
    ("canister", "fields"),
    [
        (UserCanister(), {"kind": "user"}),
        (SupervisorCanister(), {"kind": "supervisor"}),
        (DocumentCanister(name="n"), {"kind": "document", "name": "n"}),
        (
            InvocationCanister(name="n", arguments={"a": [1]}),
            {"kind": "invocation", "name": "n", "arguments": {"a": [1]}},
        ),
        (
            ResultCanister(invocation_identifier="i", outcome=Outcome.TIMED_OUT, error="late"),
            {
                "kind": "result",
                "invocation_identifier": "i",
                "outcome": "timed-out",
                "error": "late",
            },
        ),
        (
            ResultCanister(invocation_identifier="i", structured=False),
            {"kind": "result", "invocation_identifier": "i", "structured": False},
        ),
    ],
)
def test_fields_that_have_their_default_are_left_out(canister, fields):
    data = encode_canister(canister)
    assert {
        key: data[key] for key in data.keys() - {"version", "identifier", "timestamp"}
    } == fields


def _envelope(kind: object, **fields: Any) -> dict[str, Any]:
    head = {"version": 1, "kind": kind, "identifier": "i", "timestamp": NOON.isoformat()}
    return {**head, **fields}


@pytest.mark.parametrize("field", ["version", "kind", "identifier", "timestamp"])
@pytest.mark.parametrize("kind", ["user", "hologram"])
def test_what_every_canister_has_must_be_there(kind, field):
    data = _envelope(kind)
    del data[field]
    with pytest.raises(CanisterInvalidity, match=f"field {field}: expected .*, found nothing"):
        decode_canister(data)


NEWER = [
    _envelope("hologram", depth=3, layers=[{"x": None}]),
    _envelope("hologram", version=7),
    _envelope("hologram", timestamp="2026-01-31T12:00:00Z"),
    _envelope("user", version=7, contents=[{"kind": "text", "text": "t"}]),
    _envelope("user", version=7, contents="now a string"),
    _envelope("user", mood="calm", contents=[{"kind": "smell", "of": "rain", "version": 9}]),
    _envelope("user", contents=[{"kind": "text", "text": "t", "language": "en"}]),
    _envelope("assistant", usage={"tokens_in": 1, "tokens_thought": 5}),
    _envelope("result", invocation_identifier="x", outcome="paused", until="noon"),
    _envelope("result", version=7, invocation_identifier="x", error="with success"),
]


@pytest.mark.parametrize("data", NEWER)
def test_what_a_newer_version_wrote_comes_back_at_its_place(data):
    canister = decode_canister(data)
    assert encode_canister(canister) == data
    assert load_canister(dump_canister(canister)) == canister


def test_an_unknown_kind_keeps_its_fields_and_a_known_kind_its_novel_ones():
    unknown = decode_canister(_envelope("hologram", depth=3, version=2))
    assert unknown == UnknownCanister(
        kind="hologram", identifier="i", timestamp=NOON, data={"depth": 3, "version": 2}
    )
    known = decode_canister(_envelope("user", mood="calm", version=2))
    assert known == UserCanister(
        identifier="i", timestamp=NOON, extras={"mood": "calm", "version": 2}
    )
    assert decode_content({"kind": "smell", "of": "rain"}) == UnknownContent(
        kind="smell", data={"of": "rain"}
    )


def test_an_unknown_outcome_is_kept_and_does_not_pass_for_a_known_one():
    kept = decode_canister(_envelope("result", invocation_identifier="x", outcome="paused"))
    assert isinstance(kept, UnknownCanister)
    assert kept.kind == "result"
    assert kept.data == {"invocation_identifier": "x", "outcome": "paused"}


def test_a_content_that_could_not_be_decoded_keeps_its_reason():
    content = UnknownContent(kind="image", data={"data": "!"}, reason="not base64")
    assert decode_content(encode_content(content)) == content


def test_a_time_keeps_its_offset_and_may_end_in_z():
    east = timezone(timedelta(hours=5, minutes=45))
    canister = UserCanister(timestamp=NOON.astimezone(east))
    assert encode_canister(canister)["timestamp"] == "2026-01-31T17:45:00+05:45"
    revived = load_canister(dump_canister(canister))
    assert revived.timestamp.utcoffset() == timedelta(hours=5, minutes=45)
    assert decode_canister(_envelope("user", timestamp="2026-01-31T12:00:00Z")).timestamp == NOON


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks_are_refused_where_they_are(number):
    canister = InvocationCanister(identifier="i", name="n", arguments={"a": [{"b c": number}]})
    with pytest.raises(CanisterInvalidity, match=r"'i': field arguments\.a\[0\]\['b c'\]: .*NaN"):
        encode_canister(canister)
    with pytest.raises(CanisterInvalidity, match="field structured"):
        dump_canister(ResultCanister(invocation_identifier="i", structured=number))


@pytest.mark.parametrize("value", [{1: "a"}, {"a": b"b"}, {"a": {1, 2}}, {"a": NOON}])
def test_what_is_not_json_is_refused_and_not_bent(value):
    with pytest.raises(CanisterInvalidity, match="field arguments"):
        encode_canister(InvocationCanister(name="n", arguments=value))


@pytest.mark.parametrize(
    ("canister", "field"),
    [
        (UserCanister(contents=(TextualContent(text=5),)), r"contents\[0\]\.text"),
        (UserCanister(contents=("bare",)), r"contents\[0\]: expected a content"),
        (UserCanister(contents=(UnknownCanister(kind="x"),)), r"contents\[0\]"),
        (UserCanister(contents=(ImageContent(data="x", mimetype="y"),)), r"contents\[0\]\.data"),
        (UserCanister(extras={"contents": 1}), "'contents'"),
        (UserCanister(extras={"kind": "x"}), "'kind'"),
        (UserCanister(extras={"version": 1}), "'version'"),
        (UserCanister(extras={"version": "2"}), "version"),
        (AssistantCanister(usage={"tokens_in": 1}), "usage"),
        (AssistantCanister(usage=Usage(tokens_in=True)), r"usage\.tokens_in"),
        (AssistantCanister(usage=Usage(tokens_in=False)), r"usage\.tokens_in"),
        (UserCanister(timestamp=datetime.now(timezone(timedelta(microseconds=1)))), "timestamp"),
        (TextualContent(text="not a canister"), "a canister"),
        ("neither", "a canister"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(canister, field):
    with pytest.raises(CanisterInvalidity, match=field) as caught:
        encode_canister(canister)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected an object, found a value of type list"),
        (None, "expected an object"),
        (_envelope("user", version=0), "field version: expected a version number"),
        (_envelope("user", version="1"), "field version: expected an integer"),
        (_envelope("user", version=True), "field version: expected an integer"),
        (_envelope(5), "field kind: expected a string"),
        (_envelope("user", identifier=None), "field identifier: expected a string"),
        (_envelope("user", timestamp="2026-01-31T12:00:00"), "field timestamp: .*with offset"),
        (_envelope("user", timestamp="yesterday"), "field timestamp: expected an ISO 8601 time"),
        (_envelope("user", timestamp=1), "field timestamp: expected a string"),
        (_envelope("user", contents={}), "field contents: expected an array"),
        (_envelope("user", contents=["x"]), r"field contents\[0\]: expected an object"),
        (_envelope("user", contents=[{"text": "x"}]), r"field contents\[0\]\.kind: .*nothing"),
        (_envelope("user", contents=[{"kind": "text"}]), r"field contents\[0\]\.text: .*nothing"),
        (
            _envelope("user", contents=[{"kind": "image", "data": "?", "mimetype": "m"}]),
            r"field contents\[0\]\.data: expected bytes in base64",
        ),
        (
            _envelope("user", contents=[{"kind": "text", "text": "", "mimetype": None}]),
            r"field contents\[0\]\.mimetype: expected a string",
        ),
        (
            _envelope("user", contents=[{"kind": "link", "uri": "", "name": "", "size": "1"}]),
            r"field contents\[0\]\.size: expected an integer",
        ),
        (_envelope("user", novel=float("nan")), "field novel: .*NaN"),
        (_envelope("assistant", usage=[]), "field usage: expected an object"),
        (_envelope("assistant", usage={"tokens_in": 1.5}), r"field usage\.tokens_in"),
        (_envelope("invocation"), "field name: .*nothing"),
        (_envelope("invocation", name="n", arguments=[]), "field arguments: expected an object"),
        (_envelope("result"), "field invocation_identifier: .*nothing"),
        (_envelope("result", invocation_identifier="x", outcome=1), "field outcome"),
        (_envelope("result", invocation_identifier="x", error="but why"), "success, and an error"),
        (_envelope("unknown"), "field original: .*nothing"),
    ],
)
def test_a_mistake_names_its_field_what_was_expected_and_a_remedy(data, message):
    with pytest.raises(CanisterInvalidity, match=message) as caught:
        decode_canister(data)
    assert caught.value.remedy
    assert caught.value.remedy in str(caught.value)


def test_a_mistake_names_the_canister_and_never_shows_a_value():
    data = _envelope("user", contents=[{"kind": "image", "data": "s3cret!", "mimetype": "m"}])
    with pytest.raises(CanisterInvalidity, match="canister 'i'") as caught:
        decode_canister(data)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "{", "nope", "[1", '{"a":1}{"b":2}', "[" * 100_000, "9" * 5_000]
)
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(CanisterInvalidity):
        load_canister(text)


def test_a_number_beyond_any_float_is_refused():
    line = json.dumps(_envelope("invocation", name="n")).replace(
        '"n"', '"n", "arguments": {"x": 1e999}'
    )
    with pytest.raises(CanisterInvalidity, match=r"arguments\.x"):
        load_canister(line)


@thorough
@given(st.text(st.characters()) | st.recursive(json_data, st.lists).map(json.dumps))
def test_arbitrary_text_gives_a_canister_invalidity_and_nothing_else(text):
    with pytest.raises(CanisterInvalidity):
        load_canister(text)


@thorough
@given(any_canister, st.data())
def test_damaged_fields_give_a_canister_or_a_canister_invalidity(canister, data):
    encoded = encode_canister(canister)
    encoded[data.draw(st.sampled_from(sorted(encoded)))] = data.draw(json_data)
    try:
        revived = decode_canister(encoded)
    except CanisterInvalidity:
        return
    assert load_canister(dump_canister(revived)) == revived


def test_data_as_deep_as_a_canister_can_hold_is_written_and_read():
    deep: list[Any] = []
    for _ in range(200):
        deep = [{"down": deep}]
    canister = InvocationCanister(name="n", arguments={"deep": deep})
    assert load_canister(dump_canister(canister)) == canister


def test_data_that_is_too_deep_is_refused():
    line = json.dumps(_envelope("invocation", name="n"))[:-1] + ', "arguments": {"deep": '
    with pytest.raises(CanisterInvalidity, match=r"deep|recursion"):
        load_canister(line + "[" * 20_000 + "]" * 20_000 + "}}")
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(CanisterInvalidity, match="'i': it is nested too deeply"):
        decode_canister(_envelope("invocation", name="n", arguments={"deep": deep}))


def test_an_encoded_canister_is_plain_and_independent():
    canister = InvocationCanister(name=Outcome.SUCCESS, arguments={"a": [1], "o": Outcome.SUCCESS})
    data = encode_canister(canister)
    data["arguments"]["a"].append(2)
    assert canister.arguments["a"] == [1]
    assert type(data["name"]) is str
    assert type(data["arguments"]["o"]) is str
    assert type(data["arguments"]) is dict
