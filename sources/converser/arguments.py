# SPDX-License-Identifier: Apache-2.0
"""The gate between a model and a tool: arguments that fit pass, others are mended without loss, or
refused in words from which a model can correct itself, with an example."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from .exceptions import ArgumentsInvalidity, SchemaInvalidity
from .immutables import freeze
from .repairs import repair
from .schemas import Validator, compile_schema, example_for
from .schemas.everyday import Glance, is_everyday
from .schemas.objects import takes_object, tighten
from .schemas.plain import copy_plain, is_plain, show
from .schemas.walks import join_path

_EXAMPLE_CHARACTERS = 2_000


class Strictness(str, enum.Enum):
    """How much of the arguments is checked."""

    STRICT = "strict"
    """Properties that are not declared are refused as well, unless the schema says that it takes them."""
    STANDARD = "standard"
    """Exactly what the JSON Schema says."""
    OFF = "off"
    """Nothing is checked or mended."""


class SchemaOwner(Protocol):
    """Has the schema of arguments, so that a gate need not keep it too."""

    @property
    def arguments_schema(self) -> Mapping[str, Any]:
        """The schema."""
        ...


class ArgumentsGate:
    """Checks the arguments of one tool, with a schema that is compiled once; at first use where it surely can be."""

    __slots__ = ("_example", "_glance", "_pending", "_repair", "_validator", "remarks")

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        repair: bool = True,
        strictness: Strictness = Strictness.STANDARD,
        owner: SchemaOwner | None = None,
    ) -> None:
        self._repair = repair
        self._example: str | None = None
        self._validator: Validator | None = None
        self._pending: Mapping[str, Any] | SchemaOwner | None = None
        self._glance: Glance | None = None
        self.remarks: tuple[str, ...] = ()
        if strictness is Strictness.OFF:
            return
        if strictness is Strictness.STANDARD and is_everyday(schema):
            self._pending = freeze(schema) if owner is None else owner
            return
        validator = compile_schema(schema)
        if not takes_object(validator):
            raise SchemaInvalidity(
                "The schema of the arguments is unusable: it does not take an object.",
                remedy="Ask the author of the tool to give it the type `object`.",
            )
        if strictness is Strictness.STRICT:
            validator = tighten(validator)
        self._validator = validator
        self.remarks = validator.remarks

    def admit(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as a dictionary of their own that fits; raises `ArgumentsInvalidity`.

        Nested containers are shared with the caller where they are plain and nothing was mended.
        """
        if self._glance is not None and self._glance.admits(arguments):
            return dict(arguments)
        if not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentsInvalidity(
                f"The arguments are no object: found {show(arguments)}.",
                remedy="Give the arguments as one JSON object.",
            )
        admitted = dict(arguments)
        validator = self._validator or self._compile_pending()
        if validator is None:
            return admitted
        if not is_plain(admitted):
            admitted = _make_plain(admitted)
        if validator.fits((), admitted):
            return admitted
        if self._repair:
            admitted, _ = repair(admitted, validator)
            if validator.fits((), admitted):
                return admitted
        raise self._refuse(validator, admitted)

    def _compile_pending(self) -> Validator | None:
        if (pending := self._pending) is None:
            return None
        schema = pending if isinstance(pending, Mapping) else pending.arguments_schema
        self._glance = Glance(schema)
        try:
            self._validator = Validator(copy_plain(schema))
        except SchemaInvalidity as failure:
            raise ArgumentsInvalidity(
                f"The arguments cannot be checked: {failure}", remedy="Use another tool."
            ) from failure
        self._pending = None
        return self._validator

    def _refuse(self, validator: Validator, arguments: dict[str, Any]) -> ArgumentsInvalidity:
        violations = validator.violations(arguments)
        lines = [
            f"- {each.path or 'arguments'}: expected {each.expected}, found {each.found}"
            for each in violations
        ]
        # What went wrong is shown, be it optional.
        names = [name for name in arguments if any(_is_under(name, v.path) for v in violations)]
        example = _write_example(validator, names) if names else ""
        if not example:
            if self._example is None:
                self._example = _write_example(validator)
            example = self._example
        if example:
            lines.append(f"A valid example: {example}")
        return ArgumentsInvalidity(
            "\n".join(("The arguments do not fit the schema:", *lines)),
            remedy="\nCorrect the arguments and call again.",
        )


def _make_plain(arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", copy_plain(arguments))
    except ValueError as failure:
        raise ArgumentsInvalidity(
            f"The arguments are unusable: {failure}.", remedy="Give less, and plain JSON data."
        ) from failure


def _is_under(name: str, path: str) -> bool:
    """Whether a path leads to a property of the arguments, or into it."""
    top = join_path("", name)
    return path == top or path.startswith((f"{top}.", f"{top}["))


def _write_example(validator: Validator, names: Sequence[str] = ()) -> str:
    """An example as JSON, with these properties beside the required ones, if it truly fits and is short."""
    schema: Any = validator.schema
    if names:
        declared = schema.get("properties", {})
        more = [name for name in names if name in declared]
        schema = {**schema, "required": [*schema.get("required", ()), *more]}
    example = example_for(schema)
    if not validator.is_valid(example):
        return ""
    text = json.dumps(example, ensure_ascii=False)
    return text if len(text) <= _EXAMPLE_CHARACTERS else ""
