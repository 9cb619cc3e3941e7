# SPDX-License-Identifier: Apache-2.0
"""A server that sends nonsense does not fill the logs with it."""

from __future__ import annotations

import logging

import mcp.client.session
import pytest

from converser.mcp.logs import moderate_logs


def _complain(path: str, times: int) -> None:
    logger = logging.getLogger("client")
    for number in range(times):
        words = "Unknown: %s"
        logger.handle(
            logger.makeRecord("client", logging.WARNING, path, 1, words, (f"\x1b{number}",), None)
        )


def test_the_sdk_complains_in_moderation(caplog: pytest.LogCaptureFixture) -> None:
    moderate_logs()
    _complain(str(mcp.client.session.__file__), 500)
    assert len(caplog.messages) == 3
    assert not any("\x1b" in message for message in caplog.messages)


def test_another_logger_of_that_name_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    moderate_logs()
    _complain(__file__, 10)
    assert len(caplog.messages) == 10
    assert "\x1b0" in caplog.messages[0]
