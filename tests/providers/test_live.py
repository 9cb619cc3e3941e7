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

pytestmark = pytest.mark.anyio


@pytest.fixture(params=CLOUDS, ids=lambda cloud: cloud.provider)
def model(request):
    cloud = request.param
    if not any(os.environ.get(name) for name in cloud.variables):
        pytest.skip(f"needs {cloud.variables[0]}")
    return access_model(f"{cloud.provider}:{cloud.model}")


async def test_the_real_service_calls_a_tool_and_answers_with_its_result(model):
    async def tell(_, arguments):
        return InvocationResult(structured={"code": f"zebra-{len(arguments['city'])}"})

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = Tool(name="city_code", description="The code of a city.", arguments_schema=schema)
    ensemble = Ensemble("codes", tools=[(tool, tell)])
    question = user("What is the code of Oslo, and what is that of Rome? Use the tool.")
    with anyio.fail_after(120):
        async with model:
            reply = await model.converse([question], ensembles=[ensemble])
    assert "zebra-4" in reply.text
