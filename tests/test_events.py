# SPDX-License-Identifier: Apache-2.0
"""Events: what happened, in order, for observers that can harm nothing; and as a stream."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from contextlib import aclosing

import anyio
import pytest
from anyio import from_thread, to_thread

from converser.canisters import AssistantCanister, ResultCanister, UserCanister, user
from converser.ensembles import EnsembleConfiguration
from converser.events import (
    InvocationCompleted,
    InvocationProgressed,
    InvocationRequested,
    InvocationStarted,
    MessageCompleted,
    MessageFailed,
    MessageStarted,
    ReplyCompleted,
    ServerStateChanged,
    TextDelta,
    ToolsChanged,
)
from converser.exceptions import (
    ModelFailure,
)
from converser.functions import create_local_ensemble
from converser.invokers import Context
from converser.outcomes import Outcome
from converser.policies import deny
from converser.testing import ScriptedModel
from converser.turns import Transcript
from tests.conversations import (
    assert_valid,
    converse,
    echo,
    hang,
    make_ensemble,
    results_of,
)

pytestmark = pytest.mark.anyio


async def test_events_come_in_order_and_name_what_happened():
    seen = []
    model = ScriptedModel([[("echo", {"text": "hi"})], "Done."])
    reply = await converse(model, ensembles=[make_ensemble(echo=echo)], events=seen.append)
    assert [type(event) for event in seen] == [
        MessageStarted,
        MessageCompleted,
        InvocationRequested,
        InvocationStarted,
        InvocationCompleted,
        MessageStarted,
        TextDelta,
        MessageCompleted,
        ReplyCompleted,
    ]
    done = seen[4]
    assert (done.name, done.arguments) == ("echo", {"text": "hi"})
    assert (done.ensemble, done.source) == ("local", "local")
    assert done.result == reply[2]
    assert done.duration > 0
    assert (seen[0].turn, seen[5].turn, seen[0].model) == (1, 2, "scripted")
    assert seen[-1].reply == reply


async def test_a_call_on_a_server_is_told_apart_as_mcp_and_its_progress_is_heard(awkward_server):
    from converser.mcp.clients import InProcessMCPClient
    from converser.mcp.discovery import discover_mcp_tools

    seen = []
    model = ScriptedModel([[("slow", {"seconds": 0, "steps": 2})], "Done."])
    with anyio.fail_after(20):
        async with await discover_mcp_tools(InProcessMCPClient(awkward_server), "far") as ensemble:
            await model.converse([user("Go")], ensembles=[ensemble], events=seen.append)
    progress = next(event for event in seen if isinstance(event, InvocationProgressed))
    assert (progress.ensemble, progress.source) == ("far", "mcp")
    assert (progress.progress, progress.total, progress.message) == (0, 2, "started")
    done = next(event for event in seen if isinstance(event, InvocationCompleted))
    assert (done.ensemble, done.source, done.result.outcome) == ("far", "mcp", Outcome.SUCCESS)


async def test_a_refused_call_is_completed_but_never_started():
    seen = []
    model = ScriptedModel([[("echo", {})], "Oh."])
    options = {"policies": [lambda *_: deny("no")], "events": seen.append}
    await converse(model, ensembles=[make_ensemble(echo=echo)], **options)
    kinds = [type(event) for event in seen]
    assert InvocationStarted not in kinds
    assert next(e for e in seen if isinstance(e, InvocationCompleted)).duration == 0


class Panic(BaseException):
    """What extensions written in Rust raise when they panic."""


@pytest.mark.parametrize("way", ["plain", "async"])
@pytest.mark.parametrize("kind", [RuntimeError, Panic])
async def test_a_raising_observer_harms_nothing_and_is_logged_once(kind, way, caplog):
    def explode(_):
        raise kind("observer's own mistake")

    async def explode_beside(_):
        explode(_)

    with caplog.at_level(logging.WARNING, "converser"):
        observer = explode if way == "plain" else explode_beside
        reply = await converse(ScriptedModel(["A long answer."]), events=observer)
    assert reply.text == "A long answer."
    assert len(caplog.records) == 1
    assert "observer's own mistake" in caplog.text


async def test_an_observer_whose_own_work_was_cancelled_harms_nothing(caplog):
    seen = []

    async def listen(event):
        seen.append(event)
        raise asyncio.CancelledError

    def hear(event):
        seen.append(event)
        raise asyncio.CancelledError

    for observer in (listen, hear):
        seen.clear()
        with caplog.at_level(logging.WARNING, "converser"):
            reply = await converse(ScriptedModel(["Hi."]), events=observer)
        assert reply.text == "Hi."
        assert seen[-1] == ReplyCompleted(reply=reply)
    assert "the conversation goes on" in caplog.text


async def test_a_slow_plain_observer_is_pointed_out(caplog):
    def dawdle(event):
        if isinstance(event, MessageStarted):
            time.sleep(0.15)

    with caplog.at_level(logging.WARNING, "converser"):
        await converse(ScriptedModel(["Hi."]), events=dawdle)
    assert "make it async" in caplog.text


async def test_an_async_observer_hears_everything_in_order_and_holds_up_nothing():
    seen, ended = [], anyio.Event()

    async def listen(event):
        if not seen:
            with anyio.fail_after(5):
                await ended.wait()  # The conversation goes on while the observer waits.
        seen.append(event)

    async def finish(_):
        ended.set()
        return "done"

    model = ScriptedModel([[("finish", {})], "Done."])
    reply = await converse(model, ensembles=[make_ensemble(finish=finish)], events=listen)
    assert reply.text == "Done."
    assert isinstance(seen[0], MessageStarted)
    assert seen[-1] == ReplyCompleted(reply=reply)


async def test_an_async_observer_that_raises_or_never_returns_harms_nothing(caplog):
    class Observer:
        async def __call__(self, event):
            if isinstance(event, MessageStarted):
                raise RuntimeError("observer's own mistake")
            await anyio.sleep_forever()

    with caplog.at_level(logging.WARNING, "converser"):
        reply = await converse(ScriptedModel(["Hi."]), events=Observer())
    assert reply.text == "Hi."
    assert "observer's own mistake" in caplog.text
    assert "it loses the last ones" in caplog.text


async def test_an_async_observer_that_cannot_keep_up_misses_words_and_never_the_message(caplog):
    seen = []

    async def listen(event):
        seen.append(event)

    model = ScriptedModel(["word " * 20_000])
    with caplog.at_level(logging.WARNING, "converser"):
        reply = await converse(model, events=listen)
    kinds = [type(event) for event in seen if not isinstance(event, TextDelta)]
    assert kinds == [MessageStarted, MessageCompleted, ReplyCompleted]
    assert seen[-1].reply == reply
    assert "it loses pieces of messages" in caplog.text


async def test_an_async_observer_hears_how_calls_end_that_are_cancelled(caplog):
    seen, begun = [], anyio.Event()

    async def listen(event):
        await anyio.lowlevel.checkpoint()
        seen.append(event)

    async def begin(_):
        begun.set()
        return await hang({})

    model = ScriptedModel([[("begin", {}), ("hang", {})], "Never said."])
    ensemble = make_ensemble(begin=begin, hang=hang)
    with anyio.fail_after(10), caplog.at_level(logging.WARNING, "converser"):
        async with anyio.create_task_group() as tasks:
            talk = functools.partial(converse, model, ensembles=[ensemble], events=listen)
            tasks.start_soon(talk)
            await begun.wait()
            tasks.cancel_scope.cancel()
    outcomes = [event.result.outcome for event in seen if isinstance(event, InvocationCompleted)]
    assert outcomes == [Outcome.CANCELLED] * 2
    assert not caplog.records


async def test_cancellation_waits_for_no_observer_that_never_returns(caplog):
    begun = anyio.Event()

    async def listen(_):
        begun.set()
        await anyio.sleep_forever()

    with anyio.fail_after(10), caplog.at_level(logging.WARNING, "converser"):
        async with anyio.create_task_group() as tasks:
            ensemble = make_ensemble(hang=hang)
            model = ScriptedModel([[("hang", {})], "Never said."])
            tasks.start_soon(
                functools.partial(converse, model, ensembles=[ensemble], events=listen)
            )
            await begun.wait()
            tasks.cancel_scope.cancel()
    assert "it loses the last ones" in caplog.text


async def test_a_model_failure_under_an_async_observer_is_raised_plainly():
    async def listen(_): ...

    with pytest.raises(ModelFailure, match="no turn left"):
        await converse(ScriptedModel([]), events=listen)


@pytest.mark.parametrize("way", ["plain", "async", "stream"])
async def test_a_thread_that_goes_on_after_its_time_makes_no_events(way, caplog):
    gone_on, reported, events = threading.Event(), threading.Event(), []

    def linger(context: Context) -> None:
        gone_on.wait(30)
        from_thread.run(context.on_progress, 1.0, None, "late")
        reported.set()

    async def listen(event):
        events.append(event)

    def resume(_):
        gone_on.set()
        return "Done."

    # Long enough for the thread to begin on a busy machine.
    configuration = EnsembleConfiguration(timeout=0.5)
    ensemble = create_local_ensemble("slow", [linger], configuration=configuration)
    model, options = ScriptedModel([[("linger", {})], resume]), {"ensembles": [ensemble]}
    with anyio.fail_after(10):
        if way == "stream":
            events = [event async for event in model.stream([user("Hello")], **options)]
        else:
            observer = listen if way == "async" else events.append
            await converse(model, events=observer, **options)
    assert await to_thread.run_sync(reported.wait, 10)
    assert not any(isinstance(event, InvocationProgressed) for event in events)
    assert isinstance(events[-1], ReplyCompleted)
    assert not caplog.records


async def test_stream_gives_the_same_events_and_the_same_reply_as_converse():
    script = [[("echo", {"text": "hi"}), ("nope", {})], "All is done."]
    ensembles = [make_ensemble(echo=echo)]
    heard, streamed = [], []
    reply = await converse(ScriptedModel(script), ensembles=ensembles, events=heard.append)
    with anyio.fail_after(10):
        stream = ScriptedModel(script).stream([user("Hello")], ensembles=ensembles)
        async for event in stream:
            streamed.append(event)
    assert [type(event) for event in streamed] == [type(event) for event in heard]
    same = streamed[-1].reply
    assert [type(c) for c in same] == [type(c) for c in reply]
    assert (same.text, same.reason, same.usage) == (reply.text, reply.reason, reply.usage)


async def test_stream_raises_what_converse_raises():
    seen = []

    async def read():
        async for event in ScriptedModel([]).stream([user("Hello")]):
            seen.append(event)

    with anyio.fail_after(10), pytest.raises(ModelFailure, match="no turn left"):
        await read()
    assert isinstance(seen[-1], MessageFailed)


async def test_events_are_streamed_while_a_call_still_runs():
    release = anyio.Event()

    async def wait(_):
        await release.wait()
        return "released"

    model = ScriptedModel([[("wait", {})], "Done."])
    with anyio.fail_after(10):
        async for event in model.stream([user("Go")], ensembles=[make_ensemble(wait=wait)]):
            if isinstance(event, InvocationStarted):
                release.set()
    assert event.reply.text == "Done."


async def test_leaving_a_stream_cancels_its_calls_and_keeps_a_valid_transcript():
    transcript = Transcript([user("Go")])
    model = ScriptedModel([[("hang", {})], "Never said."])
    stream = model.stream(transcript, ensembles=[make_ensemble(hang=hang)])
    with anyio.fail_after(10):
        async for event in stream:
            if isinstance(event, InvocationStarted):
                break
        await stream.aclose()
    assert_valid(transcript)
    assert results_of(transcript)[0].outcome is Outcome.CANCELLED


async def test_a_stream_that_is_only_broken_out_of_leaves_a_conversation_that_goes_on_at_once():
    transcript = Transcript([user("Hello")])
    model = ScriptedModel([[("hang", {})], "Never said."])
    with anyio.fail_after(10):
        async for event in model.stream(transcript, ensembles=[make_ensemble(hang=hang)]):
            if isinstance(event, InvocationStarted):
                break
    transcript.append(user("Never mind."))
    reply = await converse(ScriptedModel(["All right."]), transcript)
    assert_valid(transcript)
    assert [type(each) for each in transcript[-3:]] == [
        ResultCanister,
        UserCanister,
        AssistantCanister,
    ]
    assert (transcript[-3].outcome, reply.text) == (Outcome.CANCELLED, "All right.")


async def test_cancelling_the_reader_of_a_stream_cancels_the_conversation():
    transcript, began = Transcript([user("Go")]), anyio.Event()

    async def wait(_):
        began.set()
        return await hang(_)

    async def read():
        model = ScriptedModel([[("wait", {})]])
        async for _ in model.stream(transcript, ensembles=[make_ensemble(wait=wait)]):
            pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        with anyio.fail_after(10):
            await began.wait()
        tasks.cancel_scope.cancel()
    assert_valid(transcript)


async def test_a_stream_that_is_cancelled_twice_leaves_a_valid_transcript_too():
    transcript, began = Transcript([user("Go")]), anyio.Event()
    ending, end = anyio.Event(), anyio.Event()

    async def wait(_):
        began.set()
        try:
            return await hang(_)
        finally:
            ending.set()
            with anyio.CancelScope(shield=True):
                await end.wait()

    async def read():
        model = ScriptedModel([[("wait", {})]])
        async with aclosing(
            model.stream(transcript, ensembles=[make_ensemble(wait=wait)])
        ) as stream:
            async for _ in stream:
                pass

    task = asyncio.create_task(read())
    with anyio.fail_after(10):
        await began.wait()
        task.cancel()
        await ending.wait()
        task.cancel()
        await anyio.wait_all_tasks_blocked()
        end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert_valid(transcript)


async def test_an_observer_hears_of_the_servers_in_use_for_as_long_as_it_converses(awkward_server):
    from converser.mcp.clients import InProcessMCPClient
    from converser.mcp.discovery import discover_mcp_tools

    seen, grown = [], anyio.Event()

    def listen(event):
        seen.append(event)
        if isinstance(event, ToolsChanged):
            grown.set()

    async def wait(_):
        await grown.wait()
        return "grown"

    async def unplug(_):
        await far.disconnect()
        return "unplugged"

    model = ScriptedModel([[("grow", {})], [("wait", {})], [("unplug", {})], "Done."])
    with anyio.fail_after(20):
        async with await discover_mcp_tools(InProcessMCPClient(awkward_server), "far") as far:
            near = make_ensemble(wait=wait, unplug=unplug)
            reply = await converse(model, ensembles=[far, near, far], events=listen)
            await far.connect()
    assert reply.text == "Done."
    changes = [event for event in seen if isinstance(event, ToolsChanged)]
    assert len(changes) == 1
    assert changes[0].server == "far"
    assert changes[0].added[0] in model.requests[2].invokers
    assert changes[0].added[0] not in model.requests[0].invokers
    states = [event.state for event in seen if isinstance(event, ServerStateChanged)]
    assert states[-1] == "disconnected"
    assert "connected" not in states
    assert isinstance(seen[-1], ReplyCompleted)


async def test_a_stream_and_an_async_observer_hear_of_servers_too(awkward_server):
    from converser.mcp.clients import InProcessMCPClient
    from converser.mcp.discovery import discover_mcp_tools

    heard = []

    async def listen(event):
        heard.append(event)

    async def unplug(_):
        await far.disconnect()
        return "unplugged"

    with anyio.fail_after(20):
        async with await discover_mcp_tools(InProcessMCPClient(awkward_server), "far") as far:
            ensembles = [far, make_ensemble(unplug=unplug)]
            script = [[("unplug", {})], "Done."]
            await converse(ScriptedModel(script), ensembles=ensembles, events=listen)
            await far.connect()
            stream = ScriptedModel(script).stream([], ensembles=ensembles)
            streamed = [event async for event in stream]
    for events in (heard, streamed):
        states = [event.state for event in events if isinstance(event, ServerStateChanged)]
        assert states[-1] == "disconnected"


async def test_a_plain_observer_that_gives_a_coroutine_is_told_to_be_async(caplog):
    async def listen(_):
        raise AssertionError("never awaited, and closed without a warning")

    def pass_on(event):
        return listen(event)

    await converse(ScriptedModel(["Hi."]), events=pass_on)
    assert [record.message.split(":")[1] for record in caplog.records] == [
        " make it an async function. This is said once."
    ]


async def test_leaving_a_stream_says_nothing(caplog):
    ensemble = make_ensemble(hang=hang)
    stream = ScriptedModel([[("hang", {})], "Done."]).stream([user("Go.")], ensembles=[ensemble])
    async for event in stream:
        if isinstance(event, InvocationStarted):
            break
    await stream.aclose()
    assert caplog.records == []
