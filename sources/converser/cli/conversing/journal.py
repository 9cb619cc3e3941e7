# SPDX-License-Identifier: Apache-2.0
"""The calls of a conversation so far, by number, so that a folded result can be opened."""

from __future__ import annotations

from collections.abc import Sequence

from ...canisters import Canister, InvocationCanister, ResultCanister
from ...events import InvocationCompleted
from .wording import CallRecord, name_tool


class Journal:
    """Counts calls from 1, in the order in which they ended."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []

    def note(self, event: InvocationCompleted) -> CallRecord:
        """Takes in a call that has ended."""
        title = name_tool(event.ensemble, event.name)
        return self._add(title, event.invocation, event.result, event.duration)

    def restore(self, canisters: Sequence[Canister]) -> None:
        """Takes in the calls of an earlier session."""
        invocations = {c.identifier: c for c in canisters if isinstance(c, InvocationCanister)}
        for result in canisters:
            if isinstance(result, ResultCanister):
                invocation = invocations.get(result.invocation_identifier)
                if invocation is not None:
                    self._add(name_tool("", invocation.name), invocation, result, 0.0)

    def _add(
        self,
        title: str,
        invocation: InvocationCanister,
        result: ResultCanister,
        duration: float,
    ) -> CallRecord:
        record = CallRecord(
            number=len(self.records) + 1,
            title=title,
            invocation=invocation,
            result=result,
            duration=duration,
        )
        self.records.append(record)
        return record
