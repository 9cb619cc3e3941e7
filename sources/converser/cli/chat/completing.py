# SPDX-License-Identifier: Apache-2.0
"""Completes commands, and the names of servers, tools and models, as they are at this moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ...hygiene import clean_text
from ...providers.registry import OURS
from .commands import COMMANDS, Kind
from .session import Session


class ChatCompleter(Completer):
    """What may come next on a line; in plain words only where Tab asks for it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """All that begin with what stands before the cursor."""
        text = document.text_before_cursor
        if not text.startswith("/"):
            word = document.get_word_before_cursor(WORD=True)
            if complete_event.completion_requested and word:
                yield from _complete(word, self._list_tools())
            return
        name, space, rest = text[1:].partition(" ")
        if not space:
            for command, each in COMMANDS.items():
                if command.startswith(name):
                    yield Completion(command, -len(name), display_meta=each.words)
        elif name in COMMANDS:
            yield from _complete(rest, self._list(COMMANDS[name].completes))

    def _list(self, kind: Kind) -> Iterator[tuple[str, str]]:
        surveys = self._session.roster.survey()
        if kind in {"server", "tool"}:
            yield from ((name, str(survey.state)) for name, survey in surveys.items())
        if kind == "tool":
            yield from self._list_tools()
        if kind == "call":
            for record in self._session.display.journal.records:
                yield str(record.number), record.title
        if kind == "model":
            yield from ((f"{name}:" if name != "embedded" else name, "") for name in OURS)

    def _list_tools(self) -> Iterator[tuple[str, str]]:
        for server, survey in self._session.roster.survey().items():
            for tool in survey.tools:
                yield f"{server}.{tool.own_name}", tool.description.split("\n")[0]


def _complete(begun: str, names: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    for name, words in names:
        if name.startswith(begun) and name.isprintable():
            yield Completion(name, -len(begun), display_meta=clean_text(words, limit=60))
