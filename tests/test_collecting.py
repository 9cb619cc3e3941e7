# SPDX-License-Identifier: Apache-2.0
"""The garbage collector is eased while tools are listed, and afterwards is as it was."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest

from converser.collecting import ease_collector


@pytest.fixture(autouse=True)
def _restore() -> Generator[None]:
    usual = gc.get_threshold()
    yield
    gc.set_threshold(*usual)


def test_ease_ends_with_the_last_who_asked_for_it() -> None:
    gc.set_threshold(123, 4, 5)
    first, second = ease_collector(), ease_collector()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold()[0] > 10_000
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] > 10_000
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (123, 4, 5)


def test_a_failure_ends_it_as_well() -> None:
    gc.set_threshold(123, 4, 5)
    with pytest.raises(ZeroDivisionError), ease_collector():
        raise ZeroDivisionError
    assert gc.get_threshold() == (123, 4, 5)


@pytest.mark.parametrize("threshold", [0, 90_000])
def test_a_collector_that_is_off_or_rare_stays_so(threshold: int) -> None:
    gc.set_threshold(threshold, 4, 5)
    with ease_collector():
        assert gc.get_threshold() == (threshold, 4, 5)
    assert gc.get_threshold() == (threshold, 4, 5)


def test_what_somebody_else_has_set_meanwhile_holds() -> None:
    with ease_collector():
        gc.set_threshold(7, 8, 9)
    assert gc.get_threshold() == (7, 8, 9)
