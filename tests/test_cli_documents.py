# SPDX-License-Identifier: Apache-2.0
"""Edits of `converser.toml`: whatever its layout and whatever the edits, all else stays as people wrote it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest import mock

import pytest
import tomli
from hypothesis import given, strategies as st

from converser.cli.documents import Document
from converser.exceptions import ConfigurationFailure

LAYOUTS = (
    "",
    "# Nothing but a comment.",
    "# Above.\n[mcp.a]  # a\ncommand = ['a']  # of a\n\n# Between.\n[mcp.b]\nurl = 'https://b.org'\n",
    "[model]\nname = 'x'  # kept\n[mcp.a]\ncommand = ['a']\n[provider.p]  # last\nkey = 'env:K'\n",
    "mcp.a.command = ['a']  # dotted\nmcp.a.enabled = false\n",
    "mcp = { a = { command = ['a'] } }  # inline\n",
    "[mcp]\na = { command = ['a'], environment = { X = 'y' } }  # half\n[mcp.b]\ncommand = ['b']\n",
    "[mcp.a]\ncommand = ['a']\n[model]\nname = 'x'\n[mcp.b]  # out of order\ncommand = ['b']\n",
    "[mcp.a]\r\ncommand = [\r\n  'a',  # first\r\n]\r\n",
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
COMMANDS = st.fixed_dictionaries(
    {"command": st.lists(TEXTS, min_size=1, max_size=3).map(lambda words: ["x", *words])},
    optional={
        "environment": st.dictionaries(st.from_regex("[A-Z]{1,3}", fullmatch=True), TEXTS),
        "description": TEXTS,
    },
)
NAMES = st.sampled_from(["a", "b", "c", "d-e"])
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, COMMANDS),
        st.tuples(st.just("remove"), NAMES, st.none()),
        st.tuples(st.just("switch"), NAMES, st.booleans()),
    ),
    max_size=5,
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


@given(layout=st.sampled_from(LAYOUTS), edits=EDITS)
def test_the_file_says_what_was_meant_and_keeps_its_comments_or_is_left_alone(layout, edits):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "converser.toml"
        path.write_bytes(layout.encode())
        meant = tomli.loads(layout)
        servers = meant.setdefault("mcp", {})
        document = Document(path)
        touched = set()
        try:
            for kind, name, value in edits:
                if kind == "put":
                    document.put(name, value)
                    servers[name] = value
                elif name not in servers:
                    continue
                elif kind == "remove":
                    document.remove(name)
                    del servers[name]
                else:
                    document.set(name, "enabled", value)
                    servers[name] = {**servers[name], "enabled": value}
                touched.add(name)
            document.save()
        except ConfigurationFailure:
            assert path.read_bytes() == layout.encode()
            return
        after = path.read_bytes().decode()
        assert {"mcp": {}, **tomli.loads(after)} == meant
        if not touched:
            assert after == layout


# tomlkit loses a table that is added after several dotted keys, so such a file is left alone.
@pytest.mark.parametrize("layout", [each for each in LAYOUTS if "dotted" not in each])
def test_in_usual_layouts_a_server_can_be_added_and_no_comment_is_lost(tmp_path, layout):
    path = tmp_path / "converser.toml"
    path.write_bytes(layout.encode())
    document = Document(path)
    document.put("new", {"command": ["x"], "environment": {"A": "b"}})
    document.save()
    after = path.read_bytes().decode()
    assert tomli.loads(after)["mcp"]["new"] == {"command": ["x"], "environment": {"A": "b"}}
    for line in layout.splitlines():
        _, sign, comment = line.partition("#")
        assert sign + comment in after


def test_a_crash_while_writing_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "converser.toml"
    path.write_text(LAYOUTS[2], encoding="utf-8")
    document = Document(path)
    document.remove("a")
    with (
        mock.patch.object(os, "fsync", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        document.save()
    assert path.read_text(encoding="utf-8") == LAYOUTS[2]
    assert [each.name for each in tmp_path.iterdir()] == ["converser.toml"]


def test_a_symbolic_link_stays_one(tmp_path):
    real = tmp_path / "real.toml"
    real.write_text(LAYOUTS[2], encoding="utf-8")
    (tmp_path / "converser.toml").symlink_to(real)
    document = Document(tmp_path / "converser.toml")
    document.remove("a")
    document.save()
    assert (tmp_path / "converser.toml").is_symlink()
    assert "a" not in tomli.loads(real.read_text(encoding="utf-8"))["mcp"]
