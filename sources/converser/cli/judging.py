# SPDX-License-Identifier: Apache-2.0
"""Which exit code a failure has; apart from the codes, since `--help` needs no failures."""

from __future__ import annotations

from ..exceptions import (
    ConfigurationFailure,
    ConverserFailure,
    InvokerAbsence,
    MCPExecutionFailure,
    MCPFailure,
    MCPTimeoutFailure,
    ModelFailure,
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


def judge(failure: Exception) -> ExitCode:
    """The exit code that tells this failure from others."""
    if isinstance(failure, ToolExecutionFailure):
        if isinstance(failure.__cause__, MCPFailure) and failure.outcome is Outcome.TOOL_ERROR:
            return judge(failure.__cause__)
        return _BY_OUTCOME[failure.outcome]
    if isinstance(failure, Distrust):
        return ExitCode.REFUSED
    if isinstance(failure, ModelFailure):
        return ExitCode.MODEL_FAILED
    if isinstance(failure, MCPTimeoutFailure):
        return ExitCode.TIMED_OUT
    if isinstance(failure, MCPExecutionFailure):
        return ExitCode.TOOL_ERROR
    if isinstance(failure, MCPFailure):
        mistaken = isinstance(failure.cause, ConfigurationFailure)
        return ExitCode.USAGE if mistaken else ExitCode.UNREACHABLE
    usage = (ConfigurationFailure, InvokerAbsence, Misuse)
    return ExitCode.USAGE if isinstance(failure, usage) else ExitCode.UNEXPECTED
