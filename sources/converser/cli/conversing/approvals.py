# SPDX-License-Identifier: Apache-2.0
"""Decides on calls for which the person must answer: by options, by earlier answers, or by asking."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rich.text import Text

from ...invokers import Tool
from ...policies import ApprovalRequest, Decision, allow, deny
from .displays import Display
from .questions import Questioner
from .wording import list_arguments

if TYPE_CHECKING:
    from ...invokers import Invoker

_CHOICES = "  Allow it?  y once · a always in this conversation · n no  "
_ANSWERS = {"y": "allowed once", "a": "allowed in this conversation"}


class Approvals:
    """Who approves calls; given to a model as its approver."""

    def __init__(
        self,
        display: Display,
        questioner: Questioner | None,
        *,
        everything: bool = False,
        patterns: Sequence[str] = (),
    ) -> None:
        self._display = display
        self._questioner = questioner
        self._everything = everything
        self._patterns = tuple(patterns)
        self._always: dict[str, Tool] = {}
        self.unasked: list[str] = []
        """Tools whose calls were refused since nobody could be asked."""

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """The decision on one call."""
        title = name_invoker(request.invoker)
        if self._everything or any(fnmatchcase(title, each) for each in self._patterns):
            return allow()
        if self._always.get(title) == request.invoker.tool:
            return allow()
        if self._questioner is None:
            self.unasked.append(title)
            return deny(
                f"{request.reason} Nobody is here to approve it. The user can allow it with --yes,"
                f" or with --allow {title}."
            )
        return await self._ask(self._questioner, request, title)

    async def _ask(self, questioner: Questioner, request: ApprovalRequest, title: str) -> Decision:
        async with self._display.pausing():
            self._show(request, title)
            answer = await questioner.choose(_CHOICES, "yan")
            self._display.tell(f"  {_ANSWERS.get(answer, 'not allowed')}")
        if answer == "a":
            self._always[title] = request.invoker.tool
        return allow() if answer in {"y", "a"} else deny("The user did not approve it.")

    def _show(self, request: ApprovalRequest, title: str) -> None:
        """What is asked: the tool, and its arguments in full."""
        console = self._display.console
        console.print(Text("? ", "yellow").append(f"{title} wants to run", "bold default"))
        for words in list_arguments(request.arguments):
            for line in words.split("\n"):
                console.print(Text(f"  {line}"), soft_wrap=True)
        reason = request.reason
        if title in self._always:
            reason = "The tool is not the one any more that you allowed."
        if reason:
            console.print(Text(f"  {reason}", "dim"))


def name_invoker(invoker: Invoker) -> str:
    """SERVER.TOOL, as people write it."""
    owner = invoker.ensemble.name if invoker.ensemble else ""
    return f"{owner}.{invoker.tool.name}" if owner else invoker.tool.name
