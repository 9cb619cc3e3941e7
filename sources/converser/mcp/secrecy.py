# SPDX-License-Identifier: Apache-2.0
"""Takes secrets out of what a server says when it fails: it likes to quote what it was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from mcp.shared.exceptions import MCPError

from ..immutables import EMPTY

_LENGTH_MIN = 6
_HIDDEN = "[hidden]"


class Secrets:
    """Values that no message of ours may have in it; short ones hide nothing."""

    def __init__(
        self, values: Iterable[str] = (), *, headers: Mapping[str, str] = EMPTY, url: str = ""
    ) -> None:
        texts = [*values, *headers.values(), *_list_parts(url)]
        texts += (value.rpartition(" ")[2] for value in headers.values())  # without its scheme
        lines = {line for text in texts for line in text.splitlines() if len(line) >= _LENGTH_MIN}
        self._values = tuple(sorted(lines, key=len, reverse=True))

    def hide_in(self, text: str) -> str:
        """The text without any of them."""
        for value in self._values:
            text = text.replace(value, _HIDDEN)
        return text

    def purge(self, failure: MCPError) -> None:
        """Takes them out of an error that a server answered with, and so out of any traceback."""
        words = self.hide_in(failure.message)
        if words != failure.message:
            failure.error = failure.error.model_copy(update={"message": words})
            failure.args = (failure.code, words, failure.data)


def _list_parts(url: str) -> list[str]:
    """The password and what is asked for, as they are written and as they are meant."""
    parts = urlsplit(url)
    written = [pair.partition("=")[2] for pair in parts.query.split("&")]
    meant = [value for _, value in parse_qsl(parts.query)]
    return [*written, *meant, parts.password or "", unquote(parts.password or "")]


NO_SECRETS = Secrets()
