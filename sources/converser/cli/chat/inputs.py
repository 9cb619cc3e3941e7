# SPDX-License-Identifier: Apache-2.0
"""What the person types: lines with editing, history and completion at a terminal; else plain lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import platformdirs
from anyio.to_thread import run_sync

from .interrupts import Interrupts

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

_STYLE = {
    "bottom-toolbar": "noreverse",
    "bottom-toolbar.text": "fg:ansibrightblack",
    "prompt": "fg:ansicyan bold",
    "completion-menu.completion": "bg:default fg:default",
    "completion-menu.completion.current": "reverse",
    "completion-menu.meta.completion": "bg:default fg:ansibrightblack",
    "completion-menu.meta.completion.current": "reverse",
}


class Reader(Protocol):
    """Where the person's words come from."""

    async def read(self, draft: str = "") -> str | None:
        """The next words; None when there are no more."""
        ...


class LineReader:
    """Lines from a pipe."""

    async def read(self, draft: str = "") -> str | None:
        """One line, without its end."""
        line = await run_sync(sys.stdin.readline, abandon_on_cancel=True)
        return line.rstrip("\n") if line else None


class TerminalReader:
    """An editor of several lines. Enter sends; Alt-Enter, or Enter after a backslash, begins a line."""

    def __init__(
        self, completer: Completer, toolbar: Callable[[], str], interrupts: Interrupts
    ) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.styles import Style

        self._interrupts = interrupts
        self._session: PromptSession[str] = PromptSession(
            message=[("class:prompt", "❯ ")],
            multiline=True,
            prompt_continuation=_indent,
            completer=completer,
            complete_while_typing=True,
            history=_open_history(),
            bottom_toolbar=lambda: [("", toolbar())],
            key_bindings=_bind_keys(),
            style=Style.from_dict(_STYLE),
            reserve_space_for_menu=6,
        )

    async def read(self, draft: str = "") -> str | None:
        """What the person wrote; Ctrl-C empties the line, and on an empty one twice, leaves."""
        while not self._interrupts.is_second:
            try:
                words = await self._session.prompt_async(default=draft, handle_sigint=False)
            except EOFError:
                return None
            except KeyboardInterrupt:
                draft = ""
                if self._session.default_buffer.text:
                    continue
                self._interrupts.hear()
                if not self._interrupts.is_second:
                    sys.stdout.write("Ctrl-C once more, or Ctrl-D, leaves.\n")
                continue
            self._interrupts.forget()
            return words
        return None


def _indent(width: int, _: int, __: int) -> StyleAndTextTuples:
    return [("", " " * width)]


def _open_history() -> History:
    """What was typed, in a file that only its user may read; in memory where none can be written."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    path = Path(platformdirs.user_state_dir("converser", appauthor=False)) / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _bind_keys() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.newline()
        else:
            buffer.validate_and_handle()

    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    bindings.add("enter")(send)
    bindings.add("escape", "enter")(begin_line)
    return bindings


def tell_beside(say: Callable[[], None]) -> None:
    """Says something above the line that is being typed, if one is; any thread may."""
    app = _find_app()
    if app is None:
        say()
        return
    from prompt_toolkit.application import run_in_terminal

    app.loop.call_soon_threadsafe(run_in_terminal, say)


def redraw() -> None:
    """Draws the line with the state of things again."""
    if (app := _find_app()) is not None:
        app.invalidate()


def _find_app() -> Any:
    if "prompt_toolkit" not in sys.modules:
        return None
    from prompt_toolkit.application import get_app_or_none

    app = get_app_or_none()
    return app if app is not None and app.is_running else None
