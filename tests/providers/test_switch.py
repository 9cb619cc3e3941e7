# SPDX-License-Identifier: Apache-2.0
"""A conversation that was begun with one provider goes on with any other, tool calls and all."""

from __future__ import annotations

import pytest

from converser.canisters import supervisor, user
from converser.codec import dump_canister, load_canister
from converser.turns import Transcript
from tests.conversations import assert_valid, converse
from tests.providers.scenes import OSLO, ROME, WIRES, Stage, make_clock
from tests.providers.wires import SIGNATURE, THOUGHT

pytestmark = pytest.mark.anyio

BONN = ("call_3", "time", {"city": "Bonn"})


@pytest.fixture
def serve():
    services = []

    def start(wire):
        services.append(Stage(wire, "x"))
        return services[-1]

    yield start
    for service in services:
        service.close()


async def go_on(wire, service, transcript, ensemble, **options):
    async with wire.access(service, **options) as model:
        return await converse(model, transcript, ensembles=[ensemble])


REFUSALS = {
    "anthropic": "messages.1.content.0: Invalid `signature` in `thinking` block",
    "google": "Corrupted thought signature.",
    "responses": "The encrypted content for item rs_1 could not be verified.",
}


@pytest.mark.parametrize("wire", [WIRES[name] for name in REFUSALS], ids=list(REFUSALS))
async def test_thinking_that_the_service_cannot_read_is_left_out_and_later_thinking_is_not(
    wire, serve
):
    """That of another account, or by way of another host."""
    service = serve(wire)
    clock, _ = make_clock()
    transcript = Transcript([user("The time?")])
    service.will_answer(calls=[OSLO], thought=True)
    service.will_answer("Noon.")
    await go_on(wire, service, transcript, clock)
    transcript.append(user("Once more?"))
    service.will_fail(400, wire.error(400, REFUSALS[wire.name]))
    service.will_answer(calls=[BONN], thought=True)
    service.will_answer("Still noon.")
    reply = await go_on(wire, service, transcript, clock)
    assert reply.text == "Still noon."
    thoughts = [len(wire.thoughts(body)) for body in service.bodies[2:]]
    assert thoughts == [1, 0, 1]
    assert wire.calls(service.bodies[-1]) == [OSLO, BONN]


@pytest.mark.parametrize("second", WIRES.values(), ids=[f"to-{name}" for name in WIRES])
@pytest.mark.parametrize("first", WIRES.values(), ids=[f"from-{name}" for name in WIRES])
async def test_a_conversation_goes_on_elsewhere_and_comes_back(first, second, serve):
    one, other = serve(first), serve(second)
    clock, _ = make_clock()
    transcript = Transcript([supervisor("Be brief."), user("The time?")])
    one.will_answer("Look.", calls=[OSLO, ROME], thought=True)
    one.will_answer("Noon.")
    await go_on(first, one, transcript, clock)
    transcript = Transcript(load_canister(dump_canister(c)) for c in transcript)

    transcript.append(user("Once more?"))
    other.will_answer(calls=[BONN])
    other.will_answer("Still noon.")
    reply = await go_on(second, other, transcript, clock, model="other-model")
    assert reply.text == "Still noon."
    assert_valid(transcript)
    body = other.bodies[1]
    assert second.calls(body) == [OSLO, ROME, BONN]
    identifiers = [identifier for identifier, _ in second.results(body)]
    assert identifiers == ["call_1", "call_2", "call_3"]
    assert second.instructions(body) == ["Be brief."]
    assert {"The time?", "Look.", "Noon.", "Once more?"} <= set(second.words(body))
    assert second.thoughts(body) == []

    transcript.append(user("Thanks."))
    one.will_answer("Any time.")
    await go_on(first, one, transcript, clock)
    assert first.calls(one.bodies[2]) == [OSLO, ROME, BONN]
    assert first.thoughts(one.bodies[2]) == [(THOUGHT, SIGNATURE)]
