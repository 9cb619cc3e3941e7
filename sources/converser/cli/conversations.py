# SPDX-License-Identifier: Apache-2.0
"""`converser conversations`: those on disk are listed, searched, forked and deleted here."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from .conversing.terminals import is_interactive
from .exits import ExitCode
from .judging import Misuse
from .options import AsJSON
from .screen import complain, confirm, is_terminal, print_rows, say

if TYPE_CHECKING:
    from ..persistence.conversation import ConversationSurvey, StoredConversation
    from ..persistence.searching import ConversationFinding

_TITLES = ("conversation", "used", "length", "model", "title", "tags")
_FOUND_TITLES = ("conversation", "place", "who", "words", "title")
_EXAMPLES = """Examples:
  converser conversations list --tag work
  converser conversations show 3f2a
  converser conversations export 3f2a --output hike.html"""
_REFERENCE = "Its identifier, the beginning of that, or its name."

app = App(name="conversations", help_epilogue=_EXAMPLES)


def _register(room: str, name: str, words: str, *examples: str) -> None:
    lines = [f"  converser conversations {name} {example}".rstrip() for example in examples]
    epilogue = "\n".join(("Examples:", *lines))
    app.command(f"converser.cli.{room}", name=name, help=words, help_epilogue=epilogue)


_register("conversations:list_", "list", "List them, the latest first.", "", "--tag work --json")
_register("showing:show", "show", "Show one.", "3f2a", '"A hike" --full', "3f2a --json")
_register("conversations:search", "search", "Find words in all of them.", "vettakollen")
_register(
    "exporting:export",
    "export",
    "Write one as Markdown, JSON, or an HTML page.",
    "3f2a --output hike.html",
    "3f2a --format md | less",
)
_register(
    "conversations:fork", "fork", "Begin a new one with the beginning of another.", "3f2a --at 4"
)
_register("conversations:delete", "delete", "Delete some for ever.", "3f2a", "3f2a 77c0 --yes")


@app.default
def list_(
    *,
    tag: Annotated[
        tuple[str, ...], Parameter(help="Only those with this tag; may be given again.")
    ] = (),
    json: AsJSON = False,
) -> None:
    """Lists the conversations on disk, the one that was used last first."""
    from ..persistence.store import ConversationStore

    surveys = [each for each in ConversationStore().list() if {*tag} <= {*each.metadata.tags}]
    if json:
        say(json_format.dumps([dump_survey(each) for each in surveys], indent=2))
    else:
        print_rows(_TITLES, map(_describe, surveys))
    for survey in surveys:
        for words in survey.remarks:
            complain(words)
    if not surveys and is_terminal():
        complain("There are none yet: converser chat keeps what is said.")


def search(*words: str, json: AsJSON = False) -> None:
    """Finds words in all conversations: in what was said, in calls and results, in names and tags.

    Parameters
    ----------
    words
        They must stand together; upper and lower case are the same.
    """
    from ..persistence.store import ConversationStore

    wanted = " ".join(words).strip()
    if not wanted:
        raise Misuse("There is nothing to search for.", remedy="Give some words.")
    findings = list(ConversationStore().search(wanted))
    if json:
        say(json_format.dumps([_dump_finding(each) for each in findings], indent=2))
    else:
        print_rows(_FOUND_TITLES, map(_describe_finding, findings))
    if not findings:
        complain("Nothing was found.")


def fork(
    conversation: Annotated[str, Parameter(help=_REFERENCE)],
    /,
    *,
    at: Annotated[
        int | None,
        Parameter(help="Take only so many messages, counted as `show` does; all, if not given."),
    ] = None,
    name: Annotated[str | None, Parameter(help="What the new one is called.")] = None,
) -> None:
    """Begins a new conversation with the beginning of another, and writes its identifier."""
    origin = open_conversation(conversation)
    forked = origin.fork(at) if name is None else origin.fork(at, name=name)
    tell_remarks(origin)
    say(forked.identifier)


def delete(
    *conversations: Annotated[str, Parameter(help=_REFERENCE)],
    yes: Annotated[bool, Parameter(alias="-y", negative=(), help="Do not ask.")] = False,
) -> int:
    """Deletes conversations for ever; content that others use stays."""
    from ..persistence.store import ConversationStore

    if not conversations:
        raise Misuse("No conversation is named.", remedy="Name those that shall be deleted.")
    store = ConversationStore()
    chosen = {each.identifier: each for each in map(store.open, conversations)}
    if not yes and not _approve(list(chosen.values())):
        complain("Nothing was deleted." if is_interactive() else "Nothing was deleted: give --yes.")
        return ExitCode.REFUSED
    for conversation in chosen.values():
        store.delete(conversation)
    return ExitCode.SUCCESS


def _approve(chosen: Sequence[StoredConversation]) -> bool:
    """Shows what would be lost, and asks; where nobody can be asked, that is a no."""
    if not is_interactive():
        return False
    for conversation in chosen:
        survey = conversation.survey()
        complain(f"  {survey.identifier}  {survey.title}", style="bold")
    count = len(chosen)
    return confirm(f"Delete {'this conversation' if count == 1 else f'these {count}'} for ever?")


def open_conversation(reference: str) -> StoredConversation:
    """A conversation as people name it."""
    from ..persistence.store import ConversationStore

    return ConversationStore().open(reference)


def tell_remarks(conversation: StoredConversation) -> None:
    """What was repaired or left out."""
    for words in conversation.remarks:
        complain(words)


def dump_survey(survey: ConversationSurvey) -> dict[str, Any]:
    """What is known of a conversation, as JSON data."""
    from ..persistence.exports.formats import describe_survey

    return {
        **describe_survey(survey),
        "length": survey.canisters,
        "remarks": list(survey.remarks),
    }


def _describe(survey: ConversationSurvey) -> tuple[str, ...]:
    used = survey.updated.astimezone()
    return (
        survey.identifier,
        f"{used:%Y-%m-%d %H:%M}" if is_terminal() else used.isoformat(timespec="seconds"),
        str(survey.canisters),
        survey.metadata.model,
        survey.title,
        ", ".join(survey.metadata.tags),
    )


def _describe_finding(finding: ConversationFinding) -> tuple[str, ...]:
    place = str(finding.number) if finding.number else "name"
    survey = finding.survey
    return (survey.identifier, place, _name_speaker(finding), finding.excerpt, survey.title)


def _name_speaker(finding: ConversationFinding) -> str:
    return type(finding.canister).__name__.removesuffix("Canister").lower().replace("nonetype", "")


def _dump_finding(finding: ConversationFinding) -> dict[str, Any]:
    return {
        "conversation": finding.survey.identifier,
        "title": finding.survey.title,
        "number": finding.number,
        "kind": _name_speaker(finding),
        "excerpt": finding.excerpt,
    }
