# SPDX-License-Identifier: Apache-2.0
"""`converser chat`: reads what the person says, and answers, until they leave."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import anyio
from cyclopts import Parameter

from ... import __version__
from ...canisters import AssistantCanister, UserCanister
from ...persistence.store import ConversationStore
from ..conversing.approvals import Approvals
from ..conversing.displays import Display, PlainDisplay
from ..conversing.elicitations import create_elicitor
from ..conversing.keeping import find_conversation
from ..conversing.preparing import choose_servers, enlist
from ..conversing.questions import TerminalQuestioner
from ..conversing.terminals import hush, is_dumb
from ..exits import ExitCode
from ..judging import judge
from ..options import TALK_DEFAULTS, TalkOptions
from .commands import obey
from .inputs import LineReader, Reader, TerminalReader
from .interrupts import Interrupts
from .session import Session

if TYPE_CHECKING:
    from ...configuration import Configuration
    from ...events import Event
    from ...persistence.conversation import StoredConversation
    from ..conversing.questions import Questioner


def chat(
    conversation: str | None = None,
    /,
    *,
    goes_on: Annotated[
        bool,
        Parameter(
            name="--continue",
            alias="-c",
            negative=(),
            help="Go on with the last conversation, or with the one that is named.",
        ),
    ] = False,
    options: TalkOptions = TALK_DEFAULTS,
) -> int:
    """Talks with a model that can use the tools of your servers. Type /help in it.

    Every message is kept as soon as it is shown. Tools that say that they only read are called;
    others ask first. In a pipe, each line is a question.

    Parameters
    ----------
    conversation
        What the conversation is called; with --continue, the one to go on with.
    """
    configuration = options.load()
    store = ConversationStore()
    earlier = find_conversation(store, conversation) if goes_on else None
    with hush():
        return anyio.run(_chat, configuration, options, store, earlier, conversation or "")


async def _chat(
    configuration: Configuration,
    options: TalkOptions,
    store: ConversationStore,
    earlier: StoredConversation | None,
    name: str,
) -> int:
    interrupts = Interrupts()
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not is_dumb()
    display = _make_display(is_terminal)
    questioner = TerminalQuestioner(display.console, interrupts.hear) if is_terminal else None
    session = _make_session(
        configuration,
        options,
        store,
        interrupts=interrupts,
        display=display,
        questioner=questioner,
    )
    session.name = name
    reader = _make_reader(session, is_terminal)
    if is_terminal:
        display.tell(f"converser {__version__} · /help tells the commands, Ctrl-D leaves")
    if earlier is not None:
        _recall(session, earlier)
    with interrupts.listening():
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(session.open_servers)
                group.start_soon(session.find_first_model)
                await _alternate(session, reader)
                group.cancel_scope.cancel()
        finally:
            await session.close()
    if is_terminal and (kept := session.transcript.conversation) is not None:
        display.tell(f"Go on with it: converser chat --continue {kept.identifier}")
    return ExitCode.SUCCESS if is_terminal or session.failure is None else judge(session.failure)


async def _alternate(session: Session, reader: Reader) -> None:
    """The person and the model, in turn."""
    while not session.is_ending and not session.interrupts.is_second:
        draft, session.draft = session.draft, ""
        words = await reader.read(draft)
        if words is None:
            return
        if words.startswith("/"):
            await obey(session, words)
            session.display.space()
        elif words.strip():
            await session.answer(words)


def _make_display(is_terminal: bool) -> Display:
    if not is_terminal:
        return PlainDisplay()
    from ..conversing.live import LiveDisplay

    return LiveDisplay()


def _make_session(
    configuration: Configuration,
    options: TalkOptions,
    store: ConversationStore,
    *,
    interrupts: Interrupts,
    display: Display,
    questioner: Questioner | None,
) -> Session:
    approvals = Approvals(display, questioner, everything=options.yes, patterns=options.allow)

    def hear(event: Event) -> None:
        session.hear_server(event)

    roster = enlist(
        choose_servers(configuration, options),
        lazy=False,
        elicit=create_elicitor(display, questioner),
        observer=hear,
    )
    session = Session(
        configuration=configuration,
        display=display,
        questioner=questioner,
        approvals=approvals,
        interrupts=interrupts,
        store=store,
        roster=roster,
        model_name=options.model,
        yes=options.yes,
    )
    return session


def _make_reader(session: Session, is_terminal: bool) -> Reader:
    if not is_terminal:
        return LineReader()
    from .completing import ChatCompleter

    return TerminalReader(ChatCompleter(session), session.describe, session.interrupts)


def _recall(session: Session, earlier: StoredConversation) -> None:
    """Goes on with an earlier conversation, and shows where it stood."""
    session.move_to(earlier)
    transcript = session.transcript
    session.display.journal.restore(transcript)
    title = earlier.survey().title
    session.display.tell(f"Going on with {title!r}, {len(transcript)} messages.")
    for kind, mark in ((UserCanister, "❯ "), (AssistantCanister, "")):
        last = next((each for each in reversed(transcript) if isinstance(each, kind)), None)
        if last is not None and last.text:
            session.display.tell(f"{mark}{last.text}")
