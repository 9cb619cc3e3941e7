# SPDX-License-Identifier: Apache-2.0
"""A conversation as Markdown: what people and models said as it is, what tools said in fences."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence

from ...canisters import (
    AssistantCanister,
    Canister,
    DocumentCanister,
    InvocationCanister,
    ResultCanister,
    UnknownCanister,
)
from ...contents import (
    BlobContent,
    Content,
    ImageContent,
    LinkContent,
    TextualContent,
    UnknownContent,
)
from ..conversation import ConversationSurvey
from .timeline import Call, Message, add_up, arrange
from .words import (
    tidy,
    write_data,
    write_duration,
    write_size,
    write_time,
    write_usage,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~])")
_IMAGE = re.compile(r"image/[a-z0-9.+-]+")


def write_markdown(survey: ConversationSurvey, canisters: Sequence[Canister]) -> str:
    """One document; its images stand at the end, so that the text stays readable."""
    writer = _Writer()
    blocks = [f"# {_escape(survey.title) or survey.identifier}", _introduce(survey, canisters)]
    for entry in arrange(canisters):
        blocks += writer.tell(entry)
    return "\n\n".join([*blocks, *writer.images]) + "\n"


def _introduce(survey: ConversationSurvey, canisters: Sequence[Canister]) -> str:
    totals = add_up(canisters)
    metadata = survey.metadata
    facts = {
        "Conversation": survey.identifier,
        "Forked from": metadata.parent,
        "Created": write_time(metadata.created),
        "Model": metadata.model,
        "Servers": ", ".join(metadata.servers),
        "Tags": ", ".join(metadata.tags),
        "Calls": f"{totals.calls:,}, of which {totals.failures:,} failed" if totals.calls else "",
        "Tokens": write_usage(totals.usage).replace(" tokens", ""),
    }
    return "\n".join(f"- {key}: {_escape(value)}" for key, value in facts.items() if value)


class _Writer:
    """Writes entries as blocks, and gathers the images that they name."""

    def __init__(self) -> None:
        self.images: list[str] = []

    def tell(self, entry: Message | Call) -> Iterator[str]:
        """The blocks of an entry, a heading first."""
        if isinstance(entry, Call):
            yield from self._tell_call(entry)
            return
        canister = entry.canister
        yield f"## {_name(canister)}"
        if isinstance(canister, UnknownCanister):
            yield _fence(write_data(canister.data), "json")
        elif isinstance(canister, ResultCanister):
            yield from self._tell_result(canister)
        elif not isinstance(canister, InvocationCanister):
            plain = not isinstance(canister, DocumentCanister)
            for content in canister.contents:
                yield self._show(content, plain=plain)
        if isinstance(canister, AssistantCanister) and canister.usage is not None:
            yield f"*{write_usage(canister.usage)}*"

    def _tell_call(self, call: Call) -> Iterator[str]:
        duration = "" if call.duration is None else f", {write_duration(call.duration)}"
        yield f"### Call of {_code(call.invocation.name)}{duration}"
        yield _fence(write_data(call.invocation.arguments), "json")
        if call.result is None:
            yield "*No result.*"
        else:
            yield from self._tell_result(call.result)

    def _tell_result(self, result: ResultCanister) -> Iterator[str]:
        if result.error is not None:
            yield f"**{result.outcome}**"
            yield _fence(tidy(result.error))
        for content in result.contents:
            yield self._show(content, plain=False)
        if result.structured is not None:
            yield _fence(write_data(result.structured), "json")

    def _show(self, content: Content, *, plain: bool) -> str:
        """A content; text of tools and documents is fenced, so that it cannot pass for ours."""
        if isinstance(content, TextualContent):
            return _close(tidy(content.text).strip()) if plain else _fence(tidy(content.text))
        if isinstance(content, ImageContent) and _IMAGE.fullmatch(content.mimetype):
            return self._show_image(content)
        if isinstance(content, LinkContent):
            return f"{_escape(content.title or content.name)}: {_code(content.uri)}"
        if isinstance(content, UnknownContent):
            return f"*{_escape(content.kind)}: {_escape(content.reason or 'unknown here')}*"
        if isinstance(content, BlobContent) and (text := content.text) is not None:
            return _fence(tidy(text))
        name = _escape(getattr(content, "name", None) or "")
        return f"*{name} {_escape(content.mimetype)}, {write_size(len(content.data))}*"

    def _show_image(self, content: ImageContent) -> str:
        label = f"image-{len(self.images) + 1}"
        encoded = b64encode(content.data).decode("ascii")
        self.images.append(f"[{label}]: data:{content.mimetype};base64,{encoded}")
        return f"![{content.mimetype}, {write_size(len(content.data))}][{label}]"


def _name(canister: Canister) -> str:
    """Who speaks; a model and a document by name."""
    kind = type(canister).__name__.removesuffix("Canister")
    if isinstance(canister, UnknownCanister):
        return _escape(canister.kind)
    name = getattr(canister, "model", None) or getattr(canister, "name", None)
    return f"{kind} ({_escape(name)})" if name else kind


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", tidy(" ".join(text.split())))


def _code(text: str) -> str:
    """A word of somebody else's as code, whatever signs are in it."""
    words = tidy(" ".join(text.split()))
    ticks = "`" * (_find_longest(words, "`") + 1)
    space = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{ticks}{space}{words}{space}{ticks}"


def _fence(text: str, language: str = "") -> str:
    """A block that nothing in it can end."""
    ticks = "`" * max(3, _find_longest(text, "`") + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def _close(text: str) -> str:
    """Ends a fence that an answer left open, as one that was cut off does."""
    fence = ""
    for line in text.splitlines():
        match = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if match is None:
            continue
        if not fence:
            fence = match[1]
        elif match[1].startswith(fence) and not match[2].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _find_longest(text: str, sign: str) -> int:
    return max((len(run) for run in re.findall(f"{re.escape(sign)}+", text)), default=0)
