# SPDX-License-Identifier: Apache-2.0
"""How numbers, times and data are written for people, the same in all exports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from ...canisters import Usage
from ...hygiene import clean_text

_MINUTE = 60
_LINE = 72


def tidy(text: str) -> str:
    """Untrusted text with plain line ends, and with all that is treacherous in it made visible."""
    return clean_text(text.replace("\r\n", "\n"))


def write_duration(seconds: float) -> str:
    """As precise as is of use: `3 ms`, `1.2 s`, `2 min 5 s`."""
    if seconds < 0.0995:
        return f"{seconds * 1e3:.0f} ms" if seconds >= 0.001 else "under 1 ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    return f"{minutes} min {rest} s"


def write_size(count: int) -> str:
    """Bytes: `312 bytes`, `4.1 kB`, `2.0 MB`."""
    if count < 1_000:
        return f"{count} byte{'' if count == 1 else 's'}"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def write_usage(usage: Usage) -> str:
    """Tokens: `1,204 tokens in, 96 out, 1,100 cached`."""
    words = f"{usage.tokens_in:,} tokens in, {usage.tokens_out:,} out"
    return f"{words}, {usage.tokens_cached:,} cached" if usage.tokens_cached else words


def write_count(count: int, noun: str) -> str:
    """A number of things: `1 call`, `2 calls`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def write_time(time: datetime) -> str:
    """A time of this machine's zone, and the zone."""
    return f"{localize(time):%Y-%m-%d %H:%M:%S %Z}"


def localize(time: datetime) -> datetime:
    """A time in this machine's zone, if it is within the years that the zone knows."""
    try:
        return time.astimezone()
    except (OverflowError, OSError, ValueError):
        return time


def write_data(data: object) -> str:
    """JSON, laid out to be read: on one line where it fits there."""
    line = json.dumps(data, ensure_ascii=False)
    if len(line) > _LINE:
        with suppress(RecursionError):  # data that is nested so deeply is not read anyway
            line = json.dumps(data, ensure_ascii=False, indent=2)
    return tidy(line)


def write_brief(arguments: Mapping[str, object], limit: int = 80) -> str:
    """Arguments on one line, cut where there is no more room."""
    pairs = (f"{key}={json.dumps(arguments[key], ensure_ascii=False)}" for key in arguments)
    words = " ".join(" ".join(pairs).split())
    return tidy(words if len(words) <= limit else f"{words[:limit]}…")
