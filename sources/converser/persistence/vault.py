# SPDX-License-Identifier: Apache-2.0
"""Content by its hash, once for all conversations: what is large, secret to none and the same in every fork."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from ..exceptions import PersistenceFailure
from ..hygiene import clean_text
from .files import make_folder, write_whole

REFERENCE = re.compile(rb"sha256:([0-9a-f]{64})")
"""How content is named in a file, wherever it stands there."""
_REMEDY = (
    "Restore that file from a copy; or write what it held, or something else, into the line in the"
    " place of the reference."
)


def name_content(data: bytes) -> str:
    """The name of some content, which no other has."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Vault:
    """A folder of content: `ab/cdef…`, named by hash. Who writes or collects must hold the store's lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def locate(self, name: str) -> Path:
        """The file of some content; a name that is none is refused, since it may come from anywhere."""
        if not REFERENCE.fullmatch(name.encode("utf-8", "surrogatepass")):
            raise PersistenceFailure(
                f"{clean_text(name, limit=100)!r} is no name of content.",
                remedy="It should be sha256: and 64 digits from 0 to f.",
            )
        digest = name.removeprefix("sha256:")
        return self.folder / digest[:2] / digest[2:]

    def put(self, name: str, data: bytes) -> None:
        """Keeps content; what is there already stays, unless it is damaged."""
        path = self.locate(name)
        if not path.exists() or path.read_bytes() != data:
            make_folder(path.parent)
            write_whole(path, data)

    def get(self, name: str) -> bytes:
        """The content of that name, whole; else a `PersistenceFailure` that says what to do."""
        path = self.locate(name)
        shown = clean_text(str(path))
        try:
            data = path.read_bytes()
        except OSError as failure:
            reason = failure.strerror or type(failure).__name__
            raise PersistenceFailure(
                f"The content {shown} is lost: {reason}.", remedy=_REMEDY
            ) from failure
        if name_content(data) != name:
            raise PersistenceFailure(
                f"The content {shown} is damaged: it does not fit its hash.", remedy=_REMEDY
            )
        return data

    def collect(self, used: Collection[str]) -> int:
        """Removes what nobody uses, and what was left half-written; says how many files."""
        removed = 0
        for path in self._walk():
            if f"sha256:{path.parent.name}{path.name}" not in used:
                path.unlink(missing_ok=True)
                removed += 1
        return removed

    def _walk(self) -> Iterable[Path]:
        return (path for path in self.folder.glob("*/*") if path.is_file())
