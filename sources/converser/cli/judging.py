# SPDX-License-Identifier: Apache-2.0
"""Which exit code a failure has; apart from the codes, since `--help` needs no failures."""

from __future__ import annotations

from ..exceptions import (
    ConfigurationFailure,
    ConversationAbsence,
    ConverserFailure,
    InvokerAbsence,
    MCPExecutionFailure,
    MCPFailure,
    MCPTimeoutFailure,
    ModelFailure,
    PersistenceFailure,
    ToolExecutionFailure,
)
from ..outcomes import Outcome
from .exits import ExitCode

_BY_OUTCOME = {
    Outcome.TOOL_ERROR: ExitCode.TOOL_ERROR,
    Outcome.REFUSED: ExitCode.REFUSED,
    Outcome.INVALID: ExitCode.INVALID_ARGUMENTS,
    Outcome.TIMED_OUT: ExitCode.TIMED_OUT,
    Outcome.CANCELLED: ExitCode.INTERRUPTED,
    Outcome.UNKNOWN: ExitCode.OUTCOME_UNKNOWN,
}


class Misuse(ConverserFailure):
    """The command line itself makes no sense."""


class Distrust(ConverserFailure):
    """The user did not approve what a file of configuration would do."""


_BY_FAMILY: dict[type[Exception], ExitCode] = {
    Distrust: ExitCode.REFUSED,
    ModelFailure: ExitCode.MODEL_FAILED,
    PersistenceFailure: ExitCode.STORE_FAILED,
    MCPTimeoutFailure: ExitCode.TIMED_OUT,
    MCPExecutionFailure: ExitCode.TOOL_ERROR,
    ConfigurationFailure: ExitCode.USAGE,
    ConversationAbsence: ExitCode.USAGE,
    InvokerAbsence: ExitCode.USAGE,
    Misuse: ExitCode.USAGE,
}


def judge(failure: Exception) -> ExitCode:
    """The exit code that tells this failure from others."""
    if isinstance(failure, ToolExecutionFailure):
        if isinstance(failure.__cause__, MCPFailure) and failure.outcome is Outcome.TOOL_ERROR:
            return judge(failure.__cause__)
        return _BY_OUTCOME[failure.outcome]
    for family, code in _BY_FAMILY.items():
        if isinstance(failure, family):
            return code
    if isinstance(failure, MCPFailure):
        mistaken = isinstance(failure.cause, ConfigurationFailure)
        return ExitCode.USAGE if mistaken else ExitCode.UNREACHABLE
    return ExitCode.UNEXPECTED
