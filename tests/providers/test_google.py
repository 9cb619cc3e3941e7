# SPDX-License-Identifier: Apache-2.0
"""What only Gemini has: signatures on parts, results in one turn, and finish reasons of its own."""

from __future__ import annotations

import base64

import pytest

from converser.canisters import (
    InvocationCanister,
    ResultCanister,
    document,
    user,
)
from converser.codec import dump_canister, load_canister
from converser.contents import AudioContent, BlobContent, ImageContent, TextualContent
from converser.exceptions import ModelFailure
from converser.outcomes import Outcome
from converser.replies import StopReason
from converser.turns import Transcript
from tests.conversations import converse
from tests.providers.google_wire import GoogleWire
from tests.providers.scenes import OSLO, Stage, make_clock
from tests.providers.service import frame
from tests.providers.wires import SIGNATURE

pytest.importorskip("google.genai", reason="needs the extra 'google'")
pytestmark = pytest.mark.anyio
WIRE = GoogleWire()
PICTURE = ImageContent(data=b"png", mimetype="image/png")


@pytest.fixture
def service():
    with Stage(WIRE) as stage:
        yield stage


async def test_a_signature_on_its_own_goes_back_in_its_place(service):
    service.will_stream(
        WIRE._chunk({"text": "On"}),
        WIRE._chunk({"text": "e."}),
        WIRE._chunk({"text": "", "thoughtSignature": SIGNATURE}, "STOP"),
    )
    reply = await service.ask()
    assert reply.text == "One."
    service.will_answer("Two.")
    await service.ask([user("Go"), *reply, user("On")])
    assert service.bodies[1]["contents"][1]["parts"] == [
        {"text": "One."},
        {"text": "", "thoughtSignature": SIGNATURE},
    ]


async def test_what_the_service_s_own_tools_did_goes_back_in_its_place(service):
    """As it demands where its search stands beside functions."""
    search = {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "args": {"queries": ["Oslo"]}}
    found = {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "response": {"n": [1]}}
    parts = [
        {"text": "First"},
        {"toolCall": search, "thoughtSignature": SIGNATURE},
        {"toolResponse": found, "thoughtSignature": SIGNATURE},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"text": "Then"},
        {
            "functionCall": {"id": "c", "name": "time", "args": {"city": "Oslo"}},
            "thoughtSignature": SIGNATURE,
        },
    ]
    service.will_stream(*map(WIRE._chunk, parts), WIRE._chunk({"text": ""}, "STOP"))
    service.will_answer("Noon.")
    reply = await service.ask(ensembles=[make_clock()[0]])
    assert reply[0].text == "FirstThen"
    service.will_answer("Yes.")
    revived = [load_canister(dump_canister(canister)) for canister in reply]
    await service.ask([user("Go"), *revived, user("Sure?")])
    for body in service.bodies[1:]:
        sent = body["contents"][1]["parts"]
        assert [next(key for key in part if key != "thoughtSignature") for part in sent] == [
            next(iter(part)) for part in parts
        ]
        assert [part.get("thoughtSignature") for part in sent] == [
            part.get("thoughtSignature") for part in parts
        ]
        assert _camelize(sent[1]["toolCall"]) == search
        assert _camelize(sent[2]["toolResponse"]) == found
        assert sent[3]["executableCode"] == parts[3]["executableCode"]
        assert sent[4]["codeExecutionResult"] == parts[4]["codeExecutionResult"]


def _camelize(sent):
    return {{"tool_type": "toolType"}.get(key, key): value for key, value in sent.items()}


@pytest.mark.parametrize(("model", "signed"), [("gemini-3-pro", True), ("gemini-2.5-flash", False)])
async def test_calls_of_other_models_are_let_pass_where_signatures_are_demanded(
    service, model, signed
):
    service.will_answer("Fine.")
    arguments = {"deep": {"list": [1, {"x": None}]}}
    await service.ask(
        [
            user("Go"),
            InvocationCanister(identifier="a", name="snap", arguments=arguments),
            InvocationCanister(identifier="b", name="snap"),
            ResultCanister(
                invocation_identifier="a", contents=(TextualContent(text="Here:"), PICTURE)
            ),
            ResultCanister(invocation_identifier="b", outcome=Outcome.REFUSED, error="No."),
            user("And?"),
        ],
        model,
    )
    _, calls, results, question = service.bodies[0]["contents"]
    assert calls["parts"][0]["functionCall"]["args"] == arguments
    assert ["thoughtSignature" in part for part in calls["parts"]] == [signed, False]
    first, second = [part["functionResponse"] for part in results["parts"]]
    assert first["name"] == "snap"
    assert ("parts" in first) is signed
    assert ("image/png" in first["response"]["output"]) is not signed
    assert second["response"] == {"error": "Error (refused): No."}
    assert question["parts"] == [{"text": "And?"}]


async def test_images_sound_and_documents_find_their_parts(service):
    service.will_answer("Fine.")
    pdf = BlobContent(data=b"%PDF", mimetype="application/pdf")
    sound = AudioContent(data=b"mp3", mimetype="audio/mpeg")
    moving = ImageContent(data=b"gif", mimetype="image/gif")
    await service.ask([user("Look", PICTURE, sound, moving), document(pdf, name="paper")])
    (content,) = service.bodies[0]["contents"]
    assert [next(iter(part)) for part in content["parts"]] == [
        "text",
        "inlineData",
        "inlineData",
        "text",
        "text",
        "inlineData",
    ]
    assert content["parts"][1]["inlineData"]["data"] == base64.b64encode(b"png").decode()
    assert content["parts"][4]["text"] == "Document paper:"


async def test_a_call_that_follows_an_answer_which_was_cut_off_is_in_the_same_content(service):
    """The service takes calls only right after the user's words, or after results."""
    transcript = Transcript([user("Go")])
    service.will_answer("So I", stop="length")
    await service.ask(transcript)
    service.will_answer("look.", calls=[OSLO])
    service.will_answer("Noon.")
    await service.ask(transcript, ensembles=[make_clock()[0]])
    contents = service.bodies[2]["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    said = contents[1]["parts"]
    assert [part.get("text") for part in said] == ["So I", "look.", None]
    assert "thoughtSignature" in said[2]


async def test_empty_texts_are_left_out(service):
    service.will_answer("Yes.")
    await service.ask([user("", "Go"), user(""), document("", name="x")])
    parts = [part for content in service.bodies[0]["contents"] for part in content["parts"]]
    assert parts == [{"text": "Go"}, {"text": "Document x:"}]


async def test_a_question_that_is_refused_is_a_filtered_answer(service):
    service.will_stream(frame({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}))
    assert (await service.ask()).reason is StopReason.FILTERED


@pytest.mark.filterwarnings("ignore:A_NEW_ONE is not a valid FinishReason")
@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "OTHER", "NO_IMAGE", "A_NEW_ONE"])
async def test_an_answer_that_ended_in_a_mishap_is_a_failure(service, reason):
    service.will_stream(WIRE._chunk({"text": ""}, reason))
    with pytest.raises(ModelFailure, match=rf"{reason}.*try again"):
        await service.ask()


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ("CONTINUATION", StopReason.TRUNCATED),
        ("ESCALATION", StopReason.FILTERED),
        ("PUP_LIMITED_DISABLED", StopReason.FILTERED),
    ],
)
async def test_an_answer_that_is_not_whole_is_not_taken_for_one(service, last, reason):
    service.will_stream(
        WIRE._chunk({"text": "So"}, "FINISH_REASON_UNSPECIFIED"), WIRE._chunk({"text": ""}, last)
    )
    assert (await service.ask()).reason is reason


async def test_a_reason_that_is_not_specified_is_none(service):
    service.will_stream(WIRE._chunk({"text": "So"}, "FINISH_REASON_UNSPECIFIED"))
    with pytest.raises(ModelFailure, match=r"broke off.*try again"):
        await service.ask()


async def test_a_key_is_also_refused_as_a_bad_request(service):
    service.will_fail(400, WIRE.error(400, "API key not valid: SECRET."))
    with pytest.raises(ModelFailure, match="wants a key") as caught:
        await service.ask()
    assert "SECRET" not in str(caught.value)


async def test_an_error_in_the_stream_is_a_failure(service):
    before, _ = WIRE.answer("So")
    service.will_stream(*before, frame(WIRE.error(503, "overloaded")))
    with pytest.raises(ModelFailure, match="try again"):
        await service.ask()


async def test_the_user_speaks_last_and_in_one_content_but_for_results(service):
    """The service refuses a request that ends with the model, and words beside the result of a tool."""
    call = InvocationCanister(identifier="c", name="time", arguments={"city": "Oslo"})
    result = ResultCanister(invocation_identifier="c", contents=(TextualContent(text="12:00"),))
    service.will_answer("Well")
    service.will_answer(" then.")
    transcript = Transcript([document("Rain."), user("Hm?"), call, result, user("Say."), user("!")])
    async with WIRE.access(service) as model:
        for _ in range(2):
            await converse(model, transcript)
    contents = [
        [next(iter(part)) for part in each["parts"]] for each in service.bodies[1]["contents"]
    ]
    assert contents == [
        ["text", "text", "text"],
        ["functionCall"],
        ["functionResponse"],
        ["text", "text"],
        ["text"],
        ["text"],
    ]
    roles = [content["role"] for content in service.bodies[1]["contents"]]
    assert roles[-2:] == ["model", "user"]
