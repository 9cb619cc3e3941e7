# SPDX-License-Identifier: Apache-2.0
"""Runs faults in a process of its own: `python -m tests.faults.worker ours|bare`.

Names of faults come in on stdin, a line each; reports go out on stdout as JSON, a line each.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import sys

from tests.faults.catalogue import find_fault
from tests.faults.fault import Report


def send_report(report: Report, *, final: bool = True) -> None:
    """Sends what is known so far, in case that there will be no more."""
    print(json.dumps({"final": final, **dataclasses.asdict(report)}), flush=True)


def main() -> None:
    """Runs each fault that is named, until nobody names any more."""
    logging.disable(logging.CRITICAL)
    if sys.argv[1] == "ours":
        import converser.mcp.configured  # noqa: F401  (late imports would count as stalls)
        from tests.faults.ours import examine
    else:
        from tests.faults.bare import examine
    for line in sys.stdin:
        send_report(asyncio.run(examine(find_fault(line.strip()))))


if __name__ == "__main__":
    main()
