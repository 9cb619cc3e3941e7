# SPDX-License-Identifier: Apache-2.0
"""The states of a connection, and which may follow which."""

from __future__ import annotations

from enum import Enum


class ConnectionState(str, Enum):
    """Where a connection stands in its life."""

    DISCONNECTED = "disconnected"
    PENDING = "pending"
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"
    FAILED = "failed"
    NEEDS_AUTH = "needs-auth"
    DISABLED = "disabled"

    def __str__(self) -> str:
        return self.value


_S = ConnectionState
_ENDS = frozenset({_S.FAILED, _S.NEEDS_AUTH, _S.DISCONNECTED, _S.DISABLED})

TRANSITIONS: dict[ConnectionState, frozenset[ConnectionState]] = {
    _S.DISCONNECTED: frozenset({_S.PENDING, _S.DISABLED}),
    _S.PENDING: _ENDS | {_S.CONNECTED},
    _S.CONNECTED: _ENDS | {_S.RECONNECTING},
    _S.RECONNECTING: _ENDS | {_S.CONNECTED},
    _S.FAILED: frozenset({_S.PENDING, _S.DISCONNECTED, _S.DISABLED}),
    _S.NEEDS_AUTH: frozenset({_S.PENDING, _S.DISCONNECTED, _S.DISABLED}),
    # A disabled server keeps its connection; enabled again, it shows where that stands by now.
    _S.DISABLED: frozenset(_S) - {_S.DISABLED},
}


def is_legal(before: ConnectionState, after: ConnectionState) -> bool:
    """Whether a connection may go from one state to the other, or stay where it is."""
    return before is after or after in TRANSITIONS[before]
