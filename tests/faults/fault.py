# SPDX-License-Identifier: Apache-2.0
"""One fault, what a caller must see of it, what was seen, and where the two part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SLACK = 0.5
"""Seconds after its deadline in which a caller must be free."""
STALL_MAX = 0.5
"""Seconds for which a server may hold up everything else in the process."""
GROWTH_MAX = 15
"""Megabytes by which a fault may make the process grow, unless it says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A server's behaviour, and what must be seen of it."""

    name: str
    story: str
    server: str
    """The class of the server's behaviour."""
    transport: str = "stdio"
    sees: str = "result"
    """The class of the failure, or `result`."""
    outcome: str = ""
    words: str = "fine"
    """A pattern for what the caller is told, remarks included."""
    act: str = "call"
    """What the caller does, by its name in the drivers."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 5.0
    """Seconds for the call."""
    connect_timeout: float = 10.0
    next_works: bool = True
    guard: float = 20.0
    """Seconds after which the whole run of this fault is stopped from outside."""
    at_most: Mapping[str, int] = field(default_factory=dict)
    """How often the server may have noted a word."""
    at_least: Mapping[str, int] = field(default_factory=dict)
    stall_max: float = STALL_MAX
    growth_max: float = GROWTH_MAX


@dataclass(slots=True, kw_only=True)
class Report:
    """What was seen of a fault."""

    name: str
    sees: str = "nothing"
    outcome: str = ""
    words: str = ""
    seconds: float = 0.0
    late: float = 0.0
    """Seconds after the deadline at which the caller was free."""
    next_call: str = ""
    leaks: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """What the event loop had to say of exceptions that nobody took."""
    notes: dict[str, int] = field(default_factory=dict)
    stall: float = 0.0
    growth: float = 0.0
    hung: str = ""
    """Where the process had to be stopped from outside, and what it was doing."""

    @property
    def is_late_only(self) -> bool:
        """Whether it is only the clock that speaks against it, which a loaded machine can do too."""
        return not self.hung and (self.late > SLACK or self.stall > STALL_MAX)


def find_breaches(fault: Fault, report: Report) -> list[str]:
    """Where what was seen is not what must be seen; nothing where all is well."""
    breaches = [f"it hung: {report.hung}"] if report.hung else []
    if report.sees != fault.sees:
        breaches.append(f"the caller saw {report.sees} ({report.words}), not {fault.sees}")
    elif not re.search(fault.words, report.words):
        breaches.append(f"the caller was told {report.words!r}, not {fault.words!r}")
    if fault.outcome and report.outcome != fault.outcome:
        breaches.append(f"the outcome was {report.outcome}, not {fault.outcome}")
    if fault.next_works and report.next_call != "works":
        breaches.append(f"the next call: {report.next_call or 'none'}")
    return breaches + find_lasting_breaches(fault, report)


def find_lasting_breaches(fault: Fault, report: Report) -> list[str]:
    """What is wrong whatever the caller saw: lateness, leaks, hammering, a process that stood still."""
    breaches = [f"left behind: {leak}" for leak in report.leaks]
    breaches += [f"nobody took: {complaint}" for complaint in report.complaints]
    if report.late > SLACK:
        breaches.append(f"the caller was free {report.late:.1f} s after its deadline")
    if report.stall > fault.stall_max:
        breaches.append(f"everything stood still for {report.stall:.1f} s")
    if report.growth > fault.growth_max:
        breaches.append(f"it took {report.growth:.0f} MB of memory")
    for word, count in fault.at_most.items():
        if report.notes.get(word, 0) > count:
            breaches.append(f"{word}: {report.notes[word]} times, which is more than {count}")
    for word, count in fault.at_least.items():
        if report.notes.get(word, 0) < count:
            breaches.append(
                f"{word}: {report.notes.get(word, 0)} times, which is less than {count}"
            )
    return breaches
