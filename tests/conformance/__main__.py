# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios of the conformance suite one after the other; fails where one is not as expected."""

from __future__ import annotations

import argparse
import sys

from tests.conformance import suite


def main() -> None:
    """Run what was asked for, print a line for each scenario, and tell by the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--era", choices=suite.ERAS, action="append", help="default: all")
    parser.add_argument("--verbose", action="store_true", help="what the suite says of surprises")
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help="default: all of an era")
    options = parser.parse_args()
    reports = list[suite.Report]()
    print(f"{'era':12}{'scenario':44}{'passed':>7}{'failed':>7}{'skipped':>8}{'s':>6}")
    for era in options.era or suite.ERAS:
        known = suite.list_scenarios(era)
        for scenario in [s for s in known if not options.scenarios or s in options.scenarios]:
            reports.append(report := suite.run_scenario(era, scenario))
            print_report(report, verbose=options.verbose)
    if not reports:
        sys.exit("No scenario has such a name.")
    surprises = [report for report in reports if report.surprise]
    passed, failed = sum(r.passed for r in reports), sum(len(r.failures) for r in reports)
    print(f"{len(reports)} scenarios, {passed} checks passed, {failed} failed,", end=" ")
    print(f"{len(surprises)} scenarios are not as expected.")
    sys.exit(1 if surprises else 0)


def print_report(report: suite.Report, *, verbose: bool) -> None:
    """Print one line of the table, and why it is remarkable where it is."""
    numbers = f"{report.passed:7}{len(report.failures):7}{report.skipped:8}{report.seconds:6.1f}"
    reason = suite.EXPECTED_FAILURES.get(report.scenario) or suite.UNTRIED.get(report.scenario)
    remark = f"  NOT AS EXPECTED: {report.surprise}" if report.surprise else ""
    if reason and not remark:
        remark = f"  as expected: {reason}"
    print(f"{report.era:12}{report.scenario:44}{numbers}{remark}", flush=True)
    if report.surprise and verbose:
        print(report.output, flush=True)


if __name__ == "__main__":
    main()
