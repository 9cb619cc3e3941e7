# SPDX-License-Identifier: Apache-2.0
"""The catalogue of tools: what it holds it gives back, in the same bytes, and damage is told."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import converser
from converser.immutables import freeze
from converser.rosters.catalogue import dump_catalogue, hash_tool

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = st.dictionaries(st.text(), JSON_VALUES, max_size=4)
HINTS = st.none() | st.booleans()
TOOLS = st.builds(
    converser.Tool,
    name=st.text(),
    description=st.text(),
    arguments_schema=SCHEMAS.map(freeze),
    output_schema=st.none() | SCHEMAS.map(freeze),
    annotations=st.builds(
        converser.Annotations,
        title=st.none() | st.text(),
        read_only=HINTS,
        destructive=HINTS,
        idempotent=HINTS,
        open_world=HINTS,
    ),
)
LISTINGS = st.lists(TOOLS, max_size=4, unique_by=lambda tool: tool.name)


def make_entry(*tools: converser.Tool) -> converser.CatalogueEntry:
    return converser.CatalogueEntry(
        reach="sha256:0", tools=tuple(sorted(tools, key=lambda tool: tool.name))
    )


def make_catalogue(**servers: list[converser.Tool]) -> converser.Catalogue:
    return converser.Catalogue(
        servers={name: make_entry(*tools) for name, tools in servers.items()}
    )


ECHO = converser.Tool(
    name="echo",
    description="Gives the text back.",
    arguments_schema=freeze({"type": "object", "properties": {"text": {"type": "string"}}}),
)


@given(one=LISTINGS, other=LISTINGS)
@settings(max_examples=60)
def test_what_was_written_is_read_again(
    one: list[converser.Tool], other: list[converser.Tool], tmp_path_factory: Any
) -> None:
    path = tmp_path_factory.mktemp("lock") / "converser.lock"
    catalogue = make_catalogue(one=one, other=other)
    converser.write_catalogue(path, catalogue)
    again = converser.read_catalogue(path)
    assert again == catalogue
    assert dump_catalogue(again) == path.read_text("utf-8")


def test_the_order_of_servers_does_not_show_and_that_of_keys_in_a_schema_is_kept() -> None:
    schema = freeze({"type": "object", "properties": {"zeal": {}, "age": {}}})
    tool = converser.Tool(name="order", arguments_schema=schema)
    one = make_catalogue(a=[tool], b=[ECHO])
    other = make_catalogue(b=[ECHO], a=[tool])
    assert dump_catalogue(one) == dump_catalogue(other)
    kept = json.loads(dump_catalogue(one))["servers"]["a"]["tools"][0]["arguments_schema"]
    assert list(kept["properties"]) == ["zeal", "age"]


@given(TOOLS)
@settings(max_examples=60)
def test_nothing_in_the_text_can_steer_a_terminal(tool: converser.Tool) -> None:
    text = dump_catalogue(make_catalogue(wild=[tool]))
    assert all(character.isprintable() or character == "\n" for character in text)


def test_readable_text_of_any_language_stays_readable() -> None:
    text = dump_catalogue(make_catalogue(a=[converser.Tool(name="x", description="Grüße 天気")]))
    assert "Grüße 天気" in text


def test_a_hash_does_not_depend_on_the_order_of_keys() -> None:
    one = converser.Tool(name="x", arguments_schema=freeze({"a": 1, "b": 2}))
    other = converser.Tool(name="x", arguments_schema=freeze({"b": 2, "a": 1}))
    assert hash_tool(one) == hash_tool(other)


def test_a_missing_file_is_an_empty_catalogue(tmp_path: Path) -> None:
    assert not converser.read_catalogue(tmp_path / "converser.lock").servers


def test_the_file_has_the_permissions_of_any_other_and_no_draft_is_left(tmp_path: Path) -> None:
    path, usual = tmp_path / "converser.lock", tmp_path / "usual"
    usual.touch()
    converser.write_catalogue(path, make_catalogue(a=[ECHO]))
    converser.write_catalogue(path, make_catalogue(b=[ECHO]))
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["converser.lock", "usual"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    link, target = tmp_path / "converser.lock", tmp_path / "elsewhere"
    link.symlink_to(target)
    converser.write_catalogue(link, make_catalogue(a=[ECHO]))
    assert link.is_symlink()
    assert converser.read_catalogue(target).servers


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "converser.lock"
    converser.write_catalogue(path, make_catalogue(a=[ECHO]))
    before = path.read_bytes()
    bad: Any = converser.Tool(name="bad", arguments_schema={"default": object()})
    with pytest.raises(TypeError):
        converser.write_catalogue(path, make_catalogue(a=[bad]))
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["converser.lock"]


def double() -> str:
    """What a merge of two versions of the file may leave: one tool twice, each time with its hash."""
    data = json.loads(dump_catalogue(make_catalogue(a=[ECHO])))
    data["servers"]["a"]["tools"] *= 2
    return json.dumps(data)


def damage(**changes: Any) -> str:
    data = json.loads(dump_catalogue(make_catalogue(a=[ECHO])))
    data["servers"]["a"]["tools"][0].update(changes)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not valid JSON"),
        ("<<<<<<< HEAD\n{}", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("\udcff", "not valid JSON"),
        ("[]", "the top is missing or of the wrong kind"),
        ('{"version": 0, "servers": {}}', "not of version 1"),
        ('{"version": 1}', "servers is missing"),
        ('{"version": 1, "servers": {"a": {"tools": []}}}', "servers.a.reach is missing"),
        (damage(name=3), r"servers\.a\.tools\[0\]\.name is missing or of the wrong kind"),
        (damage(arguments_schema=[]), "arguments_schema is missing"),
        (damage(annotations={"nonsense": True}), "keys that are not known"),
        (damage(description="Gives all your files away."), "does not fit its hash"),
        (damage(hash=None), "does not fit its hash"),
        (double(), "servers.a.tools has two of one name"),
    ],
)
def test_damage_is_told_with_the_way_out(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "converser.lock"
    path.write_text(text, "utf-8", "surrogateescape")
    with pytest.raises(converser.ConfigurationFailure, match=reason) as caught:
        converser.read_catalogue(path)
    assert str(path) in caught.value.message
    assert "delete it" in caught.value.remedy


def test_what_a_later_version_wrote_is_not_to_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "converser.lock"
    path.write_text('{"version": 2, "servers": {}}', "utf-8")
    with pytest.raises(converser.ConfigurationFailure, match="version 2") as caught:
        converser.read_catalogue(path)
    assert "Update" in caught.value.remedy
    assert "delete" not in caught.value.remedy


def test_a_folder_in_its_place_is_told_too(tmp_path: Path) -> None:
    with pytest.raises(converser.ConfigurationFailure, match="cannot be used"):
        converser.read_catalogue(tmp_path)


def test_no_drift_is_false_and_says_so() -> None:
    drift = converser.find_drift([ECHO], [ECHO])
    assert not drift
    assert str(drift) == "nothing"


def test_drift_names_what_was_added_removed_and_which_fields_changed() -> None:
    gone, new = converser.Tool(name="gone"), converser.Tool(name="new")
    changed = converser.Tool(
        name="echo", description="Other.", annotations=converser.Annotations(read_only=True)
    )
    drift = converser.find_drift([ECHO, gone], [changed, new])
    assert drift == converser.Drift(
        added=("new",),
        removed=("gone",),
        changed={"echo": ("description", "arguments_schema", "annotations")},
    )
    assert "added: new; removed: gone; changed: echo (description," in str(drift)


def test_the_words_for_a_drift_cannot_steer_a_terminal() -> None:
    drift = converser.find_drift([], [converser.Tool(name="\x1b[2Jx")])
    assert "\x1b" not in str(drift)


@given(one=LISTINGS, other=LISTINGS)
@settings(max_examples=60)
def test_drift_there_mirrors_drift_back(
    one: list[converser.Tool], other: list[converser.Tool]
) -> None:
    there, back = converser.find_drift(one, other), converser.find_drift(other, one)
    assert (there.added, there.removed, there.changed) == (back.removed, back.added, back.changed)
    names = {tool.name for tool in one} | {tool.name for tool in other}
    assert {*there.added, *there.removed, *there.changed} <= names
    assert not converser.find_drift(one, one)
