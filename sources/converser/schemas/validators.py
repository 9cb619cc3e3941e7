# SPDX-License-Identifier: Apache-2.0
"""Compiles schemas of strangers, once and under limits, so that no schema and no value can freeze us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .atlas import Atlas
from .engines import Judge
from .explanations import Violation, explain
from .limits import copy_schema, is_simple, refuse_explosions
from .patterns import drop_patterns
from .plain import show

_DRAFTS = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "draft/2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft/2020-12": "https://json-schema.org/draft/2020-12/schema",
}


class Validator(Judge):
    """A compiled schema, with remarks on what of it is not checked."""

    __slots__ = ("remarks",)

    def __init__(
        self, root: dict[str, Any], atlas: Atlas | None = None, remarks: tuple[str, ...] = ()
    ) -> None:
        super().__init__(root, atlas)
        self.remarks = remarks

    def violations(self, instance: Any) -> tuple[Violation, ...]:
        """Why a value does not fit, in words; a few violations at most, none if it fits."""
        return explain(self, instance)


def compile_schema(schema: Mapping[str, Any]) -> Validator:
    """Compiles a schema under limits; raises `SchemaInvalidity` with a reason that people can read."""
    root, text = copy_schema(schema)
    remarks = _settle_draft(root)
    if '"pattern' not in text and is_simple(root, text):
        return Validator(root, remarks=remarks)
    atlas = Atlas(root)
    dropped = drop_patterns(atlas)
    if dropped:
        atlas = Atlas(root)
    refuse_explosions(atlas)
    return Validator(root, atlas, (*remarks, *dropped))


def _settle_draft(root: dict[str, Any]) -> tuple[str, ...]:
    """Spells `$schema` as the engine knows it; an unknown one is read as JSON Schema 2020-12."""
    stated = root.get("$schema")
    if not isinstance(stated, str):
        return ()
    for mark, address in _DRAFTS.items():
        if mark in stated:
            root["$schema"] = address
            return ()
    del root["$schema"]
    return (f"the dialect {show(stated)} is unknown; the schema is read as JSON Schema 2020-12",)
