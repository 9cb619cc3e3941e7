# SPDX-License-Identifier: Apache-2.0
"""Where configuration is found, which file wins, and that this is known."""

from __future__ import annotations

import pytest

from converser.configuration import find_user_file, load_configuration
from converser.exceptions import ConfigurationFailure


@pytest.fixture
def user_file(tmp_path, monkeypatch):
    home = tmp_path / "home"
    for name in ("HOME", "USERPROFILE", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    path = find_user_file()
    assert home in path.parents
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "deep" / "deeper").mkdir(parents=True)
    return folder


def server(name, program="x"):
    return f'[mcp.{name}]\ncommand = ["{program}"]\n'


def test_nothing_found_is_an_empty_configuration(user_file, project):
    configuration = load_configuration(start=project)
    assert configuration.servers == {}
    assert configuration.files == ()


def test_the_working_directory_is_where_the_search_begins(user_file, project, monkeypatch):
    (project / "converser.toml").write_text(server("a"))
    monkeypatch.chdir(project / "deep")
    assert list(load_configuration().servers) == ["a"]


def test_only_the_nearest_file_of_the_project_counts(user_file, project):
    (project / "converser.toml").write_text(server("far"))
    (project / "deep" / "converser.toml").write_text(server("near"))
    configuration = load_configuration(start=project / "deep" / "deeper")
    assert list(configuration.servers) == ["near"]


def test_the_project_wins_over_the_user_and_it_is_known_which_file_gave_what(user_file, project):
    mine = project / "converser.toml"
    mine.write_text(server("both", "mine") + server("project") + '[model]\nname = "mine"\n')
    user_file.write_text(server("user") + server("both", "user") + "[model]\nname = 1\nheat = 2\n")
    configuration = load_configuration(start=project)
    assert list(configuration.servers) == ["both", "project", "user"]
    assert configuration.servers["both"].command == ("mine",)
    origins = {name: (one.scope, one.origin) for name, one in configuration.servers.items()}
    assert origins == {
        "both": ("project", mine),
        "project": ("project", mine),
        "user": ("user", user_file),
    }
    assert [(file.path, file.scope) for file in configuration.files] == [
        (mine, "project"),
        (user_file, "user"),
    ]
    assert configuration.tables == {"model": {"name": "mine", "heat": 2}}
    assert configuration.remarks == (f"{user_file}: mcp.both gives way to the one in {mine}.",)


def test_mistakes_of_both_files_are_told_at_once(user_file, project):
    (project / "converser.toml").write_text("x = 1")
    user_file.write_text("\ny = 1")
    with pytest.raises(ConfigurationFailure) as caught:
        load_configuration(start=project)
    assert [(mistake.key, mistake.line) for mistake in caught.value.mistakes] == [
        ("x", 1),
        ("y", 2),
    ]


def test_the_users_file_is_the_users_even_in_its_own_folder(user_file):
    user_file.write_text(server("a"))
    for configuration in (
        load_configuration(start=user_file.parent),
        load_configuration(user_file),
    ):
        assert [file.scope for file in configuration.files] == ["user"]
        assert configuration.servers["a"].scope == "user"


def test_an_explicit_path_is_the_only_file(user_file, project):
    (project / "converser.toml").write_text(server("project"))
    user_file.write_text(server("user"))
    other = project / "other.conf"
    other.write_text(server("other"))
    assert list(load_configuration(other, start=project).servers) == ["other"]
    other.write_text('\ufeff // json\n{"mcpServers": {"j": {"command": "x"}}}')
    configuration = load_configuration(str(other))
    assert list(configuration.servers) == ["j"]
    assert configuration.servers["j"].scope == "project"


def test_an_explicit_path_must_be_a_readable_file(user_file, project):
    with pytest.raises(ConfigurationFailure, match=r"absent\.toml: the file cannot be read"):
        load_configuration(project / "absent.toml")
    with pytest.raises(ConfigurationFailure, match="cannot be read"):
        load_configuration(project)


def test_a_file_that_is_not_text_is_told_with_its_line(user_file, project):
    path = project / "converser.toml"
    path.write_bytes(b"[mcp.a]\ncommand = ['\xff']\n")
    with pytest.raises(ConfigurationFailure, match=r"converser\.toml:2: this is not text in UTF-8"):
        load_configuration(path)


def test_a_configuration_cannot_be_changed(user_file, project):
    (project / "converser.toml").write_text(server("a"))
    configuration = load_configuration(start=project)
    with pytest.raises(TypeError):
        configuration.servers["b"] = configuration.servers["a"]
