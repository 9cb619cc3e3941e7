# SPDX-License-Identifier: Apache-2.0
"""Images by what they are: many a server calls them something else, and services then refuse the whole request."""

from __future__ import annotations

from ..contents import Content, ImageContent

PICTURES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
"""What all services show to their models."""

_BEGINNINGS = (
    (b"\x89PNG\r\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"<svg", "image/svg+xml"),
    (b"<?xml", "image/svg+xml"),
)
_USUAL = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}


def find_image_type(content: Content) -> str | None:
    """The type of an image by its first bytes, else as it is called; None for what is none, or is empty."""
    if not isinstance(content, ImageContent) or not content.data:
        return None
    beginning = content.data[:12]
    if beginning.startswith(b"RIFF") and beginning.endswith(b"WEBP"):
        return "image/webp"
    for mark, kind in _BEGINNINGS:
        if beginning.startswith(mark):
            return kind
    called = content.mimetype.partition(";")[0].strip().lower()
    return _USUAL.get(called, called)
