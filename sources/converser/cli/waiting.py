# SPDX-License-Identifier: Apache-2.0
"""What a person sees while a call runs: that it does, how far it is, and what the server asks back."""

from __future__ import annotations

import signal
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from typing_extensions import Self

from .screen import squeeze

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

    from ..mcp.handlers import Elicitation, ElicitationAnswer, ElicitationHandler


class Waiting:
    """A line at the bottom of the terminal that goes when the call has ended; in a pipe, nothing."""

    def __init__(self, title: str) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._title = squeeze(title)
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._progress = self._create()
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    async def show(self, done: float, total: float | None, message: str | None) -> None:
        """Shows what the server says of its progress."""
        if self._progress is not None:
            task = self._progress.task_ids[0]
            words = squeeze(message or "")
            self._progress.update(task, completed=done, total=total, message=words)

    def find_elicitor(self) -> ElicitationHandler | None:
        """Who answers what the server asks back: the person, if there is one."""
        from .conversing.displays import PlainDisplay
        from .conversing.elicitations import create_elicitor
        from .conversing.questions import TerminalQuestioner
        from .conversing.terminals import is_interactive

        if not is_interactive():
            return None
        display = PlainDisplay()
        answer = create_elicitor(display, TerminalQuestioner(display.console, _interrupt))
        assert answer is not None

        async def elicit(question: Elicitation) -> ElicitationAnswer:
            if self._progress is not None:
                self._progress.stop()
            try:
                return await answer(question)
            finally:
                if self._progress is not None:
                    self._progress.start()

        return elicit

    def _create(self) -> Progress:
        from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn

        class Bar(BarColumn):
            """Only there where it is known how much there is to do."""

            def __call__(self, task: Task) -> RenderableType:
                return "" if task.total is None else super().__call__(task)

        progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            Bar(bar_width=24),
            TextColumn("{task.elapsed:.0f} s", markup=False, style="dim"),
            TextColumn("{task.fields[message]}", markup=False, style="dim"),
            console=self._console,
            transient=True,
            refresh_per_second=8,
        )
        progress.add_task(self._title, total=None, message="")
        return progress


def _interrupt() -> None:
    signal.raise_signal(signal.SIGINT)
