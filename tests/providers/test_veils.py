# SPDX-License-Identifier: Apache-2.0
"""Images and documents that a service refuses, as screenshots that are too large: the conversation goes on."""

from __future__ import annotations

import base64
import json

import pytest

from converser.canisters import assistant, user
from converser.contents import BlobContent, ImageContent
from converser.exceptions import ModelFailure
from converser.turns import Transcript
from tests.conversations import converse
from tests.providers.scenes import PICTURE, SCHEMA, WIRES, Stage, make_clock

pytestmark = pytest.mark.anyio
LARGE = b"\x89PNG\r\n a large picture"
REFUSALS = (
    (400, "messages.1.content.0: image exceeds 5 MB maximum: 8259148 bytes > 5242880 bytes"),
    (400, "At least one of the image dimensions exceed max allowed size: 8000 pixels"),
    (413, "Request exceeds the maximum size"),
)


@pytest.fixture(params=WIRES.values(), ids=WIRES)
def wire(request):
    return request.param


@pytest.fixture
def service(wire):
    with Stage(wire) as stage:
        yield stage


def show(data):
    return ImageContent(data=data, mimetype="image/png")


def has(data):
    written = base64.b64encode(data).decode()
    return lambda body: written in json.dumps(body)


def find_seen(service):
    """Which of the two pictures each request had."""
    pictures = {"small": has(PICTURE), "large": has(LARGE)}
    return [[name for name, seen in pictures.items() if seen(body)] for body in service.bodies]


@pytest.mark.parametrize(("status", "words"), REFUSALS)
async def test_an_image_that_is_refused_is_told_of_and_the_others_are_shown(
    wire, service, status, words
):
    service.will_refuse(has(LARGE), status, words, "Well.")
    transcript = Transcript([user("Look", show(PICTURE)), assistant("Nice."), user(show(LARGE))])
    async with wire.access(service) as model:
        assert (await converse(model, transcript)).text == "Well."
        transcript.append(user("And?"))
        assert (await converse(model, transcript)).text == "Well."
        await converse(model, [user(show(PICTURE))])
    assert find_seen(service) == [["small", "large"], ["small"], ["small"], ["small"]]
    assert "cannot be shown here" in json.dumps(service.bodies[1])


async def test_an_image_of_a_result_that_is_refused_does_not_end_the_conversation(wire, service):
    before, after = wire.answer(calls=[("call_1", "photo", {})])
    service.will_stream(*before, *after)
    service.will_fail(400, wire.error(400, "Could not process image"))
    service.will_answer("A tower.")
    transcript = Transcript([user("A photo!")])
    async with wire.access(service) as model:
        reply = await converse(model, transcript, ensembles=[make_clock()[0]])
        service.will_answer("Yes.")
        transcript.append(user("Sure?"))
        await converse(model, transcript)
    assert reply.text == "A tower."
    assert find_seen(service) == [[], ["small"], [], []]
    assert "The tower:" in json.dumps(service.bodies[-1])


async def test_what_an_earlier_answer_followed_on_is_told_of_where_it_is_to_blame(wire, service):
    """As images of a conversation that another service took."""
    document = BlobContent(data=LARGE, mimetype="application/pdf")
    service.will_refuse(has(LARGE), 400, "A maximum of 100 PDF pages may be provided.", "Well.")
    history = [user("Read", document, show(LARGE)), assistant("Done."), user(show(PICTURE))]
    async with wire.access(service) as model:
        reply = await converse(model, [*history, user("And?")])
    assert reply.text == "Well."


async def test_images_are_shown_again_where_they_were_not_to_blame(wire, service):
    refusal = wire.error(400, "This image is invalid, and pleases nobody.")
    service.will_fail(400, refusal, times=3)
    transcript = Transcript([user(show(LARGE)), assistant("Nice."), user(show(PICTURE))])
    async with wire.access(service) as model:
        with pytest.raises(ModelFailure, match="pleases nobody"):
            await converse(model, transcript)
        service.will_answer("Well.")
        await converse(model, transcript)
    assert find_seen(service)[-1] == ["small", "large"]


async def test_a_refused_schema_that_speaks_of_images_hides_none(wire, service):
    service.will_refuse(
        wire.form, 400, "Invalid schema for response_format: ('properties', 'image')", "{}"
    )
    if wire.name == "chat":
        pytest.skip("gives up images and schema at once")
    form = {**SCHEMA, "required": [], "additionalProperties": False}
    async with wire.access(service) as model:
        reply = await converse(model, [user("Look", show(PICTURE))], answer=form)
    assert reply.answer == {}
    assert find_seen(service)[-1] == ["small"]
