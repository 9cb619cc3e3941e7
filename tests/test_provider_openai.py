# SPDX-License-Identifier: Apache-2.0
"""Chat Completions over a real HTTP connection and the real SDK, whole streams and broken ones."""

from __future__ import annotations

import json

import anyio
import anyio.to_thread
import pytest

from converser.canisters import (
    AssistantCanister,
    DocumentCanister,
    InvocationCanister,
    ResultCanister,
    UnknownCanister,
    Usage,
    document,
    supervisor,
    user,
)
from converser.contents import (
    AudioContent,
    BlobContent,
    ImageContent,
    LinkContent,
    TextualContent,
    UnknownContent,
)
from converser.ensembles import Ensemble
from converser.events import TextDelta, ThoughtDelta
from converser.exceptions import ModelFailure
from converser.invokers import InvocationResult, Tool
from converser.models import access_model
from converser.outcomes import Outcome
from converser.replies import StopReason
from converser.turns import Controls, Transcript
from tests.chat_service import call, chunk
from tests.conversations import converse

pytest.importorskip("openai", reason="needs the extra 'openai'")
pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 5,
    "total_tokens": 25,
    "prompt_tokens_details": {"cached_tokens": 8},
}


def make_clock():
    async def tell(_, arguments):
        return InvocationResult(contents=(TextualContent(text=f"12:00 in {arguments['city']}"),))

    tool = Tool(name="time", description="Tells the time.", arguments_schema=SCHEMA)
    return Ensemble("clock", tools=[(tool, tell)])


async def ask(service, canisters=(), **options):
    async with access_model("openai:m", base_url=service.url) as model:
        return await converse(model, canisters or [user("Hello")], **options)


async def test_a_conversation_with_parallel_calls_in_pieces(service):
    service.will_stream(
        chunk(role="assistant", content="Let me look."),
        chunk(tool_calls=[call(0, identifier="a", name="time", arguments='{"ci')]),
        chunk(tool_calls=[call(1, identifier="b", name="time", arguments="")]),
        chunk(tool_calls=[call(0, arguments='ty": "Oslo"}')]),
        chunk(tool_calls=[call(1, arguments='{"city": "Rome"}')]),
        chunk(finish="tool_calls"),
        chunk(usage=USAGE),
    )
    service.will_stream(chunk(content="Noon "), chunk(content="in both."), chunk(finish="stop"))
    reply = await ask(
        service, [supervisor("Be brief."), user("The time?")], ensembles=[make_clock()]
    )
    assert reply.text == "Noon in both."
    assert reply.usage == Usage(tokens_in=20, tokens_out=5, tokens_cached=8)
    first = reply[0]
    assert (first.text, first.model, first.stop_reason) == ("Let me look.", "m-1", "tool-use")
    sent, continued = service.bodies
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "The time?"},
    ]
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "time",
                "description": "Tells the time.",
                "parameters": SCHEMA,
            },
        }
    ]
    assert continued["messages"][2:] == [
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {
                    "id": identifier,
                    "type": "function",
                    "function": {"name": "time", "arguments": json.dumps({"city": city})},
                }
                for identifier, city in (("a", "Oslo"), ("b", "Rome"))
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "12:00 in Oslo"},
        {"role": "tool", "tool_call_id": "b", "content": "12:00 in Rome"},
    ]


async def test_calls_that_share_an_index_but_no_identifier_are_told_apart(service):
    service.will_stream(
        chunk(tool_calls=[call(0, identifier="a", name="time", arguments='{"city": "Oslo"}')]),
        chunk(tool_calls=[call(0, identifier="b", name="time", arguments='{"city": "Rome"}')]),
        chunk(finish="stop"),
    )
    service.will_stream(chunk(content="Noon."), chunk(finish="stop"))
    reply = await ask(service, ensembles=[make_clock()])
    assert [c.text for c in reply if isinstance(c, ResultCanister)] == [
        "12:00 in Oslo",
        "12:00 in Rome",
    ]


def make_bare_call(city, **more):
    return {"function": {"name": "time", "arguments": f'{{"city": "{city}"}}'}, **more}


@pytest.mark.parametrize("more", [{}, {"index": 0}, {"index": None, "id": ""}])
async def test_calls_without_index_or_identifier_are_told_apart(service, more):
    calls = [make_bare_call("Oslo", **more), make_bare_call("Rome", **more)]
    service.will_stream(*[chunk(tool_calls=[each]) for each in calls], chunk(finish="stop"))
    service.will_stream(chunk(content="Noon."), chunk(finish="stop"))
    reply = await ask(service, ensembles=[make_clock()])
    results = [c.text for c in reply if isinstance(c, ResultCanister)]
    assert results == ["12:00 in Oslo", "12:00 in Rome"]


async def test_a_name_that_is_repeated_with_each_piece_makes_no_further_call(service):
    pieces = ('{"city": ', '"Oslo"}', "")
    calls = [call(0, name="time", arguments=piece) for piece in pieces]
    service.will_stream(*[chunk(tool_calls=[each]) for each in calls], chunk(finish="stop"))
    service.will_stream(chunk(content="Noon."), chunk(finish="stop"))
    reply = await ask(service, ensembles=[make_clock()])
    assert [c.text for c in reply if isinstance(c, ResultCanister)] == ["12:00 in Oslo"]


async def test_pieces_of_one_call_may_each_have_another_identifier(service):
    """As Poolside sends them, and vLLM for some models."""
    service.will_stream(
        chunk(tool_calls=[call(0, identifier="a", name="time", arguments="")]),
        chunk(tool_calls=[call(0, identifier="b", arguments='{"city": ')]),
        chunk(tool_calls=[call(0, identifier="c", arguments='"Oslo"}')]),
        chunk(tool_calls=[call(0, identifier="d", name="time", arguments='{"city": "Rome"}')]),
        chunk(finish="tool_calls"),
    )
    service.will_stream(chunk(content="Noon."), chunk(finish="stop"))
    reply = await ask(service, ensembles=[make_clock()])
    results = [c.text for c in reply if isinstance(c, ResultCanister)]
    assert results == ["12:00 in Oslo", "12:00 in Rome"]


async def test_arguments_may_come_as_an_object(service):
    piece = call(0, identifier="a", name="time", arguments={"city": "Oslo"})
    service.will_stream(chunk(tool_calls=[piece]), chunk(finish="tool_calls"))
    service.will_stream(chunk(content="Noon."), chunk(finish="stop"))
    reply = await ask(service, ensembles=[make_clock()])
    assert [c.text for c in reply if isinstance(c, ResultCanister)] == ["12:00 in Oslo"]


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"prompt_filter_results": []},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [], "usage": {"prompt_tokens": None, "completion_tokens": None}},
        {"choices": [], "usage": {}},
    ],
)
async def test_what_a_server_leaves_out_of_a_chunk_is_no_obstacle(service, odd):
    service.will_stream(chunk(content="Yes."), odd, chunk(finish="stop"))
    reply = await ask(service)
    assert (reply.text, reply.usage.tokens_in) == ("Yes.", 0)


async def test_words_in_a_list_of_parts_are_read(service):
    service.will_stream(chunk(content=[{"type": "text", "text": "Yes."}]), chunk(finish="stop"))
    assert (await ask(service)).text == "Yes."


async def test_a_refusal_is_told_as_one(service):
    service.will_stream(chunk(refusal="I cannot."), chunk(finish="stop"))
    reply = await ask(service)
    assert (reply.text, reply.reason) == ("I cannot.", StopReason.FILTERED)


async def test_names_go_back_as_openai_takes_them_and_identifiers_as_they_came(service):
    piece = call(0, identifier=f"chatcmpl-tool-{'a' * 32}", name="the time!", arguments="{}")
    service.will_stream(chunk(tool_calls=[piece]), chunk(finish="tool_calls"))
    service.will_stream(chunk(content="No."), chunk(finish="stop"))
    await ask(service)
    _, asked, told = service.bodies[1]["messages"]
    [made] = asked["tool_calls"]
    assert made["function"]["name"] == "the_time_"
    assert made["id"] == told["tool_call_id"] == f"chatcmpl-tool-{'a' * 32}"


async def test_thoughts_are_told_and_controls_are_sent(service):
    service.will_stream(chunk(reasoning_content="Hm."), chunk(content="Yes."), chunk(finish="stop"))
    seen = []
    controls = Controls(temperature=0.0, tokens_max=9, top_p=0.5, seed=7, extras={"min_p": 0.1})
    reply = await ask(service, controls=controls, events=seen.append)
    assert [event.text for event in seen if isinstance(event, ThoughtDelta)] == ["Hm."]
    assert reply.text == "Yes."
    body = service.bodies[0]
    sent = {key: body[key] for key in ("temperature", "max_tokens", "top_p", "seed", "min_p")}
    assert sent == {"temperature": 0.0, "max_tokens": 9, "top_p": 0.5, "seed": 7, "min_p": 0.1}
    assert "tools" not in body


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", StopReason.DONE),
        ("length", StopReason.TRUNCATED),
        ("model_length", StopReason.TRUNCATED),
        ("repetition", StopReason.TRUNCATED),
        ("content_filter", StopReason.FILTERED),
        ("sensitive", StopReason.FILTERED),
    ],
)
async def test_finish_reasons_become_typed_ones(service, finish, reason):
    service.will_stream(chunk(content="So"), chunk(finish=finish))
    assert (await ask(service)).reason is reason


ENDINGS = [(), *((chunk(finish=reason),) for reason in ("abort", "error", "network_error"))]
"""How a stream ends in which the model was interrupted: without a reason, or with one that vLLM and others give."""


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_call_of_a_truncated_stream_is_never_run(service, done, ending):
    piece = call(0, identifier="a", name="time", arguments='{"city": "Oslo"}')
    service.will_stream(chunk(tool_calls=[piece]), *ending, done=done)
    transcript = Transcript([user("Hello")])
    with pytest.raises(ModelFailure, match=r"broke off.*try again"):
        await ask(service, transcript, ensembles=[make_clock()])
    assert len(transcript) == 1


async def test_a_malformed_chunk_is_a_failure(service):
    service.will_stream(chunk(content="So"), '{"id": ', chunk(finish="stop"))
    with pytest.raises(ModelFailure, match="broke off"):
        await ask(service)


async def test_an_error_in_the_stream_is_a_failure(service):
    service.will_stream(chunk(content="So"), {"error": {"message": "out of memory"}})
    with pytest.raises(ModelFailure, match="out of memory"):
        await ask(service)


async def test_an_error_in_mid_stream_is_told_also_where_it_is_only_words(service):
    service.will_stream(chunk(content="Let"), {"error": "The runner has stopped"})
    with pytest.raises(ModelFailure, match=r"broke off: APIError: The runner has stopped\."):
        await ask(service)


async def test_a_context_that_is_full_in_mid_stream_is_told_with_the_remedy(service):
    full = {"error": {"code": 500, "message": "Context size has been exceeded."}}
    service.will_stream(chunk(content="So"), full)
    with pytest.raises(ModelFailure, match="more than the model takes"):
        await ask(service)


async def test_a_refused_key_is_told_without_repeating_what_the_service_says_of_it(service):
    service.will_fail(401, "Incorrect API key provided: sk-proj-SECRET")
    with pytest.raises(ModelFailure, match="wants a key") as caught:
        await ask(service)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_an_unknown_model_is_answered_with_the_nearest_names(service):
    service.will_fail(404, "model 'qwen3:7b' not found")
    async with access_model("openai:qwen3:7b", base_url=service.url) as model:
        with pytest.raises(ModelFailure, match="Did you mean 'qwen3:8b'"):
            await converse(model)


async def test_other_errors_carry_the_words_of_the_service(service):
    service.will_fail(400, "this model does not support tools")
    with pytest.raises(ModelFailure, match="does not support tools"):
        await ask(service)


async def test_a_server_that_is_not_there_is_named_with_the_remedy(service):
    url = service.url.replace("http://", "http://someone:SECRET@")
    service.close()
    with pytest.raises(ModelFailure, match=r"127\.0\.0\.1.*cannot be reached.*base_url") as caught:
        async with access_model("openai:m", base_url=url) as model:
            await converse(model)
    assert "SECRET" not in str(caught.value)


def test_a_missing_key_is_named_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelFailure, match=r"OPENAI_API_KEY.*base_url"):
        access_model("openai:gpt-5")


async def test_the_key_for_openai_goes_to_no_other_server(service, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRET")
    service.will_stream(chunk(content="Hi."), chunk(finish="stop"))
    await ask(service)
    _, headers, _ = service.requests[0]
    assert "SECRET" not in str(headers)


async def test_a_key_that_is_given_is_sent(service):
    service.will_stream(chunk(content="Hi."), chunk(finish="stop"))
    async with access_model("openai:m", base_url=service.url, key="mine") as model:
        await converse(model)
    assert service.requests[0][1]["authorization"] == "Bearer mine"


def test_unknown_providers_and_options_are_named():
    with pytest.raises(ModelFailure, match=r"'opanai'.*Did you mean 'openai'"):
        access_model("opanai:gpt-5")
    with pytest.raises(ModelFailure, match=r"'gpt-5'.*PROVIDER:MODEL"):
        access_model("gpt-5")
    with pytest.raises(ModelFailure, match=r"'bas_url'.*base_url, key"):
        access_model("openai:m", bas_url="x")


async def test_every_kind_of_canister_and_content_reaches_the_wire(service):
    service.will_stream(chunk(content="Fine."), chunk(finish="stop"))
    picture = ImageContent(data=b"png", mimetype="image/png")
    sound = AudioContent(data=b"mp3", mimetype="audio/mpeg")
    file = BlobContent(data="né".encode(), mimetype="text/csv", name="a.csv", encoding="utf-8")
    link = LinkContent(uri="https://x.example", name="x", description="All of x.")
    strange = UnknownContent(kind="hologram")
    history = [
        user("Look", picture, sound),
        document(file, name="table"),
        DocumentCanister(contents=(link, strange)),
        InvocationCanister(identifier="i", name="snap", arguments={"é": 1}),
        ResultCanister(invocation_identifier="i", contents=(picture,)),
        InvocationCanister(identifier="j", name="snap"),
        ResultCanister(invocation_identifier="j", outcome=Outcome.REFUSED, error="Not now."),
        InvocationCanister(identifier="k", name="count"),
        ResultCanister(invocation_identifier="k", structured={"n": 3}),
        InvocationCanister(identifier="l", name="count"),
        ResultCanister(invocation_identifier="l"),
        UnknownCanister(kind="oracle"),
        AssistantCanister(contents=(TextualContent(text="So."),)),
    ]
    await ask(service, history)
    messages = service.bodies[0]["messages"]
    _, shown, heard, table, other = messages[0]["content"]
    assert [part["type"] for part in (shown, heard, table, other)] == [
        "image_url",
        "input_audio",
        "text",
        "text",
    ]
    assert shown["image_url"]["url"] == "data:image/png;base64,cG5n"
    assert heard["input_audio"] == {"data": "bXAz", "format": "mp3"}
    assert table["text"] == "Document table:\n[a.csv: text/csv, 3 bytes]\nné"
    assert other["text"].splitlines()[1:] == [
        "[link to x: https://x.example (All of x.)]",
        "[content of the unknown kind 'hologram']",
    ]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"é": 1}'
    results = [message["content"] for message in messages if message["role"] == "tool"]
    assert results == [
        "[image/png, 3 bytes, which cannot be shown here]",
        "Error (refused): Not now.",
        '{"n": 3}',
        "(no output)",
    ]
    assert messages[-2:] == [
        {"role": "assistant", "content": "So."},
        {"role": "user", "content": "Go on."},
    ]


async def test_each_canister_is_translated_once_over_several_questions(service, monkeypatch):
    from converser.providers import chat_messages as room

    translated = []
    nativize = room.nativize_canister

    def count(canister, messages, **options):
        translated.append(canister.identifier)
        nativize(canister, messages, **options)

    monkeypatch.setattr(room, "nativize_canister", count)
    transcript = Transcript()
    async with access_model("openai:m", base_url=service.url) as model:
        for question in ("One?", "Two?", "Three?"):
            service.will_stream(chunk(content="Yes."), chunk(finish="stop"))
            transcript.append(user(question))
            await converse(model, transcript)
    assert translated == [canister.identifier for canister in transcript[:5]]
    assert len(service.bodies[-1]["messages"]) == 5


async def test_cancelling_ends_the_request_on_the_server(service):
    service.will_stall(chunk(content="So"))
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        await ask(service, events=lambda event: type(event) is TextDelta and scope.cancel())
    assert scope.cancelled_caught
    assert await anyio.to_thread.run_sync(service.disconnected.wait, 10)
