# SPDX-License-Identifier: Apache-2.0
"""The loop: turns in order, limits, cancellation; every conversation ends valid."""

from __future__ import annotations

import asyncio
import functools
import pickle
from datetime import timedelta

import anyio
import pytest

from converser.canisters import (
    AssistantCanister,
    InvocationCanister,
    ResultCanister,
    Usage,
    UserCanister,
    user,
)
from converser.contents import ImageContent, TextualContent
from converser.events import (
    InvocationCompleted,
    InvocationProgressed,
    InvocationRequested,
    InvocationStarted,
    MessageFailed,
    TextDelta,
)
from converser.exceptions import (
    CanisterInvalidity,
    ConfigurationFailure,
    ModelFailure,
    NameConflict,
)
from converser.models import Model
from converser.outcomes import Outcome
from converser.replies import Limits, StopReason
from converser.testing import ScriptedModel
from converser.turns import Call, Transcript
from tests.conversations import (
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


async def test_invocations_of_a_turn_run_in_parallel_and_results_keep_the_models_order():
    arrived, everyone = [], anyio.Event()

    async def meet(arguments):
        arrived.append(arguments["n"])
        if len(arrived) == 5:
            everyone.set()
        await everyone.wait()
        for _ in range(10 - arguments["n"]):  # The first called is the last to end.
            await anyio.lowlevel.checkpoint()
        return str(arguments["n"])

    model = ScriptedModel([[("meet", {"n": n}) for n in range(5)], "Done."])
    reply = await converse(model, ensembles=[make_ensemble(meet=meet)])
    assert [result.text for result in results_of(reply)] == ["0", "1", "2", "3", "4"]
    assert_valid(reply)


async def test_no_more_invocations_run_at_once_than_the_limit():
    running, most = 0, 0

    async def work(_):
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1
        return "done"

    model = ScriptedModel([[("work", {"n": n}) for n in range(10)], "Done."])
    await converse(model, ensembles=[make_ensemble(work=work)], limits=Limits(parallel=3))
    assert most == 3


@pytest.mark.parametrize("canisters", ["Hello", ["Hello"], user("Hello"), [None], 5])
async def test_what_is_no_list_of_canisters_is_told(canisters):
    model = ScriptedModel(["Hi."])
    with pytest.raises(CanisterInvalidity, match=r"list of canisters.*converser\.user"):
        await converse(model, canisters)
    assert not model.requests


async def test_words_in_the_place_of_a_canister_are_told_where_they_are_added():
    transcript = Transcript([user("Hello")])
    with pytest.raises(CanisterInvalidity, match="list of canisters"):
        transcript.append("Go on")
    assert len(transcript) == 1


@pytest.mark.parametrize(
    "part", ["Hi.", TextualContent(text=5), ImageContent(data="aGk=", mimetype="image/png")]
)
async def test_a_canister_that_carries_no_contents_is_told_before_the_model_is_asked(part):
    model = ScriptedModel(["Hi."])
    with pytest.raises(CanisterInvalidity, match=r"type (str|int).*text as str and data as bytes"):
        await converse(model, [UserCanister(contents=(part,))])
    assert not model.requests


@pytest.mark.parametrize("ensembles", [make_ensemble(echo=echo), [echo], None])
async def test_what_is_no_list_of_ensembles_is_told(ensembles):
    model = ScriptedModel(["Hi."])
    with pytest.raises(ConfigurationFailure, match=r"list of ensembles.*create_local_ensemble"):
        await converse(model, ensembles=ensembles)
    assert not model.requests


@pytest.mark.parametrize(
    "options",
    [{"controls": {"temperature": 0}}, {"limits": {"turns": 3}}, {"policies": lambda *_: None}],
)
async def test_options_of_the_wrong_kind_are_told(options):
    model = ScriptedModel(["Hi."])
    name = next(iter(options))
    with pytest.raises(ConfigurationFailure, match=rf"'{name}' was given .* {name}=\w*"):
        await converse(model, **options)
    assert not model.requests


async def test_ensembles_may_come_one_by_one():
    model = ScriptedModel(["Hi."])
    await converse(model, ensembles=(each for each in [make_ensemble(echo=echo)]))
    assert list(model.requests[0].invokers) == ["echo"]


async def test_the_given_list_is_left_alone_and_a_transcript_grows():
    history = [user("Hello")]
    reply = await converse(ScriptedModel(["Hi."]), history)
    assert len(history) == 1
    transcript = Transcript(history)
    reply = await converse(ScriptedModel(["Hi."]), transcript)
    assert list(transcript) == [*history, *reply]


async def test_tools_are_taken_anew_for_each_turn_and_stay_the_same_object_while_unchanged():
    ensemble = make_ensemble(echo=echo)

    async def grow(_):
        ensemble._adopt([(i.tool, i.invocable) for i in other.invokers.values()])
        return "grown"

    other = make_ensemble(echo=echo, late=echo)
    grower = make_ensemble("grower", grow=grow)
    model = ScriptedModel([[("echo", {})], [("grow", {})], [("late", {"text": "!"})], "Done."])
    reply = await converse(model, ensembles=[ensemble, grower])
    assert results_of(reply)[2].text == "!"
    sets = [request.invokers for request in model.requests]
    assert sets[0] is sets[1]
    assert sets[2] is sets[3]
    assert "late" not in sets[1]
    assert "late" in sets[2]


async def test_two_tools_of_one_name_are_refused_before_the_model_is_asked():
    model = ScriptedModel(["Never said."])
    ensembles = [make_ensemble("one", echo=echo), make_ensemble("two", echo=echo)]
    with pytest.raises(NameConflict, match="'one' and 'two'"):
        await converse(model, ensembles=ensembles)
    assert not model.requests


async def test_a_limit_on_turns_ends_the_loop_with_results_for_all_calls():
    model = ScriptedModel([[("echo", {"text": str(n)})] for n in range(9)])
    reply = await converse(model, ensembles=[make_ensemble(echo=echo)], limits=Limits(turns=3))
    assert reply.reason is StopReason.TURNS_LIMIT
    assert [result.text for result in results_of(reply)] == ["0", "1", "2"]
    assert_valid(reply)


async def test_a_limit_on_calls_refuses_the_rest_and_ends_the_loop():
    model = ScriptedModel([[("echo", {"text": str(n)}) for n in range(2)]] * 9)
    reply = await converse(model, ensembles=[make_ensemble(echo=echo)], limits=Limits(calls=3))
    assert reply.reason is StopReason.CALLS_LIMIT
    assert [result.outcome for result in results_of(reply)] == [
        *[Outcome.SUCCESS] * 3,
        Outcome.REFUSED,
    ]
    assert "limit of 3 calls" in results_of(reply)[3].error
    assert_valid(reply)


async def test_a_limit_on_calls_that_is_just_met_lets_the_model_answer():
    model = ScriptedModel([[("echo", {})], "Done."])
    reply = await converse(model, ensembles=[make_ensemble(echo=echo)], limits=Limits(calls=1))
    assert (reply.reason, reply.text) == (StopReason.DONE, "Done.")


async def test_a_limit_on_tokens_ends_the_loop_before_the_next_turn():
    usage = Usage(tokens_in=8, tokens_out=2)
    model = ScriptedModel([[("echo", {})]] * 9, usage=usage)
    reply = await converse(model, ensembles=[make_ensemble(echo=echo)], limits=Limits(tokens=30))
    assert reply.reason is StopReason.TOKENS_LIMIT
    assert len(model.requests) == 3
    assert_valid(reply)


async def test_a_limit_on_time_stops_calls_and_keeps_what_was_completed():
    model = ScriptedModel([[("echo", {"text": "quick"}), ("hang", {})], "Never said."])
    ensemble = make_ensemble(echo=echo, hang=hang)
    reply = await converse(model, ensembles=[ensemble], limits=Limits(seconds=0.05))
    assert reply.reason is StopReason.TIME_LIMIT
    quick, slow = results_of(reply)
    assert quick.text == "quick"
    assert slow.outcome is Outcome.TIMED_OUT
    assert "time of the conversation ran out" in slow.error
    assert_valid(reply)


async def test_a_limit_on_time_stops_a_silent_model():
    class Silent(SpokenProvider):
        async def stream_turn(self, request):
            await anyio.sleep_forever()
            yield

    reply = await converse(Model(Silent()), limits=Limits(seconds=0.01))
    assert (reply.reason, len(reply)) == (StopReason.TIME_LIMIT, 0)
    assert reply.text == ""


@pytest.mark.parametrize(
    ("stop_reason", "reason"),
    [
        ("stop", StopReason.DONE),
        ("length", StopReason.TRUNCATED),
        ("filtered", StopReason.FILTERED),
        (None, StopReason.DONE),
    ],
)
async def test_the_models_own_stop_reason_becomes_the_typed_one(stop_reason, reason):
    reply = await converse(Model(SpokenProvider(saying("Well,", stop_reason))))
    assert reply.reason is reason


@pytest.mark.parametrize(
    "wrong",
    [
        {"turns": -1},
        {"turns": "5"},
        {"seconds": -0.5},
        {"seconds": float("nan")},
        {"seconds": timedelta(minutes=1)},
        {"parallel": 0},
        {"parallel": None},
        {"result_budget": "much"},
    ],
    ids=str,
)
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigurationFailure, match=next(iter(wrong))):
        Limits(**wrong)


async def start_and_cancel(model, transcript, began, **options):
    """Cancels `converse` once `began` is set."""
    async with anyio.create_task_group() as tasks:

        async def run():
            await model.converse(transcript, **options)

        tasks.start_soon(run)
        with anyio.fail_after(10):
            await began.wait()
        tasks.cancel_scope.cancel()


async def test_cancellation_stops_calls_keeps_what_was_completed_and_the_conversation_goes_on():
    began, stopped = anyio.Event(), []

    async def wait(_):
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(True)
        return ""

    ensemble = make_ensemble(echo=echo, wait=wait)
    script = [
        [("echo", {"text": "1"})],
        [("echo", {"text": "2"}), ("wait", {}), ("wait", {"n": 1})],
    ]
    transcript = Transcript([user("Go on.")])
    seen = []
    await start_and_cancel(
        ScriptedModel(script),
        transcript,
        began,
        ensembles=[ensemble],
        events=seen.append,
        limits=Limits(parallel=1),
    )
    assert_valid(transcript)
    assert stopped == [True]
    outcomes = [result.outcome for result in results_of(transcript)]
    assert outcomes == [Outcome.SUCCESS, Outcome.SUCCESS, Outcome.CANCELLED, Outcome.CANCELLED]
    assert "may have taken effect" in results_of(transcript)[2].error
    assert "had no effect" in results_of(transcript)[3].error
    completed = [event.result for event in seen if isinstance(event, InvocationCompleted)]
    assert sorted(r.identifier for r in completed) == sorted(
        r.identifier for r in results_of(transcript)
    )
    transcript.append(user("And now?"))
    reply = await converse(ScriptedModel(["Here we are."]), transcript)
    assert reply.text == "Here we are."


async def test_cancellation_reaches_the_server_and_leaves_its_connection_usable(awkward_server):
    from converser.mcp.clients import InProcessMCPClient
    from converser.mcp.discovery import discover_mcp_tools

    began, transcript = anyio.Event(), Transcript([user("Go.")])

    def listen(event):
        if isinstance(event, InvocationProgressed):
            began.set()

    with anyio.fail_after(20):
        async with await discover_mcp_tools(InProcessMCPClient(awkward_server), "far") as ensemble:
            model = ScriptedModel([[("slow", {"seconds": 60})]])
            options = {"ensembles": [ensemble], "events": listen}
            await start_and_cancel(model, transcript, began, **options)
            told = await ensemble.access_invoker("cancellations")({"at_least": 1})
    assert told.text == "1"
    assert_valid(transcript)
    assert results_of(transcript)[0].outcome is Outcome.CANCELLED


async def test_cancelling_a_plain_asyncio_task_leaves_a_valid_transcript_too():
    began = anyio.Event()

    async def wait(_):
        began.set()
        return await hang(_)

    transcript = Transcript([user("Go.")])
    model = ScriptedModel([[("wait", {})]])
    ensembles = [make_ensemble(wait=wait)]
    task = asyncio.create_task(model.converse(transcript, ensembles=ensembles))
    with anyio.fail_after(10):
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert_valid(transcript)
    assert results_of(transcript)[0].outcome is Outcome.CANCELLED


async def test_cancellation_while_the_model_speaks_closes_its_stream():
    began, closed = anyio.Event(), []

    class Silent(SpokenProvider):
        async def stream_turn(self, request):
            began.set()
            try:
                await anyio.sleep_forever()
            finally:
                closed.append(True)
            yield

    transcript = Transcript([user("Go.")])
    await start_and_cancel(Model(Silent()), transcript, began)
    assert closed == [True]
    assert len(transcript) == 1


@pytest.mark.parametrize(
    "moment",
    [InvocationRequested, InvocationStarted, InvocationCompleted],
    ids=lambda k: k.__name__,
)
async def test_what_is_added_while_calls_run_comes_after_their_results_and_is_read_next(moment):
    transcript = Transcript([user("Count the gulls.")])
    interjection = user("Only the white ones.")

    def interject(event):
        if isinstance(event, moment):
            transcript.append(interjection)
            assert interjection not in transcript

    model = ScriptedModel([[("echo", {}), ("echo", {})], "7 of them are white."])
    await converse(model, transcript, ensembles=[make_ensemble(echo=echo)], events=interject)
    kinds = [type(each).__name__.removesuffix("Canister") for each in transcript]
    calls = ["Invocation"] * 2 + ["Result"] * 2
    assert kinds == ["User", "Assistant", *calls, "User", "User", "Assistant"]
    assert interjection in model.requests[1].canisters


async def test_conversations_in_one_transcript_come_one_after_the_other():
    transcript = Transcript([user("Hello")])
    begun, go_on = anyio.Event(), anyio.Event()

    async def wait(_):
        begun.set()
        await go_on.wait()
        return "waited"

    first = ScriptedModel([[("wait", {})], "First."])
    second = ScriptedModel([[("wait", {})], "Second."])
    options = {"ensembles": [make_ensemble(wait=wait)]}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(functools.partial(converse, first, transcript, **options))
        await begun.wait()
        tasks.start_soon(functools.partial(converse, second, transcript, **options))
        await anyio.wait_all_tasks_blocked()
        assert not second.requests
        go_on.set()
    assert_valid(transcript)
    assert [transcript[4].text, transcript[8].text] == ["First.", "Second."]


async def test_a_tool_that_continues_the_conversation_it_is_called_in_is_told(monkeypatch):
    monkeypatch.setattr("converser.loop._PATIENCE", 0.02)
    transcript = Transcript([user("Hello")])

    async def ask_again(_):
        return (await ScriptedModel(["Inner."]).converse(transcript)).text

    model = ScriptedModel([[("ask_again", {})], "Oh."])
    reply = await converse(model, transcript, ensembles=[make_ensemble(ask_again=ask_again)])
    assert "Transcript(transcript)" in results_of(reply)[0].error
    assert_valid(transcript)
    assert (await converse(ScriptedModel(["Again."]), transcript)).text == "Again."


async def test_a_failing_provider_is_a_model_failure_and_the_turn_can_be_tried_again():
    provider = SpokenProvider(
        calling(Call(name="echo")), [TextDelta(text="Well"), OSError("reset")], saying("Fine.")
    )
    transcript, seen = Transcript([user("Go.")]), []
    model, ensembles = Model(provider), [make_ensemble(echo=echo)]
    with pytest.raises(ModelFailure, match="'spoken' failed: OSError: reset") as caught:
        await converse(model, transcript, ensembles=ensembles, events=seen.append)
    assert isinstance(caught.value.__cause__, OSError)
    assert isinstance(seen[-1], MessageFailed)
    assert seen[-1].failure is caught.value
    assert len(transcript) == 4
    assert_valid(transcript)
    assert (await converse(model, transcript, ensembles=ensembles)).text == "Fine."


async def test_a_failure_has_what_was_completed_before_it_also_where_a_list_was_given():
    provider = SpokenProvider(calling(Call(name="echo")), [OSError("reset")], saying("Fine."))
    model, history = Model(provider), [user("Go.")]
    with pytest.raises(ModelFailure) as caught:
        await converse(model, history, ensembles=[make_ensemble(echo=echo)])
    assert [type(each) for each in caught.value.canisters] == [
        AssistantCanister,
        InvocationCanister,
        ResultCanister,
    ]
    reply = await converse(model, [*history, *caught.value.canisters])
    assert reply.text == "Fine."
    assert pickle.loads(pickle.dumps(caught.value)).canisters == caught.value.canisters


async def test_a_failure_of_the_providers_own_is_raised_as_it_is():
    failure, seen = ModelFailure("No key.", remedy="Set one."), []
    with pytest.raises(ModelFailure) as caught:
        await converse(Model(SpokenProvider([failure])), events=seen.append)
    assert caught.value is failure
    assert seen[-1] == MessageFailed(turn=1, failure=failure)


async def test_a_stream_that_ends_without_completion_is_a_failure_and_not_an_answer():
    transcript = Transcript([user("Go.")])
    with pytest.raises(ModelFailure, match="ended before it was complete"):
        await converse(Model(SpokenProvider([TextDelta(text="Half an ans")])), transcript)
    assert len(transcript) == 1


async def test_a_model_closes_its_provider():
    provider = SpokenProvider(saying("Hi."))
    async with Model(provider) as model:
        assert (model.name, repr(model)) == ("spoken", "Model('spoken')")
    assert provider.closed


async def test_a_thousand_turns_touch_each_canister_once():
    class Counting(Transcript):
        touched = 0

        def __iter__(self):
            type(self).touched += len(self)
            return super().__iter__()

        def __getitem__(self, index):
            got = super().__getitem__(index)
            type(self).touched += len(got) if isinstance(index, slice) else 1
            return got

    class Translating(SpokenProvider):
        """Translates only what is new, as a provider that keeps its translations does."""

        def __init__(self):
            super().__init__()
            self.known = {}
            self.sizes = []
            self.views = set()

        async def stream_turn(self, request):
            canisters = request.canisters
            for canister in canisters[len(self.known) :]:
                assert canister.identifier not in self.known
                self.known[canister.identifier] = canister
            self.sizes.append(len(canisters))
            self.views.add(id(canisters))
            for item in calling(Call(name="echo")):
                yield item

    provider, transcript = Translating(), Counting([user("Go")])
    options = {"ensembles": [make_ensemble(echo=echo)], "limits": Limits(turns=1000)}
    with anyio.fail_after(60):
        reply = await Model(provider).converse(transcript, **options)
    assert len(reply) == 3000
    assert provider.sizes == [1 + 3 * turn for turn in range(1000)]
    assert len(provider.views) == 1
    assert all(provider.known[canister.identifier] is canister for canister in reply[:2999:500])
    # Each canister is read once by the provider and once for the reply, and no more.
    assert Counting.touched <= 2 * len(transcript)
