# SPDX-License-Identifier: Apache-2.0
"""Every invocation ends in exactly one result, and the model can learn from it."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import datetime, timezone

import anyio
import pytest

from converser.canisters import user
from converser.codec import dump_canister, load_canister
from converser.contents import ImageContent, TextualContent
from converser.ensembles import Ensemble, EnsembleConfiguration
from converser.exceptions import (
    MCPConnectionFailure,
    MCPTimeoutFailure,
    ToolExecutionFailure,
)
from converser.functions import create_local_ensemble, tool
from converser.invokers import InvocationResult, Tool
from converser.models import Model
from converser.outcomes import Outcome
from converser.replies import Limits, StopReason
from converser.testing import ScriptedModel
from converser.turns import Call, Transcript
from tests.conversations import (
    INTEGER_SCHEMA,
    SpokenProvider,
    assert_valid,
    calling,
    converse,
    echo,
    hang,
    make_ensemble,
    results_of,
    saying,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("failure", "outcome", "words"),
    [
        (ValueError("no such city"), Outcome.TOOL_ERROR, "no such city"),
        (
            MCPTimeoutFailure("No answer in 3 s.", outcome=Outcome.TIMED_OUT),
            Outcome.TIMED_OUT,
            "No answer",
        ),
        (MCPConnectionFailure("The server is gone."), Outcome.TOOL_ERROR, "is gone"),
        (
            ToolExecutionFailure("Lost on the way.", outcome=Outcome.UNKNOWN),
            Outcome.UNKNOWN,
            "Lost",
        ),
        (asyncio.CancelledError(), Outcome.CANCELLED, "cancelled"),
    ],
    ids=["exception", "timeout", "connection", "unknown", "cancelled-from-within"],
)
async def test_a_failing_tool_becomes_a_result_and_the_conversation_goes_on(
    failure, outcome, words
):
    async def break_down(_):
        raise failure

    model = ScriptedModel([[("break_down", {})], "I see."])
    reply = await converse(model, ensembles=[make_ensemble(break_down=break_down)])
    (result,) = results_of(reply)
    assert result.outcome is outcome
    assert words in result.error
    assert reply.text == "I see."
    assert reply.reason is StopReason.DONE


async def test_failures_of_a_tools_own_task_group_are_told_and_not_that_it_had_one():
    async def miss(what):
        await anyio.lowlevel.checkpoint()
        raise LookupError(what)

    async def seek(_):
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as others:
            tasks.start_soon(miss, "no harbour")
            others.start_soon(miss, "no ferry")
        return ""

    model = ScriptedModel([[("seek", {})], "I see."])
    reply = await converse(model, ensembles=[make_ensemble(seek=seek)])
    (result,) = results_of(reply)
    assert "LookupError: no harbour" in result.error
    assert "LookupError: no ferry" in result.error
    assert "TaskGroup" not in result.error


async def test_a_tool_that_cancels_itself_takes_no_other_call_along():
    given_up = anyio.Event()

    async def give_up(_):
        given_up.set()
        raise asyncio.CancelledError

    async def outlast(_):
        await given_up.wait()
        await anyio.wait_all_tasks_blocked()
        return "still here"

    model = ScriptedModel([[("outlast", {}), ("give_up", {})], "I see."])
    ensemble = make_ensemble(give_up=give_up, outlast=outlast)
    reply = await converse(model, ensembles=[ensemble])
    outlasted, cancelled = results_of(reply)
    assert outlasted.text == "still here"
    assert cancelled.outcome is Outcome.CANCELLED


async def test_a_tool_cannot_end_the_program():
    def leave() -> str:
        sys.exit("It is time.")

    async def go() -> str:
        sys.exit(3)

    model = ScriptedModel([[("leave", {}), ("go", {})], "I see."])
    reply = await converse(model, ensembles=[create_local_ensemble("local", [leave, go])])
    assert [result.outcome for result in results_of(reply)] == [Outcome.TOOL_ERROR] * 2
    assert "wanted to end the program" in results_of(reply)[0].error
    assert reply.text == "I see."


class Panic(BaseException):
    """What extensions written in Rust raise when they panic, and libraries for timeouts: no Exception."""


@pytest.mark.parametrize("place", ["in a thread", "in the loop", "in a group of its own"])
async def test_a_tool_that_panics_has_failed_and_takes_no_other_call_along(place):
    def compute() -> str:
        raise Panic("index out of bounds")

    async def compute_here() -> str:
        compute()

    async def compute_beside() -> str:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compute_here)

    function = {"in a thread": compute, "in the loop": compute_here}.get(place, compute_beside)
    ensembles = [
        create_local_ensemble("rust", [tool(name="compute")(function)]),
        make_ensemble(echo=echo),
    ]
    model = ScriptedModel([[("compute", {}), ("echo", {"text": "hi"})], "I see."])
    reply = await converse(model, ensembles=ensembles)
    panicked, echoed = results_of(reply)
    assert panicked.outcome is Outcome.TOOL_ERROR
    assert "Panic: index out of bounds" in panicked.error
    assert echoed.text == "hi"
    assert reply.reason is StopReason.DONE


@pytest.mark.parametrize(
    "result",
    [
        InvocationResult(contents="It is done."),
        InvocationResult(contents=("It is done.",)),
        InvocationResult(contents=(TextualContent(text={"done": True}),)),
        InvocationResult(contents=(ImageContent(data="aGk=", mimetype="image/png"),)),
        InvocationResult(structured={"at": datetime.now(timezone.utc)}),
        InvocationResult(structured={("a", 1): 2}),
        ToolExecutionFailure("It failed.", contents=("So sorry.",)),
        ToolExecutionFailure("It failed.", structured={1, 2}),
        "It is done.",
        None,
    ],
    ids=lambda result: str(result)[:60],
)
async def test_a_result_that_nobody_could_store_or_send_is_a_failure_of_its_tool(result):
    async def slip(*_):
        if isinstance(result, Exception):
            raise result
        return result

    ensemble = Ensemble("local", tools=[(Tool(name="slip"), slip)])
    transcript = Transcript([user("Go.")])
    reply = await converse(
        ScriptedModel([[("slip", {})], "I see."]), transcript, ensembles=[ensemble]
    )
    (failed,) = results_of(reply)
    assert failed.outcome is Outcome.TOOL_ERROR
    assert "It failed." in failed.error or "Tool 'slip' failed: " in failed.error
    assert [load_canister(dump_canister(each)) for each in transcript] == list(transcript)


async def test_what_a_failing_tool_had_to_say_is_kept():
    contents = (TextualContent(text="Disk full"),)

    async def save(_, __):
        raise ToolExecutionFailure("It failed.", contents=contents, structured={"code": 28})

    ensemble = Ensemble("local", tools=[(Tool(name="save"), save)])
    reply = await converse(ScriptedModel([[("save", {})], "Oh."]), ensembles=[ensemble])
    (result,) = results_of(reply)
    assert (result.contents, result.structured) == (contents, {"code": 28})


async def test_structured_data_and_remarks_reach_the_result():
    async def measure(_, __):
        return InvocationResult(structured={"n": 5}, remarks=("The schema was violated.",))

    ensemble = Ensemble("local", tools=[(Tool(name="measure"), measure)])
    reply = await converse(ScriptedModel([[("measure", {})], "5"]), ensembles=[ensemble])
    (result,) = results_of(reply)
    assert result.structured == {"n": 5}
    assert result.text == "Note: The schema was violated."


async def test_numbers_that_json_cannot_hold_are_words_in_a_result():
    async def measure(*_):
        return InvocationResult(structured={"x": [1.5, float("nan"), {"y": float("-inf")}]})

    ensemble = Ensemble("local", tools=[(Tool(name="measure"), measure)])
    reply = await converse(ScriptedModel([[("measure", {})], "Done."]), ensembles=[ensemble])
    (result,) = results_of(reply)
    assert result.structured == {"x": [1.5, "NaN", {"y": "-Infinity"}]}
    assert load_canister(dump_canister(result)) == result


async def test_an_unknown_tool_name_is_answered_with_the_nearest():
    model = ScriptedModel([[("ecko", {})], "Sorry."])
    reply = await converse(model, ensembles=[make_ensemble(echo=echo)])
    (result,) = results_of(reply)
    assert result.outcome is Outcome.INVALID
    assert "'ecko'" in result.error
    assert "Did you mean 'echo'?" in result.error


async def test_a_call_without_any_tools_is_answered():
    reply = await converse(ScriptedModel([[("echo", {})], "Sorry."]))
    assert "No tools are available" in results_of(reply)[0].error


@pytest.mark.parametrize("moment", ["model", "approver", "call"])
async def test_what_somebody_disables_before_it_is_called_is_not_called(moment):
    ran = []

    async def wipe(_):
        ran.append("wipe")
        return ""

    tools = make_ensemble("shell", wipe=wipe)

    def disable_at(present):
        tools.enabled = tools.enabled and moment != present
        return True

    async def work(_):
        disable_at("call")
        return ""

    def call(_):
        disable_at("model")
        return [("work", {}), ("wipe", {})]

    reply = await converse(
        ScriptedModel([call, "Done."]),
        ensembles=[make_ensemble("others", work=work), tools],
        approver=lambda request: request.invoker.name == "work" or disable_at("approver"),
        limits=Limits(parallel=1),
    )
    result = results_of(reply)[1]
    assert result.outcome is Outcome.REFUSED
    assert "disabled meanwhile" in result.error
    assert not ran


@pytest.mark.parametrize("text", ["{", "[1]", '"x"', '"{x"', "NaN", '{"n": NaN}', "[" * 100_000])
async def test_arguments_that_are_no_json_object_are_invalid_and_kept(text):
    model = ScriptedModel([[("echo", text)], "Sorry."])
    reply = await converse(model, ensembles=[make_ensemble(echo=echo)])
    (result,) = results_of(reply)
    assert result.outcome is Outcome.INVALID
    assert "Give one JSON object" in result.error
    assert reply[1].arguments == {}
    assert reply[1].extras == {"malformed_arguments": text}


@pytest.mark.parametrize(
    "arguments", ['{"n": 1e999}', '{"n": %s}' % ("[" * 900 + "]" * 900), {"n": float("inf")}]
)
async def test_arguments_that_nobody_could_store_or_send_back_are_invalid(arguments):
    transcript = Transcript([user("Go")])
    model = ScriptedModel([[("echo", arguments)], "Sorry."])
    reply = await converse(model, transcript, ensembles=[make_ensemble(echo=echo)])
    (result,) = results_of(reply)
    assert result.outcome is Outcome.INVALID
    assert "The arguments are unusable" in result.error
    assert [load_canister(dump_canister(canister)) for canister in transcript] == list(transcript)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" ", ""),
        ("null", ""),
        ('{"text": "hi"}', "hi"),
        (json.dumps('{"text": "hi"}'), "hi"),
    ],
)
async def test_arguments_as_text_are_read_and_none_at_all_is_an_empty_object(text, expected):
    model = ScriptedModel([[("echo", text)], "Done."])
    reply = await converse(model, ensembles=[make_ensemble(echo=echo)])
    assert results_of(reply)[0].text == expected


async def test_arguments_that_do_not_fit_the_schema_are_invalid():
    async def double(_, arguments):
        return InvocationResult(contents=(TextualContent(text=str(arguments["n"] * 2)),))

    tool = Tool(name="double", arguments_schema=INTEGER_SCHEMA)
    ensemble = Ensemble("local", tools=[(tool, double)])
    model = ScriptedModel([[("double", {"n": "many"}), ("double", {"n": 4})], "8"])
    reply = await converse(model, ensembles=[ensemble])
    wrong, right = results_of(reply)
    assert wrong.outcome is Outcome.INVALID
    assert right.text == "8"


async def test_a_local_tool_is_stopped_at_its_timeout():
    configuration = EnsembleConfiguration(timeout=0.01)
    ensemble = make_ensemble(hang=hang, configuration=configuration)
    reply = await converse(ScriptedModel([[("hang", {})], "Too slow."]), ensembles=[ensemble])
    (result,) = results_of(reply)
    assert result.outcome is Outcome.TIMED_OUT
    assert "'hang' gave no result within 0.01 seconds" in result.error
    assert reply.text == "Too slow."


async def test_calls_of_a_message_that_was_cut_off_are_not_made():
    ran = []

    async def record(arguments):
        ran.append(arguments)
        return ""

    call = Call(name="record", arguments="{}")
    provider = SpokenProvider(calling(call, stop_reason="length"), saying("Shorter."))
    reply = await converse(Model(provider), ensembles=[make_ensemble(record=record)])
    assert not ran
    assert results_of(reply)[0].outcome is Outcome.INVALID
    assert "cut off" in results_of(reply)[0].error


async def test_calls_of_a_message_that_was_withheld_are_not_made_and_the_loop_ends():
    ran = []

    async def record(arguments):
        ran.append(arguments)
        return ""

    provider = SpokenProvider(calling(Call(name="record"), stop_reason="filtered"), saying("No."))
    reply = await converse(Model(provider), ensembles=[make_ensemble(record=record)])
    assert (ran, reply.reason) == ([], StopReason.FILTERED)
    assert "withheld" in results_of(reply)[0].error
    assert_valid(reply)


async def test_calls_without_an_identifier_or_with_a_used_one_get_their_own():
    twice = [Call(name="echo", identifier="call_1"), Call(name="echo", identifier="call_1")]
    provider = SpokenProvider(calling(*twice, Call(name="echo")), saying("Done."))
    reply = await converse(Model(provider), ensembles=[make_ensemble(echo=echo)])
    assert reply[1].identifier == "call_1"
    assert_valid(reply)


async def test_the_same_failing_call_three_times_in_a_row_is_pointed_out():
    attempt, other = [("fail", {"n": 1})], [("fail", {"n": 2})]

    async def fail(_):
        raise ValueError("never works")

    model = ScriptedModel([attempt, attempt, other, attempt, attempt, attempt, attempt, "Enough."])
    reply = await converse(model, ensembles=[make_ensemble(fail=fail)])
    told = ["in a row" in result.error for result in results_of(reply)]
    assert told == [False, False, False, False, False, True, True]
    assert "never works" in results_of(reply)[5].error
    assert "failed 3 times" in results_of(reply)[5].error


async def test_the_same_failing_call_three_times_in_one_turn_is_pointed_out_too():
    async def fail(_):
        raise ValueError("never works")

    model = ScriptedModel([[("fail", {})] * 3, "Enough."])
    reply = await converse(model, ensembles=[make_ensemble(fail=fail)])
    told = ["in a row" in result.error for result in results_of(reply)]
    assert sorted(told) == [False, False, True]


async def test_a_success_between_ends_the_row_of_failures():
    answers = iter([False, False, True, False, False])

    async def flaky(_):
        if not next(answers):
            raise ValueError("not now")
        return "yes"

    model = ScriptedModel([*[[("flaky", {})]] * 5, "Done."])
    reply = await converse(model, ensembles=[make_ensemble(flaky=flaky)])
    assert not any("in a row" in (result.error or "") for result in results_of(reply))


@pytest.mark.parametrize("marked", ["by its configuration", "by itself"])
async def test_tools_that_ask_for_it_run_in_the_models_order_and_the_others_meanwhile(marked):
    running, most, begun, met = 0, 0, [], anyio.Event()

    async def write(text: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        begun.append(text)
        if text == "1":
            await met.wait()  # Others run meanwhile, but no other one that writes.
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1
        if text == "2":
            raise ValueError("disk full")
        return text

    async def meet() -> str:
        met.set()
        return "met"

    by_itself = marked == "by itself"
    writer = create_local_ensemble(
        "writer",
        [tool(sequential=True)(write) if by_itself else write],
        configuration=EnsembleConfiguration(sequential=() if by_itself else ("wri*",)),
    )
    calls = [("write", {"text": "1"}), ("write", {"text": "2"}), ("meet", {})]
    model = ScriptedModel([[*calls, ("write", {"text": "3"})], "Done."])
    ensembles = [writer, create_local_ensemble("other", [meet])]
    reply = await converse(model, ensembles=ensembles)
    assert (most, begun) == (1, ["1", "2", "3"])
    success, error = Outcome.SUCCESS, Outcome.TOOL_ERROR
    assert [r.outcome for r in results_of(reply)] == [success, error, success, success]
    assert_valid(reply)


async def test_cancellation_in_a_row_of_ordered_calls_leaves_a_result_for_each():
    ensemble = make_ensemble(
        hang=hang, configuration=EnsembleConfiguration(sequential=("*",), timeout=None)
    )
    model = ScriptedModel([[("hang", {}), ("hang", {"n": 1})], "Never said."])
    reply = await converse(model, ensembles=[ensemble], limits=Limits(seconds=0.05))
    assert "may have taken effect" in results_of(reply)[0].error
    assert "had no effect" in results_of(reply)[1].error
    assert_valid(reply)


async def test_calls_whose_arguments_cannot_be_read_are_the_same_only_where_they_are_written_so():
    calls = [[("echo", f'{{"text": {number}')] for number in range(4)]
    reply = await converse(ScriptedModel([*calls, "Done."]), ensembles=[make_ensemble(echo=echo)])
    assert not any("in a row" in result.error for result in results_of(reply))
    same = [[("echo", '{"text": ')]] * 3
    reply = await converse(ScriptedModel([*same, "Done."]), ensembles=[make_ensemble(echo=echo)])
    assert ["in a row" in result.error for result in results_of(reply)] == [False, False, True]
