# SPDX-License-Identifier: Apache-2.0
"""Markdown of models on a terminal, with nothing hidden: links show where they lead, HTML is text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.theme import Theme

from ...hygiene import clean_text
from .wording import tidy

THEME = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold dim",
        "markdown.code": "cyan",
        "markdown.link": "none",
        "markdown.link_url": "blue underline",
        "markdown.hr": "dim",
        "markdown.block_quote": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "bar.back": "bright_black",
        "bar.complete": "cyan",
        "bar.finished": "green",
    }
)
# HTML, and definitions of links elsewhere, would not be shown at all.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_PARSER.disable("reference")


class _LeftHeading(Heading):
    LEVEL_ALIGN: ClassVar[Any] = {}


class _PlainCode(CodeBlock):
    """Code on the terminal's own background, so that it suits light ones and dark ones."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(
            code,
            self.lexer_name,
            theme="ansi_dark",
            background_color="default",
            word_wrap=True,
            padding=(0, 2),
        )


class SafeMarkdown(Markdown):
    """What a model wrote, rendered; each of its characters is visible, and none is a command."""

    elements: ClassVar[Any] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _PlainCode,
        "code_block": _PlainCode,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = list(_uncover(_PARSER.parse(tidy(text))))


def split_blocks(text: str, *, is_complete: bool = False) -> tuple[list[str], str]:
    """Cuts growing Markdown: blocks that will not change any more, and the rest, which may."""
    whole = text if is_complete else text.rpartition("\n")[0]
    starts = [
        token.map[0]
        for token in _PARSER.parse(whole.replace("\r", " "))  # To us, it ends no line.
        if token.map and token.level == 0 and token.nesting >= 0
    ]
    lines = text.split("\n")
    ends = [*starts[1:], len(lines)] if is_complete else starts[1:]
    blocks = ["\n".join(lines[start:end]) for start, end in zip(starts, ends, strict=False)]
    rest = "" if is_complete else "\n".join(lines[starts[-1] if len(starts) > 1 else 0 :])
    return blocks, rest


def render_lines(console: Console, text: str) -> list[list[Segment]]:
    """Markdown as lines of a terminal, without empty ones round it."""
    options = console.options.update(height=None)
    lines = console.render_lines(SafeMarkdown(text), options, pad=False)
    filled = [number for number, line in enumerate(lines) if _is_filled(line)]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _is_filled(line: list[Segment]) -> bool:
    return any(segment.text.strip() for segment in line)


def _uncover(tokens: Iterable[Token]) -> Iterable[Token]:
    """Shows what rendering would hide: targets of images, titles of links, labels of code."""
    for token in tokens:
        token.content = clean_text(token.content)  # Entities may have become characters.
        if token.children:
            token.children = _shorten(list(_uncover(token.children)))
        if token.type == "image":
            yield _make_text(f"[image: {token.content} {_find_target(token, 'src')}]")
            continue
        if token.type == "link_open":
            token.attrs["href"] = _find_target(token, "href")
        if token.type == "fence":
            language, _, label = token.info.strip().partition(" ")
            token.info = language
            token.content = f"{clean_text(label)}\n{token.content}" if label else token.content
        yield token


def _shorten(tokens: list[Token]) -> list[Token]:
    """A link whose words are its target is written once."""
    kept: list[Token] = []
    for token in tokens:
        kept.append(token)
        last = kept[-3:]
        is_link = [each.type for each in last] == ["link_open", "text", "link_close"]
        if is_link and last[1].content == last[0].attrs.get("href"):
            kept[-3:] = [last[1]]
    return kept


def _find_target(token: Token, key: str) -> str:
    title = token.attrs.get("title")
    target = str(token.attrs.get(key, ""))
    return clean_text(f'{target} "{title}"' if title else target).replace("\n", " ")


def _make_text(words: str) -> Token:
    return Token("text", "", 0, content=words)
