# SPDX-License-Identifier: Apache-2.0
"""The attempts at one call: what time is left for them, and whether one that was lost may have worked."""

from __future__ import annotations

import anyio

from ..exceptions import MCPConnectionFailure, MCPFailure
from ..invokers import Context
from ..outcomes import Outcome
from .connection import Patience
from .deadlines import PatientTime, find_limit, shorten

_MOMENT = 0.001


class Attempts:
    """Counts attempts within one deadline, which is that of the caller."""

    __slots__ = ("_begun", "_context", "_doubt", "_patience", "_time", "count")

    def __init__(
        self, context: Context, patience: Patience, time: PatientTime, begun: float
    ) -> None:
        self._context = context
        self._patience = patience
        self._time = time
        self._begun = begun
        self._doubt: MCPFailure | None = None
        self.count = 0
        """How many have failed, and are made up for by another one."""

    @property
    def left(self) -> Context:
        """The context of the next attempt, without the time that is gone."""
        spent = self._time.now() - self._begun
        return self._context if spent < _MOMENT else shorten(self._context, spent)

    @property
    def limit(self) -> float | None:
        """Seconds that the caller is still ready to wait."""
        return find_limit(self.left)

    @property
    def are_over(self) -> bool:
        """Whether there may be no other one."""
        return self.count >= max(1, self._patience.attempts)

    async def pause(self) -> bool:
        """Gives a server time to come back; False where the caller does not have it."""
        pause, limit = self._patience.pause(self.count), self.limit
        if limit is not None and pause >= limit:
            return False
        await anyio.sleep(pause)
        return True

    async def wait(self) -> bool:
        """Gives a lost server time to come back, as long as there may be another attempt."""
        if self.are_over or not await self.pause():
            return False
        self.count += 1
        return True

    def follow(self, failure: MCPFailure) -> None:
        """Goes on to the next attempt after one that failed."""
        self.count += 1
        if failure.outcome is Outcome.UNKNOWN:
            self._doubt = failure

    def judge(self, failure: MCPFailure) -> MCPFailure:
        """What the caller is to hear: that it never began is not true if an earlier attempt did."""
        is_sure = failure.outcome is Outcome.TOOL_ERROR and isinstance(
            failure, MCPConnectionFailure
        )
        return self._doubt if is_sure and self._doubt is not None else failure
