# SPDX-License-Identifier: Apache-2.0
"""A conversation at the terminal: its model, its servers, and what has been said and stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from ...canisters import AssistantCanister, Usage, user
from ...events import Event, InvocationCompleted, ServerStateChanged, ToolsChanged
from ...exceptions import ConverserFailure
from ..asks import SHORTFALLS
from ..conversing.keeping import KeptTranscript
from ..conversing.preparing import find_model, label_model, obtain_consent, title_model
from .inputs import redraw, tell_beside
from .interrupts import Interrupts

if TYPE_CHECKING:
    from ...configuration import Configuration
    from ...models import Model
    from ...persistence.conversation import StoredConversation
    from ...persistence.store import ConversationStore
    from ...rosters.roster import Roster
    from ..conversing.approvals import Approvals
    from ..conversing.displays import Display
    from ..conversing.questions import Questioner

_PATIENCE = 10.0
"""Seconds that a question waits for servers that are still starting."""
_LOUD = {"failed", "needs-auth", "reconnecting"}


@dataclass(slots=True, kw_only=True)
class Session:
    """Everything that a chat holds; the commands work on it."""

    configuration: Configuration
    display: Display
    questioner: Questioner | None
    approvals: Approvals
    interrupts: Interrupts
    store: ConversationStore
    roster: Roster
    model_name: str | None
    yes: bool = False
    name: str = ""
    """What the conversation shall be called."""
    transcript: KeptTranscript = field(default_factory=KeptTranscript)
    model: Model | None = None
    draft: str = ""
    """What the person finds typed already at the next prompt."""
    failure: ConverserFailure | None = None
    """Why the last question has no answer."""
    is_ending: bool = False
    _model_failure: ConverserFailure | None = None
    _model_ready: anyio.Event = field(default_factory=anyio.Event)
    _servers_ready: anyio.Event = field(default_factory=anyio.Event)
    _lost: set[str] = field(default_factory=set[str])

    # Beginning and ending

    async def open_servers(self) -> None:
        """Starts all servers beside each other; those that fail are told of, and left out."""
        try:
            await self.roster.open()
        except ConverserFailure as failure:
            self.notify(str(failure), "yellow")
        finally:
            self._servers_ready.set()
            redraw()

    async def find_first_model(self) -> None:
        """Looks for the model that was named, or one that is at hand."""
        try:
            self.model = await find_model(self.model_name, self.configuration, self.notify)
            tell_beside(self._label)
        except ConverserFailure as failure:
            self._model_failure = failure
            self.notify(str(failure), "yellow")
        finally:
            self._model_ready.set()
            redraw()

    def _label(self) -> None:
        if self.model is not None:
            label_model(self.model, self.display)

    async def close(self) -> None:
        """Lets go of servers and model."""
        with anyio.CancelScope(shield=True):
            await self.roster.close()
            if self.model is not None:
                await self.model.close()

    # Telling

    def notify(self, words: str, style: str = "dim") -> None:
        """Says something from the background, without disturbing what is being typed."""
        tell_beside(lambda: self.display.tell(words, style))

    def hear_server(self, event: Event) -> None:
        """Tells quietly of servers that go and come back, and of tools that change."""
        if isinstance(event, ToolsChanged):
            parts = (("new", event.added), ("gone", event.removed), ("changed", event.changed))
            words = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in parts if names)
            self.notify(f"{event.server}: tools are {words}")
        elif isinstance(event, ServerStateChanged):
            self._hear_state(event)
        redraw()

    def _hear_state(self, event: ServerStateChanged) -> None:
        if event.state in _LOUD:
            self._lost.add(event.server)
            self.notify(f"{event.server}: {event.state}. {event.reason}".strip(), "yellow")
        elif event.state == "connected" and event.server in self._lost:
            self._lost.discard(event.server)
            self.notify(f"{event.server}: connected again")

    def describe(self) -> str:
        """The state of things, on one line."""
        surveys = [each for each in self.roster.survey().values() if each.state != "disabled"]
        up = sum(each.state == "connected" for each in surveys)
        servers = f"{up} of {len(surveys)} servers" if surveys else "no servers"
        tokens = sum(usage.tokens_in + usage.tokens_out for usage in self.sum_usage().values())
        model = title_model(self.model.name) if self.model else "no model yet"
        parts = [model, servers, f"{tokens:,} tokens" if tokens else "", self.name]
        return " · ".join(filter(None, parts))

    def sum_usage(self) -> dict[str, Usage]:
        """The tokens of this conversation, by model."""
        sums: dict[str, Usage] = {}
        for canister in self.transcript:
            if isinstance(canister, AssistantCanister) and (usage := canister.usage) is not None:
                name = canister.model or "unknown"
                known = sums.get(name, Usage())
                sums[name] = Usage(
                    tokens_in=known.tokens_in + usage.tokens_in,
                    tokens_out=known.tokens_out + usage.tokens_out,
                    tokens_cached=known.tokens_cached + usage.tokens_cached,
                )
        return sums

    # Answering

    async def answer(self, words: str) -> None:
        """Lets the model answer; an interrupt stops that, and keeps what was completed."""
        self.draft, self.failure = words, None
        with self.interrupts.stopping() as scope:
            try:
                await self._answer(words)
            except ConverserFailure as failure:
                self.failure = failure
                self.display.tell(str(failure), "red")
        if scope.cancelled_caught:
            self.display.tell("Stopped. What was completed is kept; /undo takes it back.")

    async def _answer(self, words: str) -> None:
        model = await self._await_model()
        await obtain_consent(model, self.configuration, self.display, self.questioner, yes=self.yes)
        self._ensure_kept(model)
        self.transcript.append(user(words))
        self.draft = ""
        self.display.space()
        async with self.display.running():
            await self._await_servers()
            reply = await model.converse(
                self.transcript,
                ensembles=self.roster.ensembles,
                approver=self.approvals,
                events=self._hear,
            )
        if (shortfall := SHORTFALLS.get(reply.reason)) is not None:
            self.display.tell(shortfall, "yellow")

    def _hear(self, event: Event) -> None:
        if isinstance(event, InvocationCompleted):
            self.transcript.keep(event.result)
        self.display.hear(event)

    async def _await_model(self) -> Model:
        await self._model_ready.wait()
        if self.model is None:
            assert self._model_failure is not None
            raise self._model_failure
        return self.model

    async def _await_servers(self) -> None:
        if self._servers_ready.is_set():
            return
        coming = {"pending", "disconnected"}
        waiting = [s.name for s in self.roster.survey().values() if s.state in coming]
        self.display.announce(f"starting {', '.join(waiting) or 'servers'}")
        with anyio.move_on_after(_PATIENCE) as patience:
            await self._servers_ready.wait()
        if patience.cancelled_caught:
            self.display.tell(f"Going on without {', '.join(waiting)}, still starting.", "yellow")

    def _ensure_kept(self, model: Model) -> None:
        """A conversation is stored from its first words on; one without words is none."""
        if self.transcript.conversation is None:
            servers = [survey.name for survey in self.roster.survey().values() if survey.tools]
            self.transcript.conversation = self.store.create(
                name=self.name, model=model.name, servers=servers
            )

    # What commands change

    async def change_model(self, name: str) -> None:
        """Goes on with another model."""
        model = await find_model(name, self.configuration, self.notify)
        before, self.model = self.model, model
        self._model_ready.set()
        self._label()
        if before is not None:
            await before.close()
        if (conversation := self.transcript.conversation) is not None:
            conversation.revise(model=model.name)

    def move_to(self, conversation: StoredConversation) -> None:
        """Goes on in another stored conversation, as far as it goes."""
        self.transcript = KeptTranscript(conversation.resume(), conversation)
        self.name = conversation.metadata.name
        for remark in conversation.remarks:
            self.display.tell(remark, "yellow")
