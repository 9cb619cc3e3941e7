# SPDX-License-Identifier: Apache-2.0
"""The scripted model says what is written for it, through the real loop."""

from __future__ import annotations

from functools import partial

import anyio
import pytest

from converser.canisters import (
    AssistantCanister,
    InvocationCanister,
    ResultCanister,
    Usage,
    user,
)
from converser.contents import TextualContent
from converser.ensembles import Ensemble, EnsembleConfiguration
from converser.events import TextDelta
from converser.exceptions import ModelFailure
from converser.invokers import InvocationResult, Tool
from converser.naming import Naming
from converser.outcomes import Outcome
from converser.testing import ScriptedModel
from converser.turns import Controls, Transcript

pytestmark = pytest.mark.anyio


def make_echo(ensemble="local", *, prefix=None):
    async def echo(_, arguments):
        return InvocationResult(contents=(TextualContent(text=str(arguments.get("text"))),))

    configuration = EnsembleConfiguration(naming=Naming(prefix=prefix))
    return Ensemble(ensemble, tools=[(Tool(name="echo"), echo)], configuration=configuration)


async def converse(model, canisters=(), **options):
    with anyio.fail_after(10):
        return await model.converse(canisters or [user("Hello")], **options)


async def test_a_text_is_the_answer():
    reply = await converse(ScriptedModel(["Good day."]))
    assert reply.text == "Good day."
    assert [type(canister) for canister in reply] == [AssistantCanister]
    assert (reply[0].model, reply[0].stop_reason) == ("scripted", "stop")


async def test_a_text_is_streamed_in_pieces_that_make_it_up():
    pieces = []
    reply = await converse(ScriptedModel([" Good  day,\nworld. "]), events=pieces.append)
    deltas = [event.text for event in pieces if isinstance(event, TextDelta)]
    assert len(deltas) > 1
    assert "".join(deltas) == reply.text == " Good  day,\nworld. "


async def test_pairs_are_calls_and_their_results_follow():
    model = ScriptedModel([[("echo", {"text": "one"}), ("echo", {"text": "two"})], "Done."])
    reply = await converse(model, ensembles=[make_echo()])
    assert [type(canister) for canister in reply] == [
        AssistantCanister,
        InvocationCanister,
        InvocationCanister,
        ResultCanister,
        ResultCanister,
        AssistantCanister,
    ]
    assert [reply[3].text, reply[4].text] == ["one", "two"]
    assert reply[3].invocation_identifier == reply[1].identifier


async def test_a_function_of_the_canisters_decides_a_turn():
    def quote(canisters):
        return f"It said {canisters[-1].text!r}."

    model = ScriptedModel([lambda canisters: [("echo", {"text": canisters[0].text})], quote])
    reply = await converse(model, [user("Salve")], ensembles=[make_echo()])
    assert reply.text == "It said 'Salve'."


async def test_an_async_function_lets_a_turn_take_its_time_and_be_cancelled():
    asked, transcript = anyio.Event(), Transcript([user("Salve")])

    async def quote(canisters):
        await anyio.lowlevel.checkpoint()
        return [("echo", {"text": canisters[0].text})]

    async def ponder(_):
        asked.set()
        await anyio.sleep_forever()

    model = ScriptedModel([quote, ponder, "Here."])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(converse, model, transcript, ensembles=[make_echo()]))
        with anyio.fail_after(10):
            await asked.wait()
        tasks.cancel_scope.cancel()
    assert transcript[-1].text == "Salve"
    assert (await converse(model, transcript)).text == "Here."


async def test_a_bare_tool_name_is_enough_where_it_is_unambiguous():
    model = ScriptedModel([[("echo", {"text": "hi"})], "Done."])
    reply = await converse(model, ensembles=[make_echo(prefix="parrot")])
    assert reply[1].name == "parrot_echo"
    assert reply[2].outcome is Outcome.SUCCESS


async def test_an_ambiguous_bare_name_fails_and_names_the_candidates():
    ensembles = [make_echo("one", prefix="one"), make_echo("two", prefix="two")]
    with pytest.raises(ModelFailure, match=r"'one_echo' or 'two_echo'.*full name"):
        await converse(ScriptedModel([[("echo", {})]]), ensembles=ensembles)


async def test_a_strange_name_reaches_the_loop_as_it_is():
    reply = await converse(ScriptedModel([[("ecko", {})], "Sorry."]), ensembles=[make_echo()])
    assert reply[1].name == "ecko"
    assert reply[2].outcome is Outcome.INVALID


async def test_running_out_of_turns_says_how_to_go_on():
    with pytest.raises(ModelFailure, match=r"asked 2 times.*1 turns.*Add turns"):
        await converse(ScriptedModel([[("echo", {})]]), ensembles=[make_echo()])


def test_a_text_in_the_place_of_turns_is_told():
    with pytest.raises(ModelFailure, match=r"list of turns.*ScriptedModel\(\['Done\.'\]\)"):
        ScriptedModel("Done.")


@pytest.mark.parametrize(
    "turn", [("echo", {}), None, 5, ["echo"], [("echo",)], [(print, {})], lambda _: None]
)
async def test_a_turn_that_is_neither_text_nor_pairs_is_told(turn):
    with pytest.raises(ModelFailure, match=r"Turn 1 .*neither a text nor a list of pairs.*Write"):
        await converse(ScriptedModel([turn]), ensembles=[make_echo()])


async def test_requests_are_recorded_as_they_were():
    model = ScriptedModel([[("echo", {"text": "hi"})], "Done."])
    question, controls = user("Say hi."), Controls(temperature=0.0)
    reply = await converse(model, [question], ensembles=[make_echo()], controls=controls)
    first, second = model.requests
    assert list(first.canisters) == [question]
    assert list(second.canisters) == [question, *reply[:3]]
    assert second.canisters[-1] == reply[2]
    assert list(second.canisters[1:3]) == list(reply[:2])
    assert repr(first.canisters) == repr([question])
    assert list(first.invokers) == ["echo"]
    assert first.controls == controls
    with pytest.raises(IndexError):
        first.canisters[1]


async def test_usage_is_given_for_each_turn_and_summed():
    usage = Usage(tokens_in=10, tokens_out=2, tokens_cached=1)
    model = ScriptedModel([[("echo", {})], "Done."], usage=usage)
    reply = await converse(model, ensembles=[make_echo()])
    assert reply[0].usage == usage
    assert reply.usage == Usage(tokens_in=20, tokens_out=4, tokens_cached=2)
