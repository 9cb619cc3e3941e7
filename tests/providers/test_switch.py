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
