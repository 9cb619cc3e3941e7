# SPDX-License-Identifier: Apache-2.0
"""How an invocation can end; every invocation ends in exactly one of these."""

from __future__ import annotations

from enum import Enum


class Outcome(str, Enum):
    """The typed end of an invocation, as a result canister records it."""

    SUCCESS = "success"
    TOOL_ERROR = "tool-error"
    REFUSED = "refused"
    INVALID = "invalid"
    TIMED_OUT = "timed-out"
    CANCELLED = "cancelled"
    UNKNOWN = "outcome-unknown"

    def __str__(self) -> str:
        return self.value
