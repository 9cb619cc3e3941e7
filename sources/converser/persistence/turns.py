# SPDX-License-Identifier: Apache-2.0
"""Where turns begin and calls end, which decides how a conversation can be cut, and what it lacks to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..canisters import Canister, InvocationCanister, ResultCanister
from ..outcomes import Outcome

_CUT_OFF = (
    "The program ended before this call did, so that its outcome is not known; it may have taken"
    " effect."
)


def find_turn_starts(kinds: Sequence[object]) -> list[int]:
    """Where turns begin: with what the person said, or the documents that were given along just before."""
    starts: list[int] = []
    for place, kind in enumerate(kinds):
        if kind == "user":
            start = place
            while start and kinds[start - 1] == "document":
                start -= 1
            starts.append(start)
    return starts


def is_call_open(lines: Sequence[Mapping[str, Any]], length: int) -> bool:
    """Whether a call among the first canisters has its result only after them."""
    # As text, since anything may stand in a line that somebody edited.
    calls = {
        str(line.get("identifier")) for line in lines[:length] if line.get("kind") == "invocation"
    }
    later = (line for line in lines[length:] if line.get("kind") == "result")
    return any(str(line.get("invocation_identifier")) in calls for line in later)


def answer_calls(canisters: Sequence[Canister]) -> tuple[Canister, ...]:
    """Gives each call that has no result one that says so, since no model goes on without."""
    answered = {c.invocation_identifier for c in canisters if isinstance(c, ResultCanister)}
    whole: list[Canister] = []
    pending: list[ResultCanister] = []
    for canister in canisters:
        if not isinstance(canister, (InvocationCanister, ResultCanister)):
            whole += pending
            pending = []
        whole.append(canister)
        if isinstance(canister, InvocationCanister) and canister.identifier not in answered:
            pending.append(
                ResultCanister(
                    invocation_identifier=canister.identifier,
                    timestamp=canister.timestamp,
                    outcome=Outcome.UNKNOWN,
                    error=_CUT_OFF,
                )
            )
    return (*whole, *pending)
