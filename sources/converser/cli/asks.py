# SPDX-License-Identifier: Apache-2.0
"""`converser ask`: one question, and its answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
from cyclopts import Parameter

from ..canisters import Canister, user
from ..events import InvocationCompleted
from ..replies import StopReason
from .conversing.terminals import hush
from .exits import ExitCode
from .judging import Misuse
from .options import TALK_DEFAULTS, TalkOptions

if TYPE_CHECKING:
    from ..configuration import Configuration
    from ..events import Event
    from ..models import Model
    from ..replies import Reply
    from ..rosters.roster import Roster
    from .conversing.approvals import Approvals
    from .conversing.displays import Display
    from .conversing.keeping import KeptTranscript
    from .conversing.questions import Questioner

SHORTFALLS = {
    StopReason.TRUNCATED: "The answer was cut off at the model's limit on tokens.",
    StopReason.FILTERED: "The provider withheld the answer, or a part of it.",
    StopReason.TURNS_LIMIT: "The model was stopped after too many turns.",
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """What only this command takes."""

    file: Annotated[
        tuple[Path, ...],
        Parameter(
            alias="-f",
            negative=(),
            help="Give this file along, text or image; may be given again.",
        ),
    ] = ()
    json: Annotated[
        bool, Parameter(negative=(), help="Write the canisters, one JSON object a line.")
    ] = False
    save: Annotated[bool, Parameter(negative=(), help="Keep this conversation.")] = False
    goes_on: Annotated[
        bool,
        Parameter(
            name="--continue",
            alias="-c",
            negative=(),
            help="Go on with the last conversation, or with the one that --conversation names.",
        ),
    ] = False
    conversation: Annotated[
        str | None,
        Parameter(
            help="Which one, with --continue; or what a new one is called, which keeps it too."
        ),
    ] = None


ASK_DEFAULTS = AskOptions()


def ask(
    *question: str,
    own: AskOptions = ASK_DEFAULTS,
    options: TalkOptions = TALK_DEFAULTS,
) -> int:
    """Asks one question: the answer on standard output, what tools do on standard error.

    What is piped in is given along as a document: `git diff | converser ask "Review this."` Tools
    that say that they only read are called; others ask first, and in a pipe need --yes or --allow.

    Parameters
    ----------
    question
        The words; without any, what is piped in is the question.
    """
    canisters = _gather(question, own.file)
    configuration = options.load()
    with hush():
        return anyio.run(_ask, configuration, options, own, canisters)


def _gather(question: Sequence[str], files: Sequence[Path]) -> list[Canister]:
    """The documents, and the question after them."""
    from .conversing.materials import read_files, read_input

    words = " ".join(question).strip()
    documents = read_files(files)
    if (piped := read_input()) is not None:
        if not words:
            words = piped.text
        else:
            documents.append(piped)
    if not words:
        raise Misuse(
            "There is no question.", remedy='Write one: converser ask "Why is the sky blue?"'
        )
    return [*documents, user(words)]


async def _ask(
    configuration: Configuration,
    options: TalkOptions,
    own: AskOptions,
    canisters: list[Canister],
) -> int:
    from .conversing.approvals import Approvals
    from .conversing.preparing import find_model, label_model, obtain_consent

    display = _choose_display(json=own.json)
    questioner = _find_questioner(display)
    approvals = Approvals(display, questioner, everything=options.yes, patterns=options.allow)
    async with await find_model(options.model, configuration, display.tell) as model:
        label_model(model, display)
        await obtain_consent(model, configuration, display, questioner, yes=options.yes)
        transcript = _begin(own, canisters, model.name)
        start = len(transcript)
        transcript.extend(canisters)
        async with display.running():
            display.announce("starting")
            roster = _enlist(configuration, options, display, questioner)
            async with roster:
                reply = await _converse(model, roster, transcript, display, approvals)
    if own.json:
        _write_json(transcript[start:])
    return _judge(reply, approvals, display)


def _begin(own: AskOptions, canisters: Sequence[Canister], model: str) -> KeptTranscript:
    """The conversation so far, and where it is kept, if it is."""
    from .conversing.keeping import KeptTranscript, find_conversation

    if not (own.save or own.goes_on or own.conversation):
        return KeptTranscript()
    from ..persistence.store import ConversationStore

    store = ConversationStore()
    if own.goes_on:
        conversation = find_conversation(store, own.conversation)
        return KeptTranscript(conversation.resume(), conversation)
    return KeptTranscript((), store.create(name=own.conversation or "", model=model))


def _enlist(
    configuration: Configuration,
    options: TalkOptions,
    display: Display,
    questioner: Questioner | None,
) -> Roster:
    from .conversing.elicitations import create_elicitor
    from .conversing.preparing import choose_servers, enlist

    chosen = choose_servers(configuration, options, required=True)
    return enlist(chosen, lazy=True, elicit=create_elicitor(display, questioner))


async def _converse(
    model: Model,
    roster: Roster,
    transcript: KeptTranscript,
    display: Display,
    approvals: Approvals,
) -> Reply:
    """Lets the model answer with the servers that could be opened; tells of those that could not."""

    def hear(event: Event) -> None:
        if isinstance(event, InvocationCompleted):
            transcript.keep(event.result)
        display.hear(event)

    for survey in roster.survey().values():
        if survey.error is not None:
            display.tell(str(survey.error), "yellow")
    return await model.converse(
        transcript, ensembles=roster.ensembles, approver=approvals, events=hear
    )


def _choose_display(*, json: bool) -> Display:
    """Moving where both outputs are a terminal; else plain."""
    from .conversing.displays import PlainDisplay
    from .conversing.terminals import is_dumb

    if not json and sys.stdout.isatty() and sys.stderr.isatty() and not is_dumb():
        from .conversing.live import LiveDisplay

        return LiveDisplay(can_open=False)
    return PlainDisplay(answers=not json)


def _find_questioner(display: Display) -> Questioner | None:
    from .conversing.questions import TerminalQuestioner
    from .conversing.terminals import is_interactive

    if not is_interactive():
        return None
    return TerminalQuestioner(display.console, _interrupt)


def _interrupt() -> None:
    """Ends the program as Ctrl-C does elsewhere."""
    import signal

    signal.raise_signal(signal.SIGINT)


def _write_json(canisters: Sequence[Canister]) -> None:
    from ..codec import dump_canister

    for canister in canisters:
        sys.stdout.write(f"{dump_canister(canister)}\n")


def _judge(reply: Reply, approvals: Approvals, display: Display) -> int:
    if (words := SHORTFALLS.get(reply.reason)) is not None:
        display.tell(words, "yellow")
        return ExitCode.INCOMPLETE
    if approvals.unasked:
        names = ", ".join(dict.fromkeys(approvals.unasked))
        display.tell(f"Not approved: {names}. Allow it with --yes, or --allow NAME.", "yellow")
        return ExitCode.REFUSED
    return ExitCode.SUCCESS
