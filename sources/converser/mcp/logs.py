# SPDX-License-Identifier: Apache-2.0
"""What the SDK complains of in logs, in moderation: a server that sends nonsense decides how often it does."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import mcp.client

from ..hygiene import clean_text

_LOGGERS = ("client", "mcp.client.streamable_http", "mcp.client.sse")
_HOME = str(Path(mcp.client.__file__).parent)
_MAX = 3
_PERIOD = 60.0


class _Moderation(logging.Filter):
    """Lets a complaint pass a few times a minute, with harmless characters."""

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[int, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Called for each message; those of somebody else's logger of the same name just pass."""
        if record.levelno < logging.WARNING or not record.pathname.startswith(_HOME):
            return True
        place, now = hash((record.pathname, record.lineno)), time.monotonic()
        begun, count = self._passed.get(place, (now, 0))
        if now - begun > _PERIOD:
            begun, count = now, 0
        self._passed[place] = (begun, count + 1)
        record.msg, record.args = clean_text(record.getMessage(), limit=1_000), ()
        return count < _MAX


_MODERATION = _Moderation()


def moderate_logs() -> None:
    """Moderates the SDK's complaints of what servers send; once is enough."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_MODERATION)
