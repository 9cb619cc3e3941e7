# SPDX-License-Identifier: Apache-2.0
"""The engine that compares values with schemas: without a network, with linear regular expressions,
and asked only for yes or no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..exceptions import SchemaInvalidity
from .atlas import Atlas, Place
from .plain import copy_plain, is_plain, show

if TYPE_CHECKING:
    import jsonschema_rs

_REGEX_BYTES = 1 << 20


class Judge:
    """Says whether values fit a compiled schema, or any part of it."""

    __slots__ = ("_atlas", "_engine", "_parts", "_registry", "_root")

    def __init__(self, root: dict[str, Any], atlas: Atlas | None = None) -> None:
        self._root = root
        self._atlas = atlas
        self._engine = build_engine(root)
        self._registry: jsonschema_rs.Registry | None = None
        self._parts: dict[Place, jsonschema_rs.Validator | None] = {(): self._engine}

    @property
    def schema(self) -> Mapping[str, Any]:
        """The schema as it was compiled."""
        return self._root

    @property
    def atlas(self) -> Atlas:
        """The map of the schema; made when something is first to be explained or mended."""
        if self._atlas is None:
            self._atlas = Atlas(self._root)
        return self._atlas

    def is_valid(self, instance: Any) -> bool:
        """Whether a value fits; what is no JSON, or over the limits, never does."""
        try:
            return self._engine.is_valid(instance if is_plain(instance) else copy_plain(instance))
        except ValueError:  # no JSON, or text that is no Unicode
            return False

    def fits(self, place: Place, value: Any) -> bool:
        """Whether a plain value fits one subschema; True where that cannot be told."""
        if place not in self._parts:
            self._parts[place] = self._build_part(place)
        engine = self._parts[place]
        try:
            return engine is None or engine.is_valid(value)
        except ValueError:  # text that is no Unicode
            return False

    def _build_part(self, place: Place) -> jsonschema_rs.Validator | None:
        import jsonschema_rs

        escaped = (token.replace("~", "~0").replace("/", "~1") for token in place)
        base = self.atlas.base
        part = {"$ref": f"{base}#/{'/'.join(quote(token, safe='~') for token in escaped)}"}
        if "$schema" in self._root:
            part["$schema"] = self._root["$schema"]
        try:
            if self._registry is None:
                self._registry = jsonschema_rs.Registry([(base, self._root)])
            return build_engine(part, registry=self._registry)
        except (SchemaInvalidity, ValueError, jsonschema_rs.ReferencingError):
            return None


def build_engine(
    schema: dict[str, Any], registry: jsonschema_rs.Registry | None = None
) -> jsonschema_rs.Validator:
    """Compiles with a linear regex engine and without any retrieval."""
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=_REGEX_BYTES, dfa_size_limit=_REGEX_BYTES)
    try:
        return jsonschema_rs.validator_for(
            schema, pattern_options=options, offline=True, registry=registry
        )
    except BaseException as failure:
        # A panic of the engine is no `Exception`, and its class cannot be imported.
        if not isinstance(failure, Exception) and type(failure).__name__ != "PanicException":
            raise
        where = ".".join(str(token) for token in getattr(failure, "instance_path", ()))
        reason = show(getattr(failure, "message", str(failure)), 200)
        raise SchemaInvalidity(
            f"The schema is unusable{f' at {show(where)}' if where else ''}: {reason}.",
            remedy="Ask the author of the tool to correct its schema.",
        ) from failure
