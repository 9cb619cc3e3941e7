# SPDX-License-Identifier: Apache-2.0
"""`converser.toml`: what it gives, and how its mistakes are told."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from converser.configuration import MCPServer, load_configuration
from converser.configuration.readings import Source
from converser.configuration.toml import read_toml
from converser.exceptions import ConfigurationFailure

CANARY = "c4n4ry-v4lu3"
SOURCE = Source(path=Path("converser.toml"), scope="project")


def read(text):
    reading = read_toml(text, SOURCE)
    assert not reading.mistakes, reading.mistakes
    return reading


def tell(text):
    return [str(mistake) for mistake in read_toml(text, SOURCE).mistakes]


def test_the_example_of_the_design_is_read():
    servers = read(
        """
        [mcp.weather]
        transport = "stdio"                                  # stdio | http | sse | in-process
        command = ["python", "-m", "weather_mcp_server"]
        environment = { WEATHER_API_KEY = "env:WEATHER_API_KEY" }

        [mcp.database]
        transport = "http"
        url = "http://localhost:8080/mcp"
        headers = { Authorization = "env:DATABASE_TOKEN" }
        """
    ).servers
    origin = {"scope": "project", "origin": SOURCE.path}
    assert list(servers.values()) == [
        MCPServer.stdio(
            "weather",
            ["python", "-m", "weather_mcp_server"],
            environment={"WEATHER_API_KEY": "env:WEATHER_API_KEY"},
            **origin,
        ),
        MCPServer.http(
            "database",
            "http://localhost:8080/mcp",
            headers={"Authorization": "env:DATABASE_TOKEN"},
            **origin,
        ),
    ]


def test_every_setting_reaches_the_server():
    server = read(
        """
        mcp.all = { command = "x", args = ["a"], cwd = "w", enabled = false, required = true, \
timeout = 5, connect_timeout = 1.5, tool_prefix = "", tool_names = "mcp", enabled_tools = [], \
disabled_tools = ["rm*"], description = "d" }
        """
    ).servers["all"]
    assert server == MCPServer(
        name="all",
        transport="stdio",
        command=("x", "a"),
        cwd="w",
        enabled=False,
        required=True,
        timeout=5,
        connect_timeout=1.5,
        tool_prefix="",
        tool_names="mcp",
        enabled_tools=(),
        disabled_tools=("rm*",),
        description="d",
        scope="project",
        origin=SOURCE.path,
    )


@pytest.mark.parametrize(
    ("settings", "transport"),
    [
        ('command = ["x"]', "stdio"),
        ('url = "https://x"', "http"),
        ('server = "a.b:c"', "in-process"),
        ('url = "https://x"\ntransport = "sse"', "sse"),
    ],
)
def test_the_transport_follows_from_the_other_keys(settings, transport):
    assert read(f"[mcp.a]\n{settings}").servers["a"].transport == transport


def test_tables_of_other_rooms_are_kept_and_not_shown(tmp_path):
    path = tmp_path / "converser.toml"
    path.write_text(f'[model]\nname = "m"\n[provider.x]\nkey = "{CANARY}"\n')
    configuration = load_configuration(path)
    assert configuration.tables == {"model": {"name": "m"}, "provider": {"x": {"key": CANARY}}}
    assert CANARY not in repr(configuration)


def test_all_mistakes_are_told_at_once_with_line_key_expectation_and_nearest_key():
    assert tell(
        """\
modle = { name = "m" }
provider = 5
[mcp.weather]
transport = "stdoi"
comand = ["python"]
timeout = true
note = \"\"\"
timeout = 5
\"\"\"

[mcp.database]
headers = { Authorization = 5, "X Y" = "z" }
command = [
  "a",  # fine
  5,
]

[mcp."Bad Name"]
command = "npx -y thing"

[mcp.empty]
[mcp.mixed]
command = "x"
transport = "http"
[mcp.lonely]
url = "https://x"
args = ["a"]
enabled_tools = "all"
"""
    ) == [
        'converser.toml:1: modle: unknown key at the top of the file. Did you mean "model"?',
        "converser.toml:2: provider: expected a table, not an integer.",
        (
            'converser.toml:4: mcp.weather.transport: expected one of "stdio", "http", "sse", '
            '"in-process". Did you mean "stdio"?'
        ),
        'converser.toml:5: mcp.weather.comand: unknown key. Did you mean "command"?',
        "converser.toml:6: mcp.weather.timeout: expected a number of seconds, not a boolean.",
        "converser.toml:7: mcp.weather.note: unknown key.",
        (
            "converser.toml:12: mcp.database.headers.Authorization: expected text, not an integer. "
            "Write it in quotes."
        ),
        'converser.toml:12: mcp.database.headers."X Y": this is not a valid name of a header.',
        (
            "converser.toml:15: mcp.database.command[1]: expected text, not an integer. "
            "Write it in quotes."
        ),
        (
            'converser.toml:18: mcp."Bad Name": the name of a server has 1 to 64 of the signs '
            "a-z, 0-9, '_' and '-', and begins with a letter or a digit. Did you mean \"bad-name\"?"
        ),
        (
            'converser.toml:19: mcp."Bad Name".command: one text is the name of one program, and there '
            'is none of this name. Write a list instead: ["program", "argument", "…"].'
        ),
        (
            'converser.toml:21: mcp.empty: has no transport. Give it one of the keys "command" '
            '(stdio), "url" (http) or "server" (in-process), or "transport".'
        ),
        'converser.toml:22: mcp.mixed: transport "http" needs the key "url".',
        'converser.toml:23: mcp.mixed.command: belongs to transport "stdio", not to "http".',
        'converser.toml:27: mcp.lonely.args: belongs to "command", which is not there.',
        "converser.toml:28: mcp.lonely.enabled_tools: expected a list of texts, not text.",
    ]


def test_a_misspelt_key_is_one_mistake_and_not_two():
    assert tell('[mcp.a]\ntransport = "stdio"\ncomand = ["x"]\n') == [
        'converser.toml:3: mcp.a.comand: unknown key. Did you mean "command"?'
    ]


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("env", "environment"), ("type", "transport"), ("toolPrefix", "tool_prefix"), ("URL", "url")],
)
def test_words_of_other_hosts_lead_to_ours(wrong, meant):
    assert f'Did you mean "{meant}"?' in tell(f'[mcp.a]\ncommand = ["x"]\n{wrong} = "x"')[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\n\n[mcp\n", 3),
        ('[mcp.a]\nurl = "x\n', 2),
        ("[mcp.a]\n[mcp.a]\n", 2),
        ("a = [\n", 1),
        (f"a = {'[' * 100_000}", None),
        (f"a = {'9' * 10_000}", None),
    ],
)
def test_a_mistake_of_syntax_has_its_line_too(text, line):
    (mistake,) = read_toml(text, SOURCE).mistakes
    assert mistake.line == line
    assert "this is not valid TOML" in str(mistake)


def test_the_mcp_table_and_each_server_must_be_tables():
    assert tell("mcp = 5") == ["converser.toml:1: mcp: expected a table, not an integer."]
    assert tell("[mcp]\na = 5")[0].startswith("converser.toml:2: mcp.a: expected a table with")


def test_a_key_cannot_steer_the_terminal():
    (line,) = tell('[mcp."\\u001b[2J\\n"]\ncommand = ["x"]')
    assert line.startswith('converser.toml:1: mcp."\\x1b[2J\\n": ')
    assert line.isprintable()


def test_scope_and_origin_are_not_for_the_file_to_say():
    lines = tell('[mcp.a]\ncommand = ["x"]\nscope = "application"\norigin = "x"\nname = "x"')
    assert [line.split(":")[1] for line in lines] == ["3", "4", "5"]


def test_no_mistake_ever_shows_a_value(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "converser.toml"
    texts = [
        f'[mcp.a]\nenvironment = "{CANARY}"\nheaders = ["{CANARY}"]\nurl = "{CANARY}"\n',
        f'[mcp.a]\ncommand = "x --token {CANARY}"\n',
        f'[mcp.a]\ntransport = "{CANARY}"\nserver = "{CANARY}"\ncwd = ["{CANARY}"]\n',
        f'[mcp.a]\ntool_prefix = "{CANARY} "\ntimeout = "{CANARY}"\nenabled = "{CANARY}"\n',
        f'[mcp.a]\nurl = "https://u:{CANARY}@[x"\nheaders = {{ A = ["{CANARY}"] }}\n',
        f'[mcp.a]\nheaders = {{ A = "{CANARY}" }} x\n',
        f'[mcp.a]\nheaders = {{ A = "{CANARY}',
    ]
    for text in texts:
        path.write_text(text)
        with pytest.raises(ConfigurationFailure) as caught:
            load_configuration(path)
        failure = caught.value
        assert failure.mistakes
        assert CANARY not in f"{failure} {failure!r} {vars(failure)} {failure.__context__!r}"
    assert CANARY not in caplog.text


_KEYS = st.sampled_from(["transport", "command", "args", "environment", "url", "timeout", "x"])
_VALUES = st.sampled_from(
    ["1", "true", '"stdio"', '"http"', '"https://x"', '["a"]', "[1]", '{ A = "b" }', "{}", '""']
)


@given(st.dictionaries(_KEYS, _VALUES))
def test_a_table_gives_a_server_or_mistakes_and_never_both_or_neither(settings):
    text = "[mcp.a]\n" + "".join(f"{key} = {value}\n" for key, value in settings.items())
    reading = read_toml(text, SOURCE)
    assert bool(reading.servers) != bool(reading.mistakes)
    assert all(1 <= mistake.line <= 1 + len(settings) for mistake in reading.mistakes)
