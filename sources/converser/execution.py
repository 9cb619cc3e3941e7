# SPDX-License-Identifier: Apache-2.0
"""Runs the invocations of a turn, so that each ends in exactly one result canister, whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from .canisters import InvocationCanister, ResultCanister, check_contents
from .contents import TextualContent
from .events import (
    Announce,
    InvocationCompleted,
    InvocationProgressed,
    InvocationStarted,
    Source,
)
from .exceptions import ArgumentsInvalidity, ToolExecutionFailure
from .immutables import admit_json
from .invokers import Context, InvocationResult, Invoker, describe_failure
from .naming import suggest_name
from .outcomes import Outcome
from .policies import ApprovalRequest, Gate, Verdict
from .tasks import is_cancelled, is_from_above

_REPEATS = 3
_DISABLED = "Its tools have been disabled meanwhile. Use others, or tell the user."


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an invocation is answered without being run."""

    outcome: Outcome
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The invocations of one turn, the tools that the model saw, and where the results go."""

    invocations: Sequence[InvocationCanister]
    invokers: Mapping[str, Invoker]
    faults: Mapping[str, Fault]
    deposit: Callable[[Sequence[ResultCanister]], None]
    is_expired: Callable[[], bool]
    search: str = ""
    """The name of the tool that finds others, where the model does not see them all."""


class Executor:
    """Runs batches of invocations for one conversation: gated, in parallel, within bounds."""

    def __init__(self, gate: Gate, announce: Announce, *, parallel: int) -> None:
        self._gate = gate
        self._announce = announce
        self._limiter = anyio.CapacityLimiter(parallel)
        self._failures: dict[tuple[str, Mapping[str, Any] | str], int] = {}

    async def run(self, batch: Batch) -> None:
        """Deposits one result for each invocation, in order; when it is cancelled, too."""
        previous, self._failures = self._failures, {}
        runs = [_Run(invocation, batch) for invocation in batch.invocations]
        lane = [run for run in runs if run.is_sequential]
        try:
            async with anyio.create_task_group() as tasks:
                for run in runs:
                    if run in lane[:1]:
                        tasks.start_soon(self._complete, lane, previous)
                    elif not run.is_sequential:
                        tasks.start_soon(self._complete, (run,), previous)
        finally:
            for run in runs:
                if run.result is None:
                    self._settle(run, run.abandon(), previous)
            batch.deposit([run.result for run in runs if run.result is not None])

    async def _complete(self, runs: Sequence[_Run], previous: Mapping[Any, int]) -> None:
        """Brings invocations to their ends, one after the other, whatever becomes of those before."""
        for run in runs:
            self._settle(run, await self._conclude(run), previous)

    async def _conclude(self, run: _Run) -> ResultCanister:
        """The end of one invocation; a failure is a result, and never leaves this place."""
        try:
            return await self._perform(run)
        except ToolExecutionFailure as failure:
            return run.report(failure)
        except anyio.get_cancelled_exc_class():
            if is_cancelled():
                raise
            return run.abandon()  # The tool gave itself up, and must not take the others along.
        except BaseException as failure:
            if is_from_above(failure):
                raise
            words = f"Tool {run.invocation.name!r} failed: {describe_failure(failure)}"
            return run.fail(Outcome.TOOL_ERROR, words)

    async def _perform(self, run: _Run) -> ResultCanister:
        """Checks, asks the gate, waits for a free place, and calls the tool."""
        if run.fault is not None:
            return run.fail(run.fault.outcome, run.fault.error)
        if (invoker := run.invoker) is None:
            return run.fail(Outcome.INVALID, _explain_absence(run))
        arguments: Mapping[str, Any] = run.invocation.arguments
        if not self._gate.is_open:
            try:
                arguments = invoker.gate.admit(arguments)
            except ArgumentsInvalidity:
                pass  # The call itself reports this, in the words of the tool; nobody is asked.
            else:
                request = ApprovalRequest(
                    invocation=run.invocation, invoker=invoker, arguments=arguments
                )
                decision = await self._gate.decide(request)
                if decision.verdict is not Verdict.ALLOW:
                    return run.fail(Outcome.REFUSED, _explain_refusal(invoker, decision.reason))
        async with self._limiter:
            if invoker.ensemble is not None and not invoker.ensemble.enabled:
                return run.fail(Outcome.REFUSED, _explain_refusal(invoker, _DISABLED))
            return await self._call(run, invoker, arguments)

    async def _call(
        self, run: _Run, invoker: Invoker, arguments: Mapping[str, Any]
    ) -> ResultCanister:
        """Calls the tool, which keeps its own time."""
        run.begun = time.perf_counter()
        self._announce(
            InvocationStarted(invocation=run.invocation, ensemble=run.ensemble, source=run.source)
        )

        async def progress(done: float, total: float | None, message: str | None) -> None:
            if run.result is not None:
                return  # A thread cannot be stopped, and may report from beyond its end.
            self._announce(
                InvocationProgressed(
                    invocation=run.invocation,
                    ensemble=run.ensemble,
                    source=run.source,
                    progress=done,
                    total=total,
                    message=message,
                )
            )

        return run.succeed(await invoker(arguments, context=Context(on_progress=progress)))

    def _settle(self, run: _Run, result: ResultCanister, previous: Mapping[Any, int]) -> None:
        """Gives the run its one result, points out a call that keeps failing, and announces it."""
        if result.error is not None:
            key = (run.invocation.name, run.written)
            times = max(self._failures.get(key, 0), previous.get(key, 0)) + 1
            self._failures[key] = times
            if times >= _REPEATS:
                result = run.fail(
                    result.outcome,
                    f"{result.error} This same call has now failed {times} times in a row. Do not"
                    " repeat it: change the arguments, use another tool, or tell the user why it"
                    " cannot be done.",
                    contents=result.contents,
                    structured=result.structured,
                )
        run.result = result
        self._announce(
            InvocationCompleted(
                invocation=run.invocation,
                ensemble=run.ensemble,
                source=run.source,
                result=result,
                duration=result.duration or 0.0,
            )
        )


class _Run:
    """One invocation on its way to its result."""

    __slots__ = ("batch", "begun", "ensemble", "fault", "invocation", "invoker", "result", "source")

    def __init__(self, invocation: InvocationCanister, batch: Batch) -> None:
        self.invocation = invocation
        self.batch = batch
        self.fault = batch.faults.get(invocation.identifier)
        self.invoker = batch.invokers.get(invocation.name)
        self.ensemble: str
        self.source: Source
        self.ensemble, self.source = locate(self.invoker)
        self.begun: float | None = None
        self.result: ResultCanister | None = None

    @property
    def is_sequential(self) -> bool:
        """Whether it waits for those before it that do."""
        return self.invoker is not None and self.invoker.is_sequential

    @property
    def written(self) -> Mapping[str, Any] | str:
        """The arguments as the model wrote them, where they could not be read."""
        malformed = self.invocation.extras.get("malformed_arguments")
        return self.invocation.arguments if malformed is None else str(malformed)

    def measure(self) -> float | None:
        """Seconds since the call was made, if it was; finer than a microsecond is noise."""
        return None if self.begun is None else round(time.perf_counter() - self.begun, 6)

    def succeed(self, result: InvocationResult) -> ResultCanister:
        """The tool's result; our remarks on it stand behind the tool's own contents."""
        remarks = tuple(TextualContent(text=f"Note: {remark}") for remark in result.remarks)
        return ResultCanister(
            invocation_identifier=self.invocation.identifier,
            contents=(*check_contents(result.contents), *remarks),
            structured=admit_json(result.structured),
            duration=self.measure(),
        )

    def report(self, failure: ToolExecutionFailure) -> ResultCanister:
        """The failure with what the tool had to say, as far as that can be kept."""
        try:
            return self.fail(
                failure.outcome,
                str(failure),
                contents=failure.contents,
                structured=failure.structured,
            )
        except Exception as slip:
            return self.fail(failure.outcome, f"{failure} {describe_failure(slip)}")

    def fail(
        self, outcome: Outcome, error: str, *, contents: Sequence[Any] = (), structured: Any = None
    ) -> ResultCanister:
        """The result of an invocation that did not succeed."""
        return ResultCanister(
            invocation_identifier=self.invocation.identifier,
            outcome=outcome,
            error=error,
            contents=check_contents(contents),
            structured=admit_json(structured),
            duration=self.measure(),
        )

    def abandon(self) -> ResultCanister:
        """The result of an invocation that was cut off, by cancellation or at the time limit."""
        expired = self.batch.is_expired()
        cause = "The time of the conversation ran out" if expired else "The call was cancelled"
        if self.begun is None:
            state = "before it began, so that it had no effect."
        else:
            state = "before it ended; what it did until then may have taken effect."
        outcome = Outcome.TIMED_OUT if expired else Outcome.CANCELLED
        return self.fail(outcome, f"{cause} {state}")


def locate(invoker: Invoker | None) -> tuple[str, Source]:
    """The ensemble of a tool, and whether it is a local one."""
    if invoker is None or (ensemble := invoker.ensemble) is None:
        return "", "local"
    return ensemble.name, "local" if ensemble.connection is None else "mcp"


def _explain_absence(run: _Run) -> str:
    names = run.batch.invokers
    hint = suggest_name(run.invocation.name, names) if names else "No tools are available."
    if search := run.batch.search:
        hint += f" Find others with {search!r}."
    return f"There is no tool {run.invocation.name!r}. {hint}"


def _explain_refusal(invoker: Invoker, reason: str) -> str:
    return f"The call of {invoker.name!r} was refused, and not made. {reason}".rstrip()
