# SPDX-License-Identifier: Apache-2.0
"""What a conversation may use up, why it ended, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, overload

from .canisters import AssistantCanister, Canister, Usage
from .exceptions import AnswerInvalidity, ConfigurationFailure

RESULT_BUDGET_MIN = 250
"""Tokens below which a shortened result would be little but the note on it."""


class StopReason(str, Enum):
    """Why the loop ended; whichever it is, the conversation is valid and can go on."""

    DONE = "done"
    TRUNCATED = "truncated"
    FILTERED = "filtered"
    TURNS_LIMIT = "turns-limit"
    CALLS_LIMIT = "calls-limit"
    TIME_LIMIT = "time-limit"
    TOKENS_LIMIT = "tokens-limit"
    ANSWER_INVALID = "answer-invalid"

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
    tools_budget: int | None = 20_000
    """Tokens, as estimated, that definitions of tools may take; over it, the model searches for tools."""
    answer_repairs: int = 2
    """How often a model may mend an answer that has not the wanted form."""

    def __post_init__(self) -> None:
        for name in ("turns", "calls", "seconds", "tokens", "tools_budget"):
            if (value := getattr(self, name)) is not None and not _is_amount(value, 0):
                raise ConfigurationFailure(
                    f"The limit {name!r} is {value!r}.", remedy="Give 0 or more, or None."
                )
        budget = self.result_budget
        if budget is not None and not _is_amount(budget, RESULT_BUDGET_MIN):
            raise ConfigurationFailure(
                f"The limit 'result_budget' is {budget!r}.",
                remedy=f"Give {RESULT_BUDGET_MIN} or more, or None.",
            )
        for name, least in (("parallel", 1), ("answer_repairs", 0)):
            if not _is_amount(value := getattr(self, name), least):
                raise ConfigurationFailure(
                    f"The limit {name!r} is {value!r}.", remedy=f"Give {least} or more."
                )


def _is_amount(value: object, least: int) -> bool:
    """Whether this is a number that is large enough, which NaN is not."""
    return isinstance(value, (int, float)) and value >= least


def find_smaller(one: int | None, other: int | None) -> int | None:
    """The stricter of two limits, of which None is none."""
    return min((each for each in (one, other) if each is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Sequence[Canister]):
    """The new canisters, in order; and the answer in words, why it ended, and tokens in sum."""

    canisters: tuple[Canister, ...]
    reason: StopReason
    usage: Usage = Usage()
    answers: tuple[Any, ...] = field(default=(), repr=False)
    """The answer in the wanted form, where one was wanted and given; else nothing."""
    flaw: str = ""
    """What was wrong with the last answer, where a form was wanted."""

    @property
    def answer(self) -> Any:
        """The validated answer, where `converse` was given a form for it; raises `AnswerInvalidity`."""
        if self.answers:
            return self.answers[0]
        why = self.flaw or f"the conversation ended with the reason {str(self.reason)!r}"
        raise AnswerInvalidity(
            f"There is no answer in a wanted form: {why}",
            remedy="Its words are in `text`, and all else in `canisters`; a form is wanted by"
            " `converse(…, answer=…)`.",
        )

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
