# SPDX-License-Identifier: Apache-2.0
"""Where all conversations of a user are, and the one lock that whoever works there must hold."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .files import explain, hold_lock, make_folder, raze_folder
from .lines import Line
from .vault import REFERENCE, Vault

VARIABLE = "CONVERSER_DATA"
MESSAGES = "messages.jsonl"
METADATA = "metadata.toml"


def find_data_folder() -> Path:
    """What the environment variable CONVERSER_DATA names, else the data directory of the user."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("converser", appauthor=False)


class Premises:
    """`conversations/` with a folder for each, `contents/` with what they share, and `lock`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conversations = folder / "conversations"
        self.vault = Vault(folder / "contents")

    @contextmanager
    def hold(self, verb: str, path: Path) -> Generator[None]:
        """Keeps others out, and explains what the system refuses meanwhile; not to be nested."""
        with explain(verb, path):
            for folder in (self.folder, self.conversations, self.vault.folder):
                make_folder(folder)
            with hold_lock(self.folder / "lock"):
                yield

    def stow(self, lines: Iterable[Line]) -> bytes:
        """Puts the content of lines where all find it, and gives what is left to be written."""
        written = list[bytes]()
        for line in lines:
            for name, content in line.stowed.items():
                self.vault.put(name, content)
            written.append(line.data)
        return b"".join(written)

    def walk(self) -> Iterator[Path]:
        """The folders of conversations, sorted by name; not those that are being made or removed."""
        with explain("look into", self.conversations):
            found = sorted(self.conversations.glob(f"*/{MESSAGES}"))
        return (path.parent for path in found if not path.parent.name.startswith("."))

    def collect(self) -> int:
        """Removes content that no conversation names, and leftovers; who calls holds the lock."""
        for leftover in self.conversations.glob(".*"):
            raze_folder(leftover)
        used: set[str] = set()
        for folder in self.walk():
            data = (folder / MESSAGES).read_bytes()
            used.update(match[0].decode("ascii") for match in REFERENCE.finditer(data))
        return self.vault.collect(used)
