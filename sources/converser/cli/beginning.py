# SPDX-License-Identifier: Apache-2.0
"""`converser init`: a commented `converser.toml` with a server that works at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..configuration import find_user_file
from ..configuration.discovery import FILE_NAME
from ..configuration.mistakes import printable
from ..configuration.readings import hash_content
from .judging import Misuse
from .screen import complain, say
from .trust import approve

_TEXT = """\
# What converser can use. `converser doctor` tells whether all of it works.

# A clock that comes with converser, and needs nothing to be installed.
[mcp.clock]
server = "converser.mcp.clock:server"

# A server that is a program: add it with `converser servers add`, or write it here.
# Secrets stay in the environment; `env:NAME` refers to them.
#
# [mcp.github]
# command = ["npx", "-y", "@modelcontextprotocol/server-github"]
# environment = { GITHUB_PERSONAL_ACCESS_TOKEN = "env:GITHUB_TOKEN" }
# disabled_tools = ["delete_*"]

# A server behind an address:
#
# [mcp.search]
# url = "https://example.org/mcp"
# headers = { Authorization = "Bearer ${env:SEARCH_TOKEN}" }

# The model; without this, it is chosen by the key that is set, or else a small one on this machine.
#
# [model]
# name = "anthropic:claude-sonnet-5"
"""

_NEXT = """\
Try:
  converser tools                                      what it can do
  converser call clock.get_time timezone=Europe/Oslo   without any model
  converser ask "What time is it in Oslo?"             with one
  converser                                            to talk
"""


def init(
    *,
    user: Annotated[
        bool, Parameter(help="Write your own file, which holds for all projects.")
    ] = False,
) -> None:
    """Writes a commented converser.toml with a server that works at once; nothing is written over."""
    path = find_user_file() if user else Path.cwd() / FILE_NAME
    content = _TEXT.encode("utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            stream.write(content)
    except FileExistsError:
        raise Misuse(
            f"There is {printable(str(path))} already, and it is not written over.",
            remedy="Add to it with `converser servers add`, or look at it with `converser doctor`.",
        ) from None
    except OSError as failure:
        raise Misuse(f"{printable(str(path))} cannot be written: {failure.strerror}.") from None
    if not user:
        approve(path, hash_content(content))
    complain(f"Wrote {printable(str(path))}.", style="green")
    say(_NEXT.rstrip())
