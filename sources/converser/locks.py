# SPDX-License-Identifier: Apache-2.0
"""A lock on a folder for all threads and processes, which leaves nothing behind and ends with whoever holds it."""

from __future__ import annotations


def try_lock(descriptor: int) -> bool:
    """Whether there is nobody to wait for; where the system, or the file system, has no locks, there never is."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
