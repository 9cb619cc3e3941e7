# SPDX-License-Identifier: Apache-2.0
"""A typed Python function, sync or async, becomes a tool: its schema, and how to call it."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, overload

import anyio.to_thread
from absence import Absential, absent, is_absent

from .contents import BlobContent, Content, TextualContent
from .ensembles import Ensemble, EnsembleConfiguration
from .exceptions import NameConflict, ToolExecutionFailure
from .immutables import freeze, thaw
from .introspection import (
    Function,
    create_adapter,
    derive_arguments_schema,
    derive_output_schema,
    inspect_function,
    parse_documentation,
)
from .invokers import Annotations, Context, Invocable, InvocationResult, Tool
from .outcomes import Outcome

if TYPE_CHECKING:
    from pydantic import TypeAdapter

LocalTool = tuple[Tool, Invocable]
"""A tool and how to call it: what an ensemble takes."""

_F = TypeVar("_F", bound=Function)
_CONTENTS: tuple[type[Content], ...] = get_args(Content)
_DECLARATION = "__converser_tool__"
NO_OUTPUT = "(no output)"
"""What a model reads where a function returned None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declaration:
    """What `tool` notes on a function; None: the function speaks for itself."""

    name: str | None = None
    description: str | None = None
    annotations: Annotations = Annotations()


@overload
def tool(function: _F, /) -> _F: ...


@overload
def tool(
    *,
    name: Absential[str] = ...,
    description: Absential[str] = ...,
    title: str | None = ...,
    read_only: bool | None = ...,
    destructive: bool | None = ...,
    idempotent: bool | None = ...,
    open_world: bool | None = ...,
    sequential: bool | None = ...,
) -> Callable[[_F], _F]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: Absential[str] = absent,
    description: Absential[str] = absent,
    title: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    sequential: bool | None = None,
) -> Any:
    """Notes on a function how it shall appear as a tool; the function itself stays unchanged."""
    declaration = _Declaration(
        name=None if is_absent(name) else name,
        description=None if is_absent(description) else description,
        annotations=Annotations(
            title=title,
            read_only=read_only,
            destructive=destructive,
            idempotent=idempotent,
            open_world=open_world,
            sequential=sequential,
        ),
    )

    def declare(function: _F) -> _F:
        setattr(function, _DECLARATION, declaration)
        return function

    return declare if function is None else declare(function)


def create_tool_from_function(
    function: Function,
    *,
    name: Absential[str] = absent,
    description: Absential[str] = absent,
    annotations: Absential[Annotations] = absent,
) -> LocalTool:
    """Makes a tool of a typed function; its signature and docstring give the schema."""
    declaration: _Declaration = getattr(function, _DECLARATION, _Declaration())
    subject = inspect_function(function, declaration.name if is_absent(name) else name)
    documentation = parse_documentation(subject.core)
    if is_absent(description):
        description = (
            documentation.summary if declaration.description is None else declaration.description
        )
    adapter = create_adapter(subject, documentation)
    definition = Tool(
        name=subject.name,
        description=description,
        arguments_schema=freeze(derive_arguments_schema(subject, adapter)),
        output_schema=freeze(derive_output_schema(subject.hints.get("return"))),
        annotations=declaration.annotations if is_absent(annotations) else annotations,
    )
    invocable = _FunctionInvocable(
        name=subject.name,
        function=function,
        adapter=adapter,
        contexts=subject.contexts,
        asynchronous=inspect.iscoroutinefunction(subject.core),
    )
    return definition, invocable


def create_local_ensemble(
    name: str,
    functions: Iterable[Function | LocalTool],
    *,
    configuration: Absential[EnsembleConfiguration] = absent,
) -> Ensemble:
    """Makes an ensemble of typed functions; it needs no connection, and its invokers are there at once.

    Your own functions have no timeout, unless the configuration gives one.
    """
    if is_absent(configuration):
        configuration = EnsembleConfiguration(timeout=None)
    tools: dict[str, LocalTool] = {}
    for function in functions:
        definition, invocable = (
            create_tool_from_function(function) if callable(function) else function
        )
        title = definition.name
        if title in tools:
            raise NameConflict(
                f"Two functions of local ensemble {name!r} are both called {title!r}.",
                remedy='Give one of them another name, such as @converser.tool(name="…").',
            )
        tools[title] = (definition, invocable)
    return Ensemble(name, tools=tools.values(), configuration=configuration)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FunctionInvocable:
    """Calls a function with arguments in its own types."""

    name: str
    function: Function
    adapter: TypeAdapter[dict[str, Any]]
    contexts: tuple[str, ...]
    asynchronous: bool

    async def __call__(self, context: Context, arguments: dict[str, Any]) -> InvocationResult:
        converted = self._convert(arguments)
        converted.update(dict.fromkeys(self.contexts, context))
        return _package_result(self.name, await self._run(converted))

    def _convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Turns JSON into dataclasses, dates and the like; a schema cannot say all that these check."""
        import pydantic

        try:
            return self.adapter.validate_python(thaw(arguments))
        except pydantic.ValidationError as failure:
            mistakes = "; ".join(
                f"{'.'.join(map(str, error['loc'])) or 'arguments'}: {error['msg']}"
                for error in failure.errors(include_url=False, include_context=False)
            )
            raise ToolExecutionFailure(
                f"The arguments of tool {self.name!r} do not fit: {mistakes}.",
                remedy="Correct them and call it again.",
                tool=self.name,
                outcome=Outcome.INVALID,
            ) from failure

    async def _run(self, arguments: dict[str, Any]) -> Any:
        """Runs a sync function in a thread, so that it does not block the loop."""
        if self.asynchronous:
            return await self.function(**arguments)
        result = await anyio.to_thread.run_sync(
            functools.partial(self.function, **arguments), abandon_on_cancel=True
        )
        return await result if inspect.isawaitable(result) else result


def _package_result(name: str, value: Any) -> InvocationResult:
    """Makes a result of whatever a function returned: contents as they are, data as JSON."""
    if isinstance(value, InvocationResult):
        return value
    if value is None:
        return InvocationResult(contents=(TextualContent(text=NO_OUTPUT),))
    if isinstance(value, (list, tuple)):
        parts = cast("Sequence[Any]", value)
        if any(isinstance(part, _CONTENTS) for part in parts):
            contents = (_package_result(name, part).contents for part in parts if part is not None)
            return InvocationResult(contents=tuple(chain.from_iterable(contents)))
    elif (content := _package_content(value)) is not None:
        return InvocationResult(contents=(content,))
    return _package_data(name, value)


def _package_content(value: Any) -> Content | None:
    """Makes a content of text, bytes, or what already is one."""
    if isinstance(value, _CONTENTS):
        return value
    if isinstance(value, str) and not isinstance(value, Enum):
        return TextualContent(text=str(value))
    if isinstance(value, (bytes, bytearray)):
        return BlobContent(data=bytes(value))
    return None


def _package_data(name: str, value: Any) -> InvocationResult:
    """Makes structured data and its text; there is no NaN in JSON, so it becomes a string."""
    from pydantic_core import to_json

    try:
        text = to_json(value, inf_nan_mode="strings", bytes_mode="base64").decode()
    except ValueError as failure:
        raise ToolExecutionFailure(
            f"Tool {name!r} ran to its end, but what it returned cannot become JSON: {failure}.",
            remedy="Let it return text, contents, a dataclass, or plain data.",
            tool=name,
        ) from failure
    content = TextualContent(text=text, mimetype="application/json")
    return InvocationResult(contents=(content,), structured=freeze(json.loads(text)))
