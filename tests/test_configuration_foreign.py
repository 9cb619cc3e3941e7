# SPDX-License-Identifier: Apache-2.0
"""Files of other hosts: Claude, Cursor and VS Code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from converser.configuration import (
    MCPServer,
    load_configuration,
    resolve_command,
    resolve_environment,
    resolve_headers,
)
from converser.configuration.foreign import read_foreign
from converser.configuration.readings import Source
from converser.exceptions import ConfigurationFailure


@pytest.fixture
def load(tmp_path):
    def load(data, name="mcp.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
        return load_configuration(path)

    return load


def test_servers_of_claude_are_read(load, tmp_path):
    configuration = load(
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "fs"], "env": {"A": "b"}, "cwd": "/x"},
                "remote": {"type": "http", "url": "https://x/mcp", "headers": {"A": "b"}},
                "old": {"type": "sse", "url": "https://x/sse"},
                "plain": {"url": "https://x/mcp", "disabled": True},
            },
            "otherSettings": {"theme": "dark"},
        }
    )
    origin = {"scope": "project", "origin": tmp_path / "mcp.json"}
    assert list(configuration.servers.values()) == [
        MCPServer.stdio("files", ["npx", "-y", "fs"], environment={"A": "b"}, cwd="/x", **origin),
        MCPServer.http("remote", "https://x/mcp", headers={"A": "b"}, **origin),
        MCPServer.sse("old", "https://x/sse", **origin),
        MCPServer.http("plain", "https://x/mcp", enabled=False, **origin),
    ]
    assert configuration.remarks == ()


def test_servers_of_vs_code_are_read_with_comments_and_trailing_commas(load, tmp_path):
    configuration = load(
        """
        // Servers of this project
        { "inputs": [],
          "servers": {
            "fetch": { "type": "stdio", "command": "uvx", /* , } */ "args": ["mcp-server-fetch",],
                       "env": {"ROOT": "${workspaceFolder}", "PORT": 80, "OFF": null},
                       "envFile": ".env", "gallery": "x", },
          }, }
        """,
        ".vscode/mcp.json",
    )
    server = configuration.servers["fetch"]
    assert server.command == ("uvx", "mcp-server-fetch")
    assert resolve_environment(server) == {"ROOT": str(tmp_path), "PORT": "80"}
    place = f"{tmp_path}/.vscode/mcp.json"
    assert configuration.remarks == (
        f"{place}:6: servers.fetch.env.OFF is null, and left out.",
        f'{place}:7: servers.fetch.envFile is not used here: put its variables into "env".',
        f"{place}:7: servers.fetch.gallery is not used here.",
    )


def test_folders_that_an_editor_knows_are_known_here(load, tmp_path):
    text = "${userHome}|${workspaceFolder}|${workspaceFolderBasename}|${/}${pathSeparator}"
    server = load({"servers": {"a": {"command": "x", "env": {"A": text}}}}).servers["a"]
    expected = f"{Path.home()}|{tmp_path}|{tmp_path.name}|{os.sep}{os.sep}"
    assert resolve_environment(server) == {"A": expected}


def test_settings_of_vs_code_may_hold_the_servers_deeper(load):
    assert load({"mcp": {"servers": {"a": {"command": "x"}}}}, "settings.json").servers["a"]


def test_variables_of_other_hosts_become_references(load):
    server = load(
        {
            "mcpServers": {
                "a": {
                    "command": "npx",
                    "args": ["${PACKAGE:-thing}", "${env:TOKEN}", "$HOME", "file:../x"],
                    "env": {
                        "A": "${TOKEN}",
                        "B": "x-${TOKEN}-${env:TOKEN}",
                        "C": "file:./dev.db",
                        "D": "env:TOKEN",
                        "E": "${file:x} ${literal:y} ${strange thing}",
                        "F": "env:TOKEN:${TOKEN}",
                    },
                },
            }
        }
    ).servers["a"]
    environ = {"TOKEN": "t"}
    assert resolve_command(server, environ=environ) == ("npx", "thing", "t", "$HOME", "file:../x")
    assert resolve_environment(server, environ=environ) == {
        "A": "t",
        "B": "x-t-t",
        "C": "file:./dev.db",
        "D": "env:TOKEN",
        "E": "${file:x} ${literal:y} ${strange thing}",
        "F": "env:TOKEN:t",
    }


@given(st.text().filter(lambda text: "${" not in text))
def test_text_without_variables_arrives_as_it_is(text):
    source = Source(path=Path("mcp.json"), scope="user")
    data = {"mcpServers": {"a": {"url": "https://x", "headers": {"A": text}}}}
    reading = read_foreign(json.dumps(data), source)
    if "\0" in text:
        assert reading.mistakes
        return
    server = reading.servers["a"]
    if all(sign == "\t" or (ord(sign) >= 32 and sign != "\x7f") for sign in text):
        assert resolve_headers(server, environ={}) == {"A": text}


def test_names_are_made_to_fit_and_this_is_said(load, tmp_path):
    configuration = load({"mcpServers": {"My Server": {"command": "x"}}})
    assert list(configuration.servers) == ["my-server"]
    assert configuration.remarks == (
        f'{tmp_path}/mcp.json:3: mcpServers."My Server" is called "my-server" here.',
    )


def test_mistakes_are_told_all_at_once_with_their_lines(load, tmp_path):
    with pytest.raises(ConfigurationFailure) as caught:
        load(
            """{"mcpServers": {
  "My Server": {"command": "x"},
  "my-server": {"command": "y"},
  "asks": {"url": "https://x",
    "headers": {"Authorization": "Bearer ${input:api-key}"}},
  "odd": {"type": "websocket", "url": "https://x"},
  "both": {"command": "x", "url": "https://x"},
  "twice": {"command": "x",
    "command": "y"},
  "line": {"command": "npx -y thing"},
  "wrong": {"command": "x", "disabled": "yes", "env": {"A": true}},
  "none": {},
  "text": "x"
}}"""
        )
    place = f"{tmp_path}/mcp.json"
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        (
            f'{place}:3: mcpServers.my-server: would be called "my-server", as another server is. '
            "Rename one of them."
        ),
        (
            f"{place}:5: mcpServers.asks.headers.Authorization: asks the editor for a value "
            "(${input:…}), and there is none here. Set an environment variable, and write "
            "${env:API_KEY}."
        ),
        f'{place}:6: mcpServers.odd.type: expected one of "stdio", "http", "sse", "in-process".',
        f'{place}:7: mcpServers.both.url: belongs to transport "http" or "sse", not to "stdio".',
        f"{place}:9: mcpServers.twice.command: is there more than once. Keep one of them.",
        (
            f"{place}:10: mcpServers.line.command: one text is the name of one program, and there is "
            'none of this name. Write a list instead: ["program", "argument", "…"].'
        ),
        f"{place}:11: mcpServers.wrong.disabled: expected true or false, not text.",
        f"{place}:11: mcpServers.wrong.env.A: expected text, not a boolean. Write it in quotes.",
        (
            f'{place}:12: mcpServers.none: has no transport. Give it one of the keys "command" '
            '(stdio), "url" (http) or "server" (in-process), or "transport".'
        ),
        f"{place}:13: mcpServers.text: expected an object with the settings of a server, not text.",
    ]


def test_misspelt_keys_are_told_with_the_nearest_one(load, tmp_path):
    with pytest.raises(ConfigurationFailure) as caught:
        load(
            """{"servers": {
  // a comment
  "one": {
    "comand": "npx",
    "agrs": ["-y"], "evn": {}},
  "two": {"url": "https://x",
    "Headers": {}, "environment": {}}
}}"""
        )
    place = f"{tmp_path}/mcp.json"
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        f'{place}:4: servers.one.comand: unknown key. Did you mean "command"?',
        f'{place}:5: servers.one.agrs: unknown key. Did you mean "args"?',
        f'{place}:5: servers.one.evn: unknown key. Did you mean "env"?',
        f'{place}:7: servers.two.Headers: unknown key. Did you mean "headers"?',
        f'{place}:7: servers.two.environment: unknown key. Did you mean "env"?',
    ]


@pytest.mark.parametrize(
    "key",
    [
        "alwaysAllow",
        "autoApprove",
        "disabledTools",
        "headersHelper",
        "gallery",
        "version",
        "oauth",
        "envFile",
        "timeout",
        "name",
        "tools",
        "sandbox",
        "dev",
        "icon",
        "title",
        "metadata",
    ],
)
def test_what_other_hosts_want_to_know_is_only_remarked(load, tmp_path, key):
    configuration = load({"mcpServers": {"one": {"command": "x", key: {}}}})
    assert list(configuration.servers) == ["one"]
    [remark] = configuration.remarks
    assert remark.startswith(f"{tmp_path}/mcp.json:5: mcpServers.one.{key} is not used here")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{\n"mcpserver": {}}', 'mcp.json:2: mcpserver: unknown key. Did you mean "mcpServers"?'),
        ("", "mcp.json:1: this is not valid JSON"),
        ('{"mcpServers": {\n"a": }}', "mcp.json:2: this is not valid JSON"),
        ("{}", 'under "mcpServers" or "servers"'),
        ('{"mcpServers": []}', "mcp.json:1: mcpServers: expected an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 10_000 + "}", "too many digits"),
    ],
)
def test_what_is_no_such_file_is_told(load, text, complaint):
    with pytest.raises(ConfigurationFailure) as caught:
        load(text)
    assert complaint in str(caught.value)
