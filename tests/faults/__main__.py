# SPDX-License-Identifier: Apache-2.0
"""Prints the table: `python -m tests.faults [NAME…] [--bare] [--megabytes N]`.

Each row is a fault: what a caller of ours saw, whether the next call worked, what was left behind;
with `--bare`, the same of the bare SDK, with its read timeout and a guard round it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tests.faults.catalogue import FAULTS
from tests.faults.fault import Fault, Report, find_breaches, find_lasting_breaches
from tests.faults.pool import WORKERS, Pool, run_bare

_FOREIGN = ("ExceptionGroup", "CancelledError", "BaseExceptionGroup")


def main() -> int:
    """Runs what the command line names, or everything."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("names", nargs="*", help="only faults whose name contains one of these")
    parser.add_argument("--bare", action="store_true", help="run the bare SDK beside ours")
    parser.add_argument("--megabytes", type=int, default=30, help="size of large results")
    parser.add_argument("--workers", type=int, default=WORKERS)
    options = parser.parse_args()
    chosen = [
        fault
        for fault in FAULTS.values()
        if not options.names or any(name in fault.name for name in options.names)
    ]
    if not chosen:
        parser.error(f"no fault has a name like {' or '.join(options.names)}")
    environment = {"FAULT_MEGABYTES": str(options.megabytes)}
    if (factor := options.megabytes / 30) > 1:
        chosen = [_scale(fault, factor) if "large" in fault.name else fault for fault in chosen]
    pool = Pool(chosen, workers=options.workers, environment=environment)
    ours = {fault.name: pool.reports[fault.name].result() for fault in chosen}
    bare = _run_all_bare(chosen, options.workers, environment) if options.bare else {}
    bad = sum(_print_row(fault, ours[fault.name], bare.get(fault.name)) for fault in chosen)
    print(f"\n{len(chosen)} faults; ours fails {bad}", end="")
    print(f", the bare SDK {sum(is_bad(f, bare[f.name]) for f in chosen)}." if bare else ".")
    return min(bad, 1)


def _scale(fault: Fault, factor: float) -> Fault:
    """What takes more may take longer."""
    limits = {"stall_max": fault.stall_max * factor, "growth_max": fault.growth_max * factor}
    return replace(fault, guard=fault.guard * factor, **limits)


def _run_all_bare(
    faults: list[Fault], workers: int, environment: Mapping[str, str]
) -> dict[str, Report]:
    with ThreadPoolExecutor(workers) as executor:
        reports = executor.map(lambda fault: run_bare(fault, environment), faults)
        return {report.name: report for report in reports}


def is_bad(fault: Fault, report: Report) -> bool:
    """Whether the bare SDK breaks a promise; which class of its own it raises is left to it."""
    hurt = report.hung or any(report.sees.startswith(name) for name in _FOREIGN)
    lost = fault.sees == "result" and report.sees != "result"
    stuck = fault.next_works and report.next_call != "works"
    return bool(hurt or lost or stuck or find_lasting_breaches(fault, report))


def _print_row(fault: Fault, ours: Report, bare: Report | None) -> bool:
    breaches = find_breaches(fault, ours)
    sign = "FAILS" if breaches else "ok"
    print(f"{fault.name:30} {sign:5} | ours: {_describe(ours)}", end="")
    if bare is not None:
        sign = "fails" if is_bad(fault, bare) else "ok"
        print(f" | bare SDK {sign}: {_describe(bare)}", end="")
    print(f" | {fault.story}")
    for breach in breaches:
        print(f"{'':36} {breach[:400]}")
    return bool(breaches)


def _describe(report: Report) -> str:
    parts = [f"{report.sees} {report.outcome} {report.seconds:.1f} s".replace("  ", " ")]
    if report.next_call:
        parts.append(f"next {report.next_call[:60]}")
    parts.append(f"left {len(report.leaks)}" if report.leaks else "nothing left")
    if report.stall > 0.5:
        parts.append(f"stood still {report.stall:.1f} s")
    if report.growth > 100:
        parts.append(f"{report.growth:.0f} MB")
    if report.hung:
        parts.append(f"HUNG ({report.hung})")
    return ", ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
