# SPDX-License-Identifier: Apache-2.0
"""Files that only their user can read, that are written whole or not at all, and one lock for all who write."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ..exceptions import PersistenceFailure
from ..hygiene import clean_text

PATIENCE = 30.0
"""Seconds to wait for others; each of them holds the lock for some milliseconds."""
_PAUSE = 0.002
_PAUSE_MAX = 0.05

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _sync_folder(folder: Path) -> None:
        """Windows has no such thing, and needs none."""

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _sync_folder(folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_REMEDIES = {
    errno.ENOENT: "Another program may have deleted it: look at what there is, and try again.",
    errno.ENOSPC: "Free some space, and try again; what was there before is whole.",
}
_REMEDY = "Correct its permissions, or name another folder with the variable CONVERSER_DATA."


@contextmanager
def explain(verb: str, path: Path) -> Generator[None]:
    """Turns what the system says about a file into a failure that names the file and a remedy."""
    try:
        yield
    except OSError as failure:
        reason = failure.strerror or type(failure).__name__
        raise PersistenceFailure(
            f"Cannot {verb} {clean_text(str(path))}: {reason}.",
            remedy=_REMEDIES.get(failure.errno or 0, _REMEDY),
        ) from failure


@contextmanager
def hold_lock(path: Path) -> Generator[None]:
    """Keeps all others out, processes and threads; the system lets go when a process dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + PATIENCE
        pause = _PAUSE
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise PersistenceFailure(
                    f"Another process has held {clean_text(str(path))} for {PATIENCE:g} seconds.",
                    remedy="End it, or let it go on if it is suspended, and try again.",
                )
            time.sleep(pause)
            pause = min(pause * 1.5, _PAUSE_MAX)
        yield
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Makes a folder for its user alone, where there is none yet."""
    if path.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    _sync_folder(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file in one durable step: whoever looks sees the old one or the new one."""
    draft = path.with_name(f".{secrets.token_hex(8)}")
    try:
        write_new(draft, data)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_new(path: Path, data: bytes) -> None:
    """Writes a file that must not be there yet, and has the disk keep it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def raise_folder(path: Path) -> Generator[Path]:
    """A draft of a folder, which becomes the folder when it is filled, and not before."""
    draft = path.with_name(f".{secrets.token_hex(8)}")
    draft.mkdir(mode=0o700)
    try:
        yield draft
        _sync_folder(draft)
        draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    _sync_folder(path.parent)


def raze_folder(path: Path) -> None:
    """Removes a folder, which is gone at once even if the rest of the work is cut off."""
    wreck = path.with_name(f".{secrets.token_hex(8)}")
    path.rename(wreck)
    _sync_folder(path.parent)
    shutil.rmtree(wreck)


_BINARY: int = getattr(os, "O_BINARY", 0)
