# SPDX-License-Identifier: Apache-2.0
"""Lines of keys: documents are written by a machine that knows where it puts each key."""

from __future__ import annotations

import json

import tomli
import tomlkit
from hypothesis import given, settings, strategies as st

from converser.configuration.jsonc import Fault, locate_json_keys, read_json
from converser.configuration.locators import locate_keys

_SIGNS = st.characters(exclude_categories=("Cs", "Cc"))
_BARE = st.text("abzAZ019_-", min_size=1, max_size=6)
_KEYS = st.one_of(_BARE, st.text(st.one_of(st.sampled_from(" .#=[]{}\"'\\"), _SIGNS), max_size=6))
_ENDS = st.sampled_from(["", "", '"', '""', "'", "''"])
_TEXTS = st.builds(
    str.__add__, st.text(st.one_of(st.sampled_from("\n #=[]{},\"'\\"), _SIGNS), max_size=12), _ENDS
)
_NOISE = st.sampled_from(["", "\n", "# note = 'x' [y]\n", "  \n\n", '# """\n'])
_SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), st.just(1.5), _TEXTS)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)
_TABLES = st.dictionaries(_KEYS, st.dictionaries(_KEYS, _VALUES, max_size=3), max_size=3)


class Writer:
    """Writes TOML in many styles, and notes the line of each key."""

    def __init__(self, draw):
        self.draw = draw
        self.text = ""
        self.lines = {}

    def note(self, path):
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], self.text.count("\n") + 1)

    def put_key(self, key):
        bare = key and all(sign.isascii() and (sign.isalnum() or sign in "-_") for sign in key)
        if bare and self.draw(st.booleans()):
            self.text += key
        elif "'" not in key and self.draw(st.booleans()):
            self.text += f"'{key}'"
        else:
            self.text += quote(key)

    def put_text(self, value):
        styles = ["basic", "long"]
        if "'''" not in value:
            styles.append("longliteral")
        if "'" not in value and "\n" not in value:
            styles.append("literal")
        match self.draw(st.sampled_from(styles)):
            case "basic":
                self.text += quote(value)
            case "long":
                escaped = value.replace("\\", "\\\\").replace('"""', '""\\"')
                self.text += f'"""\n{escaped}"""'
            case "literal":
                self.text += f"'{value}'"
            case _:
                self.text += f"'''\n{value}'''"

    def put_value(self, path, value):
        if isinstance(value, dict):
            self.text += "{"
            for place, (key, item) in enumerate(value.items()):
                self.text += ", " if place else " "
                self.put_pair(path, key, item)
            self.text += " }"
        elif isinstance(value, list):
            self.text += "["
            for place, item in enumerate(value):
                self.text += self.draw(_NOISE)
                self.note((*path, place))
                self.put_value((*path, place), item)
                self.text += self.draw(st.sampled_from(["", " ", "\n"])) + ","
            self.text += self.draw(_NOISE) + "]"
        elif isinstance(value, str):
            self.put_text(value)
        else:
            self.text += json.dumps(value)

    def put_pair(self, path, key, value):
        self.note((*path, key))
        self.put_key(key)
        self.text += self.draw(st.sampled_from(["=", " = ", "  =\t"]))
        self.put_value((*path, key), value)

    def put_dotted(self, key, table):
        for name, value in table.items():
            self.text += self.draw(_NOISE)
            self.note((key, name))
            self.put_key(key)
            self.text += self.draw(st.sampled_from([".", " . "]))
            self.put_key(name)
            self.text += " = "
            self.put_value((key, name), value)
            self.text += "\n"

    def put_headed(self, key, table):
        self.text += self.draw(_NOISE)
        self.note((key,))
        self.text += "["
        self.put_key(key)
        self.text += " ] # here\n"
        for name, value in table.items():
            self.put_pair((key,), name, value)
            self.text += " # a comment with = and [\n" + self.draw(_NOISE)


def quote(text):
    return json.dumps(text, ensure_ascii=False)


@st.composite
def documents(draw):
    writer = Writer(draw)
    dotted = {key: table for key, table in draw(_TABLES).items() if table}
    headed = {key: table for key, table in draw(_TABLES).items() if key not in dotted}
    for key, table in dotted.items():
        writer.put_dotted(key, table)
    for key, table in headed.items():
        writer.put_headed(key, table)
    return writer.text, writer.lines, {**dotted, **headed}


@given(documents())
@settings(max_examples=300, deadline=None)
def test_every_key_is_found_on_the_line_where_it_was_written(document):
    text, lines, data = document
    assert tomli.loads(text) == data
    assert locate_keys(text) == lines


@given(st.dictionaries(_KEYS, _VALUES, max_size=4))
@settings(deadline=None)
def test_every_key_of_what_another_library_writes_is_found(data):
    text = tomlkit.dumps(data)
    data = tomli.loads(text)
    assert set(list_paths(data)) <= set(locate_keys(text))


def list_paths(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from list_paths(item, (*path, key))


@given(st.text(st.sampled_from("ab=[]{}.,\"'\\#\n ")))
def test_text_that_is_not_toml_does_no_harm(text):
    last = text.count("\n") + 1
    assert all(1 <= line <= last for line in locate_keys(text).values())


def test_lists_of_tables_count_their_items():
    text = "[[a]]\nx = 1\n[[a]]\nx = 2\n[a.b]\ny = 3\n[[a.c]]\nz = 4\n"
    lines = locate_keys(text)
    assert set(list_paths(tomli.loads(text))) == set(lines)
    assert lines["a", 0, "x"] == 2
    assert lines["a", 1, "x"] == 4
    assert lines["a", 1, "b", "y"] == 6
    assert lines["a", 1, "c", 0, "z"] == 8


def test_quotation_marks_at_the_end_of_long_texts_belong_to_them():
    text = 'a = """x"""""\nb = \'\'\'x\'\'\'\'\'\nc = { d = """\\"""""" }\ne = 1\n'
    assert tomli.loads(text) == {"a": 'x""', "b": "x''", "c": {"d": '"""'}, "e": 1}
    assert locate_keys(text) == {("a",): 1, ("b",): 2, ("c",): 3, ("c", "d"): 3, ("e",): 4}


def test_windows_line_ends_and_dates_are_no_obstacle():
    text = "a = 1979-05-27 07:32:00\r\n\r\n[b]\r\nc = [1,\r\n 2]\r\n"
    tomli.loads(text)
    lines = locate_keys(text)
    assert (lines[("a",)], lines["b", "c"], lines["b", "c", 1]) == (1, 4, 5)


_JSON = st.dictionaries(st.text(max_size=5), _VALUES, max_size=4)


@given(_JSON, st.sampled_from([None, 0, 2]))
def test_json_is_read_and_all_its_keys_are_found(data, indent):
    text = json.dumps(data, indent=indent)
    lines, doubled = locate_json_keys(text)
    assert read_json(text) == data
    assert set(lines) == set(list_paths(data))
    assert not doubled


@given(_JSON)
def test_comments_and_trailing_commas_change_nothing(data):
    text = json.dumps(data, indent=1)
    signs = [
        f"{line}, // , }} ]" if text_may_end(line, following) else f'{line} /* \n" */'
        for line, following in zip(text.split("\n"), [*text.split("\n")[1:], ""], strict=True)
    ]
    assert read_json("// first\n" + "\n".join(signs)) == data


def text_may_end(line, following):
    return following.strip()[:1] in ("}", "]") and line.rstrip()[-1:] not in ("{", "[", ",", "")


def test_lines_of_json_keys_are_counted_from_one():
    lines, doubled = locate_json_keys('// c\n{\n "a": [1,\n {"b": 2}],\n "a": 3}')
    assert (lines["a", 0], lines["a", 1, "b"], lines[("a",)]) == (3, 4, 5)
    assert doubled == [("a",)]


def test_broken_json_gives_its_line_and_not_its_text():
    fault = read_json('{\n"token": "secret"\n"b": 1}')
    assert isinstance(fault, Fault)
    assert fault.line == 3
    assert "secret" not in fault.message
