# SPDX-License-Identifier: Apache-2.0
"""URLs without what may be secret in them: for the libraries below us, which write them into logs."""

from __future__ import annotations

import logging
import re
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx2

_LOGGERS = (
    "httpx2",
    "mcp.client.auth.oauth2",
    "mcp.client.sse",
    "mcp.client.streamable_http",
    "mcp.shared._httpx_utils",
)
_origins: dict[str, re.Pattern[str]] = {}


class _Redaction(logging.Filter):
    """Cuts the URLs of our servers down to their origins; path and query may be keys."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Called for each message."""
        record.msg, record.args = _redact(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = _redact(_FORMATTER.formatException(record.exc_info))
        return True


def _redact(words: str) -> str:
    for origin, pattern in _origins.items():
        if origin in words:
            words = pattern.sub(f"{origin}/…", words)
    return words


_FORMATTER = logging.Formatter()
_REDACTION = _Redaction()


def separate_credentials(url: str, auth: httpx2.Auth | None) -> tuple[str, httpx2.Auth | None]:
    """The URL without a user and a password, and a login that has them; logs will not show the rest."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    _hide(f"{parts.scheme}://{host}")
    if parts.username is None and parts.password is None:
        return url, auth
    if auth is None:
        auth = httpx2.BasicAuth(unquote(parts.username or ""), unquote(parts.password or ""))
    return urlunsplit(parts._replace(netloc=host)), auth


def _hide(origin: str) -> None:
    if origin not in _origins:
        _origins[origin] = re.compile(re.escape(origin) + r"[^\s\"'<>]*")
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_REDACTION)
