# SPDX-License-Identifier: Apache-2.0
"""Finds tools by keyword: BM25 over their names, descriptions and parameters, indexed once for each ensemble."""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from .canisters import ResultCanister
from .invokers import Invoker

if TYPE_CHECKING:
    from .ensembles import Ensemble

_SATURATION = 1.2
_LENGTH_NORM = 0.75
_NAME_WEIGHT = 3
_TITLE_WEIGHT = 2
_UNSPACED_CHARACTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"  # Japanese, Chinese
    "\uac00-\ud7af"  # Korean, whose words carry particles
)
"""Of scripts that do not set words apart: in these, each pair of neighbours counts as a word."""
_UNSPACED = re.compile(f"[{_UNSPACED_CHARACTERS}]")
_LETTERS = f"[^\\W_{_UNSPACED_CHARACTERS}]"
_INDIC = "[\u0900-\u0963\u0966-\u0dff]"
"""Scripts whose vowels are marks on the letters before them, and no letters to a pattern."""
_WORDS = re.compile(f"[{_UNSPACED_CHARACTERS}]+|{_LETTERS}+(?:{_INDIC}+{_LETTERS}*)*")
_PLAIN_WORDS = re.compile("[A-Za-z0-9]+")
_ACCENTS = re.compile(
    "[\u0300-\u036f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc]"  # Arabic vowels and hamzas
)
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_STEM_MIN = 4
_HISSES = ("ches", "shes", "sses", "xes", "zzes")


def split_words(text: str) -> list[str]:
    """The words of a text or of a name in any style, lower-cased, without accents and a plural's `s`."""
    words: list[str] = []
    pattern = _PLAIN_WORDS if text.isascii() else _WORDS
    for word in pattern.findall(_HUMPS.sub(" ", _strip_accents(text))):
        if len(word) > 1 and _UNSPACED.match(word):
            words += (word[at : at + 2] for at in range(len(word) - 1))
            continue
        lowered = word.casefold()
        words.append(_make_singular(lowered) if lowered[-1] == "s" else lowered)
    return words


def list_words(text: str) -> list[str]:
    """The same, and as a whole those that capitals divide: people write GitHub where tools say github."""
    words = split_words(text)
    if _HUMPS.search(text):
        wholes = (word for word in _WORDS.findall(_strip_accents(text)) if not word.islower())
        words += (_make_singular(word.casefold()) for word in wholes if _HUMPS.search(word))
    return words


def _make_singular(word: str) -> str:
    """The word without what makes it a plural, as far as its letters tell."""
    if len(word) < _STEM_MIN or word[-1] != "s" or word.endswith("ss"):
        return word
    if word.endswith("ies") and len(word) > _STEM_MIN:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(_HISSES) else word[:-1]


def _strip_accents(text: str) -> str:
    """The text with letters that are the same however they were typed, and without accents."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


class ToolIndex:
    """The words of a set of tools, each with the tools that have it."""

    __slots__ = ("length", "lengths", "names", "postings")

    def __init__(self, invokers: Iterable[Invoker]) -> None:
        self.names: list[str] = []
        self.lengths: list[int] = []
        self.length = 0
        self.postings: dict[str, list[tuple[int, int]]] = {}
        for position, invoker in enumerate(invokers):
            counts = _count_words(invoker)
            total = sum(counts.values())
            self.names.append(invoker.name)
            self.lengths.append(total)
            self.length += total
            for word, count in counts.items():
                self.postings.setdefault(word, []).append((position, count))


_indexes: WeakKeyDictionary[Ensemble, tuple[Mapping[str, Invoker], ToolIndex]] = WeakKeyDictionary()


def index_ensemble(ensemble: Ensemble) -> ToolIndex:
    """The index of an ensemble's tools; made again only when they have changed."""
    invokers = ensemble.invokers
    known = _indexes.get(ensemble)
    if known is None or known[0] is not invokers:
        known = _indexes[ensemble] = (invokers, ToolIndex(invokers.values()))
    return known[1]


def search_tools(indexes: Sequence[ToolIndex], query: str, limit: int) -> list[str]:
    """The names of the tools that fit best, the best first; those alike in the order of the indexes."""
    scores = score_tools(indexes, query)
    return heapq.nsmallest(limit, scores, key=lambda name: -scores[name])


def score_tools(indexes: Sequence[ToolIndex], query: str) -> dict[str, float]:
    """How well each tool fits that fits at all, in the order of the indexes."""
    words = sorted(set(list_words(query)))
    count = sum(len(index.names) for index in indexes)
    average = sum(index.length for index in indexes) / count if count else 0.0
    rarities = {word: _weigh(word, indexes, count) for word in words}
    fitting: dict[str, float] = {}
    for index in indexes:
        scores: dict[int, float] = {}
        for word in words:
            for position, times in index.postings.get(word, ()):
                norm = 1 - _LENGTH_NORM + _LENGTH_NORM * index.lengths[position] / average
                share = times * (_SATURATION + 1) / (times + _SATURATION * norm)
                scores[position] = scores.get(position, 0.0) + rarities[word] * share
        fitting.update((index.names[at], scores[at]) for at in sorted(scores))
    return fitting


def read_found(result: ResultCanister) -> list[str]:
    """The tools that a search told of; a conversation may come from anywhere, so nothing is taken for granted."""
    structured: Any = result.structured
    found: Any = structured.get("tools") if isinstance(structured, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def _weigh(word: str, indexes: Sequence[ToolIndex], count: int) -> float:
    """How much a word tells: the rarer, the more."""
    holders = sum(len(index.postings.get(word, ())) for index in indexes)
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def _count_words(invoker: Invoker) -> Counter[str]:
    """The words of a tool; those of its name count most, on the wire and as its server has it."""
    counts = Counter(list_words(invoker.description))
    named = Counter(list_words(invoker.name))
    if not invoker.name.endswith(invoker.tool.name):
        named |= Counter(list_words(invoker.tool.name))
    for word in named.elements():
        counts[word] += _NAME_WEIGHT
    for word in list_words(invoker.annotations.title or ""):
        counts[word] += _TITLE_WEIGHT
    if invoker.ensemble is not None:
        counts.update(split_words(invoker.ensemble.name))
    properties: Any = invoker.arguments_schema.get("properties")
    if isinstance(properties, Mapping):
        for name in cast("Mapping[str, Any]", properties):
            counts.update(split_words(str(name)))
    return counts
