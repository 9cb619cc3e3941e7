# SPDX-License-Identifier: Apache-2.0
"""A conversation is a list of these: immutable messages of six kinds."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, NoReturn, Union, get_args

from .contents import Content, TextualContent, describe_slip
from .exceptions import CanisterInvalidity
from .immutables import FrozenDictionary, freeze
from .outcomes import Outcome


def _new_identifier() -> str:
    return uuid.uuid4().hex


def _now() -> datetime:
    return datetime.now(timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Canister:
    """What all canisters share: identity, an aware time, and fields that a newer version wrote."""

    identifier: str = field(default_factory=_new_identifier)
    timestamp: datetime = field(default_factory=_now)
    extras: Mapping[str, Any] = field(default_factory=FrozenDictionary, repr=False)

    def __post_init__(self) -> None:
        offset = self.timestamp.utcoffset()
        if offset is None:
            raise CanisterInvalidity(
                f"The timestamp of canister {self.identifier!r} has no time zone.",
                remedy="Give an aware datetime, such as datetime.now(timezone.utc).",
            )
        if type(self.timestamp.tzinfo) is not timezone:
            # In an hour that a named zone repeats, its times equal no others, not even their own JSON.
            fixed = self.timestamp.replace(tzinfo=timezone(offset), fold=0)
            object.__setattr__(self, "timestamp", fixed)
        object.__setattr__(self, "extras", freeze(self.extras))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ContentfulCanister(_Canister):
    """A canister that carries contents."""

    contents: tuple[Content, ...] = ()

    def __post_init__(self) -> None:
        _Canister.__post_init__(self)
        object.__setattr__(self, "contents", tuple(self.contents))

    @property
    def text(self) -> str:
        """All text of this canister, joined by line breaks."""
        return "\n".join(part.text for part in self.contents if isinstance(part, TextualContent))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that one model turn took."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    extras: Mapping[str, Any] = field(default_factory=FrozenDictionary, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extras", freeze(self.extras))

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            tokens_cached=self.tokens_cached + other.tokens_cached,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCanister(_ContentfulCanister):
    """What a person says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorCanister(_ContentfulCanister):
    """What the application tells the model: its instructions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentCanister(_ContentfulCanister):
    """Material that a person or the application gives along."""

    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantCanister(_ContentfulCanister):
    """What a model says."""

    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationCanister(_Canister):
    """A model's wish to use a tool; its result names this canister's identifier."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=FrozenDictionary)

    def __post_init__(self) -> None:
        _Canister.__post_init__(self)
        object.__setattr__(self, "arguments", freeze(self.arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCanister(_ContentfulCanister):
    """How one invocation ended, and what came of it."""

    invocation_identifier: str
    outcome: Outcome = Outcome.SUCCESS
    error: str | None = None
    structured: Any = None
    duration: float | None = None
    """Seconds that the call took; None where none was made."""

    def __post_init__(self) -> None:
        _ContentfulCanister.__post_init__(self)
        object.__setattr__(self, "structured", freeze(self.structured))
        if (self.outcome is Outcome.SUCCESS) != (self.error is None):
            raise CanisterInvalidity(
                f"The result of invocation {self.invocation_identifier!r} has the outcome"
                f" {self.outcome}, and {'no' if self.error is None else 'an'} error.",
                remedy="Give an error exactly where the outcome is not success.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownCanister(_Canister):
    """A canister of a kind that this version does not know; kept as it came."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=FrozenDictionary)

    def __post_init__(self) -> None:
        _Canister.__post_init__(self)
        object.__setattr__(self, "data", freeze(self.data))


Canister = Union[
    UserCanister,
    AssistantCanister,
    SupervisorCanister,
    DocumentCanister,
    InvocationCanister,
    ResultCanister,
    UnknownCanister,
]


_CANISTERS = get_args(Canister)


def check_canisters(canisters: Iterable[Any]) -> list[Canister]:
    """What a conversation is made of, as a list; words in the place of a canister are a slip that is told."""
    listed = list(canisters)
    if not all(isinstance(each, _CANISTERS) for each in listed):
        refuse_conversation()
    for canister in listed:
        if isinstance(canister, _ContentfulCanister):
            check_contents(canister.contents)
    return listed


def refuse_conversation() -> NoReturn:
    """Raises that something is no conversation."""
    raise CanisterInvalidity(
        "A conversation is a list of canisters, and this is none.",
        remedy='Give one, such as [converser.user("…")].',
    )


def compose_contents(parts: tuple[str | Content, ...]) -> tuple[Content, ...]:
    """Lets people write a bare string where a textual content is meant."""
    contents = [TextualContent(text=part) if isinstance(part, str) else part for part in parts]
    return check_contents(contents)


def check_contents(contents: Iterable[Content]) -> tuple[Content, ...]:
    """What a canister carries; a slip is told here, and not where a conversation is sent or stored."""
    checked = tuple(contents)
    for part in checked:
        if slip := describe_slip(part):
            raise CanisterInvalidity(
                f"A canister was given {slip}.",
                remedy="Give texts and contents, each on its own, with text as str and data as bytes, such as"
                ' user("What is this?", ImageContent(data=…, mimetype="image/png")).',
            )
    return checked


def user(*parts: str | Content) -> UserCanister:
    """What a person says, from text and contents."""
    return UserCanister(contents=compose_contents(parts))


def assistant(*parts: str | Content) -> AssistantCanister:
    """What a model said, from text and contents."""
    return AssistantCanister(contents=compose_contents(parts))


def supervisor(*parts: str | Content) -> SupervisorCanister:
    """Instructions for the model, from text and contents."""
    return SupervisorCanister(contents=compose_contents(parts))


def document(*parts: str | Content, name: str | None = None) -> DocumentCanister:
    """Material that is given along, from text and contents."""
    return DocumentCanister(contents=compose_contents(parts), name=name)
