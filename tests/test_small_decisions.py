# SPDX-License-Identifier: Apache-2.0
"""How a small model's choice among names is weighed, and how a request is taken apart for it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings, strategies as st

from converser.providers.planning import has_joints, read_parts, read_task, write_task
from converser.providers.weighing import average, rank_names

pytestmark = pytest.mark.anyio

NAMES = st.lists(st.text("ab_-", min_size=1, max_size=6), min_size=1, max_size=8, unique=True)


def make_weigh(shares, size=1):
    """A model that writes pieces of some letters, and names with these shares."""
    asked = []

    async def weigh(path):
        asked.append(path)
        pieces = {"zz": -1.0}
        for name, share in shares.items():
            whole = f'{name}"'
            if whole.startswith(path) and len(whole) > len(path):
                piece = whole[len(path) : len(path) + size]
                pieces[piece] = pieces.get(piece, 0.0) + share
        return {key: value if key == "zz" else math.log(value) for key, value in pieces.items()}

    weigh.asked = asked
    return weigh


async def test_a_name_is_weighed_as_a_whole_and_not_by_its_first_letters():
    shares = {"git_branch": 0.3, "git_log": 0.25, "get_time": 0.45}
    ranks = await rank_names(make_weigh(shares, 3), shares, 3)
    assert list(ranks) == ["get_time", "git_branch", "git_log"]
    assert math.isclose(math.exp(ranks["git_log"]), 0.25, rel_tol=1e-6)


async def test_a_name_that_begins_another_is_told_apart_by_its_end():
    shares = {"git_diff": 0.2, "git_diff_staged": 0.8}
    ranks = await rank_names(make_weigh(shares, 4), shares, 2)
    assert list(ranks) == ["git_diff_staged", "git_diff"]


async def test_no_more_is_asked_than_the_best_names_need():
    shares = {"a_one": 0.9, "b_one": 0.05, "b_two": 0.05}
    weigh = make_weigh(shares)
    assert list(await rank_names(weigh, shares, 1)) == ["a_one"]
    assert weigh.asked == [""]


async def test_where_the_model_would_write_something_else_all_names_are_left():
    async def weigh(_):
        return {"Hello": -0.1, "": -2.0}

    assert set(await rank_names(weigh, ["x", "y"], 5)) == {"x", "y"}


def test_a_name_that_one_ranking_does_not_have_is_unlikely_there():
    ranks = average([{"a": -0.5, "b": -1.0}, {"b": -2.0, "c": -0.25}])
    assert ranks == {"a": -3.75, "b": -1.5, "c": -3.625}


def test_a_name_that_is_bad_in_one_ranking_is_no_worse_than_one_that_is_missing_there():
    assert average([{"a": -0.5, "b": -40.0}, {"b": -0.5}])["b"] == -3.75


@settings(deadline=None)
@given(names=NAMES, size=st.integers(1, 8), data=st.data())
async def test_every_name_has_its_share_however_it_is_cut(names, size, data):
    weights = {name: data.draw(st.integers(1, 100), label=name) for name in names}
    total = sum(weights.values())
    shares = {name: weight / total for name, weight in weights.items()}
    ranks = await rank_names(make_weigh(shares, size), names, len(names))
    assert set(ranks) == set(names)
    assert list(ranks.values()) == sorted(ranks.values(), reverse=True)
    for name, rank in ranks.items():
        assert math.isclose(math.exp(rank), shares[name], rel_tol=1e-6)


@pytest.mark.parametrize(
    ("request_", "joined"),
    [
        ("What time is it?", False),
        ("Weather in Oslo and in Rome?", True),
        ("Open it, then close it.", True),
        ("Add 15 and 27.", False),
        ("Read notes/a.txt and notes/b.txt.", False),
        ("Add 5 and 6, then halve it.", True),
        ("Tell me of Sandy.", False),
    ],
)
def test_only_what_joins_more_than_names_may_join_requests(request_, joined):
    assert has_joints(request_) is joined


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        (" Read a/b.txt. | Say 'x' twice.", ["Read a/b.txt.", "Say 'x' twice."]),
        ("Read a/b.txt and say 'x' twice.", None),
        ("Read a/b.txt. | Say it twice.", None),
        ("Read a/b.txt. | Say 'x' 2 times.", None),
        ("Read a/b.txt | Read a/b.txt and say 'x' twice.", None),
        ("Read a/b.txt. | Say 'x'. | Say 'x' again. | Sing. | Dance.", None),
        ("", None),
    ],
)
def test_parts_that_lose_or_invent_something_are_not_taken(written, parts):
    request = "Read a/b.txt and say 'x' twice."
    assert read_parts(request, written) == (parts or [request])


@given(st.text())
def test_any_request_and_any_answer_fit_on_a_line(text):
    assert write_task(text, ()).count("\n") == write_task("", ()).count("\n")
    assert write_task("", (text, "x")).count("\n") == write_task("", ("x",)).count("\n")
    assert not set('"\\\n\r') & set(read_task(text))
    assert read_parts(text, "") == [text]
