# SPDX-License-Identifier: Apache-2.0
"""What a Python function says of itself, in its signature and docstring, as JSON Schema.

Pydantic does the mapping of types, both ways; it is loaded when the first local tool is made.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Union,
    get_args,
    get_origin,
    get_type_hints as typing_get_type_hints,
)

from .contents import Content
from .exceptions import FunctionInvalidity
from .invokers import Context, InvocationResult

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic.json_schema import (
        GenerateJsonSchema,
        JsonSchemaMode,
        JsonSchemaWarningKind,
    )

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A function under inspection: its visible parameters, and those that a context goes into."""

    name: str
    core: Function
    hints: dict[str, Any]
    parameters: tuple[inspect.Parameter, ...]
    contexts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Documentation:
    """What a docstring says: of the function, and of each parameter."""

    summary: str
    parameters: dict[str, str]


def inspect_function(function: Function, name: str | None) -> Subject:
    """Looks at a function, and refuses what no model could call."""
    core = _find_core(function)
    name = _choose_name(core, name)
    if inspect.isgeneratorfunction(core) or inspect.isasyncgenfunction(core):
        raise FunctionInvalidity(
            f"Function {name!r} is a generator, and a tool gives one result.",
            remedy="Let it return a list of what it yields.",
        )
    hints = _gather_hints(core, name)
    bound = _find_bound_names(function)
    parameters: list[inspect.Parameter] = []
    contexts: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in bound:
            continue  # Whoever made the partial has decided; it may even be a secret.
        if _accepts_context(hints.get(parameter.name)):
            contexts.append(parameter.name)
        else:
            parameters.append(_normalize_parameter(parameter, name))
    return Subject(
        name=name,
        core=core,
        hints=hints,
        parameters=tuple(parameters),
        contexts=tuple(contexts),
    )


def parse_documentation(core: Function) -> Documentation:
    """Reads a docstring in the style of Google, NumPy or reST."""
    text = inspect.getdoc(core) or ""
    if not text:
        return Documentation(summary="", parameters={})
    import docstring_parser

    parsed = docstring_parser.parse(text)
    parameters = {
        item.arg_name.lstrip("*"): item.description for item in parsed.params if item.description
    }
    summary = parsed.description or ("" if parameters else text)
    return Documentation(summary=summary.strip(), parameters=parameters)


def create_adapter(subject: Subject, documentation: Documentation) -> TypeAdapter[dict[str, Any]]:
    """Makes what turns JSON arguments into the annotated types, and knows their schema."""
    import pydantic

    def collect(**arguments: Any) -> dict[str, Any]:
        return arguments

    parameters = [
        parameter.replace(annotation=_annotate(parameter, subject.hints, documentation.parameters))
        for parameter in subject.parameters
    ]
    # Pydantic derives a validator from the signature of a function; this one has no context,
    # and takes everything by name.
    collector: Any = collect
    collector.__signature__ = inspect.Signature(parameters)
    collector.__annotations__ = {item.name: item.annotation for item in parameters}
    try:
        return pydantic.TypeAdapter[dict[str, Any]](collector)
    except (pydantic.PydanticUserError, NameError) as failure:
        raise _refuse_types(subject.name, failure) from failure


def derive_arguments_schema(subject: Subject, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The JSON Schema of what a model may give."""
    import pydantic

    try:
        return generate_schema(adapter, "validation")
    except pydantic.PydanticUserError as failure:
        raise _refuse_types(subject.name, failure) from failure


def derive_output_schema(hint: Any) -> dict[str, Any] | None:
    """The JSON Schema of a result, where its annotation promises one object."""
    if hint in (None, Any, inspect.Parameter.empty) or _involves_own_result(hint):
        return None
    import pydantic

    try:
        schema = generate_schema(pydantic.TypeAdapter(hint), "serialization")
    except (pydantic.PydanticUserError, NameError):
        return None
    target = schema
    if "$ref" in schema:
        target = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    return {"type": "object", **schema} if target.get("type") == "object" else None


_OWN_RESULTS = (InvocationResult, *get_args(Content))


def _find_core(function: Function) -> Function:
    """The plain function inside of partials and callable objects."""
    core: Any = function.func if isinstance(function, functools.partial) else function
    if isinstance(core, type) or not callable(core):
        raise FunctionInvalidity(
            f"{function!r} is not a function.",
            remedy="Give a function, a method, or an object that can be called.",
        )
    return core if inspect.isroutine(core) else core.__call__


def _find_bound_names(function: Any) -> frozenset[str]:
    """The parameters that a partial gives by name."""
    return frozenset(function.keywords if isinstance(function, functools.partial) else ())


def _choose_name(core: Function, name: str | None) -> str:
    chosen: str = getattr(core, "__name__", "") if name is None else name
    if chosen in ("", "<lambda>", "__call__"):
        raise FunctionInvalidity(
            f"{core!r} has no name of its own.",
            remedy='Give it one, such as converser.tool(name="…")(function).',
        )
    return chosen


def _gather_hints(core: Function, name: str) -> dict[str, Any]:
    try:
        return typing_get_type_hints(core, include_extras=True)
    except NameError as failure:
        raise FunctionInvalidity(
            f"An annotation of function {name!r} cannot be resolved: {failure}.",
            remedy="Define or import that type at the top level of the module of the function,"
            " not within a function or under TYPE_CHECKING.",
        ) from failure


def _normalize_parameter(parameter: inspect.Parameter, function: str) -> inspect.Parameter:
    """Takes by name whatever can be; a model cannot give anything by position."""
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return parameter
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
        raise FunctionInvalidity(
            f"Parameter {parameter.name!r} of function {function!r} can only be given by position.",
            remedy="Tools get their arguments by name: make it an ordinary parameter,"
            " such as a list instead of *args.",
        )
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _annotate(
    parameter: inspect.Parameter, hints: dict[str, Any], documented: dict[str, str]
) -> Any:
    """The annotation of a parameter with its description, and with None where that is its default."""
    from pydantic import Field

    hint = hints.get(parameter.name, Any)
    description = _find_description(hint) or documented.get(parameter.name)
    if parameter.default is None and hint is not Any:
        hint = Union[hint, None]
    return Annotated[hint, Field(description=description)] if description else hint


def _find_description(hint: Any) -> str | None:
    """Words in `Annotated[…, "…"]`, `Annotated[…, Doc("…")]` or `Annotated[…, Field(description="…")]`."""
    for item in getattr(hint, "__metadata__", ()):
        words = item if isinstance(item, str) else getattr(item, "documentation", None)
        words = words or getattr(item, "description", None)
        if isinstance(words, str):
            return words
    if get_origin(hint) in (Union, UnionType, Annotated):
        return next(filter(None, map(_find_description, get_args(hint))), None)
    return None


def _accepts_context(hint: Any) -> bool:
    """Whether an annotation is the context, or a union with it."""
    if get_origin(hint) in (Union, UnionType, Annotated):
        return any(map(_accepts_context, get_args(hint)))
    return hint is Context


def _involves_own_result(hint: Any) -> bool:
    """Whether an annotation is, or contains, a result or content that needs no schema."""
    return hint in _OWN_RESULTS or any(map(_involves_own_result, get_args(hint)))


def _refuse_types(name: str, failure: Exception) -> FunctionInvalidity:
    reason = str(failure).partition("\n")[0].removesuffix(".")
    return FunctionInvalidity(
        f"A parameter of function {name!r} has a type that JSON cannot carry: {reason}.",
        remedy="Use plain types, dataclasses, TypedDict, Enum, datetime and the like.",
    )


def generate_schema(adapter: TypeAdapter[Any], mode: JsonSchemaMode) -> dict[str, Any]:
    """The JSON Schema of a type, with its kind first, and no noise."""
    schema = adapter.json_schema(mode=mode, schema_generator=_create_generator())
    return {"type": schema.pop("type"), **schema} if "type" in schema else schema


@functools.cache
def _create_generator() -> type[GenerateJsonSchema]:
    """A generator without titles that only repeat a name, and without warnings."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012
            "skipped-choice",
            "non-serializable-default",
        }

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Generator
