# SPDX-License-Identifier: Apache-2.0
"""A model: continues a conversation with the tools of ensembles, over any provider."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Iterable, Sequence
from types import TracebackType

import anyio
from typing_extensions import Self

from .canisters import Canister
from .ensembles import Ensemble
from .events import Announce, Event, Observer, observe
from .execution import Executor
from .loop import Loop
from .policies import Approver, Gate, Policy
from .replies import Limits, Reply
from .turns import Controls, Provider, Transcript

_CONTROLS = Controls()
_LIMITS = Limits()


class Model:
    """Continues conversations: `reply = await model.converse([user("…")], ensembles=[…])`."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """How messages call this model."""
        return self._provider.name

    async def close(self) -> None:
        """Lets go of connections and memory; `async with model:` does it by itself."""
        await self._provider.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def converse(
        self,
        canisters: Iterable[Canister] | Transcript,
        *,
        ensembles: Sequence[Ensemble] = (),
        controls: Controls = _CONTROLS,
        events: Observer | None = None,
        limits: Limits = _LIMITS,
        policies: Sequence[Policy] = (),
        approver: Approver | None = None,
    ) -> Reply:
        """Asks, runs what the model invokes, and appends, until it is done; returns what is new.

        Given a `Transcript`, it extends that as it goes: after a cancellation or a failure the
        transcript holds what was completed, with a result for each invocation, and can go on.
        """
        transcript = canisters if isinstance(canisters, Transcript) else Transcript(canisters)

        async def run(announce: Announce) -> Reply:
            executor = Executor(Gate(policies, approver), announce, parallel=limits.parallel)
            loop = Loop(
                transcript=transcript,
                provider=self._provider,
                executor=executor,
                announce=announce,
                ensembles=tuple(ensembles),
                controls=controls,
                limits=limits,
            )
            return await loop.run()

        return await observe(events, run)

    async def stream(
        self,
        canisters: Iterable[Canister] | Transcript,
        *,
        ensembles: Sequence[Ensemble] = (),
        controls: Controls = _CONTROLS,
        limits: Limits = _LIMITS,
        policies: Sequence[Policy] = (),
        approver: Approver | None = None,
    ) -> AsyncGenerator[Event, None]:
        """The same as an async iterator of events; the last one, `ReplyCompleted`, has the reply.

        Leaving the iteration cancels the conversation.
        """
        send, receive = anyio.create_memory_object_stream[Event](math.inf)
        conversation = self.converse(
            canisters,
            ensembles=ensembles,
            controls=controls,
            events=send.send_nowait,
            limits=limits,
            policies=policies,
            approver=approver,
        )
        # A task group must not stay open over a `yield` (PEP 789), so this owns a plain task.
        task = asyncio.create_task(conversation)
        task.add_done_callback(lambda _: send.close())
        try:
            async for event in receive:
                yield event
            await task
        finally:
            receive.close()
            await _end(task)


async def _end(task: asyncio.Task[Reply]) -> None:
    """Cancels a task and waits for its end; what it raises was raised already, or is unwanted."""
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
