# SPDX-License-Identifier: Apache-2.0
"""A conversation in the order in which a person reads it: each call together with its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Union

from ...canisters import (
    AssistantCanister,
    Canister,
    InvocationCanister,
    ResultCanister,
    Usage,
    UserCanister,
)


@dataclass(frozen=True, slots=True)
class Message:
    """A canister that stands for itself; `number` counts canisters from 1."""

    number: int
    canister: Canister


@dataclass(frozen=True, slots=True)
class Call:
    """A call, and what came of it, if that is known."""

    number: int
    invocation: InvocationCanister
    result: ResultCanister | None

    @property
    def duration(self) -> float | None:
        """Seconds that it took: as measured, else between its two canisters."""
        if self.result is None:
            return None
        if self.result.duration is not None:
            return self.result.duration
        between = self.result.timestamp - self.invocation.timestamp
        return max(0.0, between.total_seconds())


Entry = Union[Message, Call]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a conversation amounts to."""

    turns: int
    calls: int
    failures: int
    usage: Usage
    model: str
    """The one that spoke first."""
    began: datetime | None
    ended: datetime | None


def arrange(canisters: Sequence[Canister]) -> Iterator[Entry]:
    """Each canister once: a result with its call, and by itself only where it has none."""
    results: dict[str, ResultCanister] = {}
    for canister in canisters:
        if isinstance(canister, ResultCanister):
            results.setdefault(canister.invocation_identifier, canister)
    told: set[int] = set()
    for number, canister in enumerate(canisters, 1):
        if isinstance(canister, InvocationCanister):
            result = results.pop(canister.identifier, None)
            told.add(id(result))
            yield Call(number, canister, result)
        elif id(canister) not in told:
            yield Message(number, canister)


def add_up(canisters: Sequence[Canister]) -> Totals:
    """Turns, calls, failures and tokens of a conversation, and when it was."""
    results = [each for each in canisters if isinstance(each, ResultCanister)]
    times = [canister.timestamp for canister in canisters]
    return Totals(
        turns=sum(isinstance(each, UserCanister) for each in canisters),
        calls=sum(isinstance(each, InvocationCanister) for each in canisters),
        failures=sum(result.error is not None for result in results),
        usage=_add_usages(canisters),
        model=next(filter(None, (getattr(each, "model", None) for each in canisters)), ""),
        began=min(times, default=None),
        ended=max(times, default=None),
    )


def _add_usages(canisters: Iterable[Canister]) -> Usage:
    usages = [
        canister.usage
        for canister in canisters
        if isinstance(canister, AssistantCanister) and canister.usage is not None
    ]
    return Usage(
        tokens_in=sum(usage.tokens_in for usage in usages),
        tokens_out=sum(usage.tokens_out for usage in usages),
        tokens_cached=sum(usage.tokens_cached for usage in usages),
    )
