# SPDX-License-Identifier: Apache-2.0
"""Tool use for small models: decoding is held to JSON that either calls a tool or answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ..canisters import (
    AssistantCanister,
    Canister,
    InvocationCanister,
    ResultCanister,
    SupervisorCanister,
    UnknownCanister,
    UserCanister,
)
from ..immutables import EMPTY
from ..invokers import Invoker
from ..turns import Call
from .openai import describe_content, render_result
from .translations import Message

_KEPT = ("type", "enum", "const", "required", "items", "anyOf", "oneOf", "properties")
_ANSWER_START = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_WHOLE_CHARACTERS = re.compile(
    r"""(?: [^"\\] | \\["\\/bfnrt]
        | \\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}
        | \\u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2} )*""",
    re.VERBOSE,
)
"""The inside of a JSON string as far as each character of it is complete."""

_INSTRUCTIONS = """\
You help the user, with tools where they are needed. Always reply with one JSON object, which is one of these:
{"tool": "NAME", "arguments": {…}} to use a tool.
{"answer": "TEXT"} to answer the user.
Use a tool whenever the answer depends on facts that a tool can give: never guess them. Copy names and numbers \
for the arguments from the user's words. When a result has come that answers the question, give the answer, \
and quote the result exactly.

Example, with tools that you do not have now:
User: How many litres are in the tank of bus 7?
You: {"tool": "read_gauge", "arguments": {"vehicle": "bus 7"}}
Result of read_gauge: {"litres": 212.5}
You: {"answer": "The tank of bus 7 holds 212.5 litres."}
User: Thank you!
You: {"answer": "You are welcome."}

Your tools:
"""


def write_instructions(invokers: Iterable[Invoker]) -> str:
    """The supervisor's prompt: how to reply, an example with other tools, and the tools, each on a line."""
    return _INSTRUCTIONS + "\n".join(_describe_tool(invoker) for invoker in invokers)


def _describe_tool(invoker: Invoker) -> str:
    schema = invoker.arguments_schema
    required = schema.get("required", ())
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    parameters = [
        _describe_parameter(name, detail, optional=name not in required)
        for name, detail in properties.items()
    ]
    return f"- {invoker.name}({', '.join(parameters)}): {' '.join(invoker.description.split())}"


def _describe_parameter(name: str, detail: Any, *, optional: bool) -> str:
    facts = cast("Mapping[str, Any]", detail if isinstance(detail, Mapping) else EMPTY)
    kind = "|".join(map(str, facts["enum"])) if "enum" in facts else str(facts.get("type", "any"))
    words = " ".join(str(facts.get("description", "")).split())
    note = f" ({words})" if words else ""
    return f"{name}{'?' if optional else ''}: {kind}{note}"


def compose_schema(invokers: Iterable[Invoker], *, only_answer: bool) -> dict[str, Any]:
    """What the model may write: a call of one of the tools, or an answer."""
    answer = _compose_object({"answer": {"type": "string"}})
    if only_answer:
        return answer
    calls = [
        _compose_object(
            {"tool": {"const": invoker.name}, "arguments": simplify(invoker.arguments_schema)}
        )
        for invoker in invokers
    ]
    return {"anyOf": [*calls, answer]}


def _compose_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def simplify(schema: Any) -> Any:
    """A wider schema of keywords that a grammar can follow; the tool's own one is checked later."""
    if not isinstance(schema, Mapping):
        return {}
    facts = cast("Mapping[str, Any]", schema)
    if "$ref" in facts or "allOf" in facts:
        return {}
    simple: dict[str, Any] = {key: facts[key] for key in _KEPT if key in facts}
    if isinstance(items := simple.get("items"), Mapping):
        simple["items"] = simplify(items)
    for key in ("anyOf", "oneOf"):
        if key in simple:
            simple[key] = [simplify(option) for option in simple[key]]
    if "properties" in simple:
        properties = cast("Mapping[str, Any]", simple["properties"])
        simple["properties"] = {name: simplify(detail) for name, detail in properties.items()}
        simple["additionalProperties"] = False
    return simple or {"type": "object"}


def write_messages(canisters: Iterable[Canister], instructions: str) -> list[Message]:
    """The conversation in plain roles: calls as the JSON that the model wrote, results as the user's."""
    messages: list[Message] = [{"role": "system", "content": instructions}]
    names: dict[str, str] = {}
    for canister in canisters:
        match canister:
            case SupervisorCanister():
                messages[0]["content"] = f"{canister.text}\n\n{messages[0]['content']}"
            case InvocationCanister():
                names[canister.identifier] = canister.name
                call = {"tool": canister.name, "arguments": canister.arguments}
                _say(messages, "assistant", json.dumps(call, ensure_ascii=False))
            case AssistantCanister():
                if canister.text:
                    answer = json.dumps({"answer": canister.text}, ensure_ascii=False)
                    _say(messages, "assistant", answer)
            case ResultCanister():
                name = names.get(canister.invocation_identifier, "the tool")
                _say(messages, "user", f"Result of {name}: {render_result(canister)}")
            case UnknownCanister():
                pass
            case _:
                label = "User: " if isinstance(canister, UserCanister) else "Document: "
                text = "\n".join(describe_content(part) for part in canister.contents)
                _say(messages, "user", label + text)
    return messages


def _say(messages: list[Message], role: str, text: str) -> None:
    """Adds words to the conversation; chat templates want the roles to take turns."""
    if messages[-1]["role"] == role:
        messages[-1]["content"] += f"\n{text}"
    else:
        messages.append({"role": role, "content": text})


def repeats_itself(canisters: Sequence[Canister]) -> bool:
    """Whether the last two invocations since the user spoke are the same, so that an answer is due."""
    last: list[tuple[str, Mapping[str, Any]]] = []
    for index in range(len(canisters) - 1, -1, -1):
        canister = canisters[index]
        if isinstance(canister, UserCanister):
            return False
        if isinstance(canister, InvocationCanister):
            last.append((canister.name, canister.arguments))
            if len(last) == 2:
                return last[0] == last[1]
    return False


def read_reply(text: str) -> tuple[str, tuple[Call, ...]]:
    """The answer or the call in what the model wrote; anything else is an answer as it stands."""
    try:
        reply = json.loads(text)
    except ValueError:
        return extract_answer(text) or text, ()
    if not isinstance(reply, dict):
        return text, ()
    facts = cast("dict[str, Any]", reply)
    if "tool" in facts:
        return "", (Call(name=str(facts["tool"]), arguments=facts.get("arguments", {})),)
    return str(facts.get("answer", text)), ()


def extract_answer(text: str) -> str:
    """As much of the answer as has surely arrived, while the model still writes its JSON."""
    if (start := _ANSWER_START.match(text)) is None:
        return ""
    body = _WHOLE_CHARACTERS.match(text, start.end())
    return "" if body is None else str(json.loads(f'"{body[0]}"', strict=False))
