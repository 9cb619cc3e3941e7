# SPDX-License-Identifier: Apache-2.0
"""What a display of a conversation can do; and the plain one, for pipes: answers here, activity there."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import anyio
from rich.console import Console
from rich.text import Text

from ...events import Event, InvocationCompleted, MessageCompleted, TextDelta
from ...hygiene import clean_text
from ...outcomes import Outcome
from .journal import Journal
from .wording import describe_end, fold, list_result, summarize_arguments

WIDTH_PLAIN = 500
"""Columns for one line where there is no terminal that would wrap it."""


class Display(Protocol):
    """Shows what happens in a conversation, the moment that it happens."""

    console: Console
    """Where questions to the person go."""
    journal: Journal

    def hear(self, event: Event) -> None:
        """Takes in an event of the conversation."""
        ...

    def tell(self, words: str, style: str = "dim") -> None:
        """Says something of our own; untrusted parts are made clean here."""
        ...

    def space(self) -> None:
        """Sets what the person typed apart from what comes of it."""
        ...

    def announce(self, words: str) -> None:
        """Says what is being waited for, for as long as it is; nothing, to end it."""
        ...

    def running(self) -> AbstractAsyncContextManager[None]:
        """While this is open, what happens is shown live."""
        ...

    def pausing(self) -> AbstractAsyncContextManager[None]:
        """While this is open, the screen belongs to a question; to one at a time."""
        ...


class PlainDisplay:
    """The words of the model on standard output as they come; everything else on standard error."""

    def __init__(self, *, answers: bool = True) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.journal = Journal()
        self._answers = answers
        self._held = ""
        self._is_open = False
        self._streams = False
        self._turnstile = anyio.Lock()

    def hear(self, event: Event) -> None:
        """Writes words at once, and calls when they have ended."""
        if isinstance(event, TextDelta):
            self._streams = True
            self._write(event.text)
        elif isinstance(event, MessageCompleted):
            if not self._streams:
                self._write(event.canister.text)
            self._streams = False
            self._end_line()
        elif isinstance(event, InvocationCompleted):
            self._tell_call(event)

    def tell(self, words: str, style: str = "dim") -> None:
        """A line on standard error."""
        self.console.print(Text(clean_text(words), style=style))

    def space(self) -> None:
        """A pipe needs no air."""

    def announce(self, words: str) -> None:
        """Nobody waits at a pipe."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Ends the line of an answer that was cut off."""
        try:
            yield
        finally:
            self._end_line()

    @asynccontextmanager
    async def pausing(self) -> AsyncGenerator[None, None]:
        """Nothing moves here; but a question begins on a line of its own."""
        async with self._turnstile:
            self._end_line()
            yield

    def _write(self, text: str) -> None:
        if not self._answers:
            return
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""  # Perhaps half of a line end.
        text = text.removesuffix("\r").replace("\r\n", "\n")
        if text:
            sys.stdout.write(clean_text(text))
            sys.stdout.flush()
            self._is_open = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._held:
            sys.stdout.write(clean_text(self._held))
        if self._is_open or self._held:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_open, self._held = False, ""

    def _tell_call(self, event: InvocationCompleted) -> None:
        record = self.journal.note(event)
        is_good = event.result.outcome is Outcome.SUCCESS
        line = Text(record.title, style="bold")
        if event.arguments:
            line.append(f" {summarize_arguments(event.arguments, WIDTH_PLAIN)}", "not bold")
        end = describe_end(event.result.outcome, event.duration)
        line.append(f": {end}", "not bold green" if is_good else "not bold red")
        self.console.print(line)
        for words in fold(list_result(event.result), WIDTH_PLAIN):
            self.console.print(Text(f"  {words}", style="dim"))
