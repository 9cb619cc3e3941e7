# SPDX-License-Identifier: Apache-2.0
"""An invoker checks and mends arguments before anything happens, and fails in one way only."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import anyio
import pytest

import converser
from tests.places import LIMIT

pytestmark = pytest.mark.anyio

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "default": 3},
        "options": {
            "type": "object",
            "properties": {"unit": {"enum": ["C", "F"]}},
            "required": ["unit"],
        },
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city", "days"],
}


class Recorder:
    """An invocable that remembers what it got."""

    def __init__(self, answer: Any = None) -> None:
        self.calls: list[tuple[converser.Context, dict[str, Any]]] = []
        self.answer = answer

    async def __call__(
        self, context: converser.Context, arguments: dict[str, Any]
    ) -> converser.InvocationResult:
        self.calls.append((context, arguments))
        if isinstance(self.answer, BaseException):
            raise self.answer
        text = converser.TextualContent(text=repr(arguments))
        return converser.InvocationResult(contents=(text,))


def create_invoker(
    recorder: Recorder, schema: dict[str, Any] = SCHEMA, **configuration: Any
) -> converser.Invoker:
    tool = converser.Tool(
        name="forecast",
        description="Tells the weather.",
        arguments_schema=schema,
        output_schema={"type": "object"},
        annotations=converser.Annotations(title="Forecast", read_only=True),
    )
    ensemble = converser.Ensemble(
        "sky",
        tools=[(tool, recorder)],
        configuration=converser.EnsembleConfiguration(**configuration),
    )
    return ensemble.access_invoker("forecast")


async def test_it_tells_all_about_itself() -> None:
    invoker = create_invoker(Recorder())
    assert (invoker.name, invoker.description) == ("forecast", "Tells the weather.")
    assert invoker.arguments_schema == SCHEMA
    assert invoker.output_schema == {"type": "object"}
    assert invoker.annotations.title == "Forecast"
    assert invoker.annotations.read_only is True
    assert invoker.annotations.destructive is None
    assert invoker.ensemble is not None
    assert invoker.ensemble.name == "sky"


async def test_it_cannot_be_changed() -> None:
    invoker = create_invoker(Recorder())
    with pytest.raises(dataclasses.FrozenInstanceError):
        invoker.name = "other"  # type: ignore[misc]


def test_the_schema_of_a_tool_cannot_be_changed_by_those_who_look_at_it() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool, twin = (converser.Tool(name="a", arguments_schema=schema) for _ in range(2))
    with pytest.raises(TypeError, match="immutable"):
        tool.arguments_schema["properties"]["city"]["type"] = "number"
    assert tool.arguments_schema is tool.arguments_schema
    assert tool == twin == pickle.loads(pickle.dumps(twin))
    assert hash(tool) == hash(twin)
    assert dataclasses.replace(tool, name="b").arguments_schema == schema


async def test_arguments_that_fit_arrive_as_they_are() -> None:
    recorder = Recorder()
    arguments = {"city": "Oslo", "days": 2, "more": [1, {"a": None}]}
    result = await create_invoker(recorder)(arguments)
    ((_, received),) = recorder.calls
    assert received == arguments
    assert received is not arguments
    assert result.text == repr(arguments)


async def test_the_context_of_the_caller_arrives() -> None:
    recorder = Recorder()
    context = converser.Context(timeout=5, metadata={"turn": 7})
    await create_invoker(recorder)({"city": "Oslo", "days": 1}, context=context)
    assert recorder.calls[0][0] == context


@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ({"city": "Oslo", "days": "5"}, {"city": "Oslo", "days": 5}),
        ({"city": "Oslo"}, {"city": "Oslo", "days": 3}),
        (
            {"city": "Oslo", "days": 1, "options": '{"unit": "C"}'},
            {"city": "Oslo", "days": 1, "options": {"unit": "C"}},
        ),
        (
            {"city": "Oslo", "days": 1, "tags": '["a", "b"]'},
            {"city": "Oslo", "days": 1, "tags": ["a", "b"]},
        ),
    ],
)
async def test_what_can_be_mended_without_loss_is_mended(
    given: dict[str, Any], mended: dict[str, Any]
) -> None:
    recorder = Recorder()
    before = repr(given)
    await create_invoker(recorder)(given)
    assert recorder.calls[0][1] == mended
    assert repr(given) == before


@pytest.mark.parametrize(
    ("given", "path", "expected"),
    [
        ({"city": "Oslo", "days": "5.5"}, "days", "integer"),
        ({"city": "Oslo", "days": "soon"}, "days", "integer"),
        ({"days": 1}, "city", "string"),
        ({"city": "Oslo", "days": 0}, "days", "at least 1"),
        ({"city": "Oslo", "days": 1, "options": {"unit": "K"}}, "options.unit", '"C"'),
        ({"city": "Oslo", "days": 1, "tags": ["a", 5]}, "tags", "string"),
    ],
)
async def test_what_cannot_be_mended_is_refused_so_that_a_model_can_correct_itself(
    given: dict[str, Any], path: str, expected: str
) -> None:
    recorder = Recorder()
    with pytest.raises(converser.ToolExecutionFailure) as caught:
        await create_invoker(recorder)(given)
    failure = caught.value
    assert recorder.calls == []
    assert failure.outcome is converser.Outcome.INVALID
    assert (failure.tool, failure.ensemble) == ("forecast", "sky")
    assert isinstance(failure.__cause__, converser.ArgumentsInvalidity)
    assert path in str(failure)
    assert expected in str(failure)
    assert "example" in str(failure)
    assert "Correct the arguments" in failure.remedy


async def test_repair_can_be_switched_off() -> None:
    recorder = Recorder()
    with pytest.raises(converser.ToolExecutionFailure):
        await create_invoker(recorder, repair=False)({"city": "Oslo", "days": "5"})
    assert recorder.calls == []


@pytest.mark.parametrize(
    ("strictness", "passes"),
    [
        (converser.Strictness.STRICT, False),
        (converser.Strictness.STANDARD, True),
        (converser.Strictness.OFF, True),
    ],
)
async def test_strictness_decides_on_undeclared_properties(
    strictness: converser.Strictness, *, passes: bool
) -> None:
    recorder = Recorder()
    invoker = create_invoker(recorder, strictness=strictness)
    arguments = {"city": "Oslo", "days": 1, "planet": "Mars"}
    if passes:
        await invoker(arguments)
    else:
        with pytest.raises(converser.ToolExecutionFailure, match="planet"):
            await invoker(arguments)
    assert len(recorder.calls) == passes


async def test_without_checks_anything_passes() -> None:
    recorder = Recorder()
    await create_invoker(recorder, strictness=converser.Strictness.OFF)({"days": "soon"})
    assert recorder.calls[0][1] == {"days": "soon"}


async def test_arguments_may_be_left_out() -> None:
    recorder = Recorder()
    await create_invoker(recorder, {"type": "object"})()
    assert recorder.calls[0][1] == {}


@pytest.mark.parametrize("arguments", [["Oslo"], "Oslo", None, 5])
async def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    with pytest.raises(converser.ToolExecutionFailure) as caught:
        await create_invoker(Recorder())(arguments)
    assert caught.value.outcome is converser.Outcome.INVALID


async def test_any_exception_of_a_tool_becomes_one_failure_with_its_cause() -> None:
    cause = ZeroDivisionError("no days")
    with pytest.raises(
        converser.ToolExecutionFailure, match=r"ZeroDivisionError: no days"
    ) as caught:
        await create_invoker(Recorder(cause))({"city": "Oslo", "days": 1})
    assert caught.value.__cause__ is cause
    assert caught.value.outcome is converser.Outcome.TOOL_ERROR


async def test_an_exception_without_words_is_named_by_its_class() -> None:
    with pytest.raises(converser.ToolExecutionFailure, match=r"'forecast' failed: KeyError\b"):
        await create_invoker(Recorder(KeyError()))({"city": "Oslo", "days": 1})


async def test_a_failure_of_a_server_keeps_outcome_contents_and_remedy() -> None:
    contents = (converser.TextualContent(text="It rained."),)
    cause = converser.MCPExecutionFailure(
        "Tool 'forecast' of server 'sky' (stdio) reported an error.",
        remedy="Take an umbrella.",
        server="sky",
        tool="forecast",
        transport="stdio",
        outcome=converser.Outcome.UNKNOWN,
        contents=contents,
        structured={"mm": 3},
    )
    with pytest.raises(converser.ToolExecutionFailure) as caught:
        await create_invoker(Recorder(cause))({"city": "Oslo", "days": 1})
    failure = caught.value
    assert failure.__cause__ is cause
    assert str(failure) == str(cause)
    assert failure.remedy == "Take an umbrella."
    assert failure.outcome is converser.Outcome.UNKNOWN
    assert failure.contents == contents
    assert failure.structured == {"mm": 3}


async def test_a_failure_that_is_already_one_is_not_wrapped_again() -> None:
    cause = converser.ToolExecutionFailure("No.", outcome=converser.Outcome.REFUSED)
    with pytest.raises(converser.ToolExecutionFailure) as caught:
        await create_invoker(Recorder(cause))({"city": "Oslo", "days": 1})
    assert caught.value is cause


async def test_cancellation_is_no_failure_of_the_tool() -> None:
    async def wait(context: converser.Context, arguments: dict[str, Any]) -> Any:
        started.set()
        await anyio.sleep_forever()

    started = anyio.Event()
    ensemble = converser.Ensemble("sky", tools=[(converser.Tool(name="wait"), wait)])
    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as group:
            group.start_soon(ensemble.access_invoker("wait"))
            await started.wait()
            group.cancel_scope.cancel()
    assert group.cancel_scope.cancelled_caught


async def test_a_tool_without_a_server_keeps_to_the_callers_time() -> None:
    async def wait(*_: Any) -> converser.InvocationResult:
        await anyio.sleep_forever()
        raise AssertionError

    ensemble = converser.Ensemble("slow", tools=[(converser.Tool(name="wait"), wait)])
    with anyio.fail_after(LIMIT):
        with pytest.raises(converser.ToolExecutionFailure, match=r"0\.01 seconds") as caught:
            await ensemble.access_invoker("wait")({}, context=converser.Context(timeout=0.01))
    assert caught.value.outcome is converser.Outcome.TIMED_OUT


async def test_failures_can_be_pickled_and_noted() -> None:
    with pytest.raises(converser.ToolExecutionFailure) as caught:
        await create_invoker(Recorder())({})
    revived = pickle.loads(pickle.dumps(caught.value))
    assert str(revived) == str(caught.value)
    assert (revived.tool, revived.outcome) == ("forecast", converser.Outcome.INVALID)


async def test_the_text_of_a_result_is_all_of_its_text() -> None:
    parts = (
        converser.TextualContent(text="one"),
        converser.ImageContent(data=b"", mimetype="image/png"),
        converser.TextualContent(text="two"),
    )
    assert converser.InvocationResult(contents=parts).text == "one\ntwo"


async def test_arguments_may_be_an_instance_of_their_class() -> None:
    recorder = Recorder()
    invoker = create_invoker(recorder)
    arguments = converser.create_arguments_class(invoker)(city="Oslo", days=2)
    await invoker(arguments)
    assert recorder.calls[0][1] == {"city": "Oslo", "days": 2}
