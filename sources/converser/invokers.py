# SPDX-License-Identifier: Apache-2.0
"""One tool: what it is called, what it takes, and how to call it; local and remote ones look the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

import anyio

from .arguments import ArgumentsGate
from .contents import Content, TextualContent
from .exceptions import ArgumentsInvalidity, ConverserFailure, MCPFailure, ToolExecutionFailure
from .immutables import EMPTY, FrozenDictionary, freeze_at_sight
from .outcomes import Outcome
from .tasks import is_from_above

if TYPE_CHECKING:
    from .ensembles import Ensemble

ProgressCallback = Callable[[float, "float | None", "str | None"], Awaitable[None]]
"""Hears `(progress, total, message)` while a tool works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """What a tool says of itself; a server's word, so never a ground for trust. None: it says nothing."""

    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    sequential: bool | None = None
    """Whether calls of one turn must be made one after the other; only local tools say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The definition of a tool, before it has an ensemble and a name on the wire."""

    name: str
    description: str = ""
    arguments_schema: Mapping[str, Any] = field(default_factory=FrozenDictionary)
    output_schema: Mapping[str, Any] | None = None
    annotations: Annotations = Annotations()
    extras: Mapping[str, Any] = field(default_factory=FrozenDictionary, repr=False)


peek_schema: Callable[[Tool], Mapping[str, Any]] = freeze_at_sight(Tool, "arguments_schema")
"""The schema of a tool's arguments, for those who will not keep it: it may not be frozen yet."""


def keep_known(listed: Sequence[Tool], known: Iterable[Tool]) -> tuple[Tool, ...]:
    """What half a list shows, and what was known besides: a tool is not gone where its page did not come."""
    names = {tool.name for tool in listed}
    return (*listed, *(tool for tool in known if tool.name not in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a caller gives along with an invocation; local tools may ask for it as a parameter."""

    timeout: float | None = None
    """Seconds until the tool must have given its result, or a sign of progress where that is heard.

    Progress is asked for, and heard, where `on_progress`, `idle_timeout` or `timeout_maximum` is
    given; a conversation always gives the first.
    """
    idle_timeout: float | None = None
    """Seconds that it may then be silent between two signs of progress; None: as `timeout`."""
    timeout_maximum: float | None = None
    """Seconds after which even a tool that makes progress is stopped."""
    replay: bool = False
    """Whether a call whose outcome is unknown may be repeated, whatever the tool says of itself."""
    on_progress: ProgressCallback | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDictionary)

    def complete(self, usual: Context) -> Context:
        """This context, with what an ensemble usually wants where it says nothing itself."""
        if self is NO_CONTEXT:
            return usual
        if usual is NO_CONTEXT:
            return self
        return Context(
            timeout=usual.timeout if self.timeout is None else self.timeout,
            idle_timeout=usual.idle_timeout if self.idle_timeout is None else self.idle_timeout,
            timeout_maximum=self.timeout_maximum or usual.timeout_maximum,
            replay=self.replay or usual.replay,
            on_progress=self.on_progress,
            metadata=self.metadata,
        )


NO_CONTEXT = Context()
"""The context of a caller who has nothing to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationResult:
    """What a tool gave: contents for the model, structured data for programs, and remarks of ours."""

    contents: tuple[Content, ...] = ()
    structured: Any = None
    remarks: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All text of the result, joined by line breaks."""
        return "\n".join(part.text for part in self.contents if isinstance(part, TextualContent))


Invocable = Callable[[Context, "dict[str, Any]"], Awaitable[InvocationResult]]
"""The async callable inside an invoker; it gets arguments that fit the schema."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Invoker:
    """One tool that can be called: `await invoker({"city": "Oslo"})`."""

    name: str
    tool: Tool
    invocable: Invocable = field(repr=False)
    gate: ArgumentsGate = field(repr=False)
    ensemble: Ensemble | None = field(default=None, repr=False)
    usual: Context = field(default=NO_CONTEXT, repr=False)
    """What holds where a caller says nothing: the timeouts of its ensemble."""

    @property
    def description(self) -> str:
        """What the tool says that it does."""
        return self.tool.description

    @property
    def arguments_schema(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments."""
        return self.tool.arguments_schema

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema of its structured result, where it promises one."""
        return self.tool.output_schema

    @property
    def annotations(self) -> Annotations:
        """What the tool says of its side effects."""
        return self.tool.annotations

    @property
    def is_sequential(self) -> bool:
        """Whether it asks, or its ensemble wants it, to be called in the model's order."""
        patterns = () if self.ensemble is None else self.ensemble.configuration.sequential
        return self.annotations.sequential is True or self._matches(patterns)

    @property
    def is_pinned(self) -> bool:
        """Whether its ensemble wants a model to see it always."""
        return self.ensemble is not None and self._matches(self.ensemble.configuration.pinned)

    def _matches(self, patterns: tuple[str, ...]) -> bool:
        return any(fnmatchcase(self.tool.name, pattern) for pattern in patterns)

    async def __call__(
        self, arguments: Mapping[str, Any] | object = EMPTY, *, context: Context = NO_CONTEXT
    ) -> InvocationResult:
        """Validates and repairs the arguments, then runs the tool; raises `ToolExecutionFailure`.

        Instead of a mapping, the arguments may be an instance of a class that
        `create_arguments_class` or a stub module made.
        """
        try:
            admitted = self.gate.admit(_read_arguments(arguments))
        except ArgumentsInvalidity as failure:
            raise self._fail(failure, Outcome.INVALID) from failure
        context = context.complete(self.usual)
        try:
            if self.ensemble is not None and self.ensemble.connection is not None:
                return await self.invocable(context, admitted)  # It keeps its own time.
            return await self._call_here(context, admitted)
        except ToolExecutionFailure:
            raise
        except MCPFailure as failure:
            raise self._fail(failure, failure.outcome) from failure
        except BaseException as failure:  # Extensions in Rust panic with one that is no Exception.
            if is_from_above(failure):
                raise
            raise self._fail(failure, Outcome.TOOL_ERROR) from failure

    async def _call_here(self, context: Context, arguments: dict[str, Any]) -> InvocationResult:
        """Calls what is in this process, and keeps its time; a model cannot end the program by a call."""
        try:
            with anyio.move_on_after(context.timeout):
                result: Any = await self.invocable(context, arguments)
                if isinstance(result, InvocationResult):
                    return result
                raise TypeError(f"it gave no InvocationResult, but a {type(result).__name__}")
        except SystemExit as failure:
            raise RuntimeError(f"It wanted to end the program, with {failure!r}.") from failure
        raise self._expire(context.timeout)

    def _expire(self, timeout: float | None) -> ToolExecutionFailure:
        return ToolExecutionFailure(
            f"Tool {self.name!r} gave no result within {timeout} seconds, and was given up; what it"
            " did until then, or still does in a thread, may take effect.",
            tool=self.name,
            ensemble=self.ensemble.name if self.ensemble else "",
            outcome=Outcome.TIMED_OUT,
        )

    def _fail(self, cause: BaseException, outcome: Outcome) -> ToolExecutionFailure:
        """One kind of failure for every cause, with what the tool itself had to say."""
        words, remedy = describe_failure(cause), ""
        if isinstance(cause, ConverserFailure):
            words, remedy = cause.message, cause.remedy
        return ToolExecutionFailure(
            words if isinstance(cause, MCPFailure) else f"Tool {self.name!r} failed: {words}",
            remedy=remedy,
            tool=self.name,
            ensemble=self.ensemble.name if self.ensemble else "",
            outcome=outcome,
            contents=getattr(cause, "contents", ()),
            structured=getattr(cause, "structured", None),
        )


def _read_arguments(arguments: Mapping[str, Any] | object) -> Mapping[str, Any]:
    if isinstance(arguments, (dict, Mapping)):  # the first is quick to tell
        return cast("Mapping[str, Any]", arguments)
    if is_dataclass(arguments):
        from .signatures import dump_arguments

        return dump_arguments(arguments)
    return cast("Mapping[str, Any]", arguments)  # which the gate refuses in its own words


def describe_failure(cause: BaseException) -> str:
    """Words for a failure that are never empty; foreign exceptions are named by their class.

    A group, of which the words say nothing, is told by what is in it.
    """
    if isinstance(cause, ConverserFailure):
        return str(cause)
    parts: Any = getattr(cause, "exceptions", None)
    if isinstance(parts, tuple):
        grouped = cast("tuple[BaseException, ...]", parts)
        return "; ".join(dict.fromkeys(map(describe_failure, grouped)))
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
