# SPDX-License-Identifier: Apache-2.0
"""Without `async`: the same conversations, from a thread that waits; Ctrl-C cancels and keeps what was done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import anyio
import pytest

from converser import blocking
from converser.canisters import user
from converser.ensembles import Ensemble
from converser.events import InvocationStarted, ReplyCompleted, TextDelta
from converser.exceptions import (
    ConverserFailure,
    MCPConnectionFailure,
    ModelFailure,
    ToolExecutionFailure,
)
from converser.mcp.clients import InProcessMCPClient, StdioMCPClient
from converser.models import Model
from converser.outcomes import Outcome
from converser.testing import ScriptedModel
from converser.turns import Transcript
from tests.conversations import (
    SpokenProvider,
    assert_valid,
    echo,
    hang,
    make_ensemble,
    results_of,
    saying,
)


@pytest.fixture(autouse=True)
def end_of_the_shared_thread():
    yield
    blocking.close()
    assert not [each for each in threading.enumerate() if each.name == "converser portal"]


def test_a_conversation_is_the_same_as_with_async():
    model = ScriptedModel([[("echo", {"text": "hi"})], "Done."])
    reply = blocking.converse(model, [user("Go.")], ensembles=[make_ensemble(echo=echo)])
    assert reply.text == "Done."
    assert results_of(reply)[0].text == "hi"


def test_all_calls_share_one_thread_until_it_is_closed():
    async def tell():
        return threading.current_thread()

    thread = blocking.run(tell)
    assert thread is blocking.run(tell)
    assert thread is not threading.current_thread()
    blocking.close()
    assert not thread.is_alive()
    assert blocking.run(tell).is_alive()


def test_a_server_is_discovered_called_and_let_go_of(awkward_server):
    with blocking.open_portal() as portal:
        far = portal.discover_mcp_tools(InProcessMCPClient(awkward_server), "far")
        assert portal.call(far.access_invoker("echo"), {"text": "hi"}).text == "hi"
        model = ScriptedModel([[("echo", {"text": "ho"})], "Done."])
        assert portal.converse(model, [user("Go.")], ensembles=[far]).text == "Done."
        state = far.connection.state
        assert str(state) == "connected"
    assert str(far.connection.state) == "disconnected"


def test_an_ensemble_is_connected_and_disconnected_with_the_portal(awkward_server):
    client = InProcessMCPClient(awkward_server)
    with blocking.open_portal() as portal:
        far = portal.connect(Ensemble("far", connection=client))
        assert "echo" in far.invokers
    assert str(client.state) == "disconnected"


def test_a_model_is_closed_with_the_portal_and_only_once():
    class Counting(SpokenProvider):
        closings = 0

        async def close(self):
            self.closings += 1

    provider = Counting(saying("Hi."))
    model = Model(provider)
    with blocking.open_portal() as portal:
        assert portal.converse(model, [user("Go.")]).text == "Hi."
        assert portal.converse(model, [user("Go.")]).text == "Hi."
    assert provider.closings == 1


def test_failures_arrive_as_they_are():
    with pytest.raises(ModelFailure, match="has no turn left"):
        blocking.converse(ScriptedModel([]), [user("Go.")])
    with pytest.raises(MCPConnectionFailure):
        blocking.discover_mcp_tools(StdioMCPClient(command=["/no/such/program"]), "none")

    async def fail(_):
        raise ValueError("broken")

    with pytest.raises(ToolExecutionFailure, match="broken"):
        blocking.call(make_ensemble(fail=fail).access_invoker("fail"))


def test_a_stream_gives_the_events_and_raises_what_fails():
    events = list(blocking.stream(ScriptedModel(["Hi there."]), [user("Go.")]))
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hi there."
    assert isinstance(events[-1], ReplyCompleted)
    with pytest.raises(ModelFailure):
        list(blocking.stream(ScriptedModel([]), [user("Go.")]))


def test_leaving_a_stream_cancels_the_conversation_and_keeps_a_valid_transcript():
    transcript = Transcript([user("Go.")])
    model = ScriptedModel([[("hang", {})]])
    stream = blocking.stream(model, transcript, ensembles=[make_ensemble(hang=hang)])
    for event in stream:
        if isinstance(event, InvocationStarted):
            break
    stream.close()
    assert results_of(transcript)[0].outcome is Outcome.CANCELLED
    assert_valid(transcript)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("delay", [0, 2000])  # Before the waiting has begun, perhaps; and later.
def test_an_interrupt_cancels_the_work_keeps_what_was_completed_and_the_thread_goes_on(delay):
    transcript, main = Transcript([user("Go.")]), threading.main_thread().ident

    async def strike(_):
        for _ in range(delay):
            await anyio.lowlevel.checkpoint()
        signal.pthread_kill(main, signal.SIGINT)
        await anyio.sleep_forever()
        return ""

    model = ScriptedModel([[("echo", {"text": "1"}), ("strike", {})], "Never said."])
    ensembles = [make_ensemble(echo=echo, strike=strike)]
    with pytest.raises(KeyboardInterrupt):
        blocking.converse(model, transcript, ensembles=ensembles)
    assert [r.outcome for r in results_of(transcript)] == [Outcome.SUCCESS, Outcome.CANCELLED]
    assert_valid(transcript)
    assert blocking.converse(ScriptedModel(["Still here."]), transcript).text == "Still here."


def test_several_threads_may_use_it_at_once():
    texts = {}

    def work(number):
        texts[number] = blocking.converse(ScriptedModel([str(number)]), [user("Go.")]).text

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert texts == {number: str(number) for number in range(8)}


def test_closing_cancels_what_another_thread_waits_for():
    transcript, begun, failures = Transcript([user("Go.")]), threading.Event(), []

    def work():
        model = ScriptedModel([[("hang", {})]])
        ensembles = [make_ensemble(hang=hang)]
        try:
            blocking.converse(model, transcript, ensembles=ensembles, events=hear)
        except ConverserFailure as failure:
            failures.append(failure)

    def hear(event):
        if isinstance(event, InvocationStarted):
            begun.set()

    workers = [threading.Thread(target=task, daemon=True) for task in (work, blocking.close)]
    workers[0].start()
    assert begun.wait(10)
    workers[1].start()
    for worker in workers:
        worker.join(10)
    assert not any(worker.is_alive() for worker in workers)
    assert "closed before the work was done" in str(failures[0])
    assert results_of(transcript)[0].outcome is Outcome.CANCELLED
    assert blocking.converse(ScriptedModel(["Still here."]), transcript).text == "Still here."


def test_a_stream_may_be_left_after_its_portal():
    with blocking.open_portal() as portal:
        model = ScriptedModel([[("hang", {})]])
        stream = portal.stream(model, [user("Go.")], ensembles=[make_ensemble(hang=hang)])
        next(stream)
    stream.close()
    assert next(stream, None) is None


def test_a_program_that_forgets_to_close_ends_by_itself_with_its_servers(awkward_command):
    program = f"""
from converser import StdioMCPClient, blocking
far = blocking.discover_mcp_tools(StdioMCPClient(command={awkward_command!r}), "far")
print(blocking.call(far.access_invoker("echo"), {{"text": "hi"}}).text)
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", program],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "hi\n", "")


def test_what_is_closed_only_when_the_interpreter_ends_is_told_so_and_holds_up_nothing():
    program = """
from converser import blocking
from converser.testing import ScriptedModel
class Assistant:
    model = ScriptedModel([])
    def __del__(self):
        blocking.run(self.model.close)
assistant = Assistant()
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0
    assert "The program is at its end" in ended.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize(
    ("portal", "told", "end"),
    [
        ("blocking", "Hi.", "sys.exit"),
        ("portal", "This portal cannot be used", "os._exit"),
    ],
)
def test_a_forked_process_has_a_thread_of_its_own_and_never_waits_for_its_parents(
    portal, told, end
):
    program = f"""
import os, signal, sys
from converser import ConverserFailure, blocking, user
from converser.testing import ScriptedModel
blocking.converse(ScriptedModel(["Hi."]), [user("Hello")])
with blocking.open_portal() as portal:
    if not (child := os.fork()):
        signal.alarm(20)
        try:
            print({portal}.converse(ScriptedModel(["Hi."]), [user("Hello")]).text, flush=True)
        except ConverserFailure as failure:
            print(failure, flush=True)
        {end}(3)
    status = os.waitpid(child, 0)[1]
print(os.waitstatus_to_exitcode(status), blocking.converse(ScriptedModel(["Hi."]), [user("?")]).text)
"""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    child, parent = ended.stdout.splitlines()
    assert child.startswith(told)
    assert (parent, ended.stderr) == ("3 Hi.", "")


def test_a_portal_that_is_closed_says_so_with_the_remedy():
    with blocking.open_portal() as portal:
        assert portal.converse(ScriptedModel(["Hi."]), [user("Hello")]).text == "Hi."
    with pytest.raises(ConverserFailure, match=r"cannot be used.*open_portal"):
        portal.converse(ScriptedModel(["Hi."]), [user("Hello")])
