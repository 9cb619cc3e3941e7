# SPDX-License-Identifier: Apache-2.0
"""Typed Python functions as tools."""

from __future__ import annotations

import contextvars
import dataclasses
import datetime as dt
import enum
import functools
import json
import math
import pathlib
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union

import anyio
import anyio.from_thread
import anyio.lowlevel
import dynadoc
import jsonschema_rs
import pydantic
import pytest
from hypothesis import given, strategies as st
from typing_extensions import NotRequired, TypedDict

from converser import functions
from converser.contents import BlobContent, ImageContent, TextualContent
from converser.ensembles import EnsembleConfiguration
from converser.exceptions import FunctionInvalidity, NameConflict, ToolExecutionFailure
from converser.functions import create_local_ensemble, create_tool_from_function, tool
from converser.immutables import freeze, thaw
from converser.invokers import Annotations, Context, InvocationResult
from converser.outcomes import Outcome

if TYPE_CHECKING:
    from decimal import Decimal

pytestmark = pytest.mark.anyio


class Units(enum.Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


@dataclasses.dataclass(frozen=True)
class Place:
    city: str
    altitude: float = 0.0
    near: list[Place] = dataclasses.field(default_factory=list)


class Options(TypedDict):
    verbose: bool
    note: NotRequired[str]


class Pair(NamedTuple):
    low: int
    high: int = 9


class Forecast(pydantic.BaseModel):
    place: str
    degrees: float = 0.0


async def call(function: Callable[..., Any], arguments: Any = None, **context: Any) -> Any:
    """Calls a function as a tool, through an ensemble and all that it checks."""
    ensemble = create_local_ensemble("local", [function])
    (invoker,) = ensemble.invokers.values()
    with anyio.fail_after(20):
        return await invoker(arguments or {}, context=Context(**context))


def schema_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    schema = create_tool_from_function(function)[0].arguments_schema
    jsonschema_rs.validator_for(thaw(schema))
    return schema


def test_parameters_give_the_schema() -> None:
    def look(city: str, days: int = 3, share: float = 0.5, deep: bool = False) -> str:
        """Looks."""
        return ""

    assert schema_of(look) == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "share": {"type": "number", "default": 0.5},
            "deep": {"type": "boolean", "default": False},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


google = """Finds a place.

    It looks everywhere.

    Args:
        city: Where to look.
        days (int): How long
            it may take.

    Returns:
        Something.
    """
numpy = """Finds a place.

    It looks everywhere.

    Parameters
    ----------
    city : str
        Where to look.
    days : int
        How long
        it may take.

    Returns
    -------
    str
    """
rest = """Finds a place.

    It looks everywhere.

    :param city: Where to look.
    :param int days: How long
        it may take.
    :returns: Something.
    """


@pytest.mark.parametrize("docstring", [google, numpy, rest], ids=["google", "numpy", "rest"])
def test_a_docstring_describes_the_tool_and_its_parameters(docstring: str) -> None:
    def find(city: str, days: int = 1) -> None: ...

    find.__doc__ = docstring
    definition, _ = create_tool_from_function(find)
    assert definition.description == "Finds a place.\n\nIt looks everywhere."
    properties = definition.arguments_schema["properties"]
    assert properties["city"]["description"] == "Where to look."
    assert properties["days"]["description"] == "How long\nit may take."


@pytest.mark.parametrize("docstring", ["Plain words.", ":odd words", "Args:\n", "x\n\n:param"])
def test_an_odd_docstring_is_kept_as_it_is(docstring: str) -> None:
    def find(city: str) -> None: ...

    find.__doc__ = docstring
    assert create_tool_from_function(find)[0].description == docstring.strip()


def test_an_annotation_describes_a_parameter_before_the_docstring_does() -> None:
    def find(
        a: Annotated[str, "Words."],
        b: Annotated[str, dynadoc.Doc("A doc.")],
        c: Annotated[str, pydantic.Field(description="A field.", max_length=3)],
        d: Annotated[str | None, "Perhaps."] = None,
        e: Union[Annotated[int, "Inside."], None] = None,
        f: str = "",
    ) -> None:
        """Finds.

        :param a: Not this.
        :param f: But this.
        """

    properties = schema_of(find)["properties"]
    described = {name: schema["description"] for name, schema in properties.items()}
    assert described == {
        "a": "Words.",
        "b": "A doc.",
        "c": "A field.",
        "d": "Perhaps.",
        "e": "Inside.",
        "f": "But this.",
    }
    assert properties["c"]["maxLength"] == 3


async def test_arguments_arrive_in_the_annotated_types() -> None:
    seen: dict[str, Any] = {}

    def take(
        place: Place,
        units: Units,
        when: dt.datetime,
        day: dt.date,
        key: uuid.UUID,
        path: pathlib.Path,
        options: Options,
        pair: Pair,
        forecast: Forecast,
        names: set[str],
        both: tuple[int, str],
        many: Sequence[int],
        table: Mapping[str, float],
        pick: Literal["a", 1],
        either: int | str,
        maybe: Place | None = None,
        free: Any = None,
    ) -> None:
        seen.update(locals())

    schema_of(take)
    arguments = {
        "place": {"city": "Oslo", "near": [{"city": "Bergen"}]},
        "units": "imperial",
        "when": "2026-11-18T08:00:00Z",
        "day": "2026-11-18",
        "key": "12345678-1234-5678-1234-567812345678",
        "path": "/tmp/x",
        "options": {"verbose": True},
        "pair": [1],
        "forecast": {"place": "Oslo"},
        "names": ["a", "b"],
        "both": [1, "x"],
        "many": [1, 2],
        "table": {"a": 1.5},
        "pick": 1,
        "either": "5",
    }
    await call(take, arguments)
    seen.pop("seen", None)
    assert seen == {
        "place": Place("Oslo", near=[Place("Bergen")]),
        "units": Units.IMPERIAL,
        "when": dt.datetime(2026, 11, 18, 8, tzinfo=dt.timezone.utc),
        "day": dt.date(2026, 11, 18),
        "key": uuid.UUID("12345678-1234-5678-1234-567812345678"),
        "path": pathlib.Path("/tmp/x"),
        "options": {"verbose": True},
        "pair": Pair(1),
        "forecast": Forecast(place="Oslo"),
        "names": {"a", "b"},
        "both": (1, "x"),
        "many": [1, 2],
        "table": {"a": 1.5},
        "pick": 1,
        "either": "5",
        "maybe": None,
        "free": None,
    }


async def test_a_function_may_change_what_it_gets() -> None:
    def change(value: Any) -> int:
        value["list"].append(1)
        return len(value["list"])

    arguments = {"value": {"list": []}}
    assert (await call(change, freeze(arguments))).structured == 1
    assert (await call(change, arguments)).structured == 1
    assert arguments == {"value": {"list": []}}


def test_none_as_a_default_makes_null_valid() -> None:
    def find(city: str = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    assert jsonschema_rs.is_valid(thaw(schema_of(find)), {"city": None})


def test_a_default_that_is_no_json_is_optional_all_the_same() -> None:
    sentinel = object()

    def find(city: Any = sentinel, units: Units = Units.METRIC) -> None: ...

    schema = schema_of(find)
    assert schema["properties"]["city"] == {}
    assert schema["properties"]["units"]["default"] == "metric"
    assert "required" not in schema


async def test_parameters_without_annotations_take_anything() -> None:
    def echo(value, other=2):  # type: ignore[no-untyped-def]
        return [value, other]

    assert schema_of(echo)["properties"] == {"value": {}, "other": {"default": 2}}
    assert (await call(echo, {"value": {"a": [1]}})).structured == [{"a": [1]}, 2]


async def test_keyword_arguments_become_additional_properties() -> None:
    def gather(first: str, **others: int) -> Any:
        return {"first": first, **others}

    assert schema_of(gather)["additionalProperties"] == {"type": "integer"}
    result = await call(gather, {"first": "x", "second": 2})
    assert result.structured == {"first": "x", "second": 2}


async def test_parameters_may_have_the_names_of_pydantic_attributes() -> None:
    def store(schema: str, model_config: str, copy: bool, self_: int = 1, json: str = "") -> Any:
        return [schema, model_config, copy]

    arguments = {"schema": "a", "model_config": "b", "copy": True}
    assert (await call(store, arguments)).structured == ["a", "b", True]


@pytest.mark.parametrize("annotation", ["Context", "Context | None", "Annotated[Context, 'x']"])
async def test_a_context_is_injected_and_hidden(annotation: str) -> None:
    def report(city: str, where: Any) -> Any:
        return f"{city} {where.metadata['user']}"

    report.__annotations__["where"] = annotation
    assert list(schema_of(report)["properties"]) == ["city"]
    assert (await call(report, {"city": "Oslo"}, metadata={"user": "me"})).text == "Oslo me"
    with pytest.raises(ToolExecutionFailure) as failure:
        await call(report, {"city": "Oslo", "where": {"timeout": 1}})
    assert failure.value.outcome is Outcome.INVALID


def positional(a: int, /) -> None: ...


def variadic(*parts: str) -> None: ...


def generates() -> Iterator[int]:
    yield 1


async def agenerates() -> AsyncIterator[int]:
    yield 1


def unresolved(amount: Decimal) -> None: ...


def opaque(lock: threading.Thread) -> None: ...


def uncallable(back: Callable[[int], int]) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (positional, "'a' of function 'positional' can only be given by position"),
        (variadic, "a list instead of"),
        (lambda: 1, "has no name"),
        (functools.partial(lambda: 1), "has no name"),
        (generates, "generator"),
        (agenerates, "generator"),
        (unresolved, "'Decimal' is not defined"),
        (opaque, "Thread"),
        (uncallable, "JSON cannot carry"),
        (Place, "not a function"),
        (5, "not a function"),
    ],
)
def test_what_no_model_could_call_is_refused_with_a_remedy(function: Any, words: str) -> None:
    with pytest.raises(FunctionInvalidity, match=words) as failure:
        create_tool_from_function(function)
    assert failure.value.remedy


async def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    class Shop:
        """A shop."""

        def __init__(self, stock: int) -> None:
            self.stock = stock
            self.keywords = {"extra": 1}

        def count(self, extra: int) -> int:
            """Counts."""
            return self.stock + extra

        async def __call__(self, extra: int) -> int:
            """Calls."""
            return self.stock * extra

    def greet(key: str, name: str) -> str:
        """Greets."""
        return f"{key} {name}"

    shop = Shop(5)
    assert (await call(shop.count, {"extra": 2})).structured == 7
    bound = functools.partial(greet, key="secret")
    assert "secret" not in json.dumps(schema_of(bound))
    assert (await call(bound, {"name": "you"})).text == "secret you"
    with pytest.raises(ToolExecutionFailure):
        await call(bound, {"name": "you", "key": "stolen"})
    definition, invocable = create_tool_from_function(shop, name="shop")
    assert (definition.name, definition.description) == ("shop", "Calls.")
    assert (await invocable(Context(), {"extra": 2})).structured == 10


def test_explicit_words_go_before_the_decorator_and_the_decorator_before_the_function() -> None:
    @tool(name="look", description="Looks.", read_only=True, title="Look")
    def find() -> None:
        """Finds."""

    @tool
    def plain() -> None:
        """Is plain."""

    find()
    definition, _ = create_tool_from_function(find)
    assert (definition.name, definition.description) == ("look", "Looks.")
    assert definition.annotations == Annotations(title="Look", read_only=True)
    definition, _ = create_tool_from_function(
        find, name="seek", description="", annotations=Annotations(idempotent=True)
    )
    assert (definition.name, definition.description) == ("seek", "")
    assert definition.annotations == Annotations(idempotent=True)
    assert create_tool_from_function(plain)[0].description == "Is plain."


def returning(value: Any) -> Callable[[], Any]:
    def give() -> Any:
        return value

    return give


image = ImageContent(data=b"x", mimetype="image/png")
own_result = InvocationResult(structured=5, remarks=("mine",))


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("text", InvocationResult(contents=(TextualContent(text="text"),))),
        ("", InvocationResult(contents=(TextualContent(text=""),))),
        (None, InvocationResult(contents=(TextualContent(text="(no output)"),))),
        (b"\x00", InvocationResult(contents=(BlobContent(data=b"\x00"),))),
        (image, InvocationResult(contents=(image,))),
        ((image, image), InvocationResult(contents=(image, image))),
        (["see:", image], InvocationResult(contents=(TextualContent(text="see:"), image))),
        (
            (image, {"page": 2}, None),
            InvocationResult(
                contents=(image, TextualContent(text='{"page":2}', mimetype="application/json"))
            ),
        ),
        (own_result, own_result),
    ],
)
async def test_text_bytes_and_contents_are_given_as_they_are(value: Any, result: Any) -> None:
    assert await call(returning(value)) == result


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        (Place("Oslo"), {"city": "Oslo", "altitude": 0.0, "near": []}),
        (Forecast(place="Oslo"), {"place": "Oslo", "degrees": 0.0}),
        ({"a": dt.date(2026, 1, 2)}, {"a": "2026-01-02"}),
        ([1, "å"], [1, "å"]),
        ([], []),
        (5, 5),
        (0.5, 0.5),
        (False, False),
        (Units.METRIC, "metric"),
        ({"a": math.nan}, {"a": "NaN"}),
        (2**80, 2**80),
    ],
)
async def test_data_is_structured_and_its_text_is_there_once(value: Any, structured: Any) -> None:
    result = await call(returning(value))
    assert result.structured == structured
    (content,) = result.contents
    assert content.mimetype == "application/json"
    assert json.loads(content.text) == structured


async def test_a_result_that_cannot_become_json_says_that_the_function_ran() -> None:
    with pytest.raises(ToolExecutionFailure, match="ran to its end") as failure:
        await call(returning(object()))
    assert failure.value.outcome is Outcome.TOOL_ERROR


@pytest.mark.parametrize("hint", [Place, Forecast, Options, dict[str, int], dict[str, Any]])
def test_an_annotation_that_promises_an_object_gives_an_output_schema(hint: Any) -> None:
    def give() -> Any: ...

    give.__annotations__["return"] = hint
    schema = create_tool_from_function(give)[0].output_schema
    assert schema is not None
    assert schema["type"] == "object"
    jsonschema_rs.validator_for(thaw(schema))


@pytest.mark.parametrize(
    "hint",
    [
        str,
        None,
        Any,
        int,
        list[Place],
        Union[Place, None],
        InvocationResult,
        TextualContent,
        list[ImageContent],
        threading.Thread,
    ],
)
def test_any_other_annotation_promises_nothing(hint: Any) -> None:
    def give() -> Any: ...

    give.__annotations__["return"] = hint
    assert create_tool_from_function(give)[0].output_schema is None


async def test_a_result_fits_its_output_schema() -> None:
    def give() -> Place:
        return Place("Oslo", near=[Place("Bergen")])

    schema = create_tool_from_function(give)[0].output_schema
    assert schema is not None
    assert jsonschema_rs.is_valid(thaw(schema), thaw((await call(give)).structured))


async def test_a_sync_function_does_not_block_the_loop() -> None:
    released = threading.Event()

    def wait() -> str:
        assert released.wait(10)
        return threading.current_thread().name

    results: list[str] = []

    async def run() -> None:
        results.append((await call(wait)).text)

    with anyio.fail_after(15):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await anyio.lowlevel.checkpoint()
            released.set()
    assert results != [threading.current_thread().name]


async def test_an_async_function_runs_in_the_loop_of_its_caller() -> None:
    async def find() -> str:
        await anyio.lowlevel.checkpoint()
        return threading.current_thread().name

    assert (await call(find)).text == threading.current_thread().name


async def test_a_sync_function_that_gives_an_awaitable_is_awaited() -> None:
    async def inner() -> str:
        return "awaited"

    def outer() -> Any:
        return inner()

    assert (await call(outer)).text == "awaited"


async def test_context_variables_reach_sync_functions() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    def read() -> str:
        return variable.get()

    variable.set("set")
    assert (await call(read)).text == "set"


async def test_a_sync_function_can_report_progress() -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    def work(context: Context) -> None:
        anyio.from_thread.run(context.on_progress, 0.5, None, None)

    await call(work, on_progress=hear)
    assert heard == [0.5]


async def test_an_exception_of_a_function_is_the_cause_of_the_failure() -> None:
    def divide(by: int) -> float:
        return 1 / by

    with pytest.raises(ToolExecutionFailure, match="ZeroDivisionError") as failure:
        await call(divide, {"by": 0})
    assert isinstance(failure.value.__cause__, ZeroDivisionError)
    assert failure.value.outcome is Outcome.TOOL_ERROR


async def test_a_timeout_error_of_a_function_is_its_own() -> None:
    def ask() -> None:
        raise TimeoutError("upstream")

    with pytest.raises(ToolExecutionFailure, match="upstream") as failure:
        await call(ask, timeout=10)
    assert failure.value.outcome is Outcome.TOOL_ERROR


async def test_what_a_schema_cannot_say_is_invalid_too() -> None:
    def take(even: Annotated[int, pydantic.AfterValidator(check_even)]) -> None: ...

    with pytest.raises(ToolExecutionFailure, match=r"even: .*not even") as failure:
        await call(take, {"even": 3})
    assert failure.value.outcome is Outcome.INVALID


def check_even(value: int) -> int:
    if value % 2:
        raise ValueError("not even")
    return value


async def test_an_async_function_ends_within_its_timeout() -> None:
    async def hang() -> None:
        await anyio.sleep_forever()

    with pytest.raises(ToolExecutionFailure, match=r"0\.01 seconds") as failure:
        await call(hang, timeout=0.01)
    assert failure.value.outcome is Outcome.TIMED_OUT


async def test_a_sync_function_is_left_behind_at_its_timeout() -> None:
    released = threading.Event()

    def hang() -> None:
        released.wait(20)

    try:
        with pytest.raises(ToolExecutionFailure, match="in a thread") as failure:
            await call(hang, timeout=0.01)
    finally:
        released.set()
    assert failure.value.outcome is Outcome.TIMED_OUT


async def test_the_timeouts_of_an_ensemble_hold_where_the_caller_gives_none() -> None:
    async def hang() -> None:
        await anyio.sleep_forever()

    async def rest() -> str:
        await anyio.lowlevel.checkpoint()
        return "rested"

    configuration = EnsembleConfiguration(timeout=None, tool_timeouts={"hang": 0.01})
    ensemble = create_local_ensemble("local", [hang, rest], configuration=configuration)
    with anyio.fail_after(10):
        with pytest.raises(ToolExecutionFailure) as failure:
            await ensemble.access_invoker("hang")({})
        result = await ensemble.access_invoker("rest")({})
    assert failure.value.outcome is Outcome.TIMED_OUT
    assert result.text == "rested"


async def test_cancelling_the_caller_cancels_the_function() -> None:
    ended = anyio.Event()

    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    with anyio.move_on_after(0.01) as scope:
        await call(hang)
    assert scope.cancelled_caught
    assert ended.is_set()


async def test_a_local_ensemble_has_its_invokers_at_once() -> None:
    def second() -> str:
        return "2"

    def first() -> str:
        return "1"

    spare = create_tool_from_function(lambda: "3", name="third")
    ensemble = create_local_ensemble("numbers", [second, first, spare])
    assert list(ensemble.invokers) == ["first", "second", "third"]
    async with ensemble:
        assert (await ensemble.access_invoker("third")({})).text == "3"


def test_two_functions_of_one_name_are_refused() -> None:
    def find() -> None: ...

    with pytest.raises(NameConflict, match="'find'") as failure:
        create_local_ensemble("local", [find, tool(name="find")(returning(1))])
    assert "tool(name=" in failure.value.remedy


json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
).filter(lambda value: value is not None and not isinstance(value, str))


@given(json_data)
def test_plain_data_comes_through_unchanged(value: Any) -> None:
    result = anyio.run(create_tool_from_function(returning(value))[1], Context(), {})
    assert json.dumps(result.structured) == json.dumps(json.loads(result.text))
    if "Infinity" not in json.dumps(value):
        assert result.structured == value


def test_pydantic_is_loaded_only_when_a_tool_is_made() -> None:
    code = "import sys, converser.functions; sys.exit('pydantic' in sys.modules)"
    sources = pathlib.Path(functions.__file__).resolve().parent.parent
    ended = subprocess.run([sys.executable, "-c", code], cwd=sources, check=False, timeout=60)
    assert ended.returncode == 0
