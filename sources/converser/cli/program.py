# SPDX-License-Identifier: Apache-2.0
"""Where the command line begins: the commands, each loaded when it is used, and how each ends."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError

from .. import __version__
from .exits import ExitCode

_CODES = "Exit codes: " + ", ".join(
    f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode
)
_EXAMPLES = {
    "": (
        "converser init",
        "converser call clock.get_time timezone=Europe/Oslo",
        'converser ask "What time is it in Oslo?"',
        "git diff | converser ask --no-tools Review this.",
        "converser servers add git -- uvx mcp-server-git",
    ),
    "ask": (
        'converser ask "What time is it in Oslo?"',
        'converser ask --file report.pdf "What is the conclusion?"',
        "git diff | converser ask --no-tools Review this.",
        "converser ask --continue And in Tokyo?",
    ),
    "call": (
        "converser call clock.get_time timezone=Europe/Oslo",
        """converser call clock.count_days '{"start": "2026-01-01", "end": "2026-12-24"}'""",
        "converser call clock.get_time --json",
    ),
    "chat": (
        "converser",
        "converser chat --model ollama:qwen3 --server clock",
        "converser chat --continue",
    ),
    "completion": ("converser completion --install", "converser completion zsh > _converser"),
    "doctor": ("converser doctor", "converser doctor --json"),
    "init": ("converser init", "converser init --user"),
    "lock": ("converser lock", "converser lock --check"),
    "stubs": ("converser stubs clock --output clock_tools.py",),
    "tools": (
        "converser tools",
        "converser tools clock",
        "converser tools clock.get_time",
        "converser tools --json",
    ),
}
_TALKS = Group("Conversations", sort_key=1)
_TOOLS = Group("Servers and tools", sort_key=2)
_SETUP = Group("Setting up", sort_key=3)
_OPTIONS = Group("Options", sort_key=4)

app = App(
    name="converser",
    help="Talk with models that use the tools of your MCP servers; look at these tools, and call them.",
    version=__version__,
    version_flags="--version",
    help_format="plaintext",
    help_formatter="default" if sys.stdout.isatty() else "plain",
    group_parameters=_OPTIONS,
    default_parameter=Parameter(show_default=False, negative=()),
)


def _teach(name: str) -> str:
    """What stands below the help of a command."""
    lines = [f"  {example}" for example in _EXAMPLES.get(name, ())]
    return "\n".join(("Examples:", *lines)) if lines else ""


def _register(group: Group, room: str, name: str, words: str) -> None:
    """Adds a command by the path of its function, which is imported only when it is used."""
    settings = {} if room.endswith(":app") else {"help_epilogue": _teach(name)}
    place = len([*app])
    app.command(
        f"converser.cli.{room}", name=name, help=words, group=group, sort_key=place, **settings
    )


_register(_TALKS, "chat.program:chat", "chat", "Talk with a model; converser alone does so too.")
_register(_TALKS, "asks:ask", "ask", "Ask one question.")
_register(
    _TALKS,
    "conversations:app",
    "conversations",
    "List, show, search, export, fork and delete conversations.",
)
_register(_TOOLS, "servers:app", "servers", "Show, add, switch, test and import servers.")
_register(_TOOLS, "tools:tools", "tools", "List the tools of one server, or of all.")
_register(_TOOLS, "calls:call", "call", "Call a tool without any model.")
_register(_TOOLS, "locking:lock", "lock", "Write down the tools of all servers, or check them.")
_register(_TOOLS, "stubs:stubs", "stubs", "Write a Python module with typed access to a server.")
_register(
    _SETUP, "beginning:init", "init", "Write a converser.toml with a server that works at once."
)
_register(_SETUP, "doctor:doctor", "doctor", "Find out what is wrong, and what to do about it.")
_register(
    _SETUP, "completing:completion", "completion", "Complete commands and names in your shell."
)
for _flag in ("--help", "--version"):
    app[_flag].group = _OPTIONS
app.help_epilogue = f"{_teach('')}\n\n{_CODES}"
_HANDLING: Any = {"exit_on_error": False, "print_error": False, "result_action": "return_value"}
_rest: ContextVar[tuple[str, ...]] = ContextVar("rest", default=())


def run(arguments: Sequence[str]) -> int:
    """Runs one command; whatever happens becomes an exit code and a message for people."""
    # What follows -- belongs to the command; some versions of cyclopts would lose the -- on the way.
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    _rest.set(tuple(words[end:]))
    try:
        code = app.meta(words[:end], **_HANDLING)
    except CycloptsError as error:
        return _complain_of_usage(error)
    return code or ExitCode.SUCCESS


@app.meta.default
def _launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    verbose: Annotated[bool, Parameter(help="Tell on standard error what goes on.")] = False,
    trace: Annotated[bool, Parameter(help="Show where a failure came from.")] = False,
) -> int | None:
    # A library that logs a traceback is no more welcome than one that raises it; and below
    # warnings, libraries log URLs and arguments, secrets and all.
    logging.basicConfig(level=logging.WARNING if trace else logging.CRITICAL + 1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if verbose:
        from .screen import speak_up

        speak_up()
    if _means_chat(tokens):
        tokens = ("chat", *tokens)
    try:
        words = (*tokens, *_rest.get())
        code: int | None = app(words, **_HANDLING)
        sys.stdout.flush()
    except CycloptsError:
        raise
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.SUCCESS
    except Exception as failure:
        return _report(failure, trace=trace)
    return code


def _complain_of_usage(error: CycloptsError) -> int:
    from .screen import complain

    command = " ".join(("converser", *(error.command_chain or ())))
    is_surplus = isinstance(error, UnusedCliTokensError)
    words = f"{' '.join(error.unused_tokens or ())!r} is too much." if is_surplus else error
    complain(f"{words} See `{command} --help`.")
    return ExitCode.USAGE


def _means_chat(tokens: Sequence[str]) -> bool:
    """Whether no command is named, but perhaps options of a chat."""
    return not tokens or (
        tokens[0].startswith("-") and not {"-h", "--help", "--version"} & set(tokens)
    )


def _report(failure: Exception, *, trace: bool) -> int:
    from ..hygiene import clean_text
    from .screen import report

    if trace:
        import traceback

        sys.stderr.write(clean_text("".join(traceback.format_exception(failure))))
    return report(failure)
