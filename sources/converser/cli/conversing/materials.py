# SPDX-License-Identifier: Apache-2.0
"""What is given along with a question: standard input and files, as documents and images."""

from __future__ import annotations

import mimetypes
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from ...canisters import DocumentCanister, document
from ...contents import BlobContent, Content, ImageContent, TextualContent
from ..judging import Misuse

_BYTES_MAX = 50 * 2**20
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def read_files(paths: Sequence[Path]) -> list[DocumentCanister]:
    """Each file as a document of its name."""
    documents: list[DocumentCanister] = []
    for path in paths:
        try:
            with path.expanduser().open("rb") as stream:
                data = stream.read(_BYTES_MAX + 1)
        except OSError as failure:
            raise Misuse(
                f"The file {str(path)!r} cannot be read: {failure.strerror}.",
                remedy="Correct the path after --file.",
            ) from failure
        documents.append(document(interpret(data, path.name), name=path.name))
    return documents


def read_input() -> DocumentCanister | None:
    """What is piped into the program; nothing where that is a terminal, or empty."""
    if not is_piped():
        return None
    data = sys.stdin.buffer.read(_BYTES_MAX + 1)
    return document(interpret(data, ""), name="standard input") if data.strip() else None


def is_piped() -> bool:
    """Whether something is piped in: a pipe, a socket or a file, and neither a terminal nor nothing."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):  # There is no standard input at all.
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def interpret(data: bytes, name: str) -> Content:
    """Text as text, pictures as pictures, and all else as what its name says."""
    if len(data) > _BYTES_MAX:
        raise Misuse(
            f"{name or 'Standard input'} is larger than {_BYTES_MAX // 2**20} MiB.",
            remedy="Give a part of it.",
        )
    for magic, picture in _IMAGES.items():
        if data.startswith(magic):
            return ImageContent(data=data, mimetype=picture)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return ImageContent(data=data, mimetype="image/webp")
    kind = mimetypes.guess_type(name)[0]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return BlobContent(data=data, mimetype=kind or "application/octet-stream", name=name)
    is_textual = kind is not None and kind.startswith("text/")
    return TextualContent(text=text, mimetype=kind if kind and is_textual else "text/plain")
