# SPDX-License-Identifier: Apache-2.0
"""The one gate in front of every invocation: policies decide, and where they ask, a person does."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Union

import anyio

from .canisters import InvocationCanister
from .invokers import Invoker, describe_failure
from .tasks import is_from_above


class Verdict(str, Enum):
    """What a policy can say; where policies differ, the strictest is followed."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and why; the model is told the reason of a refusal."""

    verdict: Verdict
    reason: str = ""


def allow(reason: str = "") -> Decision:
    """The call may be made, unless another policy is stricter."""
    return Decision(Verdict.ALLOW, reason)


def ask(reason: str = "") -> Decision:
    """A person shall decide; without one to ask, the call is refused."""
    return Decision(Verdict.ASK, reason)


def deny(reason: str) -> Decision:
    """The call is not made."""
    return Decision(Verdict.DENY, reason)


Policy = Callable[[Invoker, Mapping[str, Any]], Union[Decision, None]]
"""Decides on a call by its tool and its arguments; None: nothing to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What a person is asked: may this tool be called with these arguments?"""

    invocation: InvocationCanister
    invoker: Invoker
    arguments: Mapping[str, Any]
    reason: str = ""


Approver = Callable[[ApprovalRequest], Union[bool, Decision, Awaitable[Union[bool, Decision]]]]
"""Asks a person; one question at a time, in the model's order. A plain function holds up all else meanwhile."""

_STRICTNESS = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}


class Gate:
    """Decides on invocations: first the policies, then, where one asks, the approver."""

    def __init__(self, policies: Sequence[Policy] = (), approver: Approver | None = None) -> None:
        self._policies = tuple(policies)
        self._approver = approver
        self._turnstile = anyio.Lock()

    @property
    def is_open(self) -> bool:
        """True where nobody can have anything to say, so that nothing needs to be prepared."""
        return not self._policies and self._approver is None

    async def decide(self, request: ApprovalRequest) -> Decision:
        """The final word, allow or deny; a policy or an approver that fails is a refusal."""
        decision = self._consult(request.invoker, request.arguments)
        if decision.verdict is not Verdict.ASK:
            return decision
        if self._approver is None:
            return deny(f"It needs approval, and nobody is here to give it. {decision.reason}")
        question = ApprovalRequest(
            invocation=request.invocation,
            invoker=request.invoker,
            arguments=request.arguments,
            reason=decision.reason,
        )
        async with self._turnstile:
            try:
                given: Any = self._approver(question)
                answer = await given if inspect.isawaitable(given) else given
            except BaseException as failure:
                return _refuse_after("The approval", failure)
        if isinstance(answer, Decision):
            return answer if answer.verdict is not Verdict.ASK else deny(answer.reason)
        if not isinstance(answer, bool):
            return deny(
                f"The approver gave no answer, but a value of type {type(answer).__name__}."
            )
        return allow() if answer else deny("The user did not approve it.")

    def _consult(self, invoker: Invoker, arguments: Mapping[str, Any]) -> Decision:
        """The strictest decision of the policies, or the default where all are silent."""
        strictest: Decision | None = None
        for policy in self._policies:
            try:
                decision = policy(invoker, arguments)
            except BaseException as failure:
                return _refuse_after("A policy", failure)
            if inspect.iscoroutine(decision):
                decision.close()
                return deny(
                    "A policy is async, and nobody waits for it: make it a plain function,"
                    " or an approver."
                )
            if decision is None:
                continue
            if not isinstance(decision, Decision):  # pyright: ignore[reportUnnecessaryIsInstance]
                return deny(
                    f"A policy gave no decision, but a value of type {type(decision).__name__}."
                )
            if strictest is None or (
                _STRICTNESS[decision.verdict] > _STRICTNESS[strictest.verdict]
            ):
                strictest = decision
        return strictest if strictest is not None else self._default(invoker)

    def _default(self, invoker: Invoker) -> Decision:
        """Read-only tools are allowed; the rest asks where there is somebody to ask."""
        if self._approver is None or invoker.annotations.read_only is True:
            return allow()
        return ask("The tool does not say that it only reads.")


def _refuse_after(what: str, failure: BaseException) -> Decision:
    """A refusal where something failed that should have decided."""
    if is_from_above(failure):
        raise failure
    return deny(f"{what} failed: {describe_failure(failure)}")
