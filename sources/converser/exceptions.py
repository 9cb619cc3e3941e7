# SPDX-License-Identifier: Apache-2.0
"""The one exception family. Each message says what happened, to which server or tool, and what to do now.

::

    ConverserFailure
    ├── ToolExecutionFailure          an invocation failed; what a loop turns into a result canister
    ├── MCPFailure                    a server; has server, tool, transport
    │   ├── MCPConnectionFailure      cannot be reached, or was lost
    │   ├── MCPExecutionFailure       the server answered that the tool failed
    │   ├── MCPTimeoutFailure         no answer in time
    │   ├── MCPProtocolFailure        the server broke the protocol
    │   └── MCPSchemaFailure          a schema of a tool is unusable, or a result violates it
    ├── ArgumentsInvalidity           arguments do not fit the schema, and repair would lose something
    ├── AnswerInvalidity              a model's answer does not have the form that was wanted
    ├── SchemaInvalidity              a JSON Schema cannot be compiled, or is over a limit
    ├── InvokerAbsence                no tool of that name here
    ├── NameConflict                  two tools would share one name
    ├── FunctionInvalidity            a Python function cannot become a tool
    ├── CanisterInvalidity            a canister, or its JSON, is not valid
    ├── ConversationAbsence           no conversation of that name on disk, or more than one
    ├── PersistenceFailure            a conversation on disk cannot be read or written, or is damaged
    ├── ConfigurationFailure          mistakes in configuration, all of them at once
    └── ModelFailure                  a model or its provider failed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import frigid

from .outcomes import Outcome

if TYPE_CHECKING:
    from .canisters import Canister
    from .contents import Content

# What the interpreter, `contextlib` and `add_note` assign on any exception.
_INTERPRETER_ATTRIBUTES = (
    "__cause__",
    "__context__",
    "__notes__",
    "__suppress_context__",
    "__traceback__",
)


class ConverserFailure(
    frigid.Object,
    Exception,
    instances_mutables=_INTERPRETER_ATTRIBUTES,
):
    """Base of all failures that this package raises on purpose."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        return (_revive, (type(self), self.args, dict(vars(self))))


def _revive(
    family: type[ConverserFailure], args: tuple[Any, ...], state: dict[str, Any]
) -> ConverserFailure:
    """Unpickles a failure past its immutability and past the signature of its class."""
    failure = family.__new__(family, *args)
    vars(failure).update(state)
    return failure


class ToolExecutionFailure(ConverserFailure):
    """An invocation did not succeed; `outcome` says how, `contents` what the tool itself had to say."""

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        tool: str = "",
        ensemble: str = "",
        outcome: Outcome = Outcome.TOOL_ERROR,
        contents: Sequence[Content] = (),
        structured: object = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.tool = tool
        self.ensemble = ensemble
        self.outcome = outcome
        self.contents = tuple(contents)
        self.structured = structured


class MCPFailure(ConverserFailure):
    """Something went wrong with an MCP server; the attributes say where, and what is known of it."""

    _usual_outcome = Outcome.TOOL_ERROR

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        server: str = "",
        tool: str = "",
        transport: str = "",
        cause: BaseException | None = None,
        outcome: Outcome | None = None,
        status: int | None = None,
        retry_after: str | None = None,
        exit_code: int | None = None,
        stderr: Sequence[str] = (),
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.server = server
        self.tool = tool
        self.transport = transport
        self.outcome = outcome or self._usual_outcome
        self.status = status
        self.retry_after = retry_after
        self.exit_code = exit_code
        self.stderr = tuple(stderr)
        self.cause = cause
        self.__cause__ = cause


class MCPConnectionFailure(MCPFailure):
    """The server cannot be reached, or the connection to it was lost."""


class MCPExecutionFailure(MCPFailure):
    """The server answered that the tool, or the request for it, failed."""

    def __init__(
        self,
        message: str,
        *,
        contents: Sequence[Content] = (),
        structured: object = None,
        code: int | None = None,
        **circumstances: Any,
    ) -> None:
        super().__init__(message, **circumstances)
        self.contents = tuple(contents)
        self.structured = structured
        self.code = code


class MCPTimeoutFailure(MCPFailure):
    """The server did not answer in time."""

    _usual_outcome = Outcome.TIMED_OUT


class MCPProtocolFailure(MCPFailure):
    """The server sent what the protocol does not allow."""


class MCPSchemaFailure(MCPFailure):
    """A schema of the server's is unusable, or a result does not fit the schema that it promised."""


class ArgumentsInvalidity(ConverserFailure):
    """Arguments do not fit a schema; the message tells a model how to correct them."""


class AnswerInvalidity(ConverserFailure):
    """A model's answer does not have the form that was wanted; the reply still has its words."""


class SchemaInvalidity(ConverserFailure):
    """A JSON Schema cannot be compiled, or is over a limit."""


class InvokerAbsence(ConverserFailure):
    """No tool of that name is here; the message names the nearest ones."""


class NameConflict(ConverserFailure):
    """Two tools would share one name."""


class FunctionInvalidity(ConverserFailure):
    """A Python function cannot become a tool."""


class CanisterInvalidity(ConverserFailure):
    """A canister or a content, or its JSON, is not valid."""


class ConversationAbsence(ConverserFailure):
    """No conversation of that name is on disk, or more than one; the message tells which there are."""


class PersistenceFailure(ConverserFailure):
    """A conversation on disk, or content of one, cannot be read or written, or is damaged."""


class ConfigurationFailure(ConverserFailure):
    """Mistakes in configuration, all at once; `mistakes` has one line for each."""

    def __init__(self, message: str, *, remedy: str = "", mistakes: Sequence[object] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.mistakes = tuple(mistakes)


class ModelFailure(ConverserFailure, instances_mutables=("canisters",)):
    """A model, or the provider of it, failed; `canisters` has what was completed of the conversation before."""

    def __init__(
        self, message: str, *, remedy: str = "", canisters: Sequence[Canister] = ()
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.canisters = tuple(canisters)
