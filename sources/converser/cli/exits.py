# SPDX-License-Identifier: Apache-2.0
"""How the program can end: a code for each kind of failure, so that scripts can tell them apart."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """How the program ended."""

    SUCCESS = 0
    UNEXPECTED = 1
    USAGE = 2
    TOOL_ERROR = 3
    REFUSED = 4
    UNREACHABLE = 5
    INVALID_ARGUMENTS = 6
    TIMED_OUT = 7
    OUTCOME_UNKNOWN = 8
    MODEL_FAILED = 9
    INCOMPLETE = 10
    DRIFTED = 11
    UNHEALTHY = 12
    STORE_FAILED = 13
    INTERRUPTED = 130
