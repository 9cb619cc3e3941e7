# SPDX-License-Identifier: Apache-2.0
"""The commands of a chat, each a line that begins with a slash."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from rich.text import Text

from ...canisters import UserCanister
from ...configuration.mistakes import nearest
from ...exceptions import ConverserFailure
from ..conversing.images import show_image
from ..conversing.wording import (
    clean_line,
    describe_end,
    list_arguments,
    list_images,
    list_result,
    tidy,
)
from .session import Session
from .tables import show_rows, show_servers, show_tool, show_tools

Kind = Literal["", "server", "tool", "call", "model"]


@dataclass(frozen=True, slots=True)
class Command:
    """One command: what it takes, what it does in words, and what does it."""

    takes: str
    words: str
    run: Callable[[Session, str], Awaitable[None]]
    completes: Kind = ""


async def obey(session: Session, line: str) -> None:
    """Runs one command; a failure is told, and the chat goes on."""
    name, _, rest = line[1:].strip().partition(" ")
    meant = [each for each in COMMANDS if each.startswith(name)] if name else []
    command = COMMANDS.get(name if len(meant) != 1 else meant[0])
    if command is None:
        guess = nearest(name, COMMANDS)
        hint = f"Did you mean /{guess}? " if guess else ""
        session.display.tell(f"There is no /{clean_line(name)}. {hint}/help lists all.", "yellow")
        return
    with session.interrupts.stopping() as scope:
        try:
            await command.run(session, rest.strip())
        except ConverserFailure as failure:
            session.display.tell(str(failure), "red")
    if scope.cancelled_caught:
        session.display.tell("Stopped.")


async def _help(session: Session, _: str) -> None:
    rows = [(f"/{name} {each.takes}".rstrip(), each.words) for name, each in COMMANDS.items()]
    show_rows(session.display.console, (), rows)
    session.display.tell(
        "Enter sends; Alt-Enter, or a backslash before Enter, begins a line. Tab completes."
        " Ctrl-C stops an answer, Ctrl-D leaves."
    )


async def _servers(session: Session, _: str) -> None:
    show_servers(session.display, session.roster.survey())


async def _tools(session: Session, rest: str) -> None:
    server, _, tool = rest.partition(".")
    if tool:
        show_tool(session.display, session.roster.access_ensemble(server).access_invoker(tool))
        return
    surveys = session.roster.survey()
    if server:
        session.roster.access_ensemble(server)
        surveys = {server: surveys[server]}
    show_tools(session.display, surveys)


async def _toggle(session: Session, server: str) -> None:
    state = session.roster.access_ensemble(server).enabled
    survey = await session.roster.toggle(server, not state)
    words = f"on, {len(survey.tools)} tools" if not state else "off"
    session.display.tell(f"{server} is {words}.")
    if survey.error is not None:
        session.display.tell(str(survey.error), "yellow")


async def _reconnect(session: Session, server: str) -> None:
    survey = await session.roster.reconnect(server)
    session.display.tell(f"{server} is {survey.state}, {len(survey.tools)} tools.")


async def _model(session: Session, name: str) -> None:
    if name:
        await session.change_model(name)
    model = session.model
    session.display.tell(f"{model.name}. {model.reason}" if model else "There is no model yet.")


async def _save(session: Session, name: str) -> None:
    if name:
        session.name = name
    if (conversation := session.transcript.conversation) is None:
        session.display.tell("Everything is kept from the first question on.")
        return
    if name:
        conversation.revise(name=name)
    title = f"{session.name!r} is" if session.name else "It is"
    session.display.tell(f"{title} kept in {conversation.folder}.")


async def _fork(session: Session, name: str) -> None:
    if (original := session.transcript.conversation) is None:
        session.display.tell("There is nothing to fork yet.")
        return
    fork = original.fork(name=name) if name else original.fork()
    session.move_to(fork)
    session.display.tell(
        f"This is a fork now, {fork.identifier}; {original.identifier} stays as it is."
    )


async def _undo(session: Session, _: str) -> None:
    conversation = session.transcript.conversation
    dropped = () if conversation is None else conversation.undo()
    if conversation is None or not dropped:
        session.display.tell("There is nothing to undo.")
        return
    session.move_to(conversation)
    said = next((each.text for each in dropped if isinstance(each, UserCanister)), "")
    session.draft = tidy(said)
    session.display.tell(
        "Taken back out of the conversation, your words below; what tools did is done."
    )


async def _cost(session: Session, _: str) -> None:
    rows = [
        (name, f"{usage.tokens_in:,}", f"{usage.tokens_out:,}", f"{usage.tokens_cached:,}")
        for name, usage in session.sum_usage().items()
    ]
    if rows:
        show_rows(session.display.console, ("model", "tokens in", "out", "cached"), rows)
    else:
        session.display.tell("No tokens were used yet, or the model does not tell.")
    surveys = session.roster.survey().values()
    count, tokens = sum(len(s.tools) for s in surveys), sum(s.tokens for s in surveys)
    session.display.tell(f"{count} tools take about {tokens:,} tokens of each request.")


async def _show(session: Session, rest: str) -> None:
    records = session.display.journal.records
    if not records:
        session.display.tell("There was no call yet.")
        return
    number = int(rest) if rest.isdecimal() else len(records)
    if not 1 <= number <= len(records):
        session.display.tell(f"Calls are numbered from 1 to {len(records)}.", "yellow")
        return
    record, console = records[number - 1], session.display.console
    end = describe_end(record.result.outcome, record.duration)
    console.print(Text(f"{number} ", "dim").append(record.title, "bold").append(f" · {end}"))
    for line in [*list_arguments(record.invocation.arguments), "", *list_result(record.result)]:
        console.print(Text(line), soft_wrap=True)
    for image in list_images(record.result):
        show_image(console, image)


async def _quit(session: Session, _: str) -> None:
    session.is_ending = True


COMMANDS: dict[str, Command] = {
    "servers": Command("", "where each server stands", _servers),
    "tools": Command(
        "[SERVER[.TOOL]]", "all tools, those of a server, or one in full", _tools, "tool"
    ),
    "toggle": Command("SERVER", "use a server, or leave it out", _toggle, "server"),
    "reconnect": Command("SERVER", "start a server anew", _reconnect, "server"),
    "model": Command("[NAME]", "which model answers; or go on with another", _model, "model"),
    "show": Command("[N]", "a call in full, the last one or by its number", _show, "call"),
    "save": Command("[NAME]", "name this conversation, which is kept anyway", _save),
    "fork": Command("[NAME]", "go on in a copy; the original stays", _fork),
    "undo": Command("", "take the last question and all after it back", _undo),
    "cost": Command("", "tokens so far", _cost),
    "help": Command("", "this list", _help),
    "quit": Command("", "leave; so does Ctrl-D", _quit),
}
