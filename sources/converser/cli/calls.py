# SPDX-License-Identifier: Apache-2.0
"""`converser call`: a tool, called without any model."""

from __future__ import annotations

import json as json_format
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import anyio

from ..configuration import MCPServer
from ..contents import BlobContent, ImageContent, LinkContent, TextualContent, UnknownContent
from .completing import complete_tools, offer
from .judging import Misuse
from .options import DEFAULTS, AsJSON, Options, find_server
from .screen import complain, is_terminal, print_json, say, whisper

if TYPE_CHECKING:
    from ..contents import Content
    from ..invokers import InvocationResult


def call(
    target: Annotated[str, offer(complete_tools)],
    /,
    *arguments: str,
    json: AsJSON = False,
    options: Options = DEFAULTS,
) -> None:
    """Calls a tool without any model: `converser call weather.get_weather city=Oslo`.

    Parameters
    ----------
    target
        SERVER.TOOL
    arguments
        One JSON object, or key=value for each; where the tool wants no text, a value is read as JSON.
    """
    name, _, tool = target.partition(".")
    if not tool:
        raise Misuse(f"{target!r} is no SERVER.TOOL.", remedy="Write it as in weather.get_weather")
    server = find_server(options.load(), name)
    result = anyio.run(_call_tool, server, tool, _read_arguments(arguments))
    if json:
        _write_json(result)
    else:
        _print_result(result)


async def _call_tool(
    server: MCPServer, tool: str, arguments: Mapping[str, Any]
) -> InvocationResult:
    """Calls a tool; Ctrl-C, which cancels this, cancels the call on the server too."""
    from ..invokers import Context
    from ..mcp.configured import create_mcp_ensemble
    from .waiting import Waiting

    with Waiting(f"{server.name}.{tool}") as waiting:
        ensemble = create_mcp_ensemble(server, elicit=waiting.find_elicitor())
        begun = time.monotonic()
        async with ensemble:
            whisper(f"{server.name} is connected after {time.monotonic() - begun:.2f} s")
            invoker = ensemble.access_invoker(tool)
            begun = time.monotonic()
            result = await invoker(arguments, context=Context(on_progress=waiting.show))
            whisper(f"{server.name}.{tool} answered after {time.monotonic() - begun:.3f} s")
    return result


def _read_arguments(words: Sequence[str]) -> dict[str, Any]:
    """One JSON object, or pairs; values stay text, since the tool's schema tells what is meant."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            return dict(json_format.loads(words[0]))
        except ValueError as failure:
            raise Misuse(f"The arguments are no valid JSON: {failure}.") from None
    pairs = [word.partition("=") for word in words]
    if strays := [word for word, separator, _ in pairs if not separator]:
        raise Misuse(
            f"The argument {strays[0]!r} is no key=value.",
            remedy="Write each as key=value, or all of them as one JSON object.",
        )
    return {key: value for key, _, value in pairs}


def _write_json(result: InvocationResult) -> None:
    from ..codec import encode_content

    data = {
        "contents": [encode_content(content) for content in result.contents],
        "structured": result.structured,
        "remarks": result.remarks,
    }
    say(json_format.dumps(data, indent=2))


def _print_result(result: InvocationResult) -> None:
    is_person = is_terminal()
    texts = [part for part in result.contents if isinstance(part, TextualContent)]
    if result.structured is not None and not texts:
        print_json(result.structured)
    for content in result.contents:
        if isinstance(content, ImageContent):
            _print_image(content, is_person)
        elif is_person and (data := _read_json(describe_content(content))) is not None:
            print_json(data)
        else:
            say(describe_content(content))
    for words in result.remarks:
        complain(words)


def _read_json(text: str) -> Any:
    """The object or list that a text holds, if it does."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json_format.loads(text)
    except (ValueError, RecursionError):
        return None


def _print_image(image: ImageContent, is_person: bool) -> None:
    from rich.console import Console

    from .conversing.images import save_image, show_image

    if is_person:
        show_image(Console(highlight=False), image)
        return
    try:
        place = f"saved: {save_image(image)}"
    except OSError as failure:
        place = f"not saved: {failure.strerror}"
    say(f"[{image.mimetype}, {len(image.data)} bytes, {place}]")


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
