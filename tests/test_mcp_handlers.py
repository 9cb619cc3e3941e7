# SPDX-License-Identifier: Apache-2.0
"""What a handler says to a server's question, and what the server then hears."""

from __future__ import annotations

import json
from typing import Any, cast

import anyio
import mcp_types as wire
import pytest

import converser
from converser import Elicitation, ElicitationAnswer
from converser.mcp.handlers import adapt_elicitation
from tests.servers import processes

pytestmark = pytest.mark.anyio

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "Ada"},
        "age": {"type": "integer", "default": 0},
        "sure": {"type": "boolean", "default": False},
        "colours": {"type": "array", "items": {"type": "string"}, "default": ["red"]},
        "silent": {"type": "string"},
        "empty": {"type": "string", "default": None},
        "odd": {"type": "object", "default": {"an": "object"}},
        "odder": {"type": "array", "default": [1]},
        "oddest": True,
    },
}


async def ask(answer: ElicitationAnswer, form: dict[str, Any]) -> wire.ElicitResult:
    async def handle(_: Elicitation) -> ElicitationAnswer:
        return answer

    params = wire.ElicitRequestFormParams(message="Well?", requested_schema=form)
    heard = await adapt_elicitation("server", handle)(cast("Any", None), params)
    assert isinstance(heard, wire.ElicitResult)
    return heard


async def test_fields_that_an_accepted_form_leaves_out_have_their_defaults() -> None:
    heard = await ask(ElicitationAnswer(values={"name": "Grace", "silent": "no more"}), FORM)
    assert heard.content == {
        "name": "Grace",
        "silent": "no more",
        "age": 0,
        "sure": False,
        "colours": ["red"],
    }


@pytest.mark.parametrize("form", [{}, {"properties": []}, {"properties": {"a": 1}}])
async def test_a_form_that_is_none_has_no_defaults(form: dict[str, Any]) -> None:
    heard = await ask(ElicitationAnswer(values={"a": "b"}), form)
    assert heard.content == {"a": "b"}


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_who_does_not_accept_says_nothing_else(action: Any) -> None:
    heard = await ask(ElicitationAnswer(action=action, values={"name": "Grace"}), FORM)
    assert (heard.action, heard.content) == (action, None)


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ({"method": "elicitation/create", "params": {"message": 3}}, wire.INVALID_PARAMS),
        ({"method": "elicitation/create", "params": {"message": "x"}}, wire.INVALID_PARAMS),
        ({"method": "sampling/createMessage", "params": {}}, wire.INVALID_PARAMS),
        ({"method": "roots/list"}, wire.INVALID_REQUEST),
        ({"method": "what/ever", "params": {"a": 1}}, wire.METHOD_NOT_FOUND),
        (
            {
                "method": "elicitation/create",
                "params": {"message": "x", "requestedSchema": {"type": "object", "properties": {}}},
            },
            wire.INTERNAL_ERROR,  # since the handler below fails
        ),
    ],
)
async def test_a_question_that_cannot_be_answered_is_refused_and_the_call_goes_on(
    question: dict[str, Any], code: int
) -> None:
    async def fail(_: Elicitation) -> ElicitationAnswer:
        raise RuntimeError("a bug of the application")

    client = converser.StdioMCPClient(processes.raw_command("rude"), elicit=fail)
    with anyio.fail_after(30):
        async with await converser.discover_mcp_tools(client, "rude") as ensemble:
            answer = json.loads((await ensemble.access_invoker("good")(question)).text)
    assert answer["id"] == "mine"
    assert answer["error"]["code"] == code
    assert "a bug" not in answer["error"]["message"]
