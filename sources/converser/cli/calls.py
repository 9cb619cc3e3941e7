# SPDX-License-Identifier: Apache-2.0
"""`converser call`: a tool, called without any model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anyio

from ..configuration import MCPServer
from ..contents import BlobContent, LinkContent, TextualContent, UnknownContent
from .judging import Misuse
from .options import DEFAULTS, Options, find_server
from .screen import complain, say

if TYPE_CHECKING:
    from ..contents import Content
    from ..invokers import InvocationResult


def call(target: str, /, *arguments: str, options: Options = DEFAULTS) -> None:
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
        raise Misuse(f"{target!r} is no SERVER.TOOL.", remedy="Write it as in weather.get_weather")
    server = find_server(options.load(), name)
    anyio.run(_call_tool, server, tool, _read_arguments(arguments))


async def _call_tool(server: MCPServer, tool: str, arguments: dict[str, Any]) -> None:
    from ..mcp.configured import create_mcp_ensemble

    async with create_mcp_ensemble(server) as ensemble:
        _print_result(await ensemble.access_invoker(tool)(arguments))


def _read_arguments(words: Sequence[str]) -> dict[str, Any]:
    """One JSON object, or pairs; values stay text, since the tool's schema tells what is meant."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            return dict(json.loads(words[0]))
        except ValueError as failure:
            raise Misuse(f"The arguments are no valid JSON: {failure}.") from None
    pairs = [word.partition("=") for word in words]
    if strays := [word for word, separator, _ in pairs if not separator]:
        raise Misuse(
            f"The argument {strays[0]!r} is no key=value.",
            remedy="Write each as key=value, or all of them as one JSON object.",
        )
    return {key: value for key, _, value in pairs}


def _print_result(result: InvocationResult) -> None:
    for content in result.contents:
        say(describe_content(content))
    for words in result.remarks:
        complain(words)


def describe_content(content: Content) -> str:
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
