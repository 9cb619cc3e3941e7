# SPDX-License-Identifier: Apache-2.0
"""Definitions of tools for Chat Completions: for servers on this machine, for others, and for OpenAI itself."""

from __future__ import annotations

from ..invokers import Invoker
from .dialects import fit_openai, is_strict, open_top
from .translations import Message

_DESCRIPTION_MAX = 1024
"""Characters of a tool's description that OpenAI takes here; for one that is longer it refuses the request."""
_GOES_ON = " (This goes on at the parameters.)"


def nativize_tool(invoker: Invoker) -> Message:
    """The definition of a tool on the wire."""
    parameters = open_top(invoker.arguments_schema)
    function = {"name": invoker.name, "description": invoker.description, "parameters": parameters}
    return {"type": "function", "function": function}


def nativize_fitted_tool(invoker: Invoker) -> Message:
    """The same for a service that may be OpenAI's by another address, or as strict about schemas."""
    native = nativize_tool(invoker)
    function = native["function"]
    function["parameters"] = fit_openai(function["parameters"])
    if len(function["description"]) > _DESCRIPTION_MAX:
        _split_description(function)
    return native


def _split_description(function: Message) -> None:
    """Lets a long description go on at the parameters, whose own one may be of any length."""
    words, parameters = function["description"], function["parameters"]
    room = _DESCRIPTION_MAX - len(_GOES_ON)
    cut = max(words.rfind(" ", 0, room), words.rfind("\n", 0, room))
    cut = cut if cut > 0 else room
    rest = [words[cut:].lstrip(), parameters.get("description", "")]
    function["description"] = words[:cut] + _GOES_ON
    function["parameters"] = {**parameters, "description": "\n".join(filter(None, rest))}


def nativize_strict_tool(invoker: Invoker) -> Message:
    """The same for OpenAI itself; strict mode where it changes nothing of what is valid."""
    native = nativize_fitted_tool(invoker)
    native["function"]["strict"] = is_strict(native["function"]["parameters"])
    return native
