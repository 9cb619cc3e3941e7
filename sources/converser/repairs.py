# SPDX-License-Identifier: Apache-2.0
"""Mends values that do not fit their schema, where nothing is lost by it.

Mended are: text that is exactly the value that is due (see `readings.py`), an integral float for an
integer, a missing required property with a default, and an explicit null for an optional property,
which is left out. A part that fits stays as it is, and alternatives are mended only where all that
fit afterwards agree on the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from .exceptions import ArgumentsInvalidity
from .readings import READERS
from .schemas import Validator, compile_schema
from .schemas.atlas import Place
from .schemas.engines import Judge
from .schemas.keywords import list_types
from .schemas.plain import copy_plain, is_array, is_object, is_plain, show
from .schemas.walks import Walk, join_path


def repair(
    arguments: Mapping[str, Any], schema: Mapping[str, Any] | Validator
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A copy with all mended that can be without loss (it may still not fit), and a note for each repair."""
    validator = schema if isinstance(schema, Validator) else compile_schema(schema)
    plain = dict(arguments)
    if not is_plain(plain):
        try:
            plain = copy_plain(plain)
        except ValueError as failure:
            raise ArgumentsInvalidity(f"The arguments are unusable: {failure}.") from failure
    mender = _Mender(validator)
    mended = mender.mend((), plain, "")
    return mended, tuple(mender.notes)


class _Mender(Walk):
    """Mends a value part by part, leaving alone whatever fits."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.notes: list[str] = []

    def mend(self, place: Place, value: Any, path: str) -> Any:
        """The value as one subschema would have it, as far as that is free of loss."""
        if self.judge.fits(place, value) or place not in self.atlas.schemas:
            return value
        if not self.enter(place, path):
            return value
        schema = self.atlas.schemas[place]
        value = self._convert(place, list_types(schema), value, path)
        if is_object(value):
            value = self._complete(place, schema, value, path)
        if isinstance(value, (dict, list)):
            value = self._mend_parts(place, value, path)
        for near in (*self.atlas.references[place], *self.atlas.list_branches(place, "allOf")):
            value = self.mend(near, value, path)
        for keyword in ("anyOf", "oneOf"):
            value = self._mend_branches(self.atlas.list_branches(place, keyword), value, path)
        self.leave(place, path)
        return value

    def _note(self, path: str, words: str) -> None:
        self.notes.append(f"{path or 'arguments'}: {words}")

    def _convert(self, place: Place, kinds: list[str], value: Any, path: str) -> Any:
        """Reads text, or an integral float, as the kind of value that is due."""
        whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
        if whole and "integer" in kinds and "number" not in kinds:
            self._note(path, f"the number {value!r} was read as the integer {int(value)}")
            return int(value)
        if not isinstance(value, str) or "string" in kinds:
            return value
        readings = [(kind, READERS[kind](value)) for kind in kinds if kind in READERS]
        readings = [(kind, reading) for kind, reading in readings if reading is not None]
        fitting = [pair for pair in readings if self.judge.fits(place, pair[1])] or readings
        if not fitting or any(reading != fitting[0][1] for _, reading in fitting):
            return value
        kind, reading = fitting[0]
        self._note(path, f"the text {show(value)} was read as the {kind} {show(reading)}")
        return reading

    def _complete(
        self, place: Place, schema: dict[str, Any], value: dict[str, Any], path: str
    ) -> dict[str, Any]:
        """Fills in defaults of required properties, and leaves out nulls of optional ones."""
        required = schema.get("required", [])
        required = required if is_array(required) else []
        result = dict(value)
        for name, part in schema.get("properties", {}).items():
            at = (*place, "properties", name)
            if name in value:
                unwanted = value[name] is None and name not in required
                if unwanted and not self.judge.fits(at, None):
                    del result[name]
                    self._note(join_path(path, name), "null was left out: the property is optional")
            elif name in required and is_object(part) and "default" in part:
                default = part["default"]
                result |= {name: deepcopy(default)} if self.judge.fits(at, default) else {}
        for name in result.keys() - value.keys():
            words = f"the default {show(result[name])} was filled in"
            self._note(join_path(path, name), words)
        return result

    def _mend_parts(self, place: Place, value: Any, path: str) -> Any:
        result: Any = None
        for key, part in list(self.list_parts(place, value)):
            mended = self.mend(part, value[key], join_path(path, key))
            if mended is not value[key]:
                result = value.copy() if result is None else result
                result[key] = mended
        return value if result is None else result

    def _mend_branches(self, branches: list[Place], value: Any, path: str) -> Any:
        """Mends for an alternative, if there is but one outcome."""
        if any(self.judge.fits(branch, value) for branch in branches):
            return value
        outcomes: list[tuple[Any, list[str]]] = []
        before = self.notes
        for branch in branches:
            self.notes = []
            outcome = self.mend(branch, value, path)
            if self.judge.fits(branch, outcome):
                outcomes.append((outcome, self.notes))
        self.notes = before
        if not outcomes or any(outcome != outcomes[0][0] for outcome, _ in outcomes):
            return value
        self.notes += outcomes[0][1]
        return outcomes[0][0]
