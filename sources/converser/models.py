# SPDX-License-Identifier: Apache-2.0
"""A model: continues a conversation with the tools of ensembles, over any provider."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
from typing_extensions import Self

from .answers import AnswerForm
from .canisters import Canister, refuse_conversation
from .ensembles import Ensemble
from .events import Announce, Event, Observer, observe
from .exceptions import ConfigurationFailure
from .execution import Executor
from .loop import Loop
from .policies import Approver, Gate, Policy
from .replies import Limits, Reply, find_smaller
from .tasks import spawn
from .toolboxes import Toolbox
from .turns import Controls, Provider, Transcript, find_capabilities

if TYPE_CHECKING:
    from .configuration import Configuration

_CONTROLS = Controls()
_LIMITS = Limits()
_PARTING = 10.0
"""Seconds that calls get to end after a stream was left."""


class Model:
    """Continues conversations: `reply = await model.converse([user("…")], ensembles=[…])`."""

    def __init__(self, provider: Provider, *, reason: str = "") -> None:
        self._provider = provider
        self.reason = reason
        """Why this model was taken, where it was chosen by name or by itself."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """How messages call this model."""
        return self._provider.name

    async def close(self) -> None:
        """Lets go of connections and memory until the next use; `async with model:` does it by itself."""
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
        ensembles: Iterable[Ensemble] = (),
        controls: Controls = _CONTROLS,
        events: Observer | None = None,
        limits: Limits = _LIMITS,
        policies: Sequence[Policy] = (),
        approver: Approver | None = None,
        answer: Any = None,
    ) -> Reply:
        """Asks, runs what the model invokes, and appends, until it is done; returns what is new.

        Given a `Transcript`, it extends that as it goes: after a cancellation or a failure the
        transcript holds what was completed, with a result for each invocation, and can go on.
        With `answer`, a dataclass or another type or a JSON Schema, `reply.answer` is such an object.
        """
        _check_options(controls, limits, policies)
        form = None if answer is None else AnswerForm(answer)
        transcript = _open_transcript(canisters)
        ensembles = _list_ensembles(ensembles)

        async def run(announce: Announce) -> Reply:
            executor = Executor(Gate(policies, approver), announce, parallel=limits.parallel)
            capabilities = find_capabilities(self._provider)
            budget = find_smaller(limits.tools_budget, capabilities.tools_budget)
            loop = Loop(
                transcript=transcript,
                provider=self._provider,
                executor=executor,
                announce=announce,
                toolbox=Toolbox(ensembles, budget=budget, most=capabilities.tools_max),
                controls=controls,
                limits=limits,
                form=form,
            )
            with ExitStack() as watches:
                if events is not None:
                    for ensemble in dict.fromkeys(ensembles):
                        watches.callback(ensemble.observe(announce))
                return await loop.run()

        return await observe(events, run)

    async def stream(
        self,
        canisters: Iterable[Canister] | Transcript,
        *,
        ensembles: Iterable[Ensemble] = (),
        controls: Controls = _CONTROLS,
        limits: Limits = _LIMITS,
        policies: Sequence[Policy] = (),
        approver: Approver | None = None,
        answer: Any = None,
    ) -> AsyncGenerator[Event, None]:
        """The same as an async iterator of events; the last one, `ReplyCompleted`, has the reply.

        Leaving the iteration cancels the conversation.
        """
        send, receive = anyio.create_memory_object_stream[Event](math.inf)
        scope, ended = anyio.CancelScope(), anyio.Event()
        failures: list[Exception] = []

        def tell(event: Event) -> None:
            with suppress(anyio.BrokenResourceError):  # The stream was left.
                send.send_nowait(event)

        async def run() -> None:
            try:
                with scope:
                    await self.converse(
                        canisters,
                        ensembles=ensembles,
                        controls=controls,
                        events=tell,
                        limits=limits,
                        policies=policies,
                        approver=approver,
                        answer=answer,
                    )
            except Exception as failure:
                failures.append(failure)
            finally:
                send.close()
                ended.set()

        # A task group must not stay open over a `yield` (PEP 789), so this task is in none.
        spawn(run, "converser stream")
        try:
            async for event in receive:
                yield event
            if failures:
                raise failures[0]
        finally:
            receive.close()
            scope.cancel()
            # A group waits also where this task is cancelled once more, as by a person who stops it twice.
            async with anyio.create_task_group() as group:
                group.start_soon(_part, ended)


async def _part(ended: anyio.Event) -> None:
    """Waits for the end of a conversation that was left, so that its transcript is whole."""
    with anyio.move_on_after(_PARTING, shield=True):
        await ended.wait()


def _open_transcript(canisters: Iterable[Canister] | Transcript) -> Transcript:
    """The conversation that is meant; a single canister, or nothing, is a slip that is told."""
    if isinstance(canisters, Transcript):
        return canisters
    if not isinstance(canisters, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse_conversation()
    return Transcript(canisters)


def _list_ensembles(ensembles: Iterable[Ensemble]) -> tuple[Ensemble, ...]:
    """The ensembles; one alone, or functions, are slips that are told."""
    is_listed = isinstance(ensembles, Iterable)  # pyright: ignore[reportUnnecessaryIsInstance]
    listed = tuple(ensembles) if is_listed else ()
    if not is_listed or not all(isinstance(each, Ensemble) for each in listed):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationFailure(
            "The tools of a conversation are a list of ensembles, and this is none.",
            remedy="Give ensembles=[…]; functions become one by"
            ' converser.create_local_ensemble("name", [function]).',
        )
    return listed


def _check_options(controls: object, limits: object, policies: object) -> None:
    """Refuses options that are no such thing, which nobody would miss until the middle of a conversation."""
    kinds = (
        (controls, Controls, "controls=Controls(temperature=0)"),
        (limits, Limits, "limits=Limits(turns=10)"),
        (policies, Iterable, "policies=[policy]"),
    )
    for value, kind, example in kinds:
        if not isinstance(value, kind):
            name = example.partition("=")[0]
            raise ConfigurationFailure(
                f"The option {name!r} was given a value of type {type(value).__name__}.",
                remedy=f"Give it as {example}.",
            )


def access_model(
    name: str | None = None,
    *,
    configuration: Configuration | None = None,
    report: Callable[[str], None] | None = None,
    **options: Any,
) -> Model:
    """A model by name: `anthropic:claude-sonnet-5`, `ollama:qwen3`, `embedded`, or `auto`.

    Options go to the provider, such as `key=…` and `base_url=…` for a server of your own. With a
    configuration, `[provider.NAME]` has more of them, and `[model]` names the model that is
    meant where no name is given. `auto`, the default, takes the provider whose key is set, else a
    server on this machine, else the embedded model; `report` (standard error, if not given) is
    told which and why, and `model.reason` keeps it.
    """
    from .providers.access import access_provider

    provider, reason = access_provider(name, options, configuration=configuration, report=report)
    return Model(provider, reason=reason)
