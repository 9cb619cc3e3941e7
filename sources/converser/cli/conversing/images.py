# SPDX-License-Identifier: Apache-2.0
"""Pictures: shown where the terminal can, else saved and named."""

from __future__ import annotations

import hashlib
import mimetypes
import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import platformdirs
from rich.console import Console
from rich.text import Text

from ...contents import ImageContent
from ...hygiene import clean_text

_CHUNK = 4096
_BYTES_MAX = 20 * 2**20
_COLUMNS = 60
_PNG = b"\x89PNG\r\n\x1a\n"


def show_image(console: Console, image: ImageContent) -> None:
    """Shows a picture, and names the file that it was saved to."""
    protocol = find_protocol(os.environ) if console.is_terminal else ""
    if protocol == "kitty" and not image.data.startswith(_PNG):
        protocol = ""
    if protocol and len(image.data) <= _BYTES_MAX:
        encode = encode_for_kitty if protocol == "kitty" else encode_for_iterm
        console.file.write(encode(image.data, _COLUMNS) + "\n")
        console.file.flush()
    try:
        words = f"  image saved: {save_image(image)}"
    except OSError as failure:
        words = f"  image not saved: {failure.strerror}"
    console.print(Text(clean_text(words), "dim"), soft_wrap=True)


def find_protocol(environment: Mapping[str, str]) -> str:
    """How this terminal takes pictures: "kitty", "iterm", or not at all."""
    if "TMUX" in environment or environment.get("TERM", "").startswith(("screen", "tmux")):
        return ""  # They pass nothing on unless they are told to.
    program = environment.get("TERM_PROGRAM", "")
    if "KITTY_WINDOW_ID" in environment or environment.get("TERM") in {
        "xterm-kitty",
        "xterm-ghostty",
    }:
        return "kitty"
    if program in {"iTerm.app", "WezTerm"} or environment.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    return "kitty" if program == "ghostty" else ""


def encode_for_kitty(data: bytes, columns: int) -> str:
    """A PNG in the protocol of kitty, in pieces; base64, so that nothing in it can steer."""
    text = b64encode(data).decode("ascii")
    pieces = [text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK)]
    width = f"c={columns}," if _is_wide(data, columns) else ""
    written: list[str] = []
    for number, piece in enumerate(pieces):
        head = f"f=100,a=T,q=2,{width}" if number == 0 else ""
        more = int(number < len(pieces) - 1)
        written.append(f"\x1b_G{head}m={more};{piece}\x1b\\")
    return "".join(written)


def _is_wide(data: bytes, columns: int) -> bool:
    """Whether a PNG is wider than so many columns of usual width; of others we do not know."""
    return data.startswith(_PNG) and int.from_bytes(data[16:20], "big") > columns * 8


def encode_for_iterm(data: bytes, columns: int) -> str:
    """A picture in the protocol of iTerm2."""
    text = b64encode(data).decode("ascii")
    width = columns if _is_wide(data, columns) else "auto"
    return f"\x1b]1337;File=inline=1;size={len(data)};width={width}:{text}\x07"


def save_image(image: ImageContent) -> Path:
    """Writes a picture once, under the hash of its bytes."""
    kind = image.mimetype if image.mimetype.startswith("image/") else ""
    suffix = mimetypes.guess_extension(kind) or ".img"
    name = hashlib.sha256(image.data).hexdigest()[:12]
    path = Path(platformdirs.user_cache_dir("converser")) / "images" / f"{name}{suffix}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(image.data)
    return path
