# SPDX-License-Identifier: Apache-2.0
"""Finds words in a conversation, wherever a person could have seen them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..canisters import Canister, InvocationCanister, ResultCanister, UnknownCanister
from ..contents import BlobContent, Content, LinkContent, TextualContent
from ..hygiene import clean_text
from .conversation import ConversationSurvey

_AROUND = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFinding:
    """A place where the words stand; `number` counts canisters from 1, and is 0 for name and tags."""

    survey: ConversationSurvey
    number: int
    canister: Canister | None
    excerpt: str
    """On one line, with what stands around the words; clean enough for a terminal."""


def search_canisters(
    survey: ConversationSurvey, canisters: Iterable[Canister], words: str
) -> Iterator[ConversationFinding]:
    """One finding for each canister that has the words, and one for the name and the tags."""
    pattern = re.compile(re.escape(words), re.IGNORECASE)
    label = " ".join((survey.metadata.name, *survey.metadata.tags))
    if (excerpt := _excerpt(pattern, label)) is not None:
        yield ConversationFinding(survey=survey, number=0, canister=None, excerpt=excerpt)
    for number, canister in enumerate(canisters, 1):
        if (excerpt := _excerpt(pattern, describe_canister(canister))) is not None:
            yield ConversationFinding(
                survey=survey, number=number, canister=canister, excerpt=excerpt
            )


def describe_canister(canister: Canister) -> str:
    """All words of a canister, as they are: untrusted."""
    if isinstance(canister, InvocationCanister):
        return f"{canister.name} {_write(canister.arguments)}"
    if isinstance(canister, UnknownCanister):
        return _write(canister.data)
    parts = [describe_content(content) for content in canister.contents]
    if isinstance(canister, ResultCanister):
        parts.insert(0, canister.error or "")
        if canister.structured is not None:
            parts.append(_write(canister.structured))
    return "\n".join(part for part in parts if part)


def describe_content(content: Content) -> str:
    """The words of a content; none of what is not text."""
    if isinstance(content, TextualContent):
        return content.text
    if isinstance(content, LinkContent):
        return f"{content.name} {content.uri}"
    if isinstance(content, BlobContent):
        return content.text or content.name or content.uri or ""
    return ""


def _write(data: object) -> str:
    return json.dumps(data, ensure_ascii=False)


def _excerpt(pattern: re.Pattern[str], text: str) -> str | None:
    if (match := pattern.search(text)) is None:
        return None
    begin, end = max(0, match.start() - _AROUND), match.end() + _AROUND
    words = " ".join(text[begin:end].split())
    return clean_text(f"{'…' if begin else ''}{words}{'…' if end < len(text) else ''}")
