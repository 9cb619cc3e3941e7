# SPDX-License-Identifier: Apache-2.0
"""What it costs to tell a model of a tool, estimated; the same rule for every model, so that one can compare."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .invokers import Invoker

BYTES_PER_TOKEN = 4


def measure(text: str) -> int:
    """The bytes of a text in UTF-8, of which four are about a token in any language."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def estimate_tokens(invoker: Invoker) -> int:
    """About how many tokens a tool takes in each request: the bytes of its compact JSON definition, by four.

    The definition is the name on the wire, the description, and the schema of the arguments, which
    are what providers send. Tokenizers differ: expect to be off by a third.
    """
    definition = {
        "name": invoker.name,
        "description": invoker.description,
        "parameters": invoker.arguments_schema,
    }
    text = json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
    return -(-measure(text) // BYTES_PER_TOKEN)
