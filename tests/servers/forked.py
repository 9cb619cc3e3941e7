# SPDX-License-Identifier: Apache-2.0
"""`python -I -S forked.py SOCKET PROGRAM…` is PROGRAM, forked from a process that has the SDK imported already.

It hands its streams, folder and environment to `forks.py`, which listens at SOCKET, and ends as the program
does. The program does not outlive it.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def main() -> None:
    """Have the program started, give it everything, and wait for its end."""
    place, *program = sys.argv[1:]
    order = {"program": program, "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
    with socket.socket(socket.AF_UNIX) as forks:
        forks.connect(place)
        socket.send_fds(forks, [b"."], [0, 1, 2])
        forks.sendall(json.dumps(order).encode() + b"\n")
        for descriptor in (0, 1, 2):  # Only the program holds them from now on.
            os.close(descriptor)
        status = forks.recv(16)
    os._exit(int(status or 1))


if __name__ == "__main__":
    main()
