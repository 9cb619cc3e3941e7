# SPDX-License-Identifier: Apache-2.0
"""`converser conversations export`: one conversation as a file that others can read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from .conversations import open_conversation, tell_remarks
from .judging import Misuse
from .screen import complain

_FORMATS = {".md": "md", ".markdown": "md", ".json": "json", ".html": "html", ".htm": "html"}


def export(
    conversation: Annotated[
        str, Parameter(help="Its identifier, the beginning of that, or its name.")
    ],
    /,
    *,
    format: Annotated[  # noqa: A002
        Literal["md", "json", "html"] | None,
        Parameter(help="Markdown, JSON, or a page for browsers; else as the file ends, or md."),
    ] = None,
    output: Annotated[
        Path | None, Parameter(alias="-o", help="The file; standard output if not given.")
    ] = None,
    force: Annotated[bool, Parameter(negative=(), help="Replace the file if it is there.")] = False,
) -> None:
    """Writes a conversation with every call, argument, result, image, duration and token."""
    from ..persistence.exports.formats import export_conversation

    form = format or _find_format(output)
    origin = open_conversation(conversation)
    text = export_conversation(origin, form)
    tell_remarks(origin)
    if output is None:
        sys.stdout.write(text)
    else:
        _write(output, text, force=force)
        complain(f"Written to {output}.", style="dim")


def _find_format(output: Path | None) -> str:
    if output is None:
        return "md"
    if (form := _FORMATS.get(output.suffix.lower())) is not None:
        return form
    raise Misuse(
        f"What shall {str(output)!r} be? Its name does not tell.",
        remedy="End it with .md, .json or .html, or give --format.",
    )


def _write(output: Path, text: str, *, force: bool) -> None:
    """Writes a file that is private, as the conversation is; another is replaced only if that is wanted."""
    from ..persistence.files import write_new, write_whole

    try:
        (write_whole if force else write_new)(output, text.encode())
    except FileExistsError:
        raise Misuse(
            f"The file {str(output)!r} is there already.",
            remedy="Name another one, or replace it with --force.",
        ) from None
    except OSError as failure:
        raise Misuse(
            f"The file {str(output)!r} cannot be written: {failure.strerror}.",
            remedy="Name another one.",
        ) from failure
