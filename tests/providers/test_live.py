# SPDX-License-Identifier: Apache-2.0
"""The real services, where a key is in the environment; without one, each test says which it lacks."""

from __future__ import annotations

import os

import anyio
import pytest

from converser.canisters import user
from converser.ensembles import Ensemble
from converser.invokers import InvocationResult, Tool
from converser.models import access_model
from converser.providers.automatic import CLOUDS
from converser.replies import Limits

pytestmark = pytest.mark.anyio


@pytest.fixture(params=CLOUDS, ids=lambda cloud: cloud.provider)
def model(request):
    cloud = request.param
    if not any(os.environ.get(name) for name in cloud.variables):
        pytest.skip(f"needs {cloud.variables[0]}")
    return access_model(f"{cloud.provider}:{cloud.model}")


async def tell(_, arguments):
    return InvocationResult(structured={"code": f"zebra-{len(arguments['city'])}"})


def make_tool(name, description):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return Tool(name=name, description=description, arguments_schema=schema), tell


async def test_the_real_service_calls_a_tool_and_answers_with_its_result(model):
    ensemble = Ensemble("codes", tools=[make_tool("city_code", "The code of a city.")])
    question = user("What is the code of Oslo, and what is that of Rome? Use the tool.")
    with anyio.fail_after(120):
        async with model:
            reply = await model.converse([question], ensembles=[ensemble])
    assert "zebra-4" in reply.text


async def test_the_real_service_finds_a_tool_among_many_and_gives_a_structured_answer(model):
    others = [make_tool(f"gauge_{number}", f"Reads gauge {number}.") for number in range(40)]
    tools = [*others, make_tool("city_code", "The code of a city.")]
    form = {
        "type": "object",
        "properties": {"code": {"type": "string"}},
        "required": ["code"],
        "additionalProperties": False,
    }
    with anyio.fail_after(180):
        async with model:
            native = model._provider.capabilities
            reply = await model.converse(
                [user("What is the code of Oslo? Look for a tool that tells it.")],
                ensembles=[Ensemble("many", tools=tools)],
                limits=Limits(tools_budget=200),
                answer=form,
            )
            assert model._provider.capabilities == native, "the service refused what we ask of it"
    assert reply.answer == {"code": "zebra-4"}
