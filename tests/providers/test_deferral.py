# SPDX-License-Identifier: Apache-2.0
"""Too many tools to send: a service that can load them where a search found them does; for others they are appended.

The shapes are those that the official clients of the services send and get; see the notes in the wires.
"""

from __future__ import annotations

import anyio
import pytest

from converser.canisters import ResultCanister, user
from converser.codec import dump_canister, load_canister
from converser.ensembles import Ensemble, EnsembleConfiguration
from converser.exceptions import ModelFailure
from converser.invokers import InvocationResult, Tool
from converser.outcomes import Outcome
from converser.replies import Limits
from converser.testing import ScriptedModel
from converser.turns import Transcript
from tests.conversations import assert_valid, converse
from tests.providers.openai_wires import ResponsesWire
from tests.providers.scenes import WIRES, Stage, demand
from tests.providers.wires import AnthropicWire

pytestmark = pytest.mark.anyio
ANIMALS = ("badger", "camel", "dolphin", "eagle", "ferret", "gecko", "heron", "ibis", "jackal")
LIMITS = Limits(tools_budget=100)
SEARCH = "search_tools"


class DeferringAnthropic(AnthropicWire):
    """Deferred tools are in the request, and a result refers to those that were found."""

    model = "claude-sonnet-5"

    def upfront(self, body):
        return [tool for tool in body["tools"] if not tool.get("defer_loading")]

    def names(self, body):
        return [tool["name"] for tool in self.upfront(body)]

    def deferred(self, body):
        return [tool["name"] for tool in body["tools"] if tool.get("defer_loading")]

    def told(self, body):
        parts = [block["content"] for block in self._read(body, "tool_result")]
        lists = [part for part in parts if isinstance(part, list)]
        return [b["tool_name"] for part in lists for b in part if b["type"] == "tool_reference"]


class DeferringResponses(ResponsesWire):
    """Definitions of the tools that were found are in the output of the search, and nowhere else."""

    model = "gpt-5.4"

    def upfront(self, body):
        return body["tools"]

    def names(self, body):
        return [tool.get("name", tool["type"]) for tool in body["tools"]]

    def deferred(self, body):
        return list(dict.fromkeys(self.told(body)))

    def told(self, body):
        outputs = self._read(body, "tool_search_output")
        return [tool["name"] for output in outputs for tool in output["tools"]]

    def answer(self, *args, **options):
        return super().answer(*args, searching=SEARCH, **options)


DEFERRING = {"anthropic": DeferringAnthropic(), "responses": DeferringResponses()}


@pytest.fixture(params=DEFERRING.values(), ids=DEFERRING)
def wire(request):
    return demand(request.param)


@pytest.fixture
def service(wire):
    with Stage(wire, wire.model) as service:
        yield service


def make_zoo(*names, pinned=("*_gecko",)):
    fed = []

    def make(name):
        async def feed(_, __):
            fed.append(name)
            return InvocationResult()

        return Tool(name=f"feed_{name}", description=f"Gives food to the {name}."), feed

    configuration = EnsembleConfiguration(pinned=pinned)
    zoo = Ensemble(
        "zoo", tools=[make(name) for name in names or ANIMALS], configuration=configuration
    )
    return zoo, fed


def search(identifier, query, **options):
    return (identifier, SEARCH, {"query": query, "limit": 1, **options})


async def talk(wire, service, transcript, zoo):
    model = getattr(wire, "model", "model-1")
    return await service.ask(transcript, model, ensembles=[zoo], limits=LIMITS)


async def test_tools_that_are_found_are_loaded_there_and_what_came_before_stays_as_it_was(
    wire, service
):
    zoo, fed = make_zoo()
    service.will_answer(calls=[search("s1", "dolphin")])
    service.will_answer(calls=[("c1", "feed_dolphin", {})])
    service.will_answer("And now?", calls=[search("s2", "camel"), search("s3", "submarine")])
    service.will_answer(calls=[("c2", "feed_camel", {})])
    service.will_answer("Done.")
    transcript = Transcript([user("Feed them.")])
    reply = await talk(wire, service, transcript, zoo)
    assert (reply.text, fed) == ("Done.", ["dolphin", "camel"])
    assert_valid(reply)
    bodies = service.bodies
    assert wire.names(bodies[0]) in (["feed_gecko", SEARCH], ["feed_gecko", "tool_search"])
    for body in bodies[1:]:
        assert wire.upfront(body) == wire.upfront(bodies[0])
    assert [wire.told(body) for body in bodies] == [
        [],
        ["feed_dolphin"],
        ["feed_dolphin"],
        ["feed_dolphin", "feed_camel"],
        ["feed_dolphin", "feed_camel"],
    ]
    assert [wire.deferred(body) for body in bodies] == [wire.told(body) for body in bodies]


async def test_a_conversation_that_comes_from_elsewhere_or_from_disk_is_the_same(wire, service):
    zoo, _ = make_zoo()
    script = [[(SEARCH, {"query": "ibis", "limit": 1})], [("feed_ibis", {})], "Done."]
    transcript = Transcript([user("Feed the ibis.")])
    await converse(ScriptedModel(script), transcript, ensembles=[zoo], limits=LIMITS)
    revived = [load_canister(dump_canister(each)) for each in transcript]
    service.will_answer("Yes.")
    await talk(wire, service, [*revived, user("Sure?")], zoo)
    (body,) = service.bodies
    assert wire.told(body) == wire.deferred(body) == ["feed_ibis"]


async def test_a_tool_that_has_gone_is_not_told_of_any_more(wire, service):
    zoo, _ = make_zoo()
    service.will_answer(calls=[search("s1", "eagle heron", limit=2)])
    service.will_answer("Found.")
    service.will_answer("Well.")
    transcript = Transcript([user("Look.")])
    async with wire.access(service, wire.model) as model:
        await converse(model, transcript, ensembles=[zoo], limits=LIMITS)
        assert sorted(wire.told(service.bodies[1])) == ["feed_eagle", "feed_heron"]
        fewer, _ = make_zoo(*(name for name in ANIMALS if name != "eagle"))
        transcript.append(user("And now?"))
        await converse(model, transcript, ensembles=[fewer], limits=LIMITS)
    assert wire.told(service.bodies[2]) == wire.deferred(service.bodies[2]) == ["feed_heron"]


async def test_a_tool_that_was_called_by_its_name_is_a_tool_like_all(wire, service):
    zoo, fed = make_zoo()
    service.will_answer(calls=[("c1", "feed_heron", {})])
    service.will_answer(calls=[search("s1", "heron")])
    service.will_answer("Done.")
    await talk(wire, service, [user("Feed the heron.")], zoo)
    assert fed == ["heron"]
    for body in service.bodies[1:]:
        assert wire.names(body)[-1] == "feed_heron"
        assert wire.told(body) == []


async def test_a_search_that_fails_says_why(wire, service):
    zoo, _ = make_zoo()
    service.will_answer(calls=[search("s1", "heron", limit=1000)])
    service.will_answer("Oh.")
    reply = await talk(wire, service, [user("Look.")], zoo)
    (result,) = [each for each in reply if isinstance(each, ResultCanister)]
    assert result.outcome is Outcome.INVALID
    assert "limit" in str(
        service.bodies[1]["messages" if "messages" in service.bodies[1] else "input"]
    )
    assert "1000" in result.error


async def test_where_the_service_refuses_the_tools_are_appended_as_elsewhere(wire, service):
    zoo, fed = make_zoo()
    service.will_fail(400, wire.error(400, "no such thing as deferral"))
    service.wire = plain = WIRES[wire.name]
    service.will_answer(calls=[search("s1", "camel")])
    service.will_answer(calls=[("c1", "feed_camel", {})])
    service.will_answer("Done.")
    await talk(wire, service, [user("Feed the camel.")], zoo)
    assert fed == ["camel"]
    names = [[name for name, _ in plain.tools(body)] for body in service.bodies[1:]]
    start = ["feed_gecko", SEARCH]
    assert names == [start, [*start, "feed_camel"], [*start, "feed_camel"]]
    assert all(wire.told(body) == [] for body in service.bodies)


async def test_a_refusal_that_many_meet_at_once_is_taken_in_by_each():
    (zoo, _), wire, replies = make_zoo(), DeferringResponses(), []

    async def ask(model):
        replies.append(await converse(model, ensembles=[zoo], limits=LIMITS))

    with Stage(wire, wire.model) as service:
        flaw = lambda body: "tool_search" in [tool["type"] for tool in body["tools"]]  # noqa: E731
        service.will_refuse(flaw, 400, "no such tool", "Done.")
        async with wire.access(service, wire.model) as model, anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(ask, model)
    assert [reply.text for reply in replies] == ["Done."] * 6


async def test_a_refusal_for_another_reason_does_not_end_deferral(wire, service):
    zoo, _ = make_zoo()
    service.will_fail(400, wire.error(400, "too long"), times=2)
    async with wire.access(service, wire.model) as model:
        with pytest.raises(ModelFailure, match="too long"):
            await converse(model, ensembles=[zoo], limits=LIMITS)
        service.will_answer(calls=[search("s1", "camel")])
        service.will_answer("Found.")
        await converse(model, ensembles=[zoo], limits=LIMITS)
    assert wire.told(service.bodies[-1]) == ["feed_camel"]


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
async def test_for_models_that_cannot_load_tools_they_are_appended(wire):
    with Stage(wire, "model-1") as service:
        zoo, fed = make_zoo()
        service.will_answer(calls=[search("s1", "camel")])
        service.will_answer(calls=[("c1", "feed_camel", {})])
        service.will_answer("Done.")
        await talk(wire, service, [user("Feed the camel.")], zoo)
    assert fed == ["camel"]
    names = [[name for name, _ in wire.tools(body)] for body in service.bodies]
    assert names == [["feed_gecko", SEARCH], *[["feed_gecko", SEARCH, "feed_camel"]] * 2]
    assert "feed_camel" in wire.results(service.bodies[1])[0][1]


def call_of(body, name):
    return next(item for item in body["input"] if item.get("name") == name)


async def test_responses_get_back_what_they_demand_of_calls_to_tools_that_were_found():
    wire = DEFERRING["responses"]
    with Stage(wire, wire.model) as service:
        zoo, _ = make_zoo()
        service.will_answer(calls=[search("s1", "camel")], thought=True)
        service.will_answer(calls=[("c1", "feed_camel", {})])
        service.will_answer("Done.")
        transcript = Transcript([user("Feed the camel.")])
        await talk(wire, service, transcript, zoo)
        service.will_answer("Fine.")
        everything = Limits(tools_budget=None)
        async with wire.access(service, wire.model) as model:
            await converse(model, [*transcript, user("?")], ensembles=[zoo], limits=everything)
    last, plain = service.bodies[2:]
    kinds = [item["type"] for item in last["input"][1:]]
    assert kinds == [
        "reasoning",
        "tool_search_call",
        "tool_search_output",
        "function_call",
        "function_call_output",
    ]
    _, thought, searched, found, called, _ = last["input"]
    assert thought["encrypted_content"]
    assert searched == {
        "type": "tool_search_call",
        "id": "tsc_s1",
        "call_id": "s1",
        "execution": "client",
        "status": "completed",
        "arguments": {"query": "camel", "limit": 1},
    }
    assert (found["call_id"], found["execution"], found["status"]) == ("s1", "client", "completed")
    assert found["tools"][0]["defer_loading"] is True
    assert (called["namespace"], called["id"]) == ("feed_camel", "fc_c1")
    # Where all tools are sent, the same conversation has nothing of this.
    assert "namespace" not in call_of(plain, "feed_camel")
    assert "id" not in call_of(plain, SEARCH)
    assert not any(item["type"].startswith("tool_search") for item in plain["input"])


async def test_anthropic_s_mark_for_the_cache_is_on_a_tool_that_stays():
    wire = DEFERRING["anthropic"]
    with Stage(wire, wire.model) as service:
        zoo, _ = make_zoo()
        service.will_answer(calls=[search("s1", "camel")])
        service.will_answer("Done.")
        await talk(wire, service, [user("Feed the camel.")], zoo)
    marks = [("cache_control" in tool, tool["name"]) for tool in service.bodies[1]["tools"]]
    assert marks == [(False, "feed_gecko"), (True, SEARCH), (False, "feed_camel")]


@pytest.mark.parametrize(
    ("name", "defers"),
    [
        ("anthropic:claude-sonnet-4-20250514", False),
        ("anthropic:claude-sonnet-4-5-20250929", True),
        ("anthropic:claude-haiku-4-5", True),
        ("anthropic:claude-opus-5", True),
        ("anthropic:claude-3-7-sonnet-latest", False),
        ("anthropic:qwen", False),
        ("openai:gpt-5", False),
        ("openai:gpt-5.1-mini", False),
        ("openai:gpt-5.4-mini", True),
        ("openai:gpt-6-astra", True),
        ("openai:gpt-oss-20b", False),
        ("openai:o3", False),
    ],
)
def test_the_name_of_a_model_tells_whether_it_can_load_tools(name, defers):
    from converser.models import access_model

    provider, _, _ = name.partition(":")
    pytest.importorskip(provider)
    options = {"api": "responses"} if provider == "openai" else {}
    model = access_model(name, base_url="http://127.0.0.1:9", key="k", **options)
    assert model._provider.capabilities.deferral is defers
