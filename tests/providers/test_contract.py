# SPDX-License-Identifier: Apache-2.0
"""What every provider must do, each sentence written once; a wire stands for each service."""

from __future__ import annotations

import base64
import threading

import anyio
import anyio.to_thread
import pytest

from converser.canisters import (
    ResultCanister,
    Usage,
    supervisor,
    user,
)
from converser.codec import dump_canister, load_canister
from converser.events import TextDelta, ThoughtDelta
from converser.exceptions import ModelFailure
from converser.outcomes import Outcome
from converser.providers import translations
from converser.replies import StopReason
from converser.turns import Controls, Transcript
from tests.conversations import assert_valid, converse
from tests.providers.scenes import (
    OSLO,
    PICTURE,
    ROME,
    SCHEMA,
    WIRES,
    Stage,
    demand,
    make_clock,
)
from tests.providers.service import Answer
from tests.providers.wires import SIGNATURE, THOUGHT

pytestmark = pytest.mark.anyio


@pytest.fixture(params=WIRES.values(), ids=WIRES)
def wire(request):
    return demand(request.param)


@pytest.fixture
def service(wire):
    with Stage(wire, "model-1-large", "unrelated") as service:
        yield service


@pytest.fixture
def clock():
    return make_clock()


async def ask(wire, service, canisters=(), **options):
    async with wire.access(service) as model:
        return await converse(model, canisters or [user("Hello")], **options)


async def test_text_is_streamed_and_told_with_its_usage(wire, service):
    service.will_answer("Good day.")
    seen = []
    reply = await ask(wire, service, [supervisor("Be brief."), user("Hi")], events=seen.append)
    assert "".join(e.text for e in seen if isinstance(e, TextDelta)) == "Good day."
    assert len([e for e in seen if isinstance(e, TextDelta)]) > 1
    (canister,) = reply
    assert (canister.text, canister.model, canister.stop_reason) == (
        "Good day.",
        "model-1-x",
        "stop",
    )
    assert reply.reason is StopReason.DONE
    assert reply.usage == Usage(tokens_in=20, tokens_out=5, tokens_cached=8)
    (body,) = service.bodies
    assert wire.instructions(body) == ["Be brief."]
    assert wire.words(body) == ["Hi"]
    assert wire.tools(body) == []


async def test_a_call_is_run_and_its_result_sent_back(wire, service, clock):
    ensemble, calls = clock
    service.will_answer("Let me look.", calls=[OSLO])
    service.will_answer("Noon.")
    reply = await ask(wire, service, ensembles=[ensemble])
    assert calls == ["Oslo"]
    assert reply.text == "Noon."
    assert reply[0].stop_reason == "tool-use"
    first, second = service.bodies
    assert [name for name, _ in wire.tools(first)] == ["photo", "time"]
    assert wire.tools(first)[1][1]["properties"] == SCHEMA["properties"]
    assert wire.tools(first)[1][1]["required"] == ["city"]
    assert wire.calls(second) == [OSLO]
    ((identifier, text),) = wire.results(second)
    assert identifier == "call_1"
    assert "12:00 in Oslo" in text
    assert "Let me look." in wire.words(second)


async def test_parallel_calls_keep_their_order(wire, service, clock):
    ensemble, calls = clock
    service.will_answer(calls=[OSLO, ROME])
    service.will_answer("Noon in both.")
    reply = await ask(wire, service, ensembles=[ensemble])
    assert sorted(calls) == ["Oslo", "Rome"]
    assert_valid(reply)
    body = service.bodies[1]
    assert wire.calls(body) == [OSLO, ROME]
    assert [identifier for identifier, _ in wire.results(body)] == ["call_1", "call_2"]


async def test_an_image_in_a_result_is_shown(wire, service, clock):
    service.will_answer(calls=[("call_1", "photo", {})])
    service.will_answer("A tower.")
    await ask(wire, service, ensembles=[clock[0]])
    body = service.bodies[1]
    assert "The tower:" in wire.results(body)[0][1]
    assert wire.images(body) == [base64.b64encode(PICTURE).decode()]


async def test_a_failed_call_is_told_as_one(wire, service, clock):
    service.will_answer(calls=[("call_1", "tiem", {})])
    service.will_answer("Sorry.")
    reply = await ask(wire, service, ensembles=[clock[0]])
    (result,) = [canister for canister in reply if isinstance(canister, ResultCanister)]
    assert result.outcome is not Outcome.SUCCESS
    assert "tiem" in wire.results(service.bodies[1])[0][1]


async def test_thinking_is_told_kept_through_the_codec_and_sent_back(wire, service, clock):
    service.will_answer("Look.", calls=[OSLO], thought=True)
    service.will_answer("Noon.")
    seen = []
    question = user("The time?")
    reply = await ask(wire, service, [question], ensembles=[clock[0]], events=seen.append)
    assert "".join(e.text for e in seen if isinstance(e, ThoughtDelta)) == THOUGHT
    assert reply[0].text == "Look."
    assert wire.thoughts(service.bodies[1]) == [(THOUGHT, SIGNATURE)]
    revived = [load_canister(dump_canister(canister)) for canister in reply]
    assert revived == list(reply)
    service.will_answer("You are welcome.")
    await ask(wire, service, [question, *revived, user("Thanks")], ensembles=[clock[0]])
    assert wire.thoughts(service.bodies[2]) == [(THOUGHT, SIGNATURE)]
    assert wire.calls(service.bodies[2]) == [OSLO]


async def test_thinking_of_another_model_is_not_sent(wire, service, clock):
    service.will_answer("Look.", calls=[OSLO], thought=True)
    service.will_answer("Noon.")
    reply = await ask(wire, service, ensembles=[clock[0]])
    service.will_answer("Yes.")
    async with wire.access(service, model="model-2") as model:
        await converse(model, [user("Hello"), *reply, user("Sure?")], ensembles=[clock[0]])
    assert wire.thoughts(service.bodies[2]) == []
    assert wire.calls(service.bodies[2]) == [OSLO]


@pytest.mark.parametrize(
    ("stop", "reason"), [("length", StopReason.TRUNCATED), ("filtered", StopReason.FILTERED)]
)
async def test_stop_reasons_become_ours(wire, service, stop, reason):
    service.will_answer("So", stop=stop)
    assert (await ask(wire, service)).reason is reason


async def test_a_refused_key_is_told_without_repeating_it(wire, service):
    service.will_fail(401, wire.error(401, "invalid key: sk-SECRET"))
    with pytest.raises(ModelFailure, match=r"refused the key.*Check the key, as key=") as caught:
        async with wire.access(service, key="sk-SECRET") as model:
            await converse(model)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_server_that_wants_a_key_is_not_said_to_want_that_of_another_one(wire, service):
    service.will_fail(401, wire.error(401, "who are you?"))
    with pytest.raises(ModelFailure, match=r"wants a key\. Give it as key=") as caught:
        await ask(wire, service)
    assert wire.key_variable not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "remedy"), [(403, "what the account may use"), (429, "Wait, or check the account")]
)
async def test_what_a_key_may_not_do_is_told_in_the_service_s_words_without_the_key(
    wire, service, status, remedy
):
    words = "sk-SECRET may do 0 of these a day, as https://example.com/plans says."
    service.will_fail(status, wire.error(status, words))
    with pytest.raises(
        ModelFailure, match=rf"may do 0 of these.*plans says\. .*{remedy}"
    ) as caught:
        async with wire.access(service, key="sk-SECRET", retries=0) as model:
            await converse(model)
    assert "SECRET" not in str(caught.value)


async def test_a_missing_key_is_named_before_anything_is_sent(wire, monkeypatch):
    monkeypatch.delenv(wire.key_variable, raising=False)
    with pytest.raises(ModelFailure, match=wire.key_variable):
        wire.access_without_key()


async def test_a_key_from_the_environment_goes_to_no_other_server(wire, service, monkeypatch):
    monkeypatch.setenv(wire.key_variable, "sk-SECRET")
    service.will_answer("Hi.")
    await ask(wire, service)
    path, headers, _ = service.requests[0]
    assert "SECRET" not in f"{path} {headers}"


async def test_an_unknown_model_is_answered_with_the_nearest_names(wire, service):
    service.will_fail(404, wire.error(404, "model-1 was not found"))
    with pytest.raises(ModelFailure, match=r"model-1 was not found.*Did you mean 'model-1-large'"):
        await ask(wire, service)


async def test_a_known_model_is_not_called_unknown_where_something_else_is_not_there(wire):
    with Stage(wire, "model-1") as service:
        service.will_fail(404, wire.error(404, "no such endpoint"))
        with pytest.raises(ModelFailure, match=r"no such endpoint.*base_url") as caught:
            await service.ask()
    assert "Did you mean" not in str(caught.value)


async def test_an_address_with_too_much_or_too_little_at_its_end_is_told_as_it_should_be(wire):
    with Stage(wire) as service:
        right = service.url + wire.path
        service.will_fail(404, wire.error(404, "page not found"), times=8)
        service.listing = None
        for astray in (service.url, f"{service.url}/v1", f"{right}/chat/completions"):
            if astray == right:
                continue
            with pytest.raises(ModelFailure, match=rf"base_url, which may have to be {right}\.$"):
                async with wire.access(service, base_url=astray) as model:
                    await converse(model)


async def test_after_429_it_tries_again(wire, service):
    service.will_fail(429, wire.error(429, "slow down"))
    service.will_answer("Here.")
    assert (await ask(wire, service)).text == "Here."
    assert len(service.requests) == 2


async def test_a_limit_that_stays_is_a_failure(wire, service):
    service.will_fail(429, wire.error(429, "slow down"))
    with pytest.raises(ModelFailure, match="rate limit"):
        async with wire.access(service, retries=0) as model:
            await converse(model)


async def test_a_service_that_keeps_failing_is_a_failure_after_retries(wire, service):
    service.will_fail(500, wire.error(500, "out of order"), times=2)
    with pytest.raises(ModelFailure, match=r"out of order.*try again"):
        async with wire.access(service, retries=1) as model:
            await converse(model)
    assert len(service.requests) == 2


async def test_a_request_that_is_refused_is_told_in_the_service_s_words(wire, service):
    service.will_fail(400, wire.error(400, "too many tools"))
    with pytest.raises(ModelFailure, match="too many tools"):
        await ask(wire, service)
    assert len(service.requests) == 1


TOO_LONG = (
    (400, "prompt is too long: 208310 tokens > 200000 maximum"),
    (400, "This model's maximum context length is 4096 tokens. However, you requested 5000."),
    (400, "the request exceeds the available context size (4096 tokens)"),
    (400, "The input token count (1048577) exceeds the maximum number of tokens allowed"),
    (413, "Request exceeds the maximum size"),
    (429, "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 50000."),
)


@pytest.mark.parametrize(("status", "words"), TOO_LONG)
async def test_what_is_too_long_is_told_with_the_remedy(wire, service, status, words):
    service.will_fail(status, wire.error(status, words), times=3)
    with pytest.raises(ModelFailure, match=r"more than the model takes: .*result_budget") as caught:
        await ask(wire, service)
    assert words[:20] in str(caught.value)


BEYOND = (
    (400, "max_tokens: 32000 > 8192, which is the maximum allowed number", "tokens_max"),
    (
        400,
        "'max_tokens' is too large: 9000. This model's maximum context length is 8192.",
        "tokens_max",
    ),
    (400, "registry.ollama.ai/library/gemma:2b does not support tools", "calls tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice to be set', "calls tools"),
    (404, "No endpoints found that support tool use.", "calls tools"),
    (400, "Failed to call a function. Please adjust your prompt.", "try again"),
    (400, "Your credit balance is too low to access the Anthropic API.", "Add credit"),
    (402, "Insufficient Balance", "Add credit"),
)


@pytest.mark.parametrize(("status", "words", "remedy"), BEYOND)
async def test_what_a_model_cannot_do_is_told_with_the_remedy(wire, status, words, remedy):
    with Stage(wire) as service:
        service.will_fail(status, wire.error(status, words))
        with pytest.raises(ModelFailure, match=remedy) as caught:
            await service.ask()
    assert words[:20] in str(caught.value)


async def test_a_server_that_does_not_answer_in_time_is_told(wire, service):
    late = threading.Event()
    service.decide = lambda _: late.wait(10) and Answer(b"")
    async with wire.access(service, retries=0) as model:
        clients = getattr(model._provider, "_client", model._provider)._clients
        if wire.name == "google":
            options = clients.first._api_client._http_options
            assert options.timeout == 600_000
            options.timeout = 200
        else:
            clients.first.timeout = 0.2
        with pytest.raises(ModelFailure, match="did not answer in time"):
            await converse(model)
        late.set()


async def test_a_server_that_is_not_there_is_named_with_the_remedy(wire, service):
    service.close()
    with pytest.raises(ModelFailure, match=r"127\.0\.0\.1.*cannot be reached.*base_url"):
        async with wire.access(service, retries=0) as model:
            await converse(model)


async def test_a_server_on_this_machine_is_reached_past_any_proxy(wire, service, monkeypatch):
    if wire.name == "google":
        pytest.skip("nobody runs Gemini on this machine")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    service.will_answer("Here.")
    assert (await ask(wire, service)).text == "Here."


@pytest.mark.parametrize("body", [b"", b"<html>Welcome!</html>\n"])
async def test_another_server_at_the_address_is_suspected(wire, service, body):
    service.answers.append(Answer(body, kind="text/html"))
    with pytest.raises(ModelFailure, match=r"broke off.*(check base_url|<html>Welcome)"):
        await ask(wire, service)


async def test_a_page_in_the_place_of_an_error_is_cut_short(wire, service):
    page = f"<html>{'long ' * 1000}</html>".encode()
    headers = {"retry-after-ms": "1", "retry-after": "0"}
    service.answers += [Answer(page, status=502, kind="text/html", headers=headers)]
    async with wire.access(service, retries=0) as model:
        with pytest.raises(ModelFailure, match="answered with an error") as caught:
            await converse(model)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("how", ["truncated", "malformed", "disconnected"])
async def test_a_broken_stream_runs_nothing_and_can_be_tried_again(wire, service, clock, how):
    ensemble, calls = clock
    before, after = wire.answer("Let me", calls=[OSLO])
    match how:
        case "truncated":
            service.will_stream(*before)
        case "malformed":
            service.will_stream(*before, wire.malformed, *after)
        case _:
            service.will_stream(*before, broken=True)
    transcript = Transcript([user("The time?")])
    async with wire.access(service) as model:
        with pytest.raises(ModelFailure, match=r"broke off.*try again"):
            await converse(model, transcript, ensembles=[ensemble])
        assert (calls, len(transcript)) == ([], 1)
        service.will_answer("Noon.")
        reply = await converse(model, transcript, ensembles=[ensemble])
    assert reply.text == "Noon."
    assert wire.words(service.bodies[1]) == ["The time?"]


OWN_TOOLS = {
    "anthropic": {"type": "web_search_20250305", "name": "web_search"},
    "responses": {"type": "web_search"},
    "chat": {"type": "openrouter:web_search"},
    "google": {"googleSearch": {}},
}


@pytest.mark.parametrize("beside", [True, False])
async def test_tools_of_the_service_s_own_stand_beside_ours(wire, service, clock, beside):
    service.will_answer("Here.")
    controls = Controls(extras={"tools": [OWN_TOOLS[wire.name]]})
    await ask(wire, service, ensembles=[clock[0]] if beside else [], controls=controls)
    sent = service.bodies[0]["tools"]
    assert OWN_TOOLS[wire.name] in sent
    assert ("photo" in str(sent), "time" in str(sent)) == (beside, beside)


@pytest.mark.parametrize("piece", [b'"time"', b'"model-1-x"', b'"call_1"', b"20", b"5"])
async def test_an_answer_with_a_value_of_the_wrong_kind_is_a_failure(wire, service, clock, piece):
    before, after = wire.answer(calls=[OSLO])
    frames = [part.replace(b": " + piece, b': ["?"]') for part in (*before, *after)]
    if frames == [*before, *after]:
        pytest.skip("has no such value")
    service.will_stream(*frames)
    transcript = Transcript([user("The time?")])
    with pytest.raises(ModelFailure, match="try again"):
        await ask(wire, service, transcript, ensembles=[clock[0]])
    assert (len(transcript), clock[1]) == (1, [])
    service.will_answer("Noon.")
    assert (await ask(wire, service, transcript)).text == "Noon."


async def test_controls_and_extras_are_sent(wire, service):
    service.will_answer("Yes.")
    controls = Controls(temperature=0.5, tokens_max=99, extras=wire.extras)
    await ask(wire, service, controls=controls)
    assert wire.controls(service.bodies[0]) == (0.5, 99)
    assert wire.extras.items() <= service.bodies[0].items()


async def test_cancelling_ends_the_request_on_the_server(wire, service):
    before, _ = wire.answer("Let me")
    service.will_stall(*before)
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        await ask(wire, service, events=lambda event: type(event) is TextDelta and scope.cancel())
    assert scope.cancelled_caught
    assert await anyio.to_thread.run_sync(service.disconnected.wait, 10)


async def test_the_tools_of_conversations_side_by_side_are_translated_once_each():
    translated = []
    definitions = translations.Definitions(lambda each: translated.append(each) or {})
    sets = [make_clock()[0].invokers for _ in range(3)]
    for _ in range(3):
        for invokers in sets:
            first = definitions.translate(invokers)
            assert definitions.translate(dict(invokers)) == first
    assert len(translated) == 6
    for _ in range(20):
        definitions.translate(make_clock()[0].invokers)
    assert len(definitions._sets) < 20


async def test_each_canister_and_tool_is_translated_once(wire, service, clock, monkeypatch):
    if wire.name == "chat":
        pytest.skip("has a test of its own")
    translated, defined = [], []
    group, translate = translations.group, translations.Definitions.translate

    def count(canisters):
        canisters = list(canisters)
        translated.extend(canisters)
        return group(canisters)

    def watch(self, invokers):
        nativize = self._nativize
        self._nativize = lambda invoker: defined.append(invoker.name) or nativize(invoker)
        try:
            return translate(self, invokers)
        finally:
            self._nativize = nativize

    monkeypatch.setattr(translations, "group", count)
    monkeypatch.setattr(translations.Definitions, "translate", watch)
    transcript = Transcript([user("The time?")])
    service.will_answer(calls=[OSLO])
    service.will_answer("Noon.")
    service.will_answer("Yes.")
    async with wire.access(service) as model:
        await converse(model, transcript, ensembles=[clock[0]])
        transcript.append(user("Sure?"))
        await converse(model, transcript, ensembles=[clock[0]])
    assert len(translated) == len(transcript) - 1
    assert sorted(defined) == ["photo", "time"]
