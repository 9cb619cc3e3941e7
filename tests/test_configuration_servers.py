# SPDX-License-Identifier: Apache-2.0
"""Value objects for servers: factories, validation, and what they show of themselves."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from converser.configuration import MCPServer, normalise_name
from converser.exceptions import ConfigurationFailure

_NAME = re.compile(r"^[a-z0-9][a-z0-9_-]{0,63}$")
CANARY = "c4n4ry-v4lu3"


def test_factories_make_the_same_values_as_the_long_way():
    long = MCPServer(name="clock", transport="stdio", command=("uvx", "mcp-server-time", "--utc"))
    assert MCPServer.uvx("clock", "mcp-server-time", ["--utc"]) == long
    assert MCPServer.stdio("clock", "uvx", ("mcp-server-time", "--utc")) == long
    assert MCPServer.stdio("clock", ["uvx", "mcp-server-time", "--utc"]) == long
    assert MCPServer.npm("fs", "@scope/fs", ["/data"]).command == (
        "npx",
        "-y",
        "@scope/fs",
        "/data",
    )
    assert MCPServer.http("db", "https://db/mcp").transport == "http"
    assert MCPServer.sse("db", "https://db/sse").transport == "sse"


def test_settings_go_through_the_factories():
    server = MCPServer.http(
        "db",
        "https://db/mcp",
        headers={"A": "b"},
        timeout=5,
        enabled_tools=["read_*"],
        required=True,
    )
    assert (server.timeout, server.enabled_tools, server.required) == (5, ("read_*",), True)
    assert (server.enabled, server.tool_prefix, server.scope) == (True, None, "application")


def test_an_in_process_server_is_an_object_or_an_import_path():
    thing = object()
    assert MCPServer.in_process("here", thing).server is thing
    assert MCPServer.in_process("here", "package.module:server").server == "package.module:server"
    with pytest.raises(ConfigurationFailure, match=r"package\.module:attribute"):
        MCPServer.in_process("here", "not an import path")


def test_servers_cannot_be_changed_and_can_be_copied_hashed_and_pickled():
    environment = {"A": "b"}
    server = MCPServer.stdio("a", "x", environment=environment)
    environment["A"] = "changed"
    assert server.environment == {"A": "b"}
    with pytest.raises(TypeError):
        server.environment["A"] = "c"
    with pytest.raises(dataclasses.FrozenInstanceError):
        server.name = "b"
    assert len({server, copy.deepcopy(server), pickle.loads(pickle.dumps(server))}) == 1
    assert dataclasses.replace(server, enabled=False).enabled is False


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"name": "Weather"}, 'mcp.Weather: the name .* Did you mean "weather"'),
        ({"name": ""}, "1 to 64"),
        ({"name": "a\n"}, "1 to 64"),
        ({"name": 5}, "expected text as the name"),
        ({"transport": "stido"}, 'mcp.a.transport: .* Did you mean "stdio"'),
        ({"command": ()}, 'transport "stdio" needs the key "command"'),
        ({"command": ("",)}, "must not be empty"),
        ({"command": ("x", 5)}, r"mcp\.a\.command\[1\]: expected text, not an integer"),
        ({"url": "https://x"}, 'mcp.a.url: belongs to transport "http" or "sse"'),
        ({"timeout": 0}, "above 0"),
        ({"timeout": True}, "not a boolean"),
        ({"connect_timeout": float("inf")}, "finite"),
        ({"connect_timeout": float("nan")}, "finite"),
        ({"enabled": 1}, "expected true or false"),
        ({"enabled_tools": "read"}, "expected a list of texts, not text"),
        ({"tool_prefix": "a b"}, "letters, digits"),
        ({"tool_names": "mpc"}, 'Did you mean "mcp"'),
        ({"environment": {"A=B": "x"}}, "no '='"),
        ({"environment": {"A": 5}}, "mcp.a.environment.A: expected text"),
        ({"cwd": ""}, "must not be empty"),
    ],
)
def test_what_is_not_valid_is_refused_with_the_key_and_what_was_expected(settings, complaint):
    valid = {"name": "a", "transport": "stdio", "command": ("x",)}
    with pytest.raises(ConfigurationFailure, match=complaint) as caught:
        MCPServer(**{**valid, **settings})
    assert len(caught.value.mistakes) == 1


def test_all_mistakes_are_told_at_once():
    with pytest.raises(ConfigurationFailure) as caught:
        MCPServer(name="A", transport="stdio", command=(1,), timeout=-1)
    assert len(caught.value.mistakes) == 3


@pytest.mark.parametrize(
    "url",
    [
        f"ftp://u:{CANARY}@host/",
        f"https://u:{CANARY}",
        f"https://[{CANARY}",
        f"https:///{CANARY}",
        f"https://host/ {CANARY}",
        f"host/{CANARY}",
        f"https://u:{CANARY}/x@host",
    ],
)
def test_a_bad_url_is_refused_without_being_repeated(url):
    with pytest.raises(ConfigurationFailure) as caught:
        MCPServer.http("a", url)
    assert CANARY not in show_all(caught.value)


def test_a_header_must_have_a_proper_name():
    with pytest.raises(ConfigurationFailure, match="valid name of a header"):
        MCPServer.http("a", "https://x", headers={"X Y": "z"})


def test_a_shell_line_is_not_the_name_of_a_program():
    with pytest.raises(ConfigurationFailure, match="Write a list") as caught:
        MCPServer.stdio("a", f"npx -y thing --token {CANARY}")
    assert CANARY not in show_all(caught.value)
    assert MCPServer.stdio("a", "my program", ["x"]).command == ("my program", "x")


def test_a_program_with_spaces_in_its_name_is_fine_if_it_is_there(tmp_path):
    program = tmp_path / "my program"
    program.touch()
    assert MCPServer.stdio("a", str(program)).command == (str(program),)


def test_secrets_show_nowhere():
    servers = [
        MCPServer.stdio("a", "x", ["--token", CANARY], environment={"TOKEN": CANARY}),
        MCPServer.stdio("a", "x", environment={"TOKEN": f"env:NAME:{CANARY}"}),
        MCPServer.http(
            "b",
            f"https://u:{CANARY}@host:81/mcp?key={CANARY}#{CANARY}",
            headers={"Authorization": CANARY},
        ),
        MCPServer.sse("c", f"https://${{env:USER:{CANARY}}}@host/${{literal:{CANARY}}}"),
        MCPServer.http("d", f"env:URL:https://u:{CANARY}@host"),
        MCPServer.http("e", f"${{env:SCHEME}}://u:{CANARY}@host"),
        MCPServer.http("f", f"${{env:BASE}}/mcp?{CANARY}"),
    ]
    for server in servers:
        shown = server.describe()
        # The command is for people to approve, so it is shown as it is.
        shown.pop("command")
        assert CANARY not in f"{server!r} {server} {shown} {[server]}"


def test_a_description_is_json_and_says_what_may_be_said():
    server = MCPServer.http("b", "https://u:p@host:81/mcp?key=k", headers={"Authorization": "x"})
    shown = json.loads(json.dumps(server.describe()))
    assert shown["url"] == "https://…@host:81/mcp?…"
    assert shown["headers"] == {"Authorization": "…"}
    assert repr(server) == "<MCPServer b: http https://…@host:81/mcp?…, application>"
    stdio = MCPServer.uvx("c", "mcp-server-time", ["--utc"], enabled=False)
    assert repr(stdio) == "<MCPServer c: stdio uvx (2 arguments), application, disabled>"
    assert stdio.describe()["command"] == ["uvx", "mcp-server-time", "--utc"]
    assert MCPServer.in_process("d", object()).describe()["server"] == "object"


@given(st.text())
def test_any_text_becomes_a_valid_name_and_always_the_same(text):
    name = normalise_name(text)
    assert _NAME.match(name)
    assert name == normalise_name(text)
    assert normalise_name(name) == name.rstrip("-_")


@given(st.from_regex(_NAME, fullmatch=True))
def test_valid_names_are_accepted(name):
    assert MCPServer.stdio(name, "x").name == name


@given(st.text())
def test_other_names_are_refused(name):
    if _NAME.fullmatch(name):
        return
    with pytest.raises(ConfigurationFailure):
        MCPServer.stdio(name, "x")


def test_importing_the_room_loads_neither_parsers_nor_mcp():
    code = (
        "import sys, converser.configuration; "
        "print(sorted({'mcp', 'tomli', 'platformdirs', 'anyio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def show_all(failure):
    """All that any log or traceback could show of a failure."""
    texts = [str(failure), repr(failure), *map(repr, failure.mistakes), repr(vars(failure))]
    while failure is not None:
        texts.append(f"{failure!r} {vars(failure)}")
        failure = failure.__cause__ or failure.__context__
    return " ".join(texts)
