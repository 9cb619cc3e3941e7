# SPDX-License-Identifier: Apache-2.0
"""Contents as HTML. All that comes from outside passes through `escape`, or through a renderer that escapes."""

from __future__ import annotations

import html
import re
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...contents import (
    AudioContent,
    BlobContent,
    Content,
    ImageContent,
    LinkContent,
    TextualContent,
    UnknownContent,
)
from ...hygiene import clean_text
from .words import tidy, write_data, write_size

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# What browsers show as a picture, or play, and never run.
_SHOWN = re.compile(r"image/(png|jpe?g|gif|webp|avif|bmp|svg\+xml)")
_PLAYED = re.compile(r"audio/[a-z0-9.+-]+")
_FOLLOWED = re.compile(r"(?:https?://|mailto:)[^\s]+", re.IGNORECASE)


def escape(text: str) -> str:
    """Untrusted text for HTML, in elements and in attributes."""
    return html.escape(tidy(text))


def show_contents(contents: Iterable[Content], *, prose: bool = False, code: bool = False) -> str:
    """Contents one after the other: text as Markdown, as it is, or as code."""
    return "".join(_show(content, prose=prose, code=code) for content in contents)


def show_data(data: object) -> str:
    """JSON, laid out."""
    return f"<pre>{html.escape(write_data(data))}</pre>"


def show_text(text: str) -> str:
    """Text of a tool, with all its spaces."""
    return f"<pre>{escape(text)}</pre>"


def _show(content: Content, *, prose: bool, code: bool) -> str:
    if isinstance(content, TextualContent):
        if prose:
            return f'<div class="prose">{_render(content.text)}</div>'
        return (
            show_text(content.text) if code else f'<div class="plain">{escape(content.text)}</div>'
        )
    if isinstance(content, ImageContent) and _SHOWN.fullmatch(content.mimetype.lower()):
        return _show_image(content)
    if isinstance(content, AudioContent) and _PLAYED.fullmatch(content.mimetype.lower()):
        source = _embed(content.data, content.mimetype.lower())
        return f'<audio controls src="{source}"></audio>'
    if isinstance(content, LinkContent):
        return _show_link(content)
    if isinstance(content, UnknownContent):
        return f'<p class="note">{escape(content.kind)}: {escape(content.reason or "unknown here")}</p>'
    if isinstance(content, BlobContent) and (text := content.text) is not None:
        return f"{_caption(content)}{show_text(text)}"
    return _offer(content)


def _show_image(content: ImageContent) -> str:
    size = write_size(len(content.data))
    label = f"{escape(content.mimetype)}, {size}"
    source = _embed(content.data, content.mimetype.lower())
    return f'<figure><img src="{source}" alt="{label}"><figcaption>{label}</figcaption></figure>'


def _show_link(content: LinkContent) -> str:
    name = escape(content.title or content.name)
    uri = escape(content.uri)
    if _FOLLOWED.fullmatch(content.uri):
        return f'<p><a href="{uri}" rel="noopener noreferrer nofollow">{name}</a></p>'
    return f"<p>{name}: <code>{uri}</code></p>"


def _caption(content: BlobContent) -> str:
    name = content.name or content.uri
    return f'<p class="note">{escape(name)}</p>' if name else ""


def _offer(content: ImageContent | AudioContent | BlobContent) -> str:
    """What is not shown can be saved; never opened, whatever type it says it has."""
    name = getattr(content, "name", None) or "content"
    label = f"{escape(name)}, {escape(content.mimetype)}, {write_size(len(content.data))}"
    source = _embed(content.data, "application/octet-stream")
    return f'<p class="note">{label} <a download="{escape(name)}" href="{source}">Save</a></p>'


def _embed(data: bytes, mimetype: str) -> str:
    return f"data:{mimetype};base64,{b64encode(data).decode('ascii')}"


def _render(text: str) -> str:
    # Entities may have become characters.
    return clean_text(str(_access_renderer().render(tidy(text))))


@lru_cache(maxsize=1)
def _access_renderer() -> MarkdownIt:
    """Markdown without raw HTML, with pictures as mere links, and links that tell nothing of this page."""
    from markdown_it import MarkdownIt

    class Renderer(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802
            return _FOLLOWED.fullmatch(url) is not None

    renderer = Renderer("commonmark", {"html": False}).enable(["strikethrough", "table"])
    renderer.disable(["image", "reference"])  # the definition of a reference would not be shown
    renderer.add_render_rule("link_open", _open_link)
    return renderer


def _open_link(renderer: Any, tokens: Any, index: int, options: Any, _: Any) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return str(renderer.renderToken(tokens, index, options, {}))
