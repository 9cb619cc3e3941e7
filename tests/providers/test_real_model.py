# SPDX-License-Identifier: Apache-2.0
"""A real model behind llama.cpp's own server, which speaks the wires of OpenAI and of Anthropic."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import platformdirs
import pytest

from converser.canisters import (
    InvocationCanister,
    ResultCanister,
    assistant,
    supervisor,
    user,
)
from converser.events import TextDelta
from converser.models import access_model
from converser.providers.weights import FILE_NAME
from converser.turns import Controls

WEIGHTS = Path(platformdirs.user_cache_dir("converser")) / "models" / FILE_NAME
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        not os.environ.get("CONVERSER_TEST_EMBEDDED") or not WEIGHTS.exists(),
        reason="takes a minute and 2 GB: fetch the embedded model, and set CONVERSER_TEST_EMBEDDED=1",
    ),
]
KEY = "local"


@pytest.fixture(scope="module")
def server():
    library = pytest.importorskip("xllamacpp", reason="needs the extra 'embedded'")
    parameters = library.CommonParams()
    parameters.model.path = str(WEIGHTS)
    parameters.n_ctx, parameters.n_parallel, parameters.port = 4096, 1, 0
    parameters.api_keys, parameters.verbosity = [KEY], 0
    parameters.use_jinja = True
    return library.Server(parameters)


WIRES = pytest.mark.parametrize(
    ("name", "path", "options"),
    [
        ("anthropic:qwen", "", {}),
        ("openai:qwen", "/v1", {"api": "responses"}),
        ("openai:qwen", "/v1", {"api": "chat"}),
    ],
    ids=["anthropic", "responses", "chat"],
)


@WIRES
async def test_a_real_model_gives_a_structured_answer(server, name, path, options):
    form = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "code": {"type": "integer"}},
        "required": ["city", "code"],
        "additionalProperties": False,
    }
    url = f"{server.listening_address}{path}"
    question = user("The code of Oslo is 7351. Which city has which code?")
    with anyio.fail_after(240):
        async with access_model(name, base_url=url, key=KEY, **options) as model:
            controls = Controls(temperature=0.0, tokens_max=60)
            reply = await model.converse([question], controls=controls, answer=form)
    assert reply.answer == {"city": "Oslo", "code": 7351}


@WIRES
async def test_a_real_model_reads_the_result_of_a_call_over_the_wire(server, name, path, options):
    # This model writes calls as plain text, whatever it is told, so the call is given.
    history = [
        supervisor("Answer in one short sentence."),
        user("What is the code of Oslo?"),
        InvocationCanister(identifier="c1", name="code", arguments={"city": "Oslo"}),
        ResultCanister(
            invocation_identifier="c1", contents=assistant("The code is 7351.").contents
        ),
    ]
    url = f"{server.listening_address}{path}"
    seen = []
    with anyio.fail_after(240):
        async with access_model(name, base_url=url, key=KEY, **options) as model:
            controls = Controls(temperature=0.0, tokens_max=40)
            reply = await model.converse(history, controls=controls, events=seen.append)
    assert "7351" in reply.text
    assert "".join(event.text for event in seen if isinstance(event, TextDelta)) == reply.text
    assert reply.usage.tokens_in > 0
