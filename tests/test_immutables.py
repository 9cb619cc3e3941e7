# SPDX-License-Identifier: Apache-2.0
"""Frozen data cannot change, and passes for plain data everywhere else."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import json
import pickle
import pkgutil
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import converser
from converser.immutables import EMPTY, FrozenDictionary, FrozenList, freeze, thaw

json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
swift = settings(max_examples=60, deadline=None, database=None)

DICTIONARY_CHANGES = {
    "set": lambda it: it.__setitem__("a", 0),
    "delete": lambda it: it.__delitem__("a"),
    "merge": lambda it: it.__ior__({"b": 0}),
    "clear": lambda it: it.clear(),
    "pop": lambda it: it.pop("a"),
    "popitem": lambda it: it.popitem(),
    "setdefault": lambda it: it.setdefault("b", 0),
    "update": lambda it: it.update(b=0),
    "attribute": lambda it: setattr(it, "b", 0),
}
LIST_CHANGES = {
    "set": lambda it: it.__setitem__(0, 0),
    "slice": lambda it: it.__setitem__(slice(0, 1), []),
    "delete": lambda it: it.__delitem__(0),
    "extend in place": lambda it: it.__iadd__([0]),
    "repeat in place": lambda it: it.__imul__(2),
    "append": lambda it: it.append(0),
    "clear": lambda it: it.clear(),
    "extend": lambda it: it.extend([0]),
    "insert": lambda it: it.insert(0, 0),
    "pop": lambda it: it.pop(),
    "remove": lambda it: it.remove(1),
    "reverse": lambda it: it.reverse(),
    "sort": lambda it: it.sort(),
    "attribute": lambda it: setattr(it, "b", 0),
}


@pytest.mark.parametrize("change", DICTIONARY_CHANGES.values(), ids=DICTIONARY_CHANGES)
def test_a_frozen_object_refuses_every_change(change):
    frozen = freeze({"a": 1})
    with pytest.raises((TypeError, AttributeError)):
        change(frozen)
    assert frozen == {"a": 1}


@pytest.mark.parametrize("change", LIST_CHANGES.values(), ids=LIST_CHANGES)
def test_a_frozen_array_refuses_every_change(change):
    frozen = freeze([1, 2])
    with pytest.raises((TypeError, AttributeError)):
        change(frozen)
    assert frozen == [1, 2]


@pytest.mark.parametrize(("family", "plain"), [(FrozenDictionary, dict), (FrozenList, list)])
def test_no_changing_method_of_the_plain_type_is_left(family, plain):
    tried = DICTIONARY_CHANGES if plain is dict else LIST_CHANGES
    unchanging = {"copy", "count", "fromkeys", "get", "index", "items", "keys", "values"}
    public = {name for name in dir(plain) if not name.startswith("_")}
    assert public - unchanging <= set(tried)


def test_the_refusal_says_what_to_do():
    with pytest.raises(TypeError, match=r"FrozenList is immutable\. Build a changed copy"):
        freeze([]).append(1)


def test_nothing_inside_can_be_changed_either_nor_through_the_source():
    source: dict[str, Any] = {"a": [{"b": (1, 2)}]}
    frozen = freeze(MappingProxyType(source))
    source["a"].append(3)
    assert frozen == {"a": [{"b": [1, 2]}]}
    with pytest.raises(TypeError):
        frozen["a"][0]["b"].append(3)


@swift
@given(json_data)
def test_frozen_data_equals_and_serialises_like_plain_data(data):
    frozen = freeze(data)
    assert frozen == data
    assert json.dumps(frozen) == json.dumps(data)
    assert thaw(frozen) == data
    assert json.dumps(thaw(frozen)) == json.dumps(data)


@swift
@given(json_data)
def test_copies_and_pickles_are_equal_and_still_frozen(data):
    frozen = freeze({"inside": [data]})
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        revived = pickle.loads(pickle.dumps(frozen, protocol))
        assert revived == frozen
        assert hash(revived) == hash(frozen)
        assert type(revived["inside"]) is FrozenList
    assert copy.copy(frozen) == copy.deepcopy(frozen) == frozen
    assert type(copy.deepcopy(frozen)) is FrozenDictionary


@swift
@given(json_data, json_data)
def test_equal_data_has_equal_hashes(one, other):
    assert hash(freeze(one)) == hash(freeze(thaw(freeze(one))))
    if freeze(one) == freeze(other):
        assert hash(freeze(one)) == hash(freeze(other))


def test_the_order_of_members_does_not_matter_to_equality_or_hash():
    one, other = freeze({"a": 1, "b": 2}), freeze({"b": 2, "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert list(one) == ["a", "b"]


def test_thawed_data_is_plain_and_may_be_changed():
    frozen = freeze({"a": [1]})
    plain = thaw(frozen)
    plain["a"].append(2)
    assert type(plain) is dict
    assert type(plain["a"]) is list
    assert frozen == {"a": [1]}


def test_freezing_what_is_frozen_costs_nothing():
    frozen = freeze({"a": [1]})
    assert freeze(frozen) is frozen
    assert freeze(EMPTY) is EMPTY


def test_no_dataclass_has_a_default_that_python_3_10_takes_for_mutable() -> None:
    rooms = [
        importlib.import_module(room.name)
        for room in pkgutil.walk_packages(converser.__path__, "converser.")
        if not room.name.endswith("__main__")
    ]
    classes = {each for room in rooms for each in vars(room).values() if isinstance(each, type)}
    fields = [
        f"{each.__qualname__}.{field.name}"
        for each in classes
        if dataclasses.is_dataclass(each)
        for field in dataclasses.fields(each)
        if isinstance(field.default, (dict, list, set))
    ]
    assert fields == []
