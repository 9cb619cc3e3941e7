# SPDX-License-Identifier: Apache-2.0
"""Images and documents that a service refuses: told of in words from then on, or no later turn could be taken either.

They are too large, too many, or not what they are called; and a conversation never loses what it has once.
"""

from __future__ import annotations

import re
from dataclasses import replace
from weakref import WeakKeyDictionary

from ..canisters import (
    AssistantCanister,
    Canister,
    DocumentCanister,
    ResultCanister,
    UserCanister,
)
from ..contents import AudioContent, BlobContent, Content, ImageContent, TextualContent
from ..turns import Concession, Transcript
from .translations import describe_content

_TOO_LARGE = 413
_REFUSALS = (400, 415, 422, _TOO_LARGE)
_BLAMED = re.compile(
    r"^(?!.*schema).*\b(image|pdf|document|file|audio|media|mime ?type|payload size)",
    re.IGNORECASE | re.DOTALL,
)
"""How services speak of them, where those are what is wrong; a schema may speak of images, too."""
_FAULTY = re.compile(
    r"exceed|too (large|big|many)|dimension|invalid|not valid|corrupt|decode|process|load|at most",
    re.IGNORECASE,
)
"""How servers speak of an image that is at fault itself, and not of a model that sees none."""

Places = frozenset[int]
_NONE: Places = frozenset()


class Veil:
    """Which canisters of each transcript have their images and documents told of in words."""

    def __init__(self, *, blindness: bool = False) -> None:
        self._may_be_blind = blindness
        """Whether the model may see nothing at all, which is not for here."""
        self._drawn: WeakKeyDictionary[Transcript, Places] = WeakKeyDictionary()

    def find(self, transcript: Transcript) -> Places:
        """The places of the canisters that are covered."""
        return self._drawn.get(transcript, _NONE)

    def draw(
        self, transcript: Transcript, status: int | None, words: str, earlier: Concession | None
    ) -> None:
        """Raises `Concession` where a refusal blames such things: for what is new, then for all there is."""
        if status not in _REFUSALS or not (status == _TOO_LARGE or _BLAMED.search(words)):
            return
        if self._may_be_blind and not _FAULTY.search(words):
            return
        before = self.find(transcript)
        open_places = [
            place
            for place, canister in enumerate(transcript)
            if place not in before and _has_media(canister)
        ]
        if not open_places:
            return
        answers = (at for at, each in enumerate(transcript) if isinstance(each, AssistantCanister))
        # What was there when a model last spoke was mostly taken then.
        last = max(answers, default=-1)
        new = [place for place in open_places if place > last] or open_places
        self._drawn[transcript] = before.union(new)

        def take_back() -> None:
            self._drawn[transcript] = before
            if earlier is not None and earlier.take_back is not None:
                earlier.take_back()

        raise Concession(take_back)

    def look(self, transcript: Transcript, start: int, end: int | None = None) -> list[Canister]:
        """A part of a transcript, as it is seen now."""
        canisters = transcript[start:end]
        for place in self.find(transcript):
            if 0 <= place - start < len(canisters):
                canisters[place - start] = _cover(canisters[place - start])
        return canisters


def _has_media(canister: Canister) -> bool:
    return isinstance(canister, (UserCanister, DocumentCanister, ResultCanister)) and any(
        map(_is_medium, canister.contents)
    )


def _is_medium(content: Content) -> bool:
    """Whether it is sent as it is, and not as text."""
    if isinstance(content, BlobContent):
        return content.text is None or content.mimetype == "application/pdf"
    return isinstance(content, (ImageContent, AudioContent))


def _cover(canister: Canister) -> Canister:
    assert isinstance(canister, (UserCanister, DocumentCanister, ResultCanister))
    contents = tuple(
        TextualContent(text=describe_content(part)) if _is_medium(part) else part
        for part in canister.contents
    )
    return replace(canister, contents=contents)
