# SPDX-License-Identifier: Apache-2.0
"""Whatever a server or a network does: the caller is free in time, told plainly, and nothing is left behind."""

from __future__ import annotations

import pytest

from tests.faults.catalogue import FAULTS
from tests.faults.fault import Fault, Report, find_breaches
from tests.faults.pool import Pool

_LIMIT = 300.0


@pytest.fixture(scope="module")
def pool(request: pytest.FixtureRequest) -> Pool:
    """Runs the faults that were selected, several at once, while the tests wait for their reports."""
    chosen = {
        item.callspec.params["fault"].name: item.callspec.params["fault"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == request.path
        and hasattr(item, "callspec")
    }
    return Pool(chosen.values())


def test_there_are_at_least_forty_faults() -> None:
    assert len(FAULTS) >= 40
    assert {fault.transport for fault in FAULTS.values()} == {"stdio", "http", "sse"}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_caller_is_safe_from_a_server_that(fault: Fault, pool: Pool) -> None:
    report: Report = pool.reports[fault.name].result(_LIMIT)
    assert find_breaches(fault, report) == []
