# SPDX-License-Identifier: Apache-2.0
"""The conversation loop: ask, invoke, append, until the model is done or a limit is reached."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import anyio

from .answers import AnswerForm
from .canisters import InvocationCanister, Usage, user
from .digests import digest
from .events import (
    Announce,
    InvocationRequested,
    MessageCompleted,
    MessageFailed,
    MessageStarted,
    ReplyCompleted,
)
from .exceptions import AnswerInvalidity, ConverserFailure, ModelFailure
from .execution import Batch, Executor, Fault, locate
from .immutables import EMPTY
from .invokers import describe_failure
from .outcomes import Outcome
from .replies import Limits, Reply, StopReason, find_smaller
from .toolboxes import Toolbox
from .turns import (
    STOP_FILTERED,
    STOP_LENGTH,
    STOP_PAUSED,
    Call,
    Concession,
    Controls,
    Provider,
    Transcript,
    TurnCompleted,
    TurnRequest,
    find_capabilities,
    holds_answer,
    interpret_arguments,
    is_sound,
)

_CONCESSIONS_MAX = 3
_MEND = "Answer again, with one JSON object that fits, and nothing else."
_CUTS = {
    STOP_LENGTH: "Your message was cut off at the limit on tokens, so this call was not made.",
    STOP_FILTERED: "Your message was withheld by its provider, so this call was not made.",
}
"""Why the calls of a message that is not whole are not made."""
_PATIENCE = 10.0
"""Seconds in which another conversation in the same transcript must have ended."""
_GLANCE = 0.01
"""Seconds between two looks at it; it may be in another event loop."""
_ENDINGS = {STOP_LENGTH: StopReason.TRUNCATED, STOP_FILTERED: StopReason.FILTERED}


@dataclass(slots=True, kw_only=True)
class Loop:
    """One conversation on its way; it touches only what is new in each turn."""

    transcript: Transcript
    provider: Provider
    executor: Executor
    announce: Announce
    toolbox: Toolbox
    controls: Controls = Controls()
    limits: Limits = Limits()
    form: AnswerForm | None = None
    _turns: int = 0
    _calls: int = 0
    _usage: Usage = Usage()
    _identifiers: set[str] = field(default_factory=set[str])
    _answers: tuple[Any, ...] = ()
    _flaw: str = ""
    _repairs: int = 0
    _instructed: bool = False
    _view: Transcript = field(default_factory=Transcript)
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def run(self) -> Reply:
        """Runs to the end, and returns the new canisters; the transcript has them too."""
        await _await_turn(self.transcript)
        _under_way.add(self.transcript)
        try:
            return await self._run()
        finally:
            _under_way.discard(self.transcript)

    async def _run(self) -> Reply:
        start = len(self.transcript)
        reason = StopReason.TIME_LIMIT
        seconds = self.limits.seconds
        deadline = math.inf if seconds is None else anyio.current_time() + seconds
        self._identifiers = {
            canister.identifier
            for canister in self.transcript
            if isinstance(canister, InvocationCanister)
        }
        try:
            with anyio.CancelScope(deadline=deadline) as self._scope:
                await self.toolbox.acquaint()
                reason = await self._alternate()
        except ModelFailure as failure:
            failure.canisters = tuple(self.transcript[start:])
            raise
        reply = Reply(
            canisters=tuple(self.transcript[start:]),
            reason=reason,
            usage=self._usage,
            answers=self._answers,
            flaw=self._flaw,
        )
        self.announce(ReplyCompleted(reply=reply))
        return reply

    async def _alternate(self) -> StopReason:
        """Asks and invokes in turn, until there is a reason to stop."""
        limits = self.limits
        while True:
            if limits.turns is not None and self._turns >= limits.turns:
                return StopReason.TURNS_LIMIT
            spent = self._usage.tokens_in + self._usage.tokens_out
            if limits.tokens is not None and spent >= limits.tokens:
                return StopReason.TOKENS_LIMIT
            self._prepare()
            self._turns += 1
            completed = await self._ask()
            if completed.calls:
                if not await self._invoke(completed):
                    return StopReason.CALLS_LIMIT
                if completed.canister.stop_reason == STOP_FILTERED:
                    return StopReason.FILTERED
            elif (reason := self._finish(completed)) is not None:
                return reason

    def _finish(self, completed: TurnCompleted) -> StopReason | None:
        """Takes the model's last words; None where it shall go on, or mend the form of its answer."""
        canister = completed.canister
        self.transcript.append(canister)
        if canister.stop_reason == STOP_PAUSED:
            return None
        reason = _ENDINGS.get(canister.stop_reason or "", StopReason.DONE)
        if self.form is None or reason is not StopReason.DONE:
            return reason
        try:
            self._answers = (self.form.read(canister.text),)
        except AnswerInvalidity as failure:
            self._flaw = failure.message
        else:
            self._flaw = ""
            return reason
        if self._repairs >= self.limits.answer_repairs:
            return StopReason.ANSWER_INVALID
        self._repairs += 1
        # A server may take a schema, and not care: then the model has not heard of it yet.
        mend = _MEND if self._instructed else self.form.instruct()
        self._instructed = True
        self.transcript.append(user(f"Your answer cannot be used. {self._flaw}\n{mend}"))
        return None

    def _prepare(self) -> None:
        """Settles what the model sees in the next turn: the conversation, and its tools."""
        capabilities = find_capabilities(self.provider)
        if self.form is not None and not self._instructed and not self._is_held(self.form):
            self.transcript.append(user(self.form.instruct()))
            self._instructed = True
        self._view = digest(
            self.transcript,
            budget=find_smaller(self.limits.result_budget, capabilities.result_budget),
            vision=capabilities.vision,
            reader=self.toolbox.name_reader(),
        )
        self.toolbox.survey(self._view, defers=capabilities.deferral)

    def _is_held(self, form: AnswerForm) -> bool:
        """Whether the provider sees to the form of the answer, so that the model need not be told."""
        return holds_answer(self.provider, form.schema, tools=self.toolbox.has_tools)

    async def _ask(self) -> TurnCompleted:
        """Lets the provider take one turn."""
        self.announce(MessageStarted(turn=self._turns, model=self.provider.name))
        try:
            completed = await self._take_turn()
        except ConverserFailure as failure:
            self.announce(MessageFailed(turn=self._turns, failure=failure))
            raise
        except Exception as cause:
            words = f"The model {self.provider.name!r} failed: {describe_failure(cause)}"
            wrapped = ModelFailure(words)
            self.announce(MessageFailed(turn=self._turns, failure=wrapped))
            raise wrapped from cause
        if (usage := completed.canister.usage) is not None:
            self._usage += usage
        self.announce(MessageCompleted(turn=self._turns, canister=completed.canister))
        return completed

    async def _take_turn(self) -> TurnCompleted:
        """Asks again where the provider can do with less than its service refused."""
        conceded: Concession | None = None
        for _ in range(_CONCESSIONS_MAX):
            try:
                return await self._hear(conceded)
            except Concession as concession:
                conceded = concession
                self._prepare()
        return await self._hear(conceded)

    async def _hear(self, conceded: Concession | None) -> TurnCompleted:
        """Passes deltas on; only a stream that says that it is complete counts."""
        form = self.form
        request = TurnRequest(
            canisters=self._view,
            invokers=self.toolbox.invokers,
            controls=self.controls,
            answer_schema=form.schema if form is not None and self._is_held(form) else None,
            search=self.toolbox.search,
            found=self.toolbox.found,
            conceded=conceded,
        )
        flaw = "ended before it was complete"
        async with aclosing(self.provider.stream_turn(request)) as items:
            async for item in items:
                if not isinstance(item, TurnCompleted):
                    self.announce(item)
                elif is_sound(item):
                    return item
                else:
                    flaw = "is malformed"
                    break
        raise ModelFailure(
            f"The answer of the model {self.provider.name!r} {flaw}.",
            remedy="Nothing of it was used: try again.",
        )

    async def _invoke(self, completed: TurnCompleted) -> bool:
        """Runs the calls of a turn; False where the limit on calls refused some of them."""
        self.transcript.append(completed.canister)
        faults: dict[str, Fault] = {}
        cut_off = _CUTS.get(completed.canister.stop_reason or "", "")
        invocations = [self._admit(call, faults, cut_off) for call in completed.calls]
        excess = self._refuse_excess(invocations, faults)
        self.transcript.extend(invocations)
        batch = Batch(
            invocations=invocations,
            invokers=self.toolbox.known,
            faults=faults,
            deposit=self.transcript.extend,
            is_expired=lambda: self._scope.cancel_called,
            search=self.toolbox.search,
        )
        with self.transcript.hold():
            for invocation in invocations:
                ensemble, source = locate(batch.invokers.get(invocation.name))
                self.announce(
                    InvocationRequested(invocation=invocation, ensemble=ensemble, source=source)
                )
            await self.executor.run(batch)
        return not excess

    def _admit(self, call: Call, faults: dict[str, Fault], cut_off: str) -> InvocationCanister:
        """Makes a canister of a call, under an identifier that no other has in this conversation."""
        arguments, error = interpret_arguments(call.arguments)
        malformed = bool(error) and isinstance(call.arguments, str)
        extras = {"malformed_arguments": call.arguments} if malformed else EMPTY
        identifier = call.identifier
        if not identifier or identifier in self._identifiers:
            identifier = uuid.uuid4().hex
        self._identifiers.add(identifier)
        invocation = InvocationCanister(
            identifier=identifier, name=call.name, arguments=arguments, extras=extras
        )
        if error := cut_off or error:
            faults[invocation.identifier] = Fault(Outcome.INVALID, error)
        return invocation

    def _refuse_excess(
        self, invocations: Sequence[InvocationCanister], faults: dict[str, Fault]
    ) -> bool:
        """Refuses the calls over the limit, and says whether there were any."""
        allowed = self.limits.calls
        before, self._calls = self._calls, self._calls + len(invocations)
        if allowed is None or self._calls <= allowed:
            return False
        for invocation in invocations[max(0, allowed - before) :]:
            faults[invocation.identifier] = Fault(
                Outcome.REFUSED, f"The limit of {allowed} calls was reached; it was not made."
            )
        return True


_under_way: WeakSet[Transcript] = WeakSet()


async def _await_turn(transcript: Transcript) -> None:
    """Waits for what goes on in a transcript, such as the end of a stream that was just left: one at a time."""
    with anyio.move_on_after(_PATIENCE):
        while transcript in _under_way:  # noqa: ASYNC110  # which may be in another event loop
            await anyio.sleep(_GLANCE)
    if transcript in _under_way:
        raise ConverserFailure(
            "Another conversation goes on in this transcript.",
            remedy="Await its end, leave its stream by `await stream.aclose()`, or give each a"
            " transcript of its own, Transcript(transcript).",
        )
