# SPDX-License-Identifier: Apache-2.0
"""The formats in which a conversation can leave the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from ...canisters import Canister
from ...codec import encode_canister
from ..conversation import ConversationSurvey, StoredConversation


class ExportFormat(str, Enum):
    """What a conversation can be written as; the value ends the name of such a file."""

    MARKDOWN = "md"
    JSON = "json"
    HTML = "html"

    def __str__(self) -> str:
        return self.value


def export_conversation(conversation: StoredConversation, form: ExportFormat | str) -> str:
    """The whole conversation as one text in UTF-8; what is damaged is left out, and remarked.

    In the HTML page and in headings, whatever came from people, models and tools is escaped.
    """
    form = ExportFormat(form)
    survey, canisters = conversation.survey(), conversation.salvage()
    if form is ExportFormat.JSON:
        return write_json(survey, canisters)
    if form is ExportFormat.MARKDOWN:
        from .markdown import write_markdown

        return write_markdown(survey, canisters)
    from .page import write_page

    return write_page(survey, canisters)


def write_json(survey: ConversationSurvey, canisters: Sequence[Canister]) -> str:
    """What is known of the conversation, and its canisters as `decode_canister` reads them."""
    data: dict[str, Any] = {
        **describe_survey(survey),
        "canisters": [encode_canister(canister) for canister in canisters],
    }
    # ASCII, so that no terminal or viewer can be led astray by what is in it.
    return json.dumps(data, indent=2) + "\n"


def describe_survey(survey: ConversationSurvey) -> dict[str, Any]:
    """What is known of a conversation, ready for JSON."""
    metadata = survey.metadata
    return {
        "identifier": survey.identifier,
        "title": survey.title,
        "name": metadata.name,
        "created": metadata.created.isoformat(),
        "updated": survey.updated.isoformat(),
        "model": metadata.model,
        "servers": list(metadata.servers),
        "tags": list(metadata.tags),
        "parent": metadata.parent,
    }
