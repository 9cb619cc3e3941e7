# SPDX-License-Identifier: Apache-2.0
"""Names on the wire fit every provider, stay as they are, and are never shared by two tools."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, strategies as st

import converser

WIRE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
# Lone surrogates too: JSON can carry them.
NAMES = st.lists(
    st.text(st.characters(), max_size=90) | st.text("ab._- /é", max_size=8),
    unique=True,
    max_size=12,
)
NAMINGS = st.sampled_from(
    [
        converser.Naming(),
        converser.Naming(style="prefix"),
        converser.Naming(style="mcp"),
        converser.Naming(prefix="weather"),
        converser.Naming(prefix=""),
        converser.Naming(prefix="ä" * 70),
    ]
)


PLAIN = converser.Naming()


async def do_nothing(context: converser.Context, arguments: dict[str, Any]) -> Any:
    return converser.InvocationResult()


def create_ensemble(
    tools: Iterable[str],
    naming: converser.Naming = PLAIN,
    name: str = "sky",
) -> converser.Ensemble:
    return converser.Ensemble(
        name,
        tools=[(converser.Tool(name=tool), do_nothing) for tool in tools],
        configuration=converser.EnsembleConfiguration(naming=naming),
    )


@given(names=NAMES, naming=NAMINGS)
def test_any_names_become_unique_names_that_every_provider_takes(
    names: list[str], naming: converser.Naming
) -> None:
    ensemble = create_ensemble(names, naming)
    assert len(ensemble.invokers) == len(names)
    assert all(WIRE.fullmatch(name) for name in ensemble.invokers)
    assert sorted(i.tool.name for i in ensemble.invokers.values()) == sorted(names)
    assert all(name == invoker.name for name, invoker in ensemble.invokers.items())


@given(names=NAMES, naming=NAMINGS, seed=st.randoms(use_true_random=False))
def test_names_and_order_do_not_depend_on_the_order_of_a_listing(
    names: list[str], naming: converser.Naming, seed: Any
) -> None:
    shuffled = list(names)
    seed.shuffle(shuffled)
    first, second = create_ensemble(names, naming), create_ensemble(shuffled, naming)
    assert list(first.invokers) == list(second.invokers)
    assert {n: i.tool.name for n, i in first.invokers.items()} == {
        n: i.tool.name for n, i in second.invokers.items()
    }


@given(ours=NAMES, theirs=NAMES, style=st.sampled_from(["prefix", "mcp"]))
def test_names_stay_the_same_when_another_ensemble_is_added(
    ours: list[str], theirs: list[str], style: Any
) -> None:
    naming = converser.Naming(style=style)
    alpha = create_ensemble(ours, naming, "alpha")
    beta = create_ensemble(theirs, naming, "beta")
    alone = converser.gather_invokers([alpha])
    together = converser.gather_invokers([alpha, beta])
    assert alone.items() <= together.items()
    assert len(together) == len(ours) + len(theirs)


def test_a_name_that_fits_is_left_alone() -> None:
    assert list(create_ensemble(["get_forecast", "x-1"]).invokers) == ["get_forecast", "x-1"]


def test_both_styles_are_offered() -> None:
    assert list(create_ensemble(["rain"], converser.Naming(style="prefix")).invokers) == [
        "sky_rain"
    ]
    assert list(create_ensemble(["rain"], converser.Naming(prefix="w")).invokers) == ["w_rain"]
    assert list(create_ensemble(["rain"], converser.Naming(style="mcp")).invokers) == [
        "mcp__sky__rain"
    ]
    assert list(create_ensemble(["rain"], converser.Naming(prefix="")).invokers) == ["rain"]


def test_long_names_are_shortened_with_a_hash_that_tells_them_apart() -> None:
    long = ["a" * 70 + "1", "a" * 70 + "2"]
    names = list(create_ensemble(long).invokers)
    expected = [f"{'a' * 55}_{hashlib.sha256(n.encode()).hexdigest()[:8]}" for n in long]
    assert sorted(names) == sorted(expected)
    assert all(len(name) == 64 for name in names)


def test_a_name_of_64_characters_is_not_shortened() -> None:
    assert list(create_ensemble(["a" * 64]).invokers) == ["a" * 64]
    assert list(create_ensemble(["a" * 65]).invokers) != ["a" * 65]


def test_where_two_names_become_alike_the_unaltered_one_keeps_its_name() -> None:
    ensemble = create_ensemble(["a.b", "a_b", "a b"])
    assert ensemble.invokers["a_b"].tool.name == "a_b"
    others = {i.tool.name: n for n, i in ensemble.invokers.items() if n != "a_b"}
    assert others.keys() == {"a.b", "a b"}
    assert all(re.fullmatch(r"a_b_[0-9a-f]{8}", name) for name in others.values())


def test_renames_apply_before_the_prefix() -> None:
    naming = converser.Naming(prefix="w", renames={"get_rain": "rain"})
    ensemble = create_ensemble(["get_rain", "snow"], naming)
    assert list(ensemble.invokers) == ["w_rain", "w_snow"]
    assert ensemble.access_invoker("get_rain").name == "w_rain"


def test_renames_cannot_be_changed_from_outside() -> None:
    renames = {"a": "b"}
    naming = converser.Naming(renames=renames)
    renames["a"] = "c"
    assert list(create_ensemble(["a"], naming).invokers) == ["b"]


def test_two_tools_renamed_to_one_name_are_an_error_with_a_remedy() -> None:
    naming = converser.Naming(renames={"a": "same", "b": "same"})
    with pytest.raises(converser.NameConflict, match=r"'a' and 'b' of ensemble 'sky'") as caught:
        create_ensemble(["a", "b"], naming)
    assert "renames" in caught.value.remedy


def test_a_rename_onto_another_tool_is_an_error_with_a_remedy() -> None:
    with pytest.raises(converser.NameConflict) as caught:
        create_ensemble(["a", "b"], converser.Naming(renames={"a": "b"}))
    assert caught.value.remedy


def test_a_server_that_forges_a_hash_gets_an_error_and_overwrites_nothing() -> None:
    forged = f"a_b_{hashlib.sha256(b'a.b').hexdigest()[:8]}"
    with pytest.raises(converser.NameConflict) as caught:
        create_ensemble(["a.b", "a_b", forged])
    assert caught.value.remedy


def test_two_tools_of_one_name_in_one_ensemble_are_an_error_with_a_remedy() -> None:
    with pytest.raises(converser.NameConflict, match=r"two tools of the name 'rain'") as caught:
        create_ensemble(["rain", "rain"])
    assert caught.value.remedy


def test_two_ensembles_with_one_name_are_an_error_whose_remedy_works() -> None:
    sky, sea = create_ensemble(["rain"], name="sky"), create_ensemble(["rain"], name="sea")
    with pytest.raises(converser.NameConflict, match=r"'sky' and 'sea'.*'rain'") as caught:
        converser.gather_invokers([sky, sea])
    assert 'Naming(prefix="sea")' in caught.value.remedy
    sea = create_ensemble(["rain"], converser.Naming(prefix="sea"), name="sea")
    assert list(converser.gather_invokers([sky, sea])) == ["rain", "sea_rain"]


def test_the_same_ensemble_twice_is_no_conflict() -> None:
    sky = create_ensemble(["rain"])
    assert list(converser.gather_invokers([sky, sky])) == ["rain"]
