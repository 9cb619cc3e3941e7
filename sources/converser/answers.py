# SPDX-License-Identifier: Apache-2.0
"""The form that an answer shall have: a JSON Schema for the model, and a validated object for the program."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

from .arguments import ArgumentsGate
from .exceptions import AnswerInvalidity, ArgumentsInvalidity, SchemaInvalidity
from .immutables import freeze, thaw

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_WRAPPER = "answer"
_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_CANDIDATES = 20
_ROOT_KEYWORDS = ("$schema", "$id", "$defs", "definitions")
"""What counts at the root of a schema: its edition, what its references are relative to, and where they lead."""


class AnswerForm:
    """Made of a dataclass, any other type that pydantic knows, or a JSON Schema.

    What a model gives is always one JSON object, as providers demand it: another kind of value is
    wrapped in one on the way out, and unwrapped on the way in.
    """

    def __init__(self, wanted: Any) -> None:
        self._adapter: TypeAdapter[Any] | None = None
        if isinstance(wanted, Mapping):
            schema = thaw(freeze(wanted))
        else:
            self._adapter, schema = _describe_type(wanted)
        self._is_wrapped = not _is_object(schema)
        self.schema: Mapping[str, Any] = freeze(_wrap(schema) if self._is_wrapped else schema)
        self._gate = ArgumentsGate(self.schema)

    def instruct(self) -> str:
        """What a model is told whose provider cannot hold it to a schema."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        return (
            "When you have what you need to answer this, answer with one JSON object and nothing"
            f" else: no other words, no code fence. It must fit this JSON Schema:\n{schema}"
        )

    def read(self, text: str) -> Any:
        """The answer in a model's words; raises `AnswerInvalidity`, which tells a model what to mend."""
        flaw = AnswerInvalidity("It has no JSON object in it.")
        # In prose the answer comes last, after examples and drafts.
        for candidate in reversed(list(_find_candidates(text))):
            try:
                return self._admit(candidate)
            except AnswerInvalidity as failure:
                flaw = failure
        raise flaw

    def _admit(self, value: Any) -> Any:
        if self._is_wrapped and not (isinstance(value, dict) and _WRAPPER in value):
            value = cast("Any", {_WRAPPER: value})
        if not isinstance(value, dict):
            raise AnswerInvalidity("It is not a JSON object.")
        try:
            admitted = self._gate.admit(cast("dict[str, Any]", value))
        except ArgumentsInvalidity as failure:
            lines = failure.message.partition("\n")[2] or failure.message
            raise AnswerInvalidity(f"It does not fit the schema:\n{lines}") from failure
        plain = admitted[_WRAPPER] if self._is_wrapped else admitted
        return plain if self._adapter is None else _construct(self._adapter, plain)


def _describe_type(wanted: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """How pydantic reads a type, and the JSON Schema of it."""
    import pydantic

    from .introspection import generate_schema

    try:
        adapter = pydantic.TypeAdapter[Any](wanted)
        return adapter, generate_schema(adapter, "validation")
    except (
        pydantic.PydanticUserError,
        NameError,
        SyntaxError,
        AttributeError,
        TypeError,
    ) as failure:
        raise SchemaInvalidity(
            f"The type {wanted!r} cannot be the form of an answer: {failure}",
            remedy="Give a dataclass of plain types, or a JSON Schema.",
        ) from failure


def _construct(adapter: TypeAdapter[Any], plain: Any) -> Any:
    """Makes an object of the wanted type; its own checks may find what a schema cannot say."""
    import pydantic

    try:
        return adapter.validate_json(json.dumps(plain))
    except pydantic.ValidationError as failure:
        lines = [
            f"- {'.'.join(map(str, error['loc'])) or 'answer'}: {error['msg']}"
            for error in failure.errors(include_url=False, include_context=False)
        ]
        raise AnswerInvalidity("\n".join(("It is not valid:", *lines))) from failure


def _is_object(schema: dict[str, Any]) -> bool:
    """Whether a schema, or the definition that it refers to, is that of an object."""
    reference = str(schema.get("$ref", ""))
    target: Any = schema
    if reference.startswith("#/"):
        for token in reference[2:].split("/"):
            target = target.get(token, {}) if isinstance(target, dict) else {}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(target, dict) or target.get("type") != "object":  # pyright: ignore[reportUnknownMemberType]
        return False
    schema.setdefault("type", "object")
    return True


def _wrap(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object with the answer in it; what counts at the root stays there."""
    if '"$ref": "#"' in json.dumps(schema, default=str):
        raise SchemaInvalidity(
            "The schema of the answer refers to itself as a whole, and is not of the type `object`.",
            remedy="Put the part that repeats into `$defs`, or make the answer an object.",
        )
    root = {key: schema.pop(key) for key in _ROOT_KEYWORDS if key in schema}
    return {
        "type": "object",
        "properties": {_WRAPPER: schema},
        "required": [_WRAPPER],
        "additionalProperties": False,
        **root,
    }


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _find_candidates(text: str) -> Iterator[Any]:
    """What may be the answer in a text: all of it, or what is fenced, or the objects in the prose."""
    for whole in (text, *_FENCED.findall(text)[-_CANDIDATES:]):
        try:
            yield _DECODER.decode(whole.strip())
        except (ValueError, RecursionError):
            continue
        if whole is text:
            return
    position = 0
    for _ in range(_CANDIDATES):
        if (position := text.find("{", position)) < 0:
            return
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
        else:
            yield value
