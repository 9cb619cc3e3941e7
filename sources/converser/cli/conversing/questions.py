# SPDX-License-Identifier: Apache-2.0
"""Questions to the person at the terminal, in place: one key, or one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TextIO, cast

from rich.console import Console

from ...hygiene import clean_text
from ..screen import forget_typing


class Questioner(Protocol):
    """Asks the person at the terminal."""

    async def choose(self, words: str, keys: str) -> str:
        """Waits for one of these keys; nothing where the person interrupts."""
        ...

    async def read(
        self, words: str, *, default: str = "", options: Sequence[str] = ()
    ) -> str | None:
        """Reads a line; None where the person interrupts."""
        ...


class TerminalQuestioner:
    """Asks with prompt_toolkit; `interrupted` is told when the person presses Ctrl-C."""

    def __init__(self, console: Console, interrupted: Callable[[], None]) -> None:
        self._console = console
        self._interrupted = interrupted

    async def choose(self, words: str, keys: str) -> str:
        """One key; Escape, Ctrl-C and Ctrl-D are no answer. Who asks shows what was chosen."""
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
        from prompt_toolkit.keys import Keys

        bindings = KeyBindings()

        def answer(event: KeyPressEvent) -> None:
            event.app.exit(result=event.data.lower())

        def escape(event: KeyPressEvent) -> None:
            event.app.exit(result="")

        def ignore(_: KeyPressEvent) -> None:
            """Only the keys that were named count."""

        bindings.add(Keys.Any)(ignore)
        for key in {*keys, *keys.upper()}:
            bindings.add(key)(answer)
        bindings.add("escape", eager=True)(escape)
        return await self._ask(words, key_bindings=bindings, erase_when_done=True) or ""

    async def read(
        self, words: str, *, default: str = "", options: Sequence[str] = ()
    ) -> str | None:
        """One line, with completion of the options."""
        from prompt_toolkit.completion import WordCompleter

        completer = WordCompleter(list(options), sentence=True) if options else None
        return await self._ask(words, default=default, completer=completer)

    async def _ask(self, words: str, *, default: str = "", **settings: Any) -> str | None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.input.typeahead import clear_typeahead
        from prompt_toolkit.output import create_output

        output = create_output(stdout=cast("TextIO", self._console.file))
        session: PromptSession[str] = PromptSession(output=output, **settings)
        forget_typing()
        clear_typeahead(session.input)
        try:
            return await session.prompt_async(
                [("bold", clean_text(words))], default=default, handle_sigint=False
            )
        except EOFError:
            return None
        except KeyboardInterrupt:
            self._interrupted()
            return None
