# SPDX-License-Identifier: Apache-2.0
"""What is remembered of requests, so that their answers can be salvaged."""

from __future__ import annotations

import mcp_types as wire
from mcp.shared.message import SessionMessage

from converser.mcp.salvage import Salvager
from converser.mcp.tap import Tap


def test_a_call_that_was_given_up_is_forgotten() -> None:
    tap = Tap(Salvager(sends_headers=False), lambda: None)
    for number in range(3):
        request = wire.JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call")
        tap.note(SessionMessage(request))
    assert tap.waiting == 3
    for number in range(2):
        params = {"requestId": number}
        notice = wire.JSONRPCNotification(
            jsonrpc="2.0", method="notifications/cancelled", params=params
        )
        tap.note(SessionMessage(notice))
    assert tap.waiting == 1
