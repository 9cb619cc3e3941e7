# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the conformance suite that tell most in the least time; the command runs all."""

from __future__ import annotations

import pytest

from tests.conformance import suite

SCENARIOS = (
    (suite.LEGACY, "initialize"),
    (suite.LEGACY, "tools_call"),
    (suite.LEGACY, "elicitation-sep1034-client-defaults"),
    (suite.LEGACY, "sse-retry"),
    (suite.LEGACY, "json-schema-2020-12-preservation"),
    (suite.LEGACY, "auth/metadata-default"),
    (suite.MODERN, "tools_call"),
    (suite.MODERN, "request-metadata"),
    (suite.MODERN, "http-standard-headers"),
    (suite.MODERN, "http-custom-headers"),
    (suite.MODERN, "http-invalid-tool-headers"),
    (suite.MODERN, "json-schema-ref-no-deref"),
    (suite.MODERN, "json-schema-2020-12-preservation"),
    (suite.MODERN, "sep-2322-client-request-state"),
    (suite.MODERN, "auth/scope-step-up"),
)


@pytest.mark.parametrize(("era", "scenario"), SCENARIOS)
def test_an_ensemble_conforms(era: str, scenario: str) -> None:
    report = suite.run_scenario(era, scenario)
    assert not report.surprise, report.output


def test_what_is_expected_to_fail_is_in_the_suite() -> None:
    """So that a name that the suite has changed does not stay on the lists."""
    known = {scenario for era in suite.ERAS for scenario in suite.list_scenarios(era)}
    assert {*suite.EXPECTED_FAILURES, *suite.UNTRIED, *(name for _, name in SCENARIOS)} <= known
