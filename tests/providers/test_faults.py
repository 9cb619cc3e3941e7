# SPDX-License-Identifier: Apache-2.0
"""The faults of `llmock`, a server that others wrote to break clients: it judges ours, too."""

from __future__ import annotations

import pytest

from converser.canisters import user
from converser.exceptions import ModelFailure
from converser.outcomes import Outcome
from converser.replies import Limits, StopReason
from converser.turns import Transcript
from tests.conversations import assert_valid, converse, results_of
from tests.providers.scenes import WIRES, demand, make_clock

pytest.importorskip("llmock", reason="needs the package 'llmock'")
pytestmark = pytest.mark.anyio
PLACES = {"anthropic": "anthropic", "responses": "openai", "chat": "openai", "google": "gemini"}


@pytest.fixture(params=WIRES.values(), ids=WIRES)
def wire(request, monkeypatch):
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "beta")  # It knows no other path of Gemini's.
    return demand(request.param)


class Place:
    """Where a wire finds the server."""

    def __init__(self, wire, llmock):
        self.url = llmock.base_url(PLACES[wire.name]).removesuffix(wire.path)


def access(wire, llmock, **options):
    return wire.access(Place(wire, llmock), key="k", **options)


async def test_a_tool_is_called_and_its_result_taken(wire, llmock):
    clock, calls = make_clock()
    async with access(wire, llmock) as model:
        reply = await converse(model, [user("Tell me the time.")], ensembles=[clock])
    assert (reply.reason, len(calls)) == (StopReason.DONE, 1)
    assert reply.text
    llmock.assert_resilient(strict=True)


async def test_after_a_rate_limit_it_waits_as_long_as_it_is_told(wire, llmock):
    llmock.rate_limit(retry_after=0.1).reply("Here.")
    async with access(wire, llmock) as model:
        assert (await converse(model)).text == "Here."
    assert len(llmock.requests) == 2
    llmock.assert_resilient()


async def test_what_cannot_be_mended_is_not_tried_again(wire, llmock):
    llmock.context_overflow()
    async with access(wire, llmock) as model:
        with pytest.raises(ModelFailure, match="maximum context length"):
            await converse(model)
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("fault", ["truncate", "corrupt", "disconnect"])
async def test_a_call_in_a_broken_stream_is_never_run_and_the_turn_can_be_tried_again(
    wire, llmock, fault, chunks
):
    clock, calls = make_clock()
    llmock.call_tool("time", {"city": "Oslo"}, text="Let me look it up.")
    getattr(llmock, fault)(after_chunks=chunks)
    transcript = Transcript([user("The time?")])
    async with access(wire, llmock) as model:
        with pytest.raises(ModelFailure, match="try again"):
            await converse(model, transcript, ensembles=[clock])
        assert (calls, len(transcript)) == ([], 1)
        llmock.reply("Noon.")
        assert (await converse(model, transcript, ensembles=[clock])).text == "Noon."
    llmock.assert_resilient()


async def test_a_stream_that_hangs_ends_with_the_time_that_was_given(wire, llmock):
    llmock.reply("One two three four five.").stall(after_chunks=2, seconds=30)
    async with access(wire, llmock) as model:
        reply = await converse(model, limits=Limits(seconds=0.5))
    assert (reply.reason, len(reply)) == (StopReason.TIME_LIMIT, 0)


@pytest.mark.parametrize("fault", ["malformed_arguments", "unknown_tool"])
async def test_a_broken_call_is_told_to_the_model(wire, llmock, fault):
    clock, calls = make_clock()
    llmock.call_tool("time", {"city": "Oslo"}).break_tool_call(fault)
    llmock.reply("Sorry.")
    async with access(wire, llmock) as model:
        reply = await converse(model, [user("The time?")], ensembles=[clock])
    assert (reply.text, calls) == ("Sorry.", [])
    assert [result.outcome for result in results_of(reply)] == [Outcome.INVALID]
    assert_valid(reply)


async def test_an_answer_has_its_form(wire, llmock):
    form = {
        "type": "object",
        "properties": {"hour": {"type": "integer"}},
        "required": ["hour"],
        "additionalProperties": False,
    }
    async with access(wire, llmock) as model:
        if wire.name == "anthropic":
            llmock.reply('{"hour": 1}')  # It does not know this mode of Anthropic's.
        reply = await converse(model, answer=form)
    assert isinstance(reply.answer["hour"], int)
