# SPDX-License-Identifier: Apache-2.0
"""What a conversation may use up, why it ended, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import overload

from .canisters import AssistantCanister, Canister, Usage
from .exceptions import ConfigurationFailure

_RESULT_BUDGET_MIN = 250


class StopReason(str, Enum):
    """Why the loop ended; whichever it is, the conversation is valid and can go on."""

    DONE = "done"
    TRUNCATED = "truncated"
    FILTERED = "filtered"
    TURNS_LIMIT = "turns-limit"
    CALLS_LIMIT = "calls-limit"
    TIME_LIMIT = "time-limit"
    TOKENS_LIMIT = "tokens-limit"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one `converse` may use up; None is without limit."""

    turns: int | None = 100
    calls: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    parallel: int = 8
    """Calls of a turn that run at once."""
    result_budget: int | None = 25_000
    """Tokens, as estimated, that a model is sent of one result; the rest it can read piece by piece."""

    def __post_init__(self) -> None:
        for name in ("turns", "calls", "seconds", "tokens"):
            if (value := getattr(self, name)) is not None and value < 0:
                raise ConfigurationFailure(
                    f"The limit {name!r} is {value!r}.", remedy="Give 0 or more, or None."
                )
        if self.result_budget is not None and self.result_budget < _RESULT_BUDGET_MIN:
            raise ConfigurationFailure(
                f"The limit 'result_budget' is {self.result_budget!r}.",
                remedy=f"Give {_RESULT_BUDGET_MIN} or more, or None.",
            )
        if self.parallel < 1:
            raise ConfigurationFailure(
                f"The limit 'parallel' is {self.parallel!r}.", remedy="Give 1 or more."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Sequence[Canister]):
    """The new canisters, in order; and the answer in words, why it ended, and tokens in sum."""

    canisters: tuple[Canister, ...]
    reason: StopReason
    usage: Usage = Usage()

    @property
    def text(self) -> str:
        """The words of the last assistant canister; empty where there is none."""
        for canister in reversed(self.canisters):
            if isinstance(canister, AssistantCanister):
                return canister.text
        return ""

    def __len__(self) -> int:
        return len(self.canisters)

    def __iter__(self) -> Iterator[Canister]:
        return iter(self.canisters)

    @overload
    def __getitem__(self, index: int) -> Canister: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Canister, ...]: ...
    def __getitem__(self, index: int | slice) -> Canister | tuple[Canister, ...]:
        return self.canisters[index]
