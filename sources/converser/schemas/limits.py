# SPDX-License-Identifier: Apache-2.0
"""How much a schema may be: its size, and the work that its references could make of a small value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..exceptions import SchemaInvalidity
from .atlas import Atlas, Place
from .keywords import REFERENCES
from .plain import copy_plain, is_object, is_plain

_DEPTH = 128
_VALUES = 30_000
_CHARACTERS = 1_000_000
_APPLICATIONS = 100_000
_CHAIN = 64
_MARKS = tuple(f'"{keyword}"' for keyword in REFERENCES)


def copy_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """A copy of our own, and its text, once it is known to be JSON and of a sane size."""
    try:
        root = copy_plain(schema, _DEPTH, _VALUES)
        text = json.dumps(root)
    except ValueError as failure:
        reason = str(failure)
    else:
        if is_object(root) and len(text) <= _CHARACTERS:
            return root, text
        reason = f"it is not a JSON object of at most {_CHARACTERS} characters"
    raise SchemaInvalidity(
        f"The schema is unusable: {reason}.", remedy="Ask the author of the tool for a simpler one."
    )


def is_simple(root: dict[str, Any], text: str) -> bool:
    """Whether a schema is sure to stay within the limits: it refers to nothing, and is not deep."""
    return not any(mark in text for mark in _MARKS) and is_plain(root, _CHAIN - 1)


def refuse_explosions(atlas: Atlas) -> None:
    """Refuses schemas whose references multiply or chain up, whatever they are applied to."""
    weights: dict[Place, tuple[int, int]] = {}
    seen: set[Place] = set()
    pending: list[tuple[Place, bool]] = [((), False)]
    while pending:
        place, complete = pending.pop()
        if complete:
            weights[place] = _weigh(atlas, place, weights)
        elif place not in seen and place in atlas.schemas:
            seen.add(place)
            pending.append((place, True))
            pending += [(near, False) for near in atlas.nearby[place]]
            pending += [(part, False) for part in atlas.below[place]]


def _weigh(atlas: Atlas, place: Place, weights: Mapping[Place, tuple[int, int]]) -> tuple[int, int]:
    """How often the engine may apply subschemas, and how many of them to one value in a row."""
    # A cycle counts once: the engine remembers what it has seen of a recursive reference.
    near = [weights.get(each, (1, 1)) for each in atlas.nearby[place]]
    deepest = max((weights.get(each, (1, 1))[0] for each in atlas.below[place]), default=0)
    weight = 1 + deepest + sum(weight for weight, _ in near)
    chain = 1 + max((chain for _, chain in near), default=0)
    if weight > _APPLICATIONS or chain > _CHAIN:
        raise SchemaInvalidity(
            "The schema is unusable: its references multiply or nest beyond the limits.",
            remedy="Ask the author of the tool for a simpler schema.",
        )
    return weight, chain
