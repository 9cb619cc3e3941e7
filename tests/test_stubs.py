# SPDX-License-Identifier: Apache-2.0
"""Stub modules: well typed, and nothing that a server says can become code."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import anyio
import pytest
from hypothesis import example, given, settings, strategies as st

from converser.ensembles import Ensemble
from converser.invokers import Context, InvocationResult, Tool
from converser.signatures import dump_arguments
from converser.stubs import write_stub_module

ROOT = Path(__file__).resolve().parent.parent
AWKWARD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": 'Says """ and \\ and\nmore.',
    "properties": {
        "GetWeatherArgumentsNode": {"type": "string"},
        "city": {"type": "string", "description": "Where?"},
        "class": {"type": "integer", "default": 3},
        "foo-bar": {"type": ["string", "null"]},
        "_x": {
            "type": "array",
            "items": {"properties": {"str": {"type": "number"}}},
            "default": [],
        },
        "tree": {"$ref": "#/$defs/Node"},
        "choice": {"enum": ["a", "b", 1, True, None, -5], "default": "b"},
        "table": {"type": "object", "additionalProperties": {"type": "integer"}},
        "json": {"$ref": "#/$defs/Json"},
        "str": {"type": "boolean"},
        "field": {"type": "string", "default": "x"},
        "Any": {},
        "Sequence": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
        "numbers": {"type": "array", "items": {"type": "number"}, "default": [1, 2.5]},
        "picks": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a"]},
    },
    "required": ["city", "tree"],
    "additionalProperties": {"type": "string"},
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        },
        "Json": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/Json"}}]
        },
    },
}
TOOLS = [
    Tool(name="get-weather", description="Gets the weather.", arguments_schema=AWKWARD_SCHEMA),
    Tool(name="getWeather", description="Any Literal Mapping, as words."),
    Tool(name="print"),
    Tool(name="class"),
    Tool(name="dump_arguments"),
    Tool(name="天気", arguments_schema={"properties": {"都市": {"type": "string"}}}),
]
USE = """
from stub import GetWeatherArguments, GetWeatherArgumentsNode, get_weather
from converser.ensembles import Ensemble

async def main(ensemble: Ensemble) -> str:
    arguments = GetWeatherArguments(city="Oslo", tree=GetWeatherArgumentsNode(), foo_bar=None)
    return (await get_weather(ensemble, arguments)).text
"""


def load(source: str) -> ModuleType:
    module = ModuleType("converser_stub_under_test")
    sys.modules[module.__name__] = module
    exec(compile(source, "<stub>", "exec"), vars(module))
    return module


@pytest.mark.anyio
async def test_a_written_function_calls_its_tool() -> None:
    calls: list[tuple[Context, dict[str, Any]]] = []

    async def invoke(context: Context, arguments: dict[str, Any]) -> InvocationResult:
        calls.append((context, arguments))
        return InvocationResult(structured=len(calls))

    ensemble = Ensemble("weather", tools=[(tool, invoke) for tool in TOOLS])
    module = load(write_stub_module(TOOLS, "weather"))
    arguments = module.GetWeatherArguments(
        city="Oslo", tree=module.GetWeatherArgumentsNode(kids=[module.GetWeatherArgumentsNode()])
    )
    with anyio.fail_after(10):
        await module.get_weather(ensemble, arguments, context=Context(timeout=3))
        result = await module.print_(ensemble)
    assert calls == [
        (Context(timeout=3), {"city": "Oslo", "tree": {"kids": [{}]}}),
        (Context(timeout=ensemble.configuration.timeout), {}),
    ]
    assert result.structured == 2


def test_invokers_are_written_by_their_names_on_the_wire() -> None:
    async def invoke(context: Context, arguments: dict[str, Any]) -> InvocationResult:
        return InvocationResult()

    ensemble = Ensemble("weather", tools=[(TOOLS[-1], invoke)])
    (name,) = ensemble.invokers
    assert f"access_invoker({name!r})" in write_stub_module(ensemble.invokers.values(), "weather")


def test_no_two_things_of_a_module_share_a_name() -> None:
    tree = ast.parse(write_stub_module(TOOLS, "weather"))
    names = [n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.AsyncFunctionDef))]
    assert len(names) == len(set(names))
    assert {"get_weather", "get_weather_2", "print_", "class_", "dump_arguments_", "天気"} < {
        *names
    }


def test_descriptions_stand_where_editors_look_for_them() -> None:
    module = load(write_stub_module(TOOLS, "weather"))
    assert module.get_weather.__doc__ == "Gets the weather."
    about = inspect.getdoc(module.GetWeatherArguments)
    assert about == 'Says """ and \\ and\nmore.'
    assert '    city: str\n    """Where?"""\n' in write_stub_module(TOOLS, "weather")


def test_an_ensemble_without_tools_gives_a_module_too() -> None:
    assert load(write_stub_module([], "nothing")).__doc__ is not None


@pytest.mark.parametrize(
    "command",
    [
        ["pyright", "--project", "."],
        ["mypy", "--strict", "--cache-dir", "cache", "use.py", "stub.py"],
    ],
    ids=["pyright", "mypy"],
)
def test_a_module_satisfies_strict_type_checkers(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "stub.py").write_text(write_stub_module(TOOLS, "weather"), "utf-8")
    (tmp_path / "use.py").write_text(USE, "utf-8")
    sources = ROOT / "sources"
    (tmp_path / "pyrightconfig.json").write_text(
        f'{{"include": ["."], "typeCheckingMode": "strict", "extraPaths": ["{sources}"]}}', "utf-8"
    )
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nmypy_path = {sources}\n[mypy-converser.*]\nfollow_imports = silent\n", "utf-8"
    )
    outcome = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


# Words that would do harm if they got out of the place that they belong in.
hostile_text = st.text(max_size=30) | st.sampled_from(
    [
        '"""',
        '"',
        "'''",
        "\\",
        '\\"""',
        '""""""',
        "\\\n",
        '"""\nimport os\n"""',
        "x: int = __import__('os').system('true')\n",
        "\r\nimport os",
        "\x0cimport os",
        "\u2028import os",
        "\x00",
        "\ud800",
        "\u202e",
        "{__import__('os')}",
        "%s",
        "\\N{DASH}",
        "# type: ignore",
        "None",
        "Arguments",
        "OMITTED",
        "self",
    ]
)
leaf_schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "null", "array"]),
        "description": hostile_text,
        "enum": st.lists(hostile_text | st.integers() | st.none() | st.floats(), max_size=3),
        "default": hostile_text
        | st.integers()
        | st.floats()
        | st.lists(hostile_text, max_size=2)
        | st.dictionaries(hostile_text, hostile_text, max_size=1),
        "$ref": hostile_text.map(lambda text: f"#/$defs/{text}"),
    },
)
schemas = st.recursive(
    leaf_schemas,
    lambda inner: (
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": st.dictionaries(hostile_text, inner, max_size=3),
                "required": st.lists(hostile_text, max_size=2),
                "additionalProperties": inner,
                "description": hostile_text,
                "$defs": st.dictionaries(hostile_text, inner, max_size=2),
            },
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=3)})
    ),
    max_leaves=8,
)
tools = st.builds(Tool, name=hostile_text, description=hostile_text, arguments_schema=schemas)

MODULES = {
    "__future__",
    "collections.abc",
    "dataclasses",
    "typing",
    "converser.ensembles",
    "converser.invokers",
    "converser.signatures",
}
PLAIN_NODES = (
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.Store,
    ast.Tuple,
    ast.Dict,
    ast.UnaryOp,
    ast.USub,
    ast.BinOp,
    ast.BitOr,
    ast.Subscript,
    ast.Call,
    ast.keyword,
    ast.AnnAssign,
)


def check_statement(node: ast.stmt) -> None:
    """Only a docstring, known imports, classes of fields, and functions of two lines may be there."""
    if isinstance(node, ast.Expr):
        assert isinstance(node.value, ast.Constant)
        assert isinstance(node.value.value, str)
    elif isinstance(node, ast.ImportFrom):
        assert node.module in MODULES
    elif isinstance(node, ast.ClassDef):
        assert [ast.unparse(d) for d in node.decorator_list] == [
            "dataclass(frozen=True, kw_only=True, slots=True)"
        ]
        assert not node.bases
        for field in node.body:
            check_field(field)
    else:
        assert isinstance(node, ast.AsyncFunctionDef)
        check_function(node)


def check_field(node: ast.stmt) -> None:
    if isinstance(node, ast.Expr):
        assert isinstance(node.value, ast.Constant)
        assert isinstance(node.value.value, str)
        return
    assert isinstance(node, ast.AnnAssign)
    for part in ast.walk(node):
        assert isinstance(part, PLAIN_NODES), ast.dump(part)
        if isinstance(part, ast.Call):
            assert ast.unparse(part.func) == "field"
            assert part is node.value


def check_function(node: ast.AsyncFunctionDef) -> None:
    docstring, binding, ending = node.body
    assert isinstance(docstring, ast.Expr)
    assert isinstance(docstring.value, ast.Constant)
    assert isinstance(binding, ast.Assign)
    assert isinstance(binding.value, ast.Call)
    assert ast.unparse(binding.value.func) == "ensemble.access_invoker"
    assert all(isinstance(argument, ast.Constant) for argument in binding.value.args)
    assert ast.unparse(ending) == "return await invoker(dump_arguments(arguments), context=context)"


@settings(max_examples=300)
@given(st.lists(tools, max_size=3), hostile_text)
@example([Tool(name='"""\nimport os\n"""', description='"""\nimport os\n"""')], '"""\nimport os')
@example(
    [Tool(name="x", description="ends with \\"), Tool(name="y", description='ends with "')], ""
)
def test_nothing_that_a_server_says_becomes_code(definitions: list[Tool], name: str) -> None:
    source = write_stub_module(definitions, name)
    source.encode("utf-8")
    for node in ast.parse(source).body:
        check_statement(node)
    module = load(source)
    kinds = [kind for kind in vars(module).values() if dataclasses.is_dataclass(kind)]
    own = [kind for kind in kinds if kind.__module__ == module.__name__]
    assert len(own) >= len(definitions)
    for kind in own:
        build_and_dump(kind)


def build_and_dump(kind: Callable[..., Any]) -> None:
    """Builds an instance with None for all that is required, and dumps it."""
    get_type_hints(kind)
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    required = {field.name: None for field in fields if field.default is dataclasses.MISSING}
    assert len(dump_arguments(kind(**required))) == len(required)
