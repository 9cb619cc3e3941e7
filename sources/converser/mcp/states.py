# SPDX-License-Identifier: Apache-2.0
"""The states of a connection, and which may follow which."""

from __future__ import annotations

from enum import Enum


class ConnectionState(str, Enum):
    """Where a connection stands in its life."""

    DISCONNECTED = "disconnected"
    PENDING = "pending"
    CONNECTED = "connected"
    FAILED = "failed"

    def __str__(self) -> str:
        return self.value


_LEGAL: dict[ConnectionState, frozenset[ConnectionState]] = {
    ConnectionState.DISCONNECTED: frozenset({ConnectionState.PENDING}),
    ConnectionState.PENDING: frozenset(
        {ConnectionState.CONNECTED, ConnectionState.FAILED, ConnectionState.DISCONNECTED}
    ),
    ConnectionState.CONNECTED: frozenset({ConnectionState.FAILED, ConnectionState.DISCONNECTED}),
    ConnectionState.FAILED: frozenset({ConnectionState.PENDING, ConnectionState.DISCONNECTED}),
}


def is_legal(before: ConnectionState, after: ConnectionState) -> bool:
    """Whether a connection may go from one state to the other."""
    return before is after or after in _LEGAL[before]
