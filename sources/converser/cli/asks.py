# SPDX-License-Identifier: Apache-2.0
"""`converser ask`: one question, and its answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
from cyclopts import Parameter

from ..canisters import Canister, user
from ..replies import StopReason
from .exits import ExitCode
from .judging import Misuse
from .options import TALK_DEFAULTS, TalkOptions

if TYPE_CHECKING:
    from ..configuration import Configuration
    from ..replies import Reply
    from .conversing.approvals import Approvals
    from .conversing.displays import Display
    from .conversing.questions import Questioner

_SHORTFALLS = {
    StopReason.TRUNCATED: "The answer was cut off at the model's limit on tokens.",
    StopReason.FILTERED: "The provider withheld the answer, or a part of it.",
    StopReason.TURNS_LIMIT: "The model was stopped after too many turns.",
}


def ask(
    *question: str,
    file: Annotated[tuple[Path, ...], Parameter(alias="-f", negative=())] = (),
    json: Annotated[bool, Parameter(negative=())] = False,
    options: TalkOptions = TALK_DEFAULTS,
) -> int:
    """Asks one question: the answer on standard output, what tools do on standard error.

    What is piped in is given along as a document: `git diff | converser ask "Review this."` Tools
    that say that they only read are called; others ask first, and in a pipe need --yes or --allow.

    Parameters
    ----------
    question
        The words; without any, what is piped in is the question.
    file
        Give this file along, text or image; may be given again.
    json
        Write the new canisters instead, one JSON object a line.
    """
    canisters = _gather(question, file)
    return anyio.run(_ask, options.load(), options, canisters, json)


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
    configuration: Configuration, options: TalkOptions, canisters: list[Canister], json: bool
) -> int:
    from .conversing.approvals import Approvals
    from .conversing.elicitations import create_elicitor
    from .conversing.preparing import choose_servers, enlist, find_model, obtain_consent

    display = _choose_display(json=json)
    questioner = _find_questioner(display)
    approvals = Approvals(display, questioner, everything=options.yes, patterns=options.allow)
    model = await find_model(options.model, configuration, display.tell)
    roster = enlist(
        choose_servers(configuration, options, required=True),
        lazy=True,
        elicit=create_elicitor(display, questioner),
    )
    async with model:
        await obtain_consent(model, display, questioner, yes=options.yes)
        async with display.running():
            display.announce("starting")
            async with roster:
                for survey in roster.survey().values():
                    if survey.error is not None:
                        display.tell(str(survey.error), "yellow")
                reply = await model.converse(
                    canisters,
                    ensembles=roster.ensembles,
                    approver=approvals,
                    events=display.hear,
                )
    if json:
        _write_json([*canisters, *reply])
    return _judge(reply, approvals, display)


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
    if (words := _SHORTFALLS.get(reply.reason)) is not None:
        display.tell(words, "yellow")
        return ExitCode.INCOMPLETE
    if approvals.unasked:
        names = ", ".join(dict.fromkeys(approvals.unasked))
        display.tell(f"Not approved: {names}. Allow it with --yes, or --allow NAME.", "yellow")
        return ExitCode.REFUSED
    return ExitCode.SUCCESS
