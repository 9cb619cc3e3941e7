# SPDX-License-Identifier: Apache-2.0
"""What a small model is told of tools: a line of each to choose by, and later the parameters of one."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from itertools import islice
from typing import Any, cast

from ..immutables import EMPTY
from ..invokers import Invoker

HIDDEN = "…"
"""Stands for an example that is kept from the model."""
_LINE_MAX = 110
_WORDS_MAX = 260
_NAMES_MAX = 6
_DEPRECATED = re.compile(
    r"\bdeprecated\b\W+(?:please )?(?:use|in favou?r of|replaced by|superseded by)\W+([\w-]+)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r".+?(?<!e\.g)(?<!i\.e)[.!?](?=\s|$)")


def summarize_tool(invoker: Invoker) -> str:
    """A line for a list to choose from: the name, what can be given, and the first words of the description."""
    return _introduce(invoker, _shorten(_take_sentence(invoker.description), _LINE_MAX))


def present_tool(invoker: Invoker) -> str:
    """A line for a short list: with all that is said of the tool, within reason."""
    return _introduce(invoker, _shorten(" ".join(invoker.description.split()), _WORDS_MAX))


def is_superseded(invoker: Invoker, names: Container[str]) -> bool:
    """Whether a tool is said to be deprecated for another that is there: two alike would share the model's favour."""
    told = _DEPRECATED.search(invoker.description)
    return told is not None and told[1] != invoker.name and told[1] in names


def _introduce(invoker: Invoker, words: str) -> str:
    required = invoker.arguments_schema.get("required", ())
    names = [name if name in required else f"{name}?" for name in get_properties(invoker)]
    return f"- {invoker.name}({', '.join(names[:_NAMES_MAX])}): {words}"


def describe_parameters(invoker: Invoker, hidden: Iterable[str] = ()) -> str:
    """What the arguments of a tool are: names, types, and what is said of them, but for some examples."""
    required = invoker.arguments_schema.get("required", ())
    parameters = [
        f"{name}{'' if name in required else '?'}: {_read_kind(detail)}{_note(invoker, name)}"
        for name, detail in get_properties(invoker).items()
    ]
    text = "; ".join(parameters) or "none"
    for example in hidden:
        text = text.replace(example, HIDDEN)
    return f"Parameters of {invoker.name}: {text}"


def _read_kind(detail: Any) -> str:
    facts = cast("Mapping[str, Any]", detail if isinstance(detail, Mapping) else EMPTY)
    return "|".join(map(str, facts["enum"])) if "enum" in facts else str(facts.get("type", "any"))


def _note(invoker: Invoker, name: str) -> str:
    words = explain_parameter(invoker, name)
    return f" ({words})" if words else ""


def explain_parameter(invoker: Invoker, name: str) -> str:
    """What is said of a parameter: its own first sentence, or else one about it in what is said of the tool."""
    detail = get_properties(invoker)[name]
    facts = cast("Mapping[str, Any]", detail if isinstance(detail, Mapping) else EMPTY)
    if own := _take_sentence(str(facts.get("description", ""))):
        return own
    told = " ".join(invoker.description.split())
    sentences = (found[0].strip() for found in _SENTENCE.finditer(told))
    about = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
    return next((each for each in islice(sentences, 1, None) if about.search(each)), "")


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0]}…"


def _take_sentence(text: str) -> str:
    """The first sentence, which mostly says it all; each word more takes a small machine a while to read."""
    words = " ".join(text.split())
    sentence = _SENTENCE.match(words)
    return sentence[0] if sentence else words


def get_properties(invoker: Invoker) -> Mapping[str, Any]:
    """The parameters of a tool, as its schema has them."""
    properties = invoker.arguments_schema.get("properties")
    return cast("Mapping[str, Any]", properties) if isinstance(properties, Mapping) else EMPTY
