# SPDX-License-Identifier: Apache-2.0
"""Parts of a supervisor's prompt that bring servers and functions along, and may be closed until they are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
from typing_extensions import Self

from .canisters import SupervisorCanister, supervisor
from .configuration import MCPServer
from .configuration.mistakes import nearest
from .contents import TextualContent
from .ensembles import Ensemble, EnsembleConfiguration
from .events import Observer
from .exceptions import ConfigurationFailure, ConverserFailure
from .functions import LocalTool, create_local_ensemble
from .immutables import freeze
from .introspection import Function
from .invokers import Annotations, Context, InvocationResult, Tool
from .rosters.roster import Roster

if TYPE_CHECKING:
    from .mcp.handlers import ElicitationHandler

_OPENER = "open_section"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What a supervisor says on one subject, and the tools that belong to it."""

    title: str
    text: str = ""
    summary: str = ""
    """With a summary, a section is closed: the model reads only this until it opens the section.

    Until then its functions are hidden, and its servers are not even connected.
    """
    servers: Sequence[MCPServer] = ()
    functions: Sequence[Function | LocalTool] = ()


class Briefing:
    """The sections of one conversation: `async with Briefing([Section(…), …]) as briefing: …`.

    `briefing.supervisor` and `briefing.ensembles` are for `converse`; `briefing.roster` has the servers.
    """

    def __init__(
        self,
        sections: Iterable[Section],
        *,
        elicit: ElicitationHandler | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._sections = _index_sections(sections)
        self._open = {title for title, section in self._sections.items() if not section.summary}
        self._functions = {
            title: create_local_ensemble(title, section.functions)
            for title, section in self._sections.items()
            if section.functions
        }
        for title, ensemble in self._functions.items():
            ensemble.enabled = title in self._open
        self._opener = self._create_opener()
        self.roster = Roster(self._gather_servers(), elicit=elicit, observer=observer)

    async def __aenter__(self) -> Self:
        await self.roster.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.roster.close()

    @property
    def supervisor(self) -> SupervisorCanister:
        """The texts of the sections that are open now, and the summaries of the others."""
        return supervisor("\n\n".join(self._present()))

    @property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """The tools of all sections; those of a closed one appear when the model has opened it."""
        usable = self.roster.ensembles
        servers = [self.roster.access_ensemble(name) for name in self.roster.survey()]
        present = (each for each in servers if each in usable or not each.enabled)
        return (*self._opener, *self._functions.values(), *present)

    async def open(self, title: str) -> str:
        """Opens a section, as the model does by a tool; gives its text, and what there is of its tools."""
        section = self._find(title)
        self._open.add(title)
        if (functions := self._functions.get(title)) is not None:
            functions.enabled = True
        async with anyio.create_task_group() as group:
            for server in section.servers:
                if server.enabled:
                    group.start_soon(self._expose, server)
        return "\n\n".join(part for part in (section.text, *self._report(section)) if part)

    async def _expose(self, server: MCPServer) -> None:
        """Connects a server; one that would wait for a call too, or the model would never hear of its tools."""
        await self.roster.toggle(server.name, True)
        if server.lazy and not self.roster.access_ensemble(server.name).is_known:
            with suppress(ConverserFailure):  # which the survey tells
                await self.roster.reconnect(server.name)

    def _report(self, section: Section) -> Iterator[str]:
        """What the model can use of an open section, and what not, and why."""
        names = list(self._functions[section.title].invokers) if section.functions else []
        surveys = self.roster.survey()
        for server in section.servers:
            names += self.roster.access_ensemble(server.name).invokers
            if (error := surveys[server.name].error) is not None:
                yield f"The tools of {server.name!r} cannot be used now. {error}"
        if names:
            yield f"You can call these tools from now on: {', '.join(names)}."

    def _present(self) -> Iterator[str]:
        for title, section in self._sections.items():
            if title not in self._open:
                note = f"(`{_OPENER}` gives more on this, and its tools.)"
                yield f"# {title}\n\n{section.summary}\n{note}"
            elif section.text:
                yield f"# {title}\n\n{section.text}"

    def _gather_servers(self) -> Iterable[MCPServer]:
        """Each server once; what only closed sections have is not connected before one is opened."""
        servers: dict[str, MCPServer] = {}
        wanted: set[str] = set()
        for title, section in self._sections.items():
            for server in section.servers:
                if servers.setdefault(server.name, server) != server:
                    raise ConfigurationFailure(
                        f"Two sections have different servers of the name {server.name!r}.",
                        remedy="Give one of them another name, or both the same settings.",
                    )
                if title in self._open:
                    wanted.add(server.name)
        return [
            server if name in wanted else replace(server, enabled=False)
            for name, server in servers.items()
        ]

    def _create_opener(self) -> tuple[Ensemble, ...]:
        """The tool by which a model opens sections, where any is closed."""
        titles = [title for title in self._sections if title not in self._open]
        if not titles:
            return ()
        title = {"type": "string", "enum": titles, "description": "The title of the section."}
        tool = Tool(
            name=_OPENER,
            description="Opens a closed section of your instructions: gives its text, and makes its"
            " tools available from the next turn on.",
            arguments_schema=freeze(
                {"type": "object", "properties": {"title": title}, "required": ["title"]}
            ),
            annotations=Annotations(title="Open a section", read_only=True, idempotent=True),
        )

        async def invoke(_: Context, arguments: dict[str, Any]) -> InvocationResult:
            text = await self.open(arguments["title"])
            return InvocationResult(contents=(TextualContent(text=text),))

        configuration = EnsembleConfiguration(timeout=None, pinned=(_OPENER,))
        return (create_local_ensemble("sections", [(tool, invoke)], configuration=configuration),)

    def _find(self, title: str) -> Section:
        if (section := self._sections.get(title)) is not None:
            return section
        guess, titles = nearest(title, self._sections), ", ".join(self._sections)
        raise ConfigurationFailure(
            f"There is no section {title!r}.",
            remedy=f"Did you mean {guess!r}?" if guess else f"There are: {titles}.",
        )


def _index_sections(sections: Iterable[Section]) -> dict[str, Section]:
    indexed: dict[str, Section] = {}
    for section in sections:
        if indexed.setdefault(section.title, section) is not section:
            raise ConfigurationFailure(
                f"There are two sections of the title {section.title!r}.",
                remedy="Give one of them another title, or make one of both.",
            )
    return indexed
