# SPDX-License-Identifier: Apache-2.0
"""The command line: look at the tools of configured servers, call one, and write typed stubs.

What servers say goes through `clean_text` and is never read as markup.
"""

from __future__ import annotations

import enum
import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import __version__
from .configuration import Configuration, MCPServer, load_configuration
from .contents import BlobContent, LinkContent, TextualContent, UnknownContent
from .exceptions import (
    ConfigurationFailure,
    ConverserFailure,
    InvokerAbsence,
    MCPExecutionFailure,
    MCPFailure,
    MCPTimeoutFailure,
    ToolExecutionFailure,
)
from .hygiene import clean_text
from .outcomes import Outcome

if TYPE_CHECKING:
    from .contents import Content
    from .ensembles import Ensemble
    from .invokers import InvocationResult, Invoker


class ExitCode(enum.IntEnum):
    """How the program ended."""

    SUCCESS = 0
    UNEXPECTED = 1
    USAGE = 2
    TOOL_ERROR = 3
    REFUSED = 4
    UNREACHABLE = 5
    INVALID_ARGUMENTS = 6
    TIMED_OUT = 7
    OUTCOME_UNKNOWN = 8
    INTERRUPTED = 130


_BY_OUTCOME = {
    Outcome.TOOL_ERROR: ExitCode.TOOL_ERROR,
    Outcome.REFUSED: ExitCode.REFUSED,
    Outcome.INVALID: ExitCode.INVALID_ARGUMENTS,
    Outcome.TIMED_OUT: ExitCode.TIMED_OUT,
    Outcome.CANCELLED: ExitCode.INTERRUPTED,
    Outcome.UNKNOWN: ExitCode.OUTCOME_UNKNOWN,
}
_EPILOGUE = "Exit codes: " + ", ".join(
    f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode
)

app = App(
    name="converser",
    help="Look at the tools of MCP servers, call them, and write typed stubs for them.",
    help_epilogue=_EPILOGUE,
    version=__version__,
    version_flags="--version",
)
ConfigOption = Annotated[
    Path | None,
    Parameter(help="Read this file. Else: converser.toml here or in a parent, and the user's."),
]


def run(arguments: Sequence[str]) -> int:
    """Runs one command; whatever happens becomes an exit code and a message for people."""
    try:
        code = app.meta(arguments, exit_on_error=False, result_action="return_value")
    except CycloptsError:  # it has printed itself
        return ExitCode.USAGE
    return code or ExitCode.SUCCESS


@app.meta.default
def _launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    trace: Annotated[bool, Parameter(negative=(), help="Show where a failure came from.")] = False,
) -> int | None:
    # A library that logs a traceback is no more welcome than one that raises it; and below
    # warnings, libraries log URLs and arguments, secrets and all.
    logging.basicConfig(level=logging.WARNING if trace else logging.CRITICAL + 1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int | None = app(tokens, exit_on_error=False, result_action="return_value")
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
        if trace:
            sys.stderr.write(clean_text(traceback.format_exc()))
        return _report(failure)
    return code


@app.command
def tools(server: str | None = None, /, *, config: ConfigOption = None) -> int:
    """Lists the tools of one server, or of all that are enabled.

    Parameters
    ----------
    server
        Its name in converser.toml.
    """
    configuration = _load(config)
    if server is not None:
        chosen = [_find_server(configuration, server)]
    else:
        chosen = [each for each in configuration.servers.values() if each.enabled]
    if not chosen:
        raise ConfigurationFailure(
            "No servers are configured.",
            remedy="Write a table [mcp.NAME] into converser.toml, or name a file with --config.",
        )
    failures = anyio.run(_list_tools, chosen)
    for failure in failures:
        _complain(failure)
    return _judge(failures[0]) if failures else ExitCode.SUCCESS


@app.command
def call(target: str, /, *arguments: str, config: ConfigOption = None) -> None:
    """Calls a tool without any model: `converser call weather.get_weather city=Oslo`.

    Parameters
    ----------
    target
        SERVER.TOOL
    arguments
        Either one JSON object, or key=value for each; a number, list or object is read as JSON
        where the tool wants one.
    """
    name, _, tool = target.partition(".")
    if not tool:
        raise _Misuse(f"{target!r} is no SERVER.TOOL.", remedy="Write it as in weather.get_weather")
    server = _find_server(_load(config), name)
    anyio.run(_call_tool, server, tool, _read_arguments(arguments))


@app.command
def stubs(server: str, /, *, config: ConfigOption = None, output: Path | None = None) -> None:
    """Writes a Python module with typed access to the tools of a server.

    Parameters
    ----------
    server
        Its name in converser.toml.
    output
        The file to write; standard output if not given.
    """
    text = anyio.run(_write_stubs, _find_server(_load(config), server))
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as failure:
        raise _Misuse(
            f"The file {str(output)!r} cannot be written: {failure.strerror}.",
            remedy="Name another one.",
        ) from failure


class _Misuse(ConverserFailure):
    """The command line itself makes no sense."""


async def _list_tools(servers: Sequence[MCPServer]) -> list[ConverserFailure]:
    """Prints the tools of each server; one that cannot be reached does not spoil the others."""
    from .mcp.configured import create_mcp_ensemble

    found: dict[str, Ensemble] = {}
    failures: dict[str, ConverserFailure] = {}

    async def look(server: MCPServer) -> None:
        try:
            async with create_mcp_ensemble(server) as ensemble:
                found[server.name] = ensemble
        except ConverserFailure as failure:
            failures[server.name] = failure

    async with anyio.create_task_group() as group:
        for server in servers:
            group.start_soon(look, server)
    names = [server.name for server in servers]
    _print_tools([found[name] for name in names if name in found])
    return [failures[name] for name in names if name in failures]


async def _call_tool(server: MCPServer, tool: str, arguments: dict[str, Any]) -> None:
    from .mcp.configured import create_mcp_ensemble

    async with create_mcp_ensemble(server) as ensemble:
        _print_result(await ensemble.access_invoker(tool)(arguments))


async def _write_stubs(server: MCPServer) -> str:
    from .mcp.configured import create_mcp_ensemble
    from .stubs import write_stub_module

    async with create_mcp_ensemble(server) as ensemble:
        _remark(ensemble)
        return write_stub_module(
            [invoker.tool for invoker in ensemble.invokers.values()], ensemble.name
        )


def _load(path: Path | None) -> Configuration:
    configuration = load_configuration() if path is None else load_configuration(path)
    for remark in configuration.remarks:
        _complain(remark)
    return configuration


def _find_server(configuration: Configuration, name: str) -> MCPServer:
    if (server := configuration.servers.get(name)) is not None:
        return server
    known = ", ".join(configuration.servers) or "none"
    files = ", ".join(str(source.path) for source in configuration.files)
    raise ConfigurationFailure(
        f"No server {name!r} is configured; known: {known}.",
        remedy=f"Add [mcp.{name}] to {files or 'converser.toml'}.",
    )


def _read_arguments(words: Sequence[str]) -> dict[str, Any]:
    """One JSON object, or pairs; values stay text, since the tool's schema tells what is meant."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            return dict(json.loads(words[0]))
        except ValueError as failure:
            raise _Misuse(f"The arguments are no valid JSON: {failure}.") from None
    pairs = [word.partition("=") for word in words]
    if strays := [word for word, separator, _ in pairs if not separator]:
        raise _Misuse(
            f"The argument {strays[0]!r} is no key=value.",
            remedy="Write each as key=value, or all of them as one JSON object.",
        )
    return {key: value for key, _, value in pairs}


def _print_tools(ensembles: Sequence[Ensemble]) -> None:
    """A table for people; a line for each tool, with tabs, for programs."""
    console = Console(highlight=False)
    table = Table("tool", "arguments", "description", box=None, pad_edge=False)
    for ensemble in ensembles:
        _remark(ensemble)
        for invoker in ensemble.invokers.values():
            cells = [_squeeze(cell) for cell in _describe_tool(invoker)]
            if console.is_terminal:
                table.add_row(*map(Text, cells))
            else:
                print("\t".join(cells))  # noqa: T201
    if table.row_count:
        console.print(table)


def _describe_tool(invoker: Invoker) -> tuple[str, str, str]:
    """What to call it, what it takes (an argument with a `?` may be left out), and what it does."""
    schema = invoker.arguments_schema
    required = schema.get("required", ())
    names = [name if name in required else f"{name}?" for name in schema.get("properties", ())]
    owner = invoker.ensemble.name if invoker.ensemble else ""
    return f"{owner}.{invoker.tool.name}", " ".join(names), invoker.description


def _squeeze(text: str) -> str:
    return clean_text(" ".join(text.split()), limit=500)


def _print_result(result: InvocationResult) -> None:
    for content in result.contents:
        print(clean_text(_describe_content(content)))  # noqa: T201
    for remark in result.remarks:
        _complain(remark)


def _describe_content(content: Content) -> str:
    """Text as it is; of all else, what it is."""
    if isinstance(content, TextualContent):
        return content.text
    if isinstance(content, LinkContent):
        return f"[{content.name}: {content.uri}]"
    if isinstance(content, UnknownContent):
        return f"[{content.kind}: {content.reason or 'unknown here'}]"
    if isinstance(content, BlobContent) and content.text is not None:
        return content.text
    return f"[{content.mimetype}, {len(content.data)} bytes]"


def _remark(ensemble: Ensemble) -> None:
    """Tells what was left out of an ensemble, and why."""
    for tool, reason in ensemble.disabled.items():
        _complain(f"{ensemble.name}.{tool} is disabled: {reason}")
    for remark in ensemble.remarks:
        _complain(f"{ensemble.name}: {remark}")


def _complain(words: object) -> None:
    """Says something on standard error, where it harms no output."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text(clean_text(str(words)), style="yellow"))


def _report(failure: Exception) -> ExitCode:
    if isinstance(failure, ConverserFailure):
        _complain(failure)
    else:
        _complain(
            f"Unexpected {type(failure).__name__}: {failure}. This is our mistake, not yours;"
            " --trace before the command shows where it came from."
        )
    return _judge(failure)


def _judge(failure: Exception) -> ExitCode:
    """The exit code that tells this failure from others."""
    if isinstance(failure, ToolExecutionFailure):
        if isinstance(failure.__cause__, MCPFailure) and failure.outcome is Outcome.TOOL_ERROR:
            return _judge(failure.__cause__)
        return _BY_OUTCOME[failure.outcome]
    if isinstance(failure, MCPTimeoutFailure):
        return ExitCode.TIMED_OUT
    if isinstance(failure, MCPExecutionFailure):
        return ExitCode.TOOL_ERROR
    if isinstance(failure, MCPFailure):
        mistaken = isinstance(failure.cause, ConfigurationFailure)
        return ExitCode.USAGE if mistaken else ExitCode.UNREACHABLE
    usage = (ConfigurationFailure, InvokerAbsence, _Misuse)
    return ExitCode.USAGE if isinstance(failure, usage) else ExitCode.UNEXPECTED
