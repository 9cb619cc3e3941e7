# SPDX-License-Identifier: Apache-2.0
"""The requests that are made of a session: call a tool, and show a sign of life."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as wire
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from ..exceptions import MCPProtocolFailure
from .failures import Site, blame_answer, is_connection_lost

ROUNDS_MAX = 10
"""How often a server may ask back during one call."""
_PAUSE = 0.1
"""Seconds that a server gets which asks back for nothing but time."""

_AS_IT_CAME: TypeAdapter[Any] = TypeAdapter(Any)
"""The session has held a result to the rules of the protocol already, before it makes a model of it."""
_OUTCOMES: TypeAdapter[wire.CallToolResult | wire.InputRequiredResult] = TypeAdapter(
    wire.CallToolResult | wire.InputRequiredResult
)


class _PlainCallRequest(wire.CallToolRequest):
    """A call in the form that it has on the wire: a model would be built only to be dumped again."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        object.__setattr__(self, "_plain", {"name": name, "arguments": arguments})

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """What the session sends; it adds metadata of its own, so the outer parts are new."""
        return {"method": "tools/call", "params": {**object.__getattribute__(self, "_plain")}}


async def request_call(
    session: ClientSession,
    site: Site,
    arguments: dict[str, Any],
    *,
    seconds: float | None = None,
    on_progress: ProgressFnT | None = None,
) -> dict[str, Any]:
    """Calls a tool, and answers what the server asks back on the way; gives the result as it is on the wire.

    Not the SDK's `call_tool`: that throws a result away when it violates its output schema,
    and lists the tools again when it does not know one.
    """
    request: wire.CallToolRequest = _PlainCallRequest(site.tool, arguments)
    for _ in range(ROUNDS_MAX + 1):
        raw: dict[str, Any] = await session.send_request(
            request,
            _AS_IT_CAME,
            request_read_timeout_seconds=seconds,
            progress_callback=on_progress,
        )
        if _is_plainly_complete(raw):
            return raw
        result = _OUTCOMES.validate_python(raw, by_name=False)
        if isinstance(result, wire.CallToolResult):
            if result.result_type != "complete":
                raise blame_answer(wire.INVALID_REQUEST, "its type is not known")
            return result.model_dump(by_alias=True, mode="json", exclude_unset=True)
        responses = await _answer_requests(session, result)
        params = wire.CallToolRequestParams(
            name=site.tool,
            arguments=arguments,
            input_responses=responses,
            request_state=result.request_state,
        )
        request = wire.CallToolRequest(params=params)
    raise MCPProtocolFailure(
        f"{site.describe()} asked back more than {ROUNDS_MAX} times.",
        remedy="Answer it otherwise, or report this to the server's authors.",
        **site.at(),
    )


def _is_plainly_complete(raw: dict[str, Any]) -> bool:
    """Whether a result needs no second look: most do not."""
    return (
        raw.get("resultType", "complete") == "complete"
        and raw.get("content").__class__ is list
        and raw.get("isError") in (None, False, True)
    )


async def answers_question(session: ClientSession, seconds: float) -> bool:
    """Whether a server that is there says anything at all, be it no, when it is asked for its era."""
    with anyio.move_on_after(seconds):
        try:
            await session.send_discover(LATEST_MODERN_VERSION)
        except MCPError as failure:
            return not is_connection_lost(failure)
        return True
    return False


async def request_sign_of_life(session: ClientSession) -> None:
    """The cheapest request that a server of its era must answer; an error is an answer too."""
    version = session.protocol_version
    try:
        if version in MODERN_PROTOCOL_VERSIONS:
            await session.send_discover(version)
        else:
            await session.send_ping()
    except MCPError as failure:
        if failure.code != wire.METHOD_NOT_FOUND:
            raise


async def _answer_requests(
    session: ClientSession, result: wire.InputRequiredResult
) -> wire.InputResponses | None:
    """The answers of our handlers, all asked at once; nothing where the server just wants time."""
    if not result.input_requests:
        await anyio.sleep(_PAUSE)
        return None
    responses: wire.InputResponses = {}
    refusals: list[wire.ErrorData] = []

    async def answer(key: str, request: wire.InputRequest) -> None:
        meta = request.params.meta if request.params else None
        context = ClientRequestContext(session=session, request_id=key, meta=meta)
        response = await session.dispatch_input_request(context, request)
        if isinstance(response, wire.ErrorData):
            refusals.append(response)
        else:
            responses[key] = response

    async with anyio.create_task_group() as group:
        for key, request in result.input_requests.items():
            group.start_soon(answer, key, request)
    if refusals:
        raise MCPError.from_error_data(refusals[0])
    return responses
