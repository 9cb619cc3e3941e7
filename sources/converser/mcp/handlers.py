# SPDX-License-Identifier: Apache-2.0
"""What a server may ask of us during a call: a person's input. The same handler serves both eras."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import mcp_types as wire
from mcp.client.session import ClientRequestContext, ElicitationFnT

from ..hygiene import clean_text
from ..immutables import FrozenDictionary, freeze
from ..tasks import shelter
from .failures import TEXT_LIMIT
from .narrowing import as_dictionary, as_list


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation:
    """A server's question to a person: a form by its JSON Schema, or a page to visit by its URL."""

    server: str
    message: str
    form: Mapping[str, Any] | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationAnswer:
    """What the person did with the question; what they left out of a form has its default."""

    action: Literal["accept", "decline", "cancel"] = "accept"
    values: Mapping[str, Any] = field(default_factory=FrozenDictionary)


_log = logging.getLogger(__name__)
ElicitationHandler = Callable[[Elicitation], Awaitable[ElicitationAnswer]]


def adapt_elicitation(server: str, handler: ElicitationHandler) -> ElicitationFnT:
    """The SDK's callback for a handler of ours."""

    async def answer(
        context: ClientRequestContext, params: wire.ElicitRequestParams
    ) -> wire.ElicitResult | wire.ErrorData:
        message = clean_text(params.message, limit=TEXT_LIMIT)
        if isinstance(params, wire.ElicitRequestURLParams):
            question = Elicitation(server=server, message=message, url=params.url)
        else:
            form = freeze(params.requested_schema)
            question = Elicitation(server=server, message=message, form=form)
        try:
            return _compose_result(question, await shelter(lambda: handler(question)))
        except Exception:
            _log.exception("The handler for questions of server %r failed", server)
            return wire.ErrorData(code=wire.INTERNAL_ERROR, message="The client's handler failed")

    return answer


def _compose_result(question: Elicitation, given: ElicitationAnswer) -> wire.ElicitResult:
    if given.action != "accept" or question.form is None:
        return wire.ElicitResult(action=given.action)
    content = {**_gather_defaults(question.form), **given.values}
    return wire.ElicitResult(action="accept", content=content)


def _gather_defaults(form: Mapping[str, Any]) -> dict[str, Any]:
    """What the fields of a form hold unless somebody changes them; only what an answer may hold."""
    fields = as_dictionary(form.get("properties")) or {}
    defaults = {name: (as_dictionary(part) or {}).get("default") for name, part in fields.items()}
    return {name: value for name, value in defaults.items() if _is_answer(value)}


def _is_answer(value: Any) -> bool:
    if (items := as_list(value)) is not None:
        return all(isinstance(item, str) for item in items)
    return isinstance(value, str | int | float)
