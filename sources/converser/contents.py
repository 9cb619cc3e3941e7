# SPDX-License-Identifier: Apache-2.0
"""What a canister carries: text, image, audio, blob, link; and a keeper for kinds we do not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from .immutables import FrozenDictionary, freeze


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """What all contents share: annotations for hosts, and fields that a newer version wrote."""

    annotations: Mapping[str, Any] = field(default_factory=FrozenDictionary)
    extras: Mapping[str, Any] = field(default_factory=FrozenDictionary, repr=False)

    def __post_init__(self) -> None:
        # Most contents have neither, and there are many contents.
        if type(self.annotations) is not FrozenDictionary:
            object.__setattr__(self, "annotations", freeze(self.annotations))
        if type(self.extras) is not FrozenDictionary:
            object.__setattr__(self, "extras", freeze(self.extras))


@dataclass(frozen=True, slots=True, kw_only=True)
class TextualContent(_Content):
    """Plain text, Markdown, or JSON as text."""

    text: str
    mimetype: str = "text/plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageContent(_Content):
    """A picture as bytes."""

    data: bytes = field(repr=False)
    mimetype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioContent(_Content):
    """Sound as bytes."""

    data: bytes = field(repr=False)
    mimetype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobContent(_Content):
    """An embedded resource or document; `encoding` is set where the source gave text, not bytes."""

    data: bytes = field(repr=False)
    mimetype: str = "application/octet-stream"
    uri: str | None = None
    name: str | None = None
    encoding: str | None = None

    @property
    def text(self) -> str | None:
        """The blob as text, where its source gave it as text."""
        if self.encoding is None:
            return None
        try:
            return self.data.decode(self.encoding, "surrogatepass")
        except (LookupError, ValueError):  # not what it says it is
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkContent(_Content):
    """A link to a resource that was not embedded; it is never followed by itself."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mimetype: str | None = None
    size: int | None = None

    def describe(self) -> str:
        """The link in words, as a model is told of it."""
        about = f" ({self.description})" if self.description else ""
        return f"[link to {self.title or self.name}: {self.uri}{about}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownContent(_Content):
    """A content of a kind that this version does not know, or could not decode; kept as it came."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=FrozenDictionary)
    reason: str = ""

    def __post_init__(self) -> None:
        _Content.__post_init__(self)
        object.__setattr__(self, "data", freeze(self.data))


Content = Union[
    TextualContent, ImageContent, AudioContent, BlobContent, LinkContent, UnknownContent
]


_BYTES: dict[str, type] = {"data": bytes, "mimetype": str}
_FIELDS: dict[type, dict[str, type]] = {
    TextualContent: {"text": str, "mimetype": str},
    ImageContent: _BYTES,
    AudioContent: _BYTES,
    BlobContent: _BYTES,
    LinkContent: {"uri": str, "name": str},
    UnknownContent: {},
}


def describe_slip(part: object) -> str:
    """What nobody could store or send, in words: no content, or one with a value of a wrong kind; else nothing."""
    fields = next((_FIELDS[kind] for kind in type(part).__mro__ if kind in _FIELDS), None)
    if fields is None:
        return f"a value of type {type(part).__name__}"
    for name, kind in fields.items():
        if not isinstance(value := getattr(part, name), kind):
            return f"{type(part).__name__} whose {name} is a value of type {type(value).__name__}"
    return ""
