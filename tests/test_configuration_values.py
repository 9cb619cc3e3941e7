# SPDX-License-Identifier: Apache-2.0
"""References become values when a server is connected, and values never become messages."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import example, given, strategies as st

from converser.configuration import (
    MCPServer,
    resolve_command,
    resolve_cwd,
    resolve_environment,
    resolve_headers,
    resolve_server,
    resolve_url,
    resolve_value,
)
from converser.exceptions import ConfigurationFailure

CANARY = "c4n4ry-v4lu3"
_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True)
_PLAIN = st.text().filter(
    lambda text: not text.startswith(("env:", "file:", "literal:")) and "${" not in text
)


@given(_PLAIN)
@example("$NAME {x} $${ }")
@example("environment:x")
def test_any_other_text_is_itself(text):
    assert resolve_value(text, environ={}) == text


@given(_NAMES, st.text())
def test_a_variable_gives_its_value_which_is_not_read_again(name, value):
    assert resolve_value(f"env:{name}", environ={name: value}) == value
    assert resolve_value(f"env:{name}:default", environ={name: value}) == value
    reference = "env:OTHER ${env:OTHER}"
    assert resolve_value(f"env:{name}", environ={name: reference}) == reference
    assert resolve_value(f"${{env:{name}}}", environ={name: reference}) == reference


@given(_NAMES, st.text())
def test_a_default_stands_in_for_a_variable_that_is_not_set(name, default):
    assert resolve_value(f"env:{name}:{default}", environ={}) == default


@given(st.lists(st.tuples(_PLAIN.filter(lambda text: "$" not in text), _NAMES, st.text())))
def test_references_stand_anywhere_in_a_longer_text(parts):
    environ = {name: value for _, name, value in parts}
    text = "Bearer " + "".join(f"{before}${{env:{name}}}" for before, name, _ in parts)
    expected = "Bearer " + "".join(f"{before}{environ[name]}" for before, name, _ in parts)
    assert resolve_value(text, environ=environ) == expected


@given(st.text(min_size=1))
def test_what_follows_literal_is_itself(text):
    assert resolve_value(f"literal:{text}", environ={}) == text


def test_a_text_that_only_looks_like_a_variable_is_itself():
    assert resolve_value("env:prod,region:eu", environ={}) == "env:prod,region:eu"
    assert resolve_value("env: x", environ={}) == "env: x"


def test_an_empty_variable_is_set():
    assert resolve_value("env:A:default", environ={"A": ""}) == ""


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_file_gives_its_text_without_the_last_line_break(tmp_path, end):
    (tmp_path / "token").write_bytes(f" a\nb {end}".encode())
    assert resolve_value("file:token", folder=tmp_path) == " a\nb "
    assert resolve_value(f"Bearer ${{file:{tmp_path}/token}}.") == "Bearer  a\nb ."


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "token").write_text("x")
    assert resolve_value("file:~/token", folder=tmp_path / "elsewhere") == "x"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("env:ABSENT_ONE", 'variable ABSENT_ONE is not set. Set it, or .*"env:ABSENT_ONE:default"'),
        ("x ${env:ABSENT_ONE}", "ABSENT_ONE is not set"),
        ("${env:not a name}", "lacks a proper name"),
        ("file:absent", "absent cannot be read: there is no such file.*literal:file:"),
        ("file:.", "there is no such file"),
        ("file:\0", "cannot be read|no such file"),
        ("file:~nobody-of-this-name/x", "home folder"),
        ("file:binary", "not text in UTF-8"),
        ("file:large", "larger than"),
    ],
)
def test_what_cannot_be_resolved_is_told_with_a_remedy(tmp_path, text, complaint):
    (tmp_path / "binary").write_bytes(b"\xff" + CANARY.encode())
    (tmp_path / "large").write_bytes(CANARY.encode() * 100_000)
    with pytest.raises(ConfigurationFailure, match=complaint) as caught:
        resolve_value(text, folder=tmp_path, environ={})
    assert CANARY not in f"{caught.value!r}{caught.value.__context__!r}"


def test_all_that_is_missing_is_named_at_once_with_server_and_key(tmp_path):
    server = MCPServer.stdio(
        "weather",
        "x",
        environment={"A": "env:ONE", "B": f"{CANARY} ${{env:TWO}}", "C": CANARY},
        origin=tmp_path / "converser.toml",
    )
    with pytest.raises(ConfigurationFailure) as caught:
        resolve_environment(server, environ={})
    assert [mistake.key for mistake in caught.value.mistakes] == [
        "mcp.weather.environment.A",
        "mcp.weather.environment.B",
    ]
    assert "ONE is not set" in str(caught.value)
    assert "TWO is not set" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert CANARY not in f"{caught.value!r}"


def test_everything_of_a_server_is_resolved_from_the_folder_of_its_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN", "t")
    (tmp_path / "key").write_text("k\n")
    (tmp_path / "work").mkdir()
    origin = tmp_path / "converser.toml"
    local = MCPServer.stdio(
        "a",
        ["x", "file:key", "env:TOKEN", "--t=${env:TOKEN}"],
        environment={"T": "env:TOKEN", "K": "file:key"},
        cwd="work",
        origin=origin,
    )
    assert resolve_environment(local) == {"T": "t", "K": "k"}
    assert resolve_command(local) == ("x", "file:key", "env:TOKEN", "--t=t")
    assert resolve_cwd(local) == tmp_path / "work"
    assert resolve_cwd(MCPServer.stdio("a", "x")) is None
    remote = MCPServer.http(
        "b", "https://h/${env:TOKEN}", headers={"A": "Bearer ${file:key}"}, origin=origin
    )
    assert resolve_headers(remote) == {"A": "Bearer k"}
    assert resolve_url(remote) == "https://h/t"


def test_the_values_of_a_server_are_read_at_each_connection(monkeypatch):
    server = MCPServer.stdio("a", "x", environment={"T": "env:TOKEN"})
    for value in ("one", "two"):
        monkeypatch.setenv("TOKEN", value)
        assert resolve_environment(server) == {"T": value}


@pytest.mark.parametrize("value", [f"{CANARY}\nX: y", f"{CANARY}\r", f"{CANARY}\0"])
def test_a_value_that_would_break_a_header_is_refused_and_not_shown(value):
    server = MCPServer.http("a", "https://x", headers={"A": "Bearer ${env:T}"})
    with pytest.raises(ConfigurationFailure, match=r"mcp\.a\.headers\.A: .* control") as caught:
        resolve_headers(server, environ={"T": value})
    assert CANARY not in repr(caught.value)


def test_a_url_from_a_variable_is_checked_when_it_is_known():
    server = MCPServer.http("a", "env:URL")
    assert resolve_url(server, environ={"URL": "https://x/mcp"}) == "https://x/mcp"
    with pytest.raises(ConfigurationFailure, match=r"mcp\.a\.url: .*https://") as caught:
        resolve_url(server, environ={"URL": f"ftp://{CANARY}"})
    assert CANARY not in repr(caught.value)


def test_a_folder_that_is_not_there_is_told_before_the_process_starts():
    server = MCPServer.stdio("a", "x", cwd=f"absent{os.sep}folder")
    with pytest.raises(ConfigurationFailure, match=r"mcp\.a\.cwd: there is no such folder"):
        resolve_cwd(server)
    with pytest.raises(ConfigurationFailure, match="home folder"):
        resolve_cwd(MCPServer.stdio("a", "x", cwd="~nobody-of-this-name"))


def test_a_server_in_this_process_is_imported_when_it_is_needed(tmp_path, monkeypatch):
    (tmp_path / "some_servers.py").write_text("class Box: pass\nBox.it = Box()\nnothing = None\n")
    (tmp_path / "broken_servers.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    thing = object()
    assert resolve_server(MCPServer.in_process("a", thing)) is thing
    found = resolve_server(MCPServer.in_process("a", "some_servers:Box.it"))
    assert found is sys.modules["some_servers"].Box.it
    for path in (
        "some_servers:absent",
        "absent_module:x",
        "broken_servers:x",
        "some_servers:nothing",
    ):
        with pytest.raises(ConfigurationFailure, match=r"mcp\.a\.server: "):
            resolve_server(MCPServer.in_process("a", path))
