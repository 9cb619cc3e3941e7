# SPDX-License-Identifier: Apache-2.0
"""How well a server does, judged by how long it takes for a sign of life."""

from __future__ import annotations

_FACTOR = 5.0
_FLOOR = 0.5
_QUICKLY, _SLOWLY = 0.2, 0.05


class Pulse:
    """Knows what is usual for a server, and tells when it is far from that."""

    def __init__(self) -> None:
        self.latency: float | None = None
        """Seconds until the last sign of life came."""
        self.usual: float | None = None
        self.trouble = ""
        """What is wrong, in words; empty where nothing is."""

    def note(self, seconds: float) -> None:
        """Takes a sign of life into account; what stays slow becomes usual in time."""
        self.latency = seconds
        if self.usual is None:
            self.usual = seconds
        is_slow = seconds > max(_FLOOR, _FACTOR * self.usual)
        self.trouble = (
            f"It answers in {seconds:.2g} s, and usually in {self.usual:.2g} s." if is_slow else ""
        )
        self.usual += (_SLOWLY if is_slow else _QUICKLY) * (seconds - self.usual)

    def note_failure(self, reason: str) -> None:
        """Takes into account that no sign of life came."""
        self.trouble = f"It gave no sign of life: {reason}"
