# SPDX-License-Identifier: Apache-2.0
"""The SDK fails in six unrelated shapes; here each becomes one failure of our family."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ..exceptions import (
    ConverserFailure,
    MCPConnectionFailure,
    MCPExecutionFailure,
    MCPFailure,
    MCPProtocolFailure,
    MCPTimeoutFailure,
)
from ..hygiene import clean_text
from ..outcomes import Outcome
from .secrecy import NO_SECRETS, Secrets
from .stderr import StderrRing

MESSAGE_LIMIT = 2_000
TEXT_LIMIT = 100_000
"""Characters of a text that is longer for good reason, such as a description or instructions."""
UNSENT = f"converser/unsent/{secrets.token_hex(8)}"
"""The data of an error that was raised before anything was written; no server can guess it."""
FAULT_KEY = f"converser/fault/{secrets.token_hex(8)}"
"""Where the HTTP guard puts what it knows of a fault, in an error's data; no server can guess it."""

_LATER = "Try again later, or look at its log."
_CONNECTION_CLOSED = -32000
_BROKEN_STREAM = "sse stream "
_REQUEST_TIMEOUT = -32001
_PARSE_ERROR = -32700
_UNPARSED = ("failed to parse json response", "failed to parse sse message")


Stage = Literal["connect", "list", "call"]


class HttpRefusal(ConnectionError):
    """A status that says no; unlike the HTTP client's own exception, it does not quote the URL."""

    def __init__(self, status: int, retry_after: str | None = None, login: str = "") -> None:
        super().__init__(f"HTTP status {status}")
        self.fault = {"status": status, "retry_after": retry_after, "login": login}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a failure happened: the server, and what was being done."""

    server: str
    transport: str
    stage: Stage
    tool: str = ""
    timeout: float | None = None
    ring: StderrRing | None = None
    """The server's last words, where it has a process."""
    secrets: Secrets = NO_SECRETS
    """What its words may hold, and no message."""

    @property
    def epilogue(self) -> str:
        """What the server itself said before it died."""
        return self.ring.quote() if self.ring else ""

    def at(self) -> dict[str, Any]:
        """The attributes that every failure carries."""
        where: dict[str, Any] = {
            "server": self.server,
            "transport": self.transport,
            "tool": self.tool,
        }
        if self.ring is not None:
            where.update(exit_code=self.ring.exit_code, stderr=self.ring.lines)
        return where

    def describe(self) -> str:
        """`Tool 'x' of server 'y'`, or `Server 'y'`."""
        prefix = f"Tool {self.tool!r} of server" if self.tool else "Server"
        return f"{prefix} {self.server!r} ({self.transport})"


def translate_failure(failure: BaseException, site: Site) -> MCPFailure:
    """One failure of our family for whatever the SDK, the transport or the system raised."""
    failure = unwrap_group(failure)
    if isinstance(failure, MCPFailure):
        return failure
    if isinstance(failure, ConverserFailure):
        return MCPConnectionFailure(
            f"{site.describe()} cannot be connected: {failure}", cause=failure, **site.at()
        )
    if isinstance(failure, MCPError):
        return _translate_rpc_error(failure, site)
    if isinstance(failure, TimeoutError):
        return report_timeout(site, failure)
    if isinstance(failure, ValidationError):
        return _report_invalid_message(site, failure)
    if isinstance(failure, OSError) or _is_of_http(failure):
        return _report_unreachable(site, failure)
    words = clean_text(str(failure) or type(failure).__name__, limit=MESSAGE_LIMIT).rstrip(".")
    what = "arguments" if site.stage == "call" else "configuration"
    return MCPProtocolFailure(
        f"{site.describe()} cannot be used: {words}.{site.epilogue}",
        remedy=f"Check its {what}, or report this to the server's authors.",
        cause=failure,
        **site.at(),
    )


def _is_of_http(failure: BaseException) -> bool:
    return type(failure).__module__.partition(".")[0] in ("httpx2", "httpcore2")


def unwrap_group(failure: BaseException) -> BaseException:
    """The first real failure inside nested exception groups."""
    while (parts := getattr(failure, "exceptions", None)) and isinstance(parts, tuple):
        failure = cast("tuple[BaseException, ...]", parts)[0]
    return failure


def blame_answer(code: int, reason: str, remedy: str = "") -> MCPError:
    """An error in place of an answer that cannot be used, though the server has worked on it."""
    return MCPError(code, reason, {FAULT_KEY: {"broken": reason, "remedy": remedy}})


def wrap_fault(fault: dict[str, Any]) -> dict[str, Any]:
    """A JSON-RPC error that says what went wrong on the way, where the SDK would only pass it on."""
    return {"code": _CONNECTION_CLOSED, "message": "HTTP fault", "data": {FAULT_KEY: fault}}


def annotate_error(error: dict[str, Any], fault: dict[str, Any]) -> dict[str, Any]:
    """A server's own error, with what is known of the response that brought it beside its data."""
    data: Any = error.get("data") or {}
    if not isinstance(data, dict):
        return error
    noted = {FAULT_KEY: {**fault, "answered": True}}
    return {**error, "data": {**cast("dict[str, Any]", data), **noted}}


def is_connection_lost(failure: BaseException) -> bool:
    """Whether the session is gone, so that only a new connection helps."""
    if not isinstance(failure, MCPError):
        return False
    if (fault := _find_fault(failure)) is not None:
        return bool(fault.get("lost"))
    return failure.code == _CONNECTION_CLOSED and failure.message.lower() == "connection closed"


def was_not_executed(failure: BaseException) -> bool:
    """Whether a request provably never reached a tool, so that it can always be repeated."""
    if not isinstance(failure, MCPError):
        return False
    if (fault := _find_fault(failure)) is not None:
        return fault.get("sent") is False or is_connection_lost(failure)
    return bool(failure.data == UNSENT)


def needs_authorization(failure: BaseException | None) -> bool:
    """Whether the server wants to know who we are before anything else."""
    return _get_fault(failure).get("status") in (401, 403)


def is_unauthorized(failure: BaseException) -> bool:
    """Whether the server does not know us any more; what is only forbidden is another matter."""
    return _get_fault(failure).get("status") == 401


def may_log_in(failure: BaseException) -> bool:
    """Whether a new session may be let in, with the token as it is by then; nobody is asked to log in twice."""
    return is_unauthorized(failure) and not _get_fault(failure).get("login")


def _get_fault(failure: BaseException | None) -> Mapping[str, Any]:
    if isinstance(failure, HttpRefusal):
        return failure.fault
    return (_find_fault(failure) if isinstance(failure, MCPError) else None) or {}


def report_timeout(
    site: Site, cause: BaseException | None = None, *, verb: str = "did not answer"
) -> MCPTimeoutFailure:
    """The server did not answer, or did not go on, in time."""
    limit = f" within {site.timeout:g} s" if site.timeout is not None else " in time"
    remedies = {
        "connect": "Check that it starts by hand, or raise `connect_timeout`.",
        "list": "Raise `connect_timeout`, or ask the server's authors.",
        "call": "The call was cancelled. Try it with less work, or raise the timeout.",
    }
    remedy = remedies[site.stage]
    if site.stage == "connect" and site.tool:
        remedy = f"It is not connected yet: raise the timeout of the call, too. {remedy}"
    return MCPTimeoutFailure(
        f"{site.describe()} {verb}{limit}.{site.epilogue}",
        remedy=remedy,
        cause=cause,
        **site.at(),
    )


def _translate_rpc_error(failure: MCPError, site: Site) -> MCPFailure:
    fault = _find_fault(failure) or {}
    if fault and not fault.get("answered") and not is_connection_lost(failure):
        if reason := fault.get("broken"):
            return _report_broken(site, str(reason), failure, fault.get("remedy"))
        return _report_http_fault(fault, failure, site)
    if is_connection_lost(failure) or _is_stream_broken(failure):
        return report_lost(site, failure)
    if failure.code == _REQUEST_TIMEOUT and "timed out" in failure.message.lower():
        return report_timeout(site, failure)
    if failure.code == _PARSE_ERROR and failure.message.lower().startswith(_UNPARSED):
        return _report_broken(site, "it is not a message of the protocol", failure)
    return _report_refusal(failure, fault, site)


def _report_refusal(failure: MCPError, fault: Mapping[str, Any], site: Site) -> MCPFailure:
    """An error that the server itself answered with, and what its response tells besides."""
    site.secrets.purge(failure)
    words = clean_text(failure.message, limit=MESSAGE_LIMIT)
    wait = _describe_wait(fault)
    facts: dict[str, Any] = {
        "status": fault.get("status"),
        "retry_after": fault.get("retry_after"),
        **site.at(),
    }
    if site.stage == "call":
        return MCPExecutionFailure(
            f"{site.describe()} answered with error {failure.code}: {words}{'.' if wait else ''}{wait}",
            cause=failure,
            code=failure.code,
            **facts,
        )
    return MCPProtocolFailure(
        f"{site.describe()} refused to {site.stage}: {words} (error {failure.code}).{wait}"
        f"{site.epilogue}",
        cause=failure,
        **facts,
    )


def _describe_wait(fault: Mapping[str, Any]) -> str:
    """What the server says of when to come back: in so many seconds, or at a date."""
    if not (wait := clean_text(str(fault.get("retry_after") or ""), limit=40)):
        return ""
    return f" It asks to wait {f'{wait} s' if wait.isdecimal() else f'until {wait}'}."


def _find_fault(failure: MCPError) -> Mapping[str, Any] | None:
    """What the HTTP guard knows of this failure, if it is one of the guard's."""
    data: Any = failure.data
    if not isinstance(data, Mapping) or FAULT_KEY not in data:
        return None
    return cast("Mapping[str, Any]", data[FAULT_KEY])


def _is_stream_broken(failure: MCPError) -> bool:
    """Whether the answer was lost on its way, though the session lives."""
    return failure.code == _CONNECTION_CLOSED and failure.message.lower().startswith(_BROKEN_STREAM)


def _report_invalid_message(site: Site, failure: ValidationError) -> MCPProtocolFailure:
    remedy = "Report this to the server's authors."
    if is_call := site.stage == "call":
        remedy = f"Check whether it took effect before you call it again. {remedy}"
    return MCPProtocolFailure(
        f"{site.describe()} sent a message that breaks the protocol:"
        f" {_summarise_validation(failure)}.{site.epilogue}",
        remedy=remedy,
        cause=failure,
        outcome=Outcome.UNKNOWN if is_call else Outcome.TOOL_ERROR,
        **site.at(),
    )


def _report_broken(
    site: Site, reason: str, cause: BaseException, remedy: str | None = None
) -> MCPProtocolFailure:
    """An answer came, and cannot be used: what was asked for may well have been done."""
    remedy = remedy or "Report this to the server's authors."
    if is_call := site.stage == "call":
        remedy = f"Check whether it took effect before you call it again. {remedy}"
    return MCPProtocolFailure(
        f"{site.describe()} gave an answer that cannot be used: {clean_text(reason, limit=300)}."
        f"{site.epilogue}",
        remedy=remedy,
        cause=cause,
        outcome=Outcome.UNKNOWN if is_call else Outcome.TOOL_ERROR,
        **site.at(),
    )


def report_lost(site: Site, cause: BaseException | None = None) -> MCPConnectionFailure:
    """A connection that ended while a request was under way: nobody knows what became of it, unless it was refused."""
    if _get_fault(cause).get("lost"):
        return MCPConnectionFailure(
            f"{site.describe()} has forgotten the session.",
            remedy=_LATER,
            cause=cause,
            **site.at(),
        )
    if site.stage != "call":
        return MCPConnectionFailure(
            f"{site.describe()} closed the connection.{site.epilogue}",
            remedy="Start it by hand to see why." if site.transport == "stdio" else _LATER,
            cause=cause,
            **site.at(),
        )
    return MCPConnectionFailure(
        f"The connection to server {site.server!r} ({site.transport}) was lost while tool"
        f" {site.tool!r} was running: its outcome is unknown.{site.epilogue}",
        remedy="Check whether it took effect before you call it again.",
        cause=cause,
        outcome=Outcome.UNKNOWN,
        **site.at(),
    )


def _report_http_fault(
    fault: Mapping[str, Any], cause: MCPError | HttpRefusal, site: Site
) -> MCPConnectionFailure:
    """A fault that the HTTP guard saw: a status, or a network error."""
    status = fault.get("status")
    if status is None:
        return _report_network_fault(fault, cause, site)
    words = f"{site.describe()} answered with HTTP status {status}.{_describe_wait(fault)}"
    if login := fault.get("login"):
        words += f" {login[:1].upper()}{login[1:]}."
        remedy = "Connect it again, and complete the login."
    elif status in (401, 403):
        remedy = "Check its `headers`: a token is missing, wrong or expired."
    elif status == 404:
        remedy = "Check its `url`."
    elif status == 429 or status >= 500:
        remedy = "Try again later."
    else:
        remedy = "Check its `url` and `headers`."
    doubtful = site.stage == "call" and status >= 500 and status != 503
    if doubtful:
        remedy = "Check whether it took effect before you call it again."
    return MCPConnectionFailure(
        words,
        remedy=remedy,
        cause=cause,
        outcome=Outcome.UNKNOWN if doubtful else Outcome.TOOL_ERROR,
        status=status,
        retry_after=fault.get("retry_after"),
        **site.at(),
    )


def _report_network_fault(
    fault: Mapping[str, Any], cause: BaseException, site: Site
) -> MCPConnectionFailure:
    if fault.get("sent", True) and site.stage == "call":
        return report_lost(site, cause)
    words = clean_text(str(fault.get("text")), limit=300).rstrip(".")
    return MCPConnectionFailure(
        f"{site.describe()} cannot be reached: {words}.",
        remedy="Check that it runs, and its `url`.",
        cause=cause,
        **site.at(),
    )


def _report_unreachable(site: Site, failure: BaseException) -> MCPConnectionFailure:
    if isinstance(failure, HttpRefusal):
        return _report_http_fault(failure.fault, failure, site)
    if isinstance(failure, FileNotFoundError):
        remedy = "Install it, or correct its `command` or `cwd`."
    elif isinstance(failure, PermissionError):
        remedy = "Make its `command` executable."
    else:
        remedy = "Check that it runs, and its configuration."
    words = clean_text(str(failure) or type(failure).__name__, limit=MESSAGE_LIMIT).rstrip(".")
    return MCPConnectionFailure(
        f"{site.describe()} cannot be reached: {words}.{site.epilogue}",
        remedy=remedy,
        cause=failure,
        **site.at(),
    )


def _summarise_validation(failure: ValidationError) -> str:
    """The first few problems, without the data itself: it may be large, or secret."""
    problems = failure.errors(include_url=False, include_input=False, include_context=False)
    shown = [f"{'.'.join(map(str, p['loc'])) or 'message'}: {p['msg']}" for p in problems[:3]]
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return clean_text("; ".join(shown), limit=500) + more
