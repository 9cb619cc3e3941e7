# SPDX-License-Identifier: Apache-2.0
"""A conversation on a terminal: finished parts scroll away for good, what moves stays at the bottom.

Only the last few lines are ever drawn again, so that long answers do not flicker and what has
scrolled up stays as it was.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment, Segments
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ...events import (
    Event,
    InvocationCompleted,
    InvocationProgressed,
    InvocationRequested,
    InvocationStarted,
    MessageCompleted,
    MessageFailed,
    MessageStarted,
    TextDelta,
)
from ...hygiene import clean_text
from ...outcomes import Outcome
from .images import show_image
from .journal import Journal
from .markdown import THEME, render_lines, split_blocks
from .wording import (
    CallRecord,
    clean_line,
    describe_end,
    fold,
    list_images,
    list_result,
    name_tool,
    summarize_arguments,
    tell_seconds,
)

_RATE = 12.0
"""Times a second that what moves is drawn again."""
_MARGIN = 4
"""Lines of the screen that stay free of what moves."""


@dataclass(slots=True)
class _Running:
    """A call on its way."""

    title: str
    arguments: str
    begun: float | None = None
    done: float = 0.0
    total: float | None = None
    words: str = ""

    def render(self) -> RenderableType:
        row = Table.grid(padding=(0, 1))
        line = Text("○ " if self.begun is None else "◌ ", "yellow", no_wrap=True)
        line.append(self.title, "bold default").append(f" {self.arguments}", "default")
        cells: list[RenderableType] = [line]
        if self.total:
            cells.append(ProgressBar(total=self.total, completed=self.done, width=20))
            cells.append(Text(f"{min(1.0, self.done / self.total):.0%}"))
        elif self.done:
            cells.append(Text(f"{self.done:g}"))
        if self.begun is not None:
            cells.append(Text(tell_seconds(time.monotonic() - self.begun), "dim"))
        row.add_row(*cells)
        if not self.words:
            return row
        return Group(row, Text(f"  └ {self.words}", "dim", no_wrap=True, overflow="ellipsis"))


class LiveDisplay:
    """Draws what moves at the bottom, and prints what is finished above it."""

    def __init__(self, console: Console | None = None, *, can_open: bool = True) -> None:
        self.console = console or Console(highlight=False, theme=THEME)
        self.journal = Journal()
        self._can_open = can_open
        self._text = ""
        self._streams = False
        self._calls: dict[str, _Running] = {}
        self._status = ""
        self._status_since = 0.0
        self._spinner = Spinner("dots", style="cyan")
        self._live: Live | None = None
        self._is_paused = False
        self._held: list[CallRecord] = []
        """Calls that ended while the person was asked something."""
        self._turnstile = anyio.Lock()

    def hear(self, event: Event) -> None:
        """Takes in an event; what moves is drawn at the next tick."""
        match event:
            case MessageStarted():
                self._streams = False
                self.announce("thinking")
            case TextDelta():
                self._streams = True
                self.announce("")
                self._text += event.text
                self._commit()
            case MessageCompleted():
                if not self._streams:
                    self._text = event.canister.text
                self._end_message()
            case MessageFailed():
                self._end_message()
            case _:
                self._hear_call(event)

    def _end_message(self) -> None:
        self.announce("")
        self._commit(everything=True)

    def _hear_call(self, event: Event) -> None:
        match event:
            case InvocationRequested():
                title = name_tool(event.ensemble, event.name)
                room = max(10, self.console.width - len(title) - 40)
                words = summarize_arguments(event.arguments, room)
                self._calls[event.invocation.identifier] = _Running(title, words)
            case InvocationStarted():
                self._find_call(event.invocation.identifier).begun = time.monotonic()
            case InvocationProgressed():
                call = self._find_call(event.invocation.identifier)
                call.done, call.total = event.progress, event.total
                call.words = clean_line(event.message or "", 200)
            case InvocationCompleted():
                self._calls.pop(event.invocation.identifier, None)
                self._held.append(self.journal.note(event))
                self._print_calls()
            case _:
                pass

    def tell(self, words: str, style: str = "dim") -> None:
        """Says something of our own above what moves."""
        self.console.print(Text(clean_text(words), style=style))

    def space(self) -> None:
        """An empty line between what the person typed and what comes of it."""
        self.console.print()

    def announce(self, words: str) -> None:
        """What is being waited for, beside a spinner."""
        if words and not self._status:
            self._status_since = time.monotonic()
        self._status = words

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Draws what moves until this is left."""
        live = self._live = Live(
            console=self.console,
            auto_refresh=False,
            transient=True,
            get_renderable=self._render,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as group:
                live.start()
                group.start_soon(self._tick)
                try:
                    yield
                except Exception as caught:  # Raised below, so that the group does not wrap it.
                    failure = caught
                group.cancel_scope.cancel()
            if failure is not None:
                raise failure
        finally:
            self._calls.clear()
            self.announce("")
            self._commit(everything=True)
            live.stop()
            self._live = None

    @asynccontextmanager
    async def pausing(self) -> AsyncGenerator[None, None]:
        """Leaves the screen to a question; what moves comes back after it."""
        async with self._turnstile:
            live = self._live
            self._is_paused = True
            if live is not None:
                live.stop()
            try:
                yield
            finally:
                self._is_paused = False
                self._print_calls()
                if live is not None and self._live is live:
                    live.vertical_overflow = "ellipsis"
                    live.start()

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(1 / _RATE)
            if self._live is not None and not self._is_paused:
                self._live.refresh()

    def _find_call(self, identifier: str) -> _Running:
        return self._calls.setdefault(identifier, _Running("", ""))

    def _commit(self, *, everything: bool = False) -> None:
        """Prints blocks of the answer that are finished."""
        if "\n" not in self._text and not everything:
            return
        blocks, self._text = split_blocks(self._text, is_complete=everything)
        for block in blocks:
            if lines := render_lines(self.console, block):
                self.console.print(_join(lines), end="")
                self.console.print()

    def _print_calls(self) -> None:
        while self._held and not self._is_paused:
            self._print_call(self._held.pop(0))

    def _print_call(self, record: CallRecord) -> None:
        """A call that has ended: what it was, how it went, and the beginning of what came of it."""
        outcome = record.result.outcome
        style = "green" if outcome is Outcome.SUCCESS else "red"
        end = describe_end(outcome, record.duration)
        room = max(10, self.console.width - len(record.title) - len(end) - 6)
        line = Text("● ", style).append(record.title, "bold default")
        if arguments := record.invocation.arguments:
            line.append(f" {summarize_arguments(arguments, room)}", "default")
        self.console.print(line.append(f" · {end}", "dim"))
        hint = f"/show {record.number}" if self._can_open else ""
        lines = fold(list_result(record.result), self.console.width - 5, hint)
        for number, words in enumerate(lines):
            self.console.print(Text(f"  {'└' if number == 0 else ' '} {words}", "dim"))
        for image in list_images(record.result):
            show_image(self.console, image)
        self.console.print()

    def _render(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._text.strip():
            parts.append(self._render_growing())
        parts.extend(call.render() for call in self._calls.values() if call.title)
        if self._status and not self._text.strip():
            waited = tell_seconds(time.monotonic() - self._status_since)
            words = f"{clean_line(self._status)} {waited} · Ctrl-C stops"
            self._spinner.update(text=Text(words, "dim"))
            parts.append(self._spinner)
        return Group(*parts)

    def _render_growing(self) -> RenderableType:
        """The end of the block that still grows, as far as the screen has room for it."""
        lines = render_lines(self.console, self._text)
        room = max(1, self.console.height - _MARGIN - 2 * len(self._calls))
        return _join(lines[-room:])


def _join(lines: list[list[Segment]]) -> Segments:
    return Segments([part for line in lines for part in (*line, Segment.line())])
