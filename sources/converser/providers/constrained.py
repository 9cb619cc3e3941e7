# SPDX-License-Identifier: Apache-2.0
"""What a small model may write, as schemas that its decoding is held to; and what is kept of what it wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from ..canisters import Canister, InvocationCanister, UserCanister
from ..immutables import EMPTY
from ..invokers import Invoker
from ..searches import split_words
from .introductions import explain_parameter, get_properties

_PATHS_AND_WORDS = re.compile(r"\w(?:[\w./~-]*\w)?")
_EXAMPLES = re.compile(r"\b(e\.g\.|for example|for instance|such as|like)[\s,:].*", re.IGNORECASE)
_PART_MIN = 4
_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_QUOTED = re.compile(r"(?<!\w)(?:\"[^\"]+\"|'[^']+'(?!\w))")
_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMERALS = {word: str(number) for number, word in enumerate((*_COUNTS, "eleven", "twelve"), 1)}
_ENDS = {
    "first": {"begin", "beginning", "head", "initial", "opening", "start", "top"},
    "last": {"bottom", "end", "ending", "final", "tail"},
}
"""What people say, and what explanations of parameters say, of the two ends of anything."""
_KEPT = ("type", "enum", "const", "required", "items", "anyOf", "oneOf", "properties")


def compose_arguments(invoker: Invoker) -> dict[str, Any] | None:
    """What the model may write as arguments; None where there is nothing to write."""
    if not get_properties(invoker):
        return None
    schema = simplify(invoker.arguments_schema)
    return schema if "properties" in schema else {"type": "object"}


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


def loosen(schema: Any) -> Any:
    """A schema without patterns, of which a grammar can follow few; the answer is checked later."""
    if isinstance(schema, Mapping):
        facts = cast("Mapping[str, Any]", schema)
        return {
            key: loosen(value)
            for key, value in facts.items()
            if not (key == "pattern" and isinstance(value, str))
        }
    if isinstance(schema, (list, tuple)):
        return [loosen(each) for each in cast("Sequence[Any]", schema)]
    return schema


def drop_inventions(arguments: Mapping[str, Any], invoker: Invoker, words: str) -> dict[str, Any]:
    """The arguments without optional ones that nothing in the user's words speaks of.

    Small models fill in every parameter that they see, with zeros and with dates out of nowhere.
    """
    required = invoker.arguments_schema.get("required", ())
    properties = get_properties(invoker)
    return {
        name: value
        for name, value in arguments.items()
        if name in required or _has_ground(value, words) or _is_choice(value, properties.get(name))
    }


def _is_choice(value: Any, detail: Any) -> bool:
    """Whether a value was picked out of a few in place of the one that is there anyway."""
    facts = cast("Mapping[str, Any]", detail if isinstance(detail, Mapping) else EMPTY)
    return "default" in facts and value != facts["default"] and value in facts.get("enum", ())


def quote_request(arguments: Mapping[str, Any], request: str) -> dict[str, Any]:
    """The arguments, where one that parrots the whole request becomes what the request quotes, or ends with."""
    quoted = _QUOTED.findall(request) or request.split(": ")[1:]
    if len(quoted) != 1:
        return dict(arguments)
    meant = quoted[0].strip("\"'")
    return {
        name: meant if _flatten(value) == _flatten(request) else value
        for name, value in arguments.items()
    }


def heed_choices(arguments: Mapping[str, Any], invoker: Invoker, request: str) -> dict[str, Any]:
    """The arguments, where of a few possible values the one is taken that the request says."""
    heeded = dict(arguments)
    for name in arguments:
        detail = get_properties(invoker).get(name)
        facts = cast("Mapping[str, Any]", detail if isinstance(detail, Mapping) else EMPTY)
        words = [value for value in facts.get("enum", ()) if isinstance(value, str)]
        said = [value for value in words if _says(request.casefold(), value.casefold())]
        if len(said) == 1:
            heeded[name] = said[0]
    return heeded


def _flatten(value: Any) -> str:
    return re.sub(r"[\W_]+", " ", value).strip() if isinstance(value, str) else ""


def _has_ground(value: Any, words: str) -> bool:
    if value is None or (isinstance(value, (str, list, dict)) and not value):
        return False
    if isinstance(value, (bool, list, dict)):
        return True
    known = {_NUMERALS.get(word, word) for word in re.findall(r"\w+", words.casefold())}
    return any(word in known for word in re.findall(r"\w+", str(value).casefold()))


def find_borrowed(arguments: Mapping[str, Any], request: str, notes: str) -> list[str]:
    """The arguments that only a note of the application says, and without the name of the parameter."""
    return [
        name
        for name, value in arguments.items()
        if isinstance(value, str)
        and value
        and not _says(request, value)
        and any(_says(line, value) and not _names(line, name) for line in _SENTENCES.split(notes))
    ]


def _names(sentence: str, parameter: str) -> bool:
    """Whether a sentence has a word of a parameter's name, such as `repo`, or one that begins so."""
    parts = tuple(part for part in split_words(parameter) if len(part) >= _PART_MIN)
    return any(word.startswith(parts) for word in split_words(sentence))


def move_numbers(arguments: Mapping[str, Any], invoker: Invoker, words: str) -> dict[str, Any]:
    """The arguments, with each optional number at the parameter whose explanation has most of the user's words.

    Small models take the first parameter that fits, and read the last lines of a file in place of the first.
    """
    said = set(split_words(words))
    said |= {end for end, others in _ENDS.items() if said & others}
    required = invoker.arguments_schema.get("required", ())
    shared = {
        name: len(said & set(split_words(explain_parameter(invoker, name))))
        for name, detail in get_properties(invoker).items()
        if name not in required and _is_number(detail)
    }
    moved = dict(arguments)
    for name in shared.keys() & arguments.keys():
        free = [each for each in shared if each == name or each not in moved]
        best = max(free, key=lambda each: shared[each])
        if shared[best] > shared[name]:
            moved[best] = moved.pop(name)
    return moved


def _is_number(detail: Any) -> bool:
    facts = cast("Mapping[str, Any]", detail if isinstance(detail, Mapping) else EMPTY)
    return facts.get("type") in {"integer", "number"}


def search_deeply(arguments: Mapping[str, Any], invoker: Invoker) -> dict[str, Any]:
    """The arguments, where a pattern for names looks in all folders, if the tool tells that it can with `**/`.

    Whoever looks for a file mostly does not know its folder, and what is right here is found as well.
    """
    properties = get_properties(invoker)
    return {
        name: f"**/{value}"
        if isinstance(value, str)
        and re.fullmatch(r"[^/]+", value.replace("**", "/"))
        and name in properties
        and "**/" in explain_parameter(invoker, name)
        else value
        for name, value in arguments.items()
    }


def is_copied(value: Any, explanation: str, words: str) -> bool:
    """Whether a value is an example out of an explanation, of which nothing in the user's words speaks."""
    if not isinstance(value, str) or not value or set(split_words(value)) & set(split_words(words)):
        return False
    quoted = re.search(rf"['\"`]{re.escape(value)}['\"`]", explanation)
    examples = _EXAMPLES.search(explanation)
    return quoted is not None or (examples is not None and value in examples[0])


def may_be_any_text(detail: Any) -> bool:
    """Whether a parameter takes whatever text there is, and not one of a few."""
    facts = cast("Mapping[str, Any]", detail if isinstance(detail, Mapping) else EMPTY)
    return facts.get("type") == "string" and "enum" not in facts


def _says(text: str, value: str) -> bool:
    """Whether a text has a value as a word of its own, which the end of a sentence is not."""
    return re.search(rf"(?<![^\s'\"]){re.escape(value)}(?![^\s'\".,;:?!])", text) is not None


def list_open_words(request: str, explained: str) -> list[str]:
    """The words of a request that could be a value: those that neither a note nor another argument explains."""
    known = {word.casefold() for word in _PATHS_AND_WORDS.findall(explained)}
    words = dict.fromkeys(_PATHS_AND_WORDS.findall(request))
    return [word for word in words if word.casefold() not in known]


def begin_value(arguments: Mapping[str, Any], name: str) -> str:
    """The arguments as they are written, to where the value of one begins, which is a text."""
    before = {key: arguments[key] for key in list(arguments)[: list(arguments).index(name)]}
    head = json.dumps({**before, name: ""}, ensure_ascii=False)
    return head.removesuffix('"}')


def repeats(canisters: Sequence[Canister], name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the same call was made since the user spoke, so that an answer is due."""
    for index in range(len(canisters) - 1, -1, -1):
        canister = canisters[index]
        if isinstance(canister, UserCanister):
            return False
        if isinstance(canister, InvocationCanister):
            same = canister.name == name and dict(canister.arguments) == dict(arguments)
            if same:
                return True
    return False


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object that the model wrote, if it came to its end."""
    with suppress(ValueError):
        value = json.loads(text)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None
    return None
