# SPDX-License-Identifier: Apache-2.0
"""A small parent for a server process: whatever happens to us, nothing of the server's tree survives.

Runs as `python -I -S keeper.py FD COMMAND…`, and imports nothing of ours. FD is the reading end of
a pipe that only we hold open: its end says that we are gone, be it by SIGKILL. Where a fork of ours
holds it too, another parent says so, a little later. On Linux the keeper adopts orphans, so that
even a grandchild in a session of its own is found and ended; and the server itself ends with a
keeper that is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_HEARD = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_GRACE = 1.0
_GLANCE = 1.0
"""Seconds between two looks at who our parent is."""
_PAUSE = 0.02


def main() -> int:
    """Starts the server, and waits for its end, for ours, or for a signal."""
    lifeline, command, owner = int(sys.argv[1]), sys.argv[2:], os.getppid()
    _close_others(lifeline)
    _call_prctl(_PR_SET_CHILD_SUBREAPER, 1)
    alarm, bell = os.pipe()
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    for number in _HEARD:
        signal.signal(number, _note)
    server = _start(command, lifeline)
    _release_streams()
    code = _watch(server, owner, lifeline, alarm)
    _end_tree(server)
    return code


def _close_others(lifeline: int) -> None:
    """Closes what uvloop passes on besides: a copy of a stream would hide that the server closed it."""
    for name in os.listdir("/dev/fd") if os.path.isdir("/dev/fd") else ():  # noqa: PTH112, PTH208
        if name.isdigit() and int(name) > 2 and int(name) != lifeline:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _call_prctl(option: int, value: int) -> None:
    """Asks Linux for something; elsewhere it is done without."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


_noted: set[int] = set()


def _note(number: int, _: object) -> None:
    _noted.add(number)


def _start(command: list[str], lifeline: int) -> int:
    """Starts the server; where the system can, it ends with this keeper, should that be killed."""
    os.set_inheritable(lifeline, False)
    keeper = os.getpid()
    if server := os.fork():
        with contextlib.suppress(OSError):  # the server does it too; either may be the first
            os.setpgid(server, server)
        return server
    try:
        _become(command, keeper)
    except OSError as failure:
        os.write(2, f"{command[0]}: {failure.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(127)


def _become(command: list[str], keeper: int) -> None:
    """Makes the server of this process."""
    os.setpgid(0, 0)
    for number in (signal.SIGPIPE, *_HEARD):
        signal.signal(number, signal.SIG_DFL)
    _call_prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == keeper:
        os.execvp(command[0], command)


def _release_streams() -> None:
    """Gives the streams up, so that the server's own end is seen as their end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def _watch(server: int, owner: int, lifeline: int, alarm: int) -> int:
    """Waits; gives the exit code of the server, or 143 where it had to be ended."""
    while True:
        readable, _, _ = select.select([lifeline, alarm], [], [], _GLANCE)
        if alarm in readable:
            os.read(alarm, 512)
        if (code := _reap(server)) is not None:
            return code
        is_alone = lifeline in readable or os.getppid() != owner
        if is_alone or _noted & {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
            return 128 + signal.SIGTERM


def _reap(server: int) -> int | None:
    """Collects whoever has ended; the exit code where that is the server."""
    found: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == server:
            code = os.waitstatus_to_exitcode(status)
            found = code if code >= 0 else 128 - code


def _end_tree(server: int) -> None:
    """Asks all descendants to end, and ends those that do not."""
    if not _signal_all(server, signal.SIGTERM):
        return
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline:
        _reap(-1)
        if not _signal_all(server, 0):
            return
        time.sleep(_PAUSE)
    while _signal_all(server, signal.SIGKILL):
        _reap(-1)
        time.sleep(_PAUSE)


def _signal_all(server: int, number: int) -> bool:
    """Signals the server's group and all descendants; whether there was anyone to hear it."""
    found = _find_descendants()
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server, number)
        return True
    return bool(found)


def _find_descendants() -> list[int]:
    """All processes below this one, by the parents that the system tells of."""
    parents = _read_parents()
    found = [os.getpid()]
    for pid in found:
        found.extend(child for child, parent in parents.items() if parent == pid)
    return found[1:]


def _read_parents() -> dict[int, int]:
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():  # noqa: PTH112, PTH208
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                    fields = file.read().rpartition(b")")[2].split()
                if fields[0] != b"Z":
                    parents[int(entry)] = int(fields[1])
    return parents


if __name__ == "__main__":
    sys.exit(main())
