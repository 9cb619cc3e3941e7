# SPDX-License-Identifier: Apache-2.0
"""What a server takes of Chat Completions, as its refusals teach: no two servers agree on all of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

USAGE_OPTION = "stream_options"
"""The part of a request that asks for counts of tokens."""
NEWER_TOKENS_KEY = "max_completion_tokens"
"""What OpenAI calls the limit on an answer's tokens; most other servers know only the older name."""
THOUGHTS = ("reasoning_content", "reasoning")
"""The names that servers have for what their models think."""
_THOUGHTS_MISSING = re.compile(
    r"reasoning_content\b.{0,60}(missing|passed back)|missing\W+reasoning_content", re.IGNORECASE
)
_THOUGHTS_NAMED = re.compile(r"\breasoning(_content|_details)?\b")
_REFUSED = re.compile(
    r"unsupported|not (supported|permitted|allowed)|unexpected|unknown|unrecognized|forbidden",
    re.IGNORECASE,
)
_SIGNATURE_MISSING = re.compile(r"missing a\W+thought_signature", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How one server wants to be asked."""

    tokens_key: str
    asks_for_usage: bool = True
    thoughts: Literal["taken", "refused", "demanded"] = "taken"
    """Whether it takes back what its models thought, or wants that of all answers, those of others too."""
    signs: bool = False
    """Whether it wants a signature on calls, those of others too."""

    def learn(self, words: str) -> Habits | None:
        """What a refusal in these words teaches, if anything."""
        if self.asks_for_usage and USAGE_OPTION in words:
            return replace(self, asks_for_usage=False)  # As Mistral's service demands.
        if self.tokens_key != NEWER_TOKENS_KEY and f"'{NEWER_TOKENS_KEY}' instead" in words:
            return replace(self, tokens_key=NEWER_TOKENS_KEY)  # As OpenAI's models at Azure demand.
        if self.thoughts == "taken" and _THOUGHTS_MISSING.search(words):
            return replace(self, thoughts="demanded")  # DeepSeek and Kimi, of answers of others.
        named = _THOUGHTS_NAMED.search(words) is not None
        if self.thoughts != "refused" and named and _REFUSED.search(words):
            return replace(self, thoughts="refused")  # As Groq does, though it sends them.
        if not self.signs and _SIGNATURE_MISSING.search(words):
            return replace(self, signs=True)  # Gemini, of calls that another model made.
        return None
