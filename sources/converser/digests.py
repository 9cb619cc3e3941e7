# SPDX-License-Identifier: Apache-2.0
"""What a model is sent of a conversation: the same, but results over a budget are shortened; history keeps all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from .canisters import Canister, DocumentCanister, ResultCanister, UserCanister
from .characters import purify_canister
from .contents import BlobContent, Content, ImageContent, LinkContent, TextualContent
from .costs import BYTES_PER_TOKEN, measure
from .exceptions import ToolExecutionFailure
from .excesses import HANDLE, STORE, Excess, access_excess
from .immutables import freeze
from .invokers import Annotations, Context, InvocationResult, Tool
from .outcomes import Outcome
from .replies import RESULT_BUDGET_MIN
from .turns import Transcript

_HEAD = 2 / 3
_FRAME = 300
"""Bytes that the words round a piece of a result may take."""
_USUAL_ROOM = 100_000
"""Bytes of one piece, where results are not shortened."""

READING_TOOL = Tool(
    name="read_result",
    description="Reads more of a tool's result that was too long to be shown whole. The note in"
    " the shortened result names its handle.",
    arguments_schema=freeze(
        {
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "Such as result-0a1b2c3d."},
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "The character to begin at; 0 if not given.",
                },
                "length": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "How many characters to read; as many as fit if not given.",
                },
                "search": {
                    "type": "string",
                    "minLength": 1,
                    "description": "Begin where this text next occurs, at the offset or after it.",
                },
            },
            "required": ["handle"],
        }
    ),
    annotations=Annotations(
        title="Read more of a result", read_only=True, idempotent=True, open_world=False
    ),
)


class Digest(Transcript):
    """A transcript as a model sees it; each canister is digested once, and always to the same."""

    __slots__ = ("_bytes", "_excesses", "_handles", "_texts", "reader", "vision")

    def __init__(self, *, budget: int | None, vision: bool, reader: str) -> None:
        super().__init__()
        self._bytes = None
        if budget is not None:
            self._bytes = max(budget, RESULT_BUDGET_MIN) * BYTES_PER_TOKEN
        self._handles: dict[str, str] = {}
        self._texts: dict[str, ResultCanister] = {}
        self._excesses: set[str] = set()
        self.vision = vision
        self.reader = reader

    def absorb(self, transcript: Transcript) -> None:
        """Takes in what is new in a transcript."""
        self.extend([self._digest(canister) for canister in transcript[len(self) :]])

    @property
    def has_more(self) -> bool:
        """Whether some result was shortened, so that there is more to read."""
        return bool(self._texts or self._excesses)

    async def read(self, _: Context, arguments: dict[str, Any]) -> InvocationResult:
        """Gives a piece of a shortened result: the invocable of the reading tool."""
        handle, offset = str(arguments["handle"]), int(arguments.get("offset", 0))
        if (excess := STORE.find(handle)) is not None:
            return await self._read_excess(excess, offset, arguments)
        if (canister := self._texts.get(handle)) is None or self._bytes is None:
            handles = (*self._texts, *self._excesses)
            raise self._refuse(f"There is no shortened result {handle!r}.", handles)
        text = _render(canister)
        if offset >= len(text):
            raise self._refuse(f"The result {handle!r} has only {len(text)} characters.")
        if search := arguments.get("search"):
            found = re.compile(re.escape(str(search)), re.IGNORECASE).search(text, offset)
            if found is None:
                raise self._refuse(f"{search!r} does not occur after character {offset}.")
            offset = found.start()
        room = self._bytes - _FRAME
        piece = _begin(text[offset : offset + int(arguments.get("length", room))], room)
        end = offset + len(piece)
        more = f" It goes on at offset {end}." if end < len(text) else " This is its end."
        head = f"[Characters {offset} to {end} of the {len(text)} of {handle}.{more}]"
        return InvocationResult(contents=(TextualContent(text=f"{head}\n{piece}"),))

    async def _read_excess(
        self, excess: Excess, offset: int, arguments: dict[str, Any]
    ) -> InvocationResult:
        """Gives a piece of what was too large for memory; there, offset and length count bytes."""
        if offset >= excess.size:
            raise self._refuse(f"{excess.handle!r} has only {excess.size} bytes.")
        if search := arguments.get("search"):
            found = await excess.find(str(search), offset)
            if found is None:
                raise self._refuse(f"{search!r} does not occur after byte {offset}.")
            offset = found
        room = (self._bytes or _USUAL_ROOM) - _FRAME
        text, end = excess.read(offset, min(int(arguments.get("length", room)), room))
        more = f" It goes on at offset {end}." if end < excess.size else " This is its end."
        head = f"[Bytes {offset} to {end} of the {excess.size} of {excess.handle}.{more}]"
        return InvocationResult(contents=(TextualContent(text=f"{head}\n{text}"),))

    def _refuse(self, words: str, handles: Iterable[str] = ()) -> ToolExecutionFailure:
        known = ", ".join(list(handles)[-10:])
        return ToolExecutionFailure(
            words,
            remedy=f"There are: {known}." if known else "",
            tool=self.reader,
            outcome=Outcome.INVALID,
        )

    def _digest(self, canister: Canister) -> Canister:
        canister = purify_canister(canister)
        if not self.vision and isinstance(
            canister, (ResultCanister, UserCanister, DocumentCanister)
        ):
            canister = self._describe_images(canister)
        if not isinstance(canister, ResultCanister):
            return canister
        if not STORE.is_empty:
            canister = self._describe_excesses(canister)
        if self._bytes is not None:
            return self._shorten(canister, self._bytes)
        return canister

    def _describe_excesses(self, canister: ResultCanister) -> ResultCanister:
        """Puts a note in the place of each link to what was too large for memory, on how to read it."""
        named = HANDLE.findall(canister.error or "")
        self._excesses.update(handle for handle in named if STORE.find(handle) is not None)
        contents = tuple(
            TextualContent(text=self._describe_excess(part, excess))
            if isinstance(part, LinkContent) and (excess := access_excess(part)) is not None
            else part
            for part in canister.contents
        )
        return canister if contents == canister.contents else replace(canister, contents=contents)

    def _describe_excess(self, link: LinkContent, excess: Excess) -> str:
        words = f"[{link.description} It has {excess.size} bytes of the type {excess.mimetype}"
        if not excess.is_text:
            return f"{words}, which you cannot read; people find it in {excess.path}.]"
        self._excesses.add(excess.handle)
        return (
            f'{words}. To read it, call {self.reader} with the handle "{excess.handle}" and an'
            " offset in bytes.]"
        )

    def _describe_images(
        self, canister: ResultCanister | UserCanister | DocumentCanister
    ) -> ResultCanister | UserCanister | DocumentCanister:
        """Puts a note in the place of each image, for a model that cannot see."""
        if not any(isinstance(part, ImageContent) for part in canister.contents):
            return canister
        handle = self._claim_handle(canister)
        contents = [
            TextualContent(
                text=f"[An image, {part.mimetype}, {len(part.data)} bytes, which you cannot see;"
                f" it is kept as {handle}, part {number}.]"
            )
            if isinstance(part, ImageContent)
            else part
            for number, part in enumerate(canister.contents, 1)
        ]
        return replace(canister, contents=tuple(contents))

    def _shorten(self, canister: ResultCanister, limit: int) -> ResultCanister:
        """Keeps head and tail of a result that is over the budget, and says how to read the rest."""
        if _measure(canister) <= limit:
            return canister
        handle = self._claim_handle(canister)
        self._texts[handle] = canister
        text, error = _render(canister), canister.error
        room = limit - _FRAME
        if error is not None and measure(error) > room // 4:
            error = f"{_begin(error, room // 4)} […]"
        room -= measure(error or "")
        head = _begin(text, int(room * _HEAD))
        tail = _end(text, room - measure(head))
        note = (
            f"\n[… {len(text) - len(head) - len(tail)} of {len(text)} characters are left out here."
            f' To read them, call {self.reader} with the handle "{handle}" and the offset'
            f" {len(head)}. …]\n"
        )
        kept = [part for part in canister.contents if _get_text(part) is None]
        contents = (TextualContent(text=f"{head}{note}{tail}"), *kept)
        # Small data beside long words, such as the names that a search found, do no harm.
        data = canister.structured
        data = data if data is not None and measure(_dump(data)) <= limit // 4 else None
        return replace(canister, contents=contents, structured=data, error=error)

    def _claim_handle(self, canister: Canister) -> str:
        """A short name for a canister, which depends only on it and those before it."""
        kind = "result" if isinstance(canister, ResultCanister) else "message"
        identifier = canister.identifier
        handle = f"{kind}-{identifier[:8]}"
        if self._handles.setdefault(handle, identifier) != identifier:
            handle = f"{kind}-{identifier}"
        return handle


_digests: WeakKeyDictionary[Transcript, tuple[tuple[object, ...], Digest]] = WeakKeyDictionary()


def digest(transcript: Transcript, *, budget: int | None, vision: bool, reader: str) -> Transcript:
    """What a model sees of a transcript; kept with it, so that translations of it can be kept too."""
    key = (budget, vision, reader)
    known = _digests.get(transcript)
    if known is None or known[0] != key:
        known = (key, Digest(budget=budget, vision=vision, reader=reader))
        _digests[transcript] = known
    known[1].absorb(transcript)
    return known[1]


def _get_text(content: Content) -> str | None:
    """The words of a content that has words."""
    if isinstance(content, (TextualContent, BlobContent)):
        return content.text
    return content.describe() if isinstance(content, LinkContent) else None


def _measure(canister: ResultCanister) -> int:
    """How many bytes of words a model would have to read, without putting them together."""
    size = measure(canister.error or "") + len(canister.contents)
    if not canister.contents and canister.structured is not None:
        return size + measure(_dump(canister.structured))
    for part in canister.contents:
        if isinstance(part, TextualContent):
            size += measure(part.text)
        elif isinstance(part, LinkContent):
            size += measure(part.describe())
        elif isinstance(part, BlobContent) and part.encoding is not None:
            size += len(part.data)
    return size


def _render(canister: ResultCanister) -> str:
    """All the words of a result as one text, in which offsets count."""
    words = [text for part in canister.contents if (text := _get_text(part)) is not None]
    if not canister.contents and canister.structured is not None:
        words.append(_dump(canister.structured))
    if canister.error is not None:
        words.append(canister.error)
    return "\n".join(words)


def _begin(text: str, most: int) -> str:
    """As much of the beginning of a text as has so many bytes at most."""
    text = text[:most]
    if text.isascii():
        return text
    return text[: len(text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore"))]


def _end(text: str, most: int) -> str:
    """As much of the end of a text as has so many bytes at most."""
    return _begin(text[max(0, len(text) - most) :][::-1], most)[::-1]


def _dump(structured: Any) -> str:
    return json.dumps(structured, ensure_ascii=False)
