# SPDX-License-Identifier: Apache-2.0
"""A small MCP server that comes with converser and needs nothing else: what time it is, and was, where.

In a configuration: `server = "converser.mcp.clock:server"`. As a process: `python -m converser.mcp.clock`.
"""

from __future__ import annotations

import datetime as dt
import difflib
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from .. import __version__

_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=False, open_world_hint=False)
_COUNTS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
Zone = Annotated[str, Field(description="An IANA name, such as Europe/Oslo or UTC.")]

server = MCPServer(
    "clock",
    version=__version__,
    instructions="Tells the time in any time zone, and counts days.",
)


class Moment(BaseModel):
    """A time in a place."""

    timezone: str
    time: str
    weekday: str


@server.tool(annotations=_READS)
def get_time(timezone: Zone = "UTC") -> Moment:
    """Tells the time and the day of the week, now, in a time zone."""
    return _describe(dt.datetime.now(_find_zone(timezone)), timezone)


@server.tool(annotations=_COUNTS)
def convert_time(
    time: Annotated[str, Field(description="Such as 2026-11-18T14:30.")],
    from_timezone: Zone,
    to_timezone: Zone,
) -> Moment:
    """Tells what time it is in one time zone when it is a certain time in another."""
    zones = _find_zone(from_timezone), _find_zone(to_timezone)
    try:
        moment = dt.datetime.fromisoformat(time)
    except ValueError:
        raise ToolError(f"{time!r} is no time such as 2026-11-18T14:30.") from None
    return _describe(moment.replace(tzinfo=zones[0]).astimezone(zones[1]), to_timezone)


@server.tool(annotations=_COUNTS)
def count_days(
    start: Annotated[dt.date, Field(description="Such as 2026-01-31.")],
    end: Annotated[dt.date, Field(description="Such as 2026-12-24.")],
) -> int:
    """Counts the days from one date to another."""
    return (end - start).days


def _describe(moment: dt.datetime, timezone: str) -> Moment:
    return Moment(
        timezone=timezone,
        time=moment.isoformat(timespec="seconds"),
        weekday=f"{moment:%A}",
    )


def _find_zone(name: str) -> dt.tzinfo:
    known = available_timezones()
    if name in known:
        return ZoneInfo(name)
    if name == "UTC":  # also where there is no database of time zones
        return dt.timezone.utc
    cities = {zone.rpartition("/")[2].lower(): zone for zone in sorted(known)}
    near = difflib.get_close_matches(name.rpartition("/")[2].lower(), cities, n=3)
    hint = f" Did you mean {' or '.join(cities[each] for each in near)}?" if near else ""
    raise ToolError(f"There is no time zone {name!r}.{hint}")


if __name__ == "__main__":
    server.run()
