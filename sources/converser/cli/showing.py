# SPDX-License-Identifier: Apache-2.0
"""`converser conversations show`: a conversation as it was, message by message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ..canisters import (
    AssistantCanister,
    Canister,
    InvocationCanister,
    ResultCanister,
    UnknownCanister,
    UserCanister,
)
from ..persistence.exports.timeline import Call, Entry, add_up, arrange
from ..persistence.exports.words import write_count, write_duration, write_time, write_usage
from .calls import describe_content
from .conversations import open_conversation, tell_remarks
from .conversing.wording import (
    clean_line,
    fold,
    list_arguments,
    list_result,
    summarize_arguments,
    tidy,
    write_json,
)
from .options import AsJSON
from .screen import is_terminal, say

if TYPE_CHECKING:
    from ..persistence.conversation import ConversationSurvey

_MARGIN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """What is shown of an entry; all of it is clean."""

    number: int
    who: str
    style: str = ""
    facts: str = ""
    lines: Sequence[str] = ()
    markdown: str = ""


def show(
    conversation: Annotated[
        str, Parameter(help="Its identifier, the beginning of that, or its name.")
    ],
    /,
    *,
    full: Annotated[bool, Parameter(negative=(), help="Show calls and results whole.")] = False,
    json: AsJSON = False,
) -> None:
    """Shows a conversation; in a pipe, calls and results are whole in any case.

    With --json, a canister a line, as `ask --json` writes them.
    """
    origin = open_conversation(conversation)
    canisters = origin.salvage()
    if json:
        from ..codec import dump_canister

        for canister in canisters:
            say(dump_canister(canister))
    elif is_terminal():
        _show_styled(origin.survey(), canisters, full=full)
    else:
        _show_plain(origin.survey(), canisters)
    tell_remarks(origin)


def _show_plain(survey: ConversationSurvey, canisters: Sequence[Canister]) -> None:
    say(survey.title)
    say(_introduce(survey, canisters))
    for entry in arrange(canisters):
        section = _tell(entry, full=True, width=0)
        say(f"\n{section.number} {section.who}  {section.facts}".rstrip())
        for line in section.lines or section.markdown.splitlines():
            say(f"    {line}".rstrip())


def _show_styled(survey: ConversationSurvey, canisters: Sequence[Canister], *, full: bool) -> None:
    from .conversing.markdown import THEME, SafeMarkdown

    console = Console(highlight=False, theme=THEME)
    console.print(Text(survey.title, style="bold"))
    console.print(Text(_introduce(survey, canisters), style="dim"))
    for entry in arrange(canisters):
        section = _tell(entry, full=full, width=max(20, console.width - _MARGIN))
        number = f"{section.number:>{_MARGIN - 2}}  "
        heading = Text.assemble((number, "dim"), (section.who, section.style))
        console.print()
        console.print(heading.append(f"  {section.facts}", style="dim"))
        body = (
            SafeMarkdown(section.markdown) if section.markdown else Text("\n".join(section.lines))
        )
        if section.markdown or section.lines:
            console.print(Padding(body, (0, 0, 0, _MARGIN)))


def _introduce(survey: ConversationSurvey, canisters: Sequence[Canister]) -> str:
    totals = add_up(canisters)
    facts = (
        survey.identifier,
        survey.metadata.model,
        write_time(totals.began or survey.metadata.created),
        write_count(totals.turns, "turn"),
        write_count(totals.calls, "call"),
        write_usage(totals.usage),
    )
    return clean_line(" · ".join(fact for fact in facts if fact))


def _tell(entry: Entry, *, full: bool, width: int) -> _Section:
    if isinstance(entry, Call):
        return _tell_call(entry, full=full, width=width)
    number, canister = entry.number, entry.canister
    if isinstance(canister, AssistantCanister):
        return _Section(
            number=number,
            who=clean_line(canister.model or "Assistant"),
            style="bold green",
            facts="" if canister.usage is None else write_usage(canister.usage),
            markdown="\n\n".join(tidy(describe_content(part)) for part in canister.contents),
        )
    is_user = isinstance(canister, UserCanister)
    lines = list(_list(canister))
    # Instructions and documents may be long, and are not what people look for here.
    if not (full or is_user):
        lines = fold(lines, width, "--full shows all")
    return _Section(
        number=number, who=_name(canister), style="bold cyan" if is_user else "bold", lines=lines
    )


def _tell_call(call: Call, *, full: bool, width: int) -> _Section:
    result, arguments = call.result, call.invocation.arguments
    if result is None:
        end, results = "no result", []
    else:
        end, results = str(result.outcome).replace("-", " "), list_result(result)
    took = "" if call.duration is None else f", {write_duration(call.duration)}"
    if full:
        given = [line for words in list_arguments(arguments) for line in words.split("\n")]
        lines = [*given, *(["→"] if given else []), *results]
    else:
        brief = [summarize_arguments(arguments, width)] if arguments else []
        lines = [*brief, *fold(results, width, "--full shows all")]
    failed = result is None or result.error is not None
    return _Section(
        number=call.number,
        who=clean_line(call.invocation.name),
        style="bold red" if failed else "bold blue",
        facts=f"{end}{took}",
        lines=lines,
    )


def _name(canister: Canister) -> str:
    if isinstance(canister, UnknownCanister):
        return clean_line(canister.kind)
    kind = (
        "You" if isinstance(canister, UserCanister) else type(canister).__name__[: -len("Canister")]
    )
    name = getattr(canister, "name", None)
    return clean_line(f"{kind} {name}") if name else kind


def _list(canister: Canister) -> Iterator[str]:
    if isinstance(canister, ResultCanister):
        yield from list_result(canister)
    elif isinstance(canister, UnknownCanister):
        yield write_json(canister.data)
    elif not isinstance(canister, InvocationCanister):
        for content in canister.contents:
            yield from tidy(describe_content(content)).split("\n")
