# SPDX-License-Identifier: Apache-2.0
"""What tools a model has in a turn: all, or those in use and a search where all would cost too much; and our own."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio

from .canisters import AssistantCanister, InvocationCanister, ResultCanister
from .conflicts import gather_invokers
from .contents import TextualContent
from .digests import READING_TOOL, Digest
from .ensembles import Ensemble
from .immutables import freeze
from .invokers import (
    Annotations,
    Context,
    Invocable,
    InvocationResult,
    Invoker,
    Tool,
    describe_failure,
)
from .searches import index_ensemble, read_found, search_tools
from .turns import Transcript

_log = logging.getLogger(__name__)
_OWN = "converser"
"""The name of the ensemble of our own tools."""
_SEARCH = "search_tools"
_OWN_MAX = 2
"""How many of our own there can be."""
_FOUND = 5
_FOUND_MAX = 20
_DESCRIPTION_MAX = 200
_SEARCH_SCHEMA = freeze(
    {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "description": "Words for what the tool should do, such as: create calendar event.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": _FOUND_MAX,
                "description": f"How many tools to find at most; {_FOUND} if not given.",
            },
        },
        "required": ["query"],
    }
)


class Toolbox:
    """Gives one consistent set of tools for each turn; the same set is the same object."""

    def __init__(
        self,
        ensembles: Sequence[Ensemble],
        *,
        budget: int | None = None,
        most: int | None = None,
    ) -> None:
        self._ensembles = tuple(ensembles)
        self._budget = budget
        self._most = None if most is None else most - _OWN_MAX
        self._listings: tuple[Mapping[str, Invoker], ...] | None = None
        self._gathered: Mapping[str, Invoker] = {}
        self._reader: Invoker | None = None
        self._searcher: Invoker | None = None
        self._shelf: Shelf | None = None
        self._stale = True
        self.invokers: Mapping[str, Invoker] = {}
        """The tools of this turn, as the model sees them."""
        self.found: Mapping[str, Invoker] = {}
        """Those of them that results of searches told of, in their order."""
        self.known: Mapping[str, Invoker] = {}
        """All tools that can be called, also those that the model does not see now."""

    async def acquaint(self) -> None:
        """Connects ensembles whose tools nobody knows yet; one that fails does not spoil the others."""
        strangers = [each for each in dict.fromkeys(self._ensembles) if not each.is_known]
        async with anyio.create_task_group() as group:
            for ensemble in strangers:
                if ensemble.enabled:
                    group.start_soon(_try_to_connect, ensemble)

    @property
    def has_tools(self) -> bool:
        """Whether there are any, our own aside."""
        self._gather()
        return bool(self._gathered)

    @property
    def search(self) -> str:
        """The name of the tool that searches, where there is need of one."""
        return "" if self._searcher is None else self._searcher.name

    def survey(self, view: Transcript, *, defers: bool = False) -> None:
        """Settles the tools for the next turn, given what the model sees of the conversation.

        Where its service defers tools, those that were found stay: they are part of the conversation.
        """
        self._gather()
        if isinstance(view, Digest) and view.has_more:
            self._offer_reader(view)
        if self._shelf is not None and self._shelf.absorb(view, keeps_found=defers):
            self._stale = True
        if self._stale:
            self._compose()
            self._stale = False

    def name_reader(self) -> str:
        """The name of the tool that reads results, which no other tool has."""
        self._gather()
        return self._choose_name(READING_TOOL.name)

    def _choose_name(self, name: str) -> str:
        while name in self._gathered:
            name = f"{_OWN}_{name}"
        return name

    def _compose(self) -> None:
        """Puts the set together: what stays comes first, so that prompt caches hold."""
        own = {each.name: each for each in (self._searcher, self._reader) if each is not None}
        self.known = {**self._gathered, **own}
        self.invokers = self.known
        self.found = {}
        if (shelf := self._shelf) is not None:
            pinned, active = (
                {name: self._gathered[name] for name in names}
                for names in (shelf.pinned, shelf.active)
            )
            self.invokers = {**pinned, **own, **active}
            self.found = {name: each for name, each in active.items() if name in shelf.found}

    def _offer_reader(self, view: Digest) -> None:
        """Adds the tool that reads what was left out of results."""
        if self._reader is None or self._reader.name != view.reader:
            self._reader = create_own_invoker(READING_TOOL, view.read, view.reader)
            self._stale = True

    def _gather(self) -> None:
        """Takes the tools of the ensembles, where they are not what they were."""
        listings = tuple(ensemble.invokers for ensemble in self._ensembles)
        known = self._listings
        if known is not None and all(a is b for a, b in zip(known, listings, strict=True)):
            return
        if known is None:
            self._gathered = gather_invokers(self._ensembles)
        else:
            self._gathered = _gather_anew(zip(known, listings, strict=True), self._gathered)
        self._listings = listings
        self._stale = True
        self._settle_search()

    def _settle_search(self) -> None:
        """Offers a search in place of the tools, where all of them are over the budget."""
        self._searcher = self._shelf = None
        if self._budget is None and self._most is None:
            return
        costs = {name: cost for each in self._ensembles for name, cost in each.cost().items()}
        costs = {name: costs[name] for name in self._gathered}
        budget = sum(costs.values()) if self._budget is None else self._budget
        most = len(costs) if self._most is None else self._most
        if sum(costs.values()) <= budget and len(costs) <= most:
            return
        name = self._choose_name(_SEARCH)
        pinned = [each.name for each in self._gathered.values() if each.is_pinned]
        self._shelf = Shelf(costs, pinned, searcher=name, budget=budget, most=most)
        tool = _define_search(self._ensembles, len(costs) - len(pinned))
        self._searcher = create_own_invoker(tool, self._search, name)

    async def _search(self, _: Context, arguments: dict[str, Any]) -> InvocationResult:
        """Finds tools, which the shelf then makes available: the invocable of the searching tool."""
        indexes = [index_ensemble(ensemble) for ensemble in dict.fromkeys(self._ensembles)]
        found = search_tools(indexes, str(arguments["query"]), int(arguments.get("limit", _FOUND)))
        names = [name for name in found if name in self._gathered]
        if names:
            lines = [_describe(self._gathered[name]) for name in names]
            words = "\n".join(("You can call these tools from now on:", *lines))
        else:
            words = "No tool fits these words. Try others: what it does, or what it does it to."
        return InvocationResult(contents=(TextualContent(text=words),), structured={"tools": names})


class Shelf:
    """The tools that are at hand out of many: the pinned ones, and those found or used in a conversation.

    It depends on the conversation alone, and grows at its end. Only when it is over the budget, the tools
    that were not used for longest go, enough of them that this happens seldom. Tools that were found need
    not go where their definitions are part of the conversation, and so count once.
    """

    def __init__(
        self,
        costs: Mapping[str, int],
        pinned: Sequence[str],
        *,
        searcher: str,
        budget: int,
        most: int,
    ) -> None:
        self.pinned = dict.fromkeys(pinned)
        self.active: dict[str, int] = {}
        """The tools at hand besides, each with the place in the conversation where it was last wanted."""
        self.found: set[str] = set()
        """Those of them that a search brought, and not a call by a name known before."""
        self._keeps_found = False
        self._costs = costs
        self._searcher = searcher
        self._searches: set[str] = set()
        self._room = max(budget - sum(costs[name] for name in pinned), budget // 4)
        self._most = max(most - len(pinned), most // 4)
        self._spent = 0
        self._count = 0
        self._now = 0
        """The place of the last turn, of which all calls and results are of one time."""

    def absorb(self, view: Transcript, *, keeps_found: bool = False) -> bool:
        """Takes in what is new in a conversation, and says whether the set is another."""
        before = list(self.active)
        self._keeps_found = keeps_found
        for canister in view[self._count :]:
            self._count += 1
            if isinstance(canister, AssistantCanister):
                self._now = self._count
            elif isinstance(canister, InvocationCanister):
                self._want((canister.name,))
                if canister.name == self._searcher:
                    self._searches.add(canister.identifier)
            elif (
                isinstance(canister, ResultCanister)
                and canister.invocation_identifier in self._searches
            ):
                names = read_found(canister)
                self.found.update(name for name in names if name not in self.active)
                self._want(names)
        return before != list(self.active)

    def _want(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._costs and name not in self.pinned:
                is_free = name in self.active or self._stays(name)
                self._spent += 0 if is_free else self._costs[name]
                self.active[name] = self._now
        movable = sum(not self._stays(name) for name in self.active)
        if self._spent > self._room or movable > self._most:
            self._clear()

    def _stays(self, name: str) -> bool:
        return self._keeps_found and name in self.found

    def _clear(self) -> None:
        """Keeps what was wanted last, up to half of the room, and just now, as far as there is a place."""
        kept = {name for name in self.active if self._stays(name)}
        self._spent = 0
        others = [name for name in self.active if name not in kept]
        for rank, name in enumerate(sorted(others, key=lambda name: -self.active[name])):
            cost = self._costs[name]
            is_full = self._spent + cost > self._room / 2 or rank >= self._most / 2
            if rank >= self._most or (is_full and self.active[name] != self._now):
                break
            kept.add(name)
            self._spent += cost
        self.active = {name: place for name, place in self.active.items() if name in kept}


async def _try_to_connect(ensemble: Ensemble) -> None:
    try:
        await ensemble.connect()
    except Exception as failure:
        reason = describe_failure(failure)
        _log.warning("A conversation goes on without ensemble %r: %s", ensemble.name, reason)


def _gather_anew(
    pairs: Iterable[tuple[Mapping[str, Invoker], Mapping[str, Invoker]]],
    before: Mapping[str, Invoker],
) -> dict[str, Invoker]:
    """All tools of ensembles, of which each pair has those before and those now, in the middle of a conversation.

    A server may have given a tool a name that another one has: that one keeps it, and nothing ends.
    """
    gathered: dict[str, Invoker] = {}
    for known, present in pairs:
        for name, invoker in present.items():
            is_owner = name in known and known[name] is before.get(name)
            if name in gathered:
                _log.warning(
                    "Two tools are called %r now; only the one that was first is used", name
                )
                if not is_owner:
                    continue
                del gathered[name]
            gathered[name] = invoker
    return gathered


def create_own_invoker(tool: Tool, invocable: Invocable, name: str) -> Invoker:
    """A tool of our own, under a name on the wire."""
    return Ensemble(_OWN, tools=[(replace(tool, name=name), invocable)]).access_invoker(name)


def _define_search(ensembles: Sequence[Ensemble], count: int) -> Tool:
    sources = ", ".join(f"{each.name} ({len(each.invokers)})" for each in dict.fromkeys(ensembles))
    return Tool(
        name=_SEARCH,
        description=f"Finds tools by keyword. Besides those that you see there are {count} more, too"
        f" many to show at once; this finds some of them, and you can call them afterwards."
        f" Search before you say that something cannot be done. They come from: {sources}.",
        arguments_schema=_SEARCH_SCHEMA,
        annotations=Annotations(
            title="Find tools", read_only=True, idempotent=True, open_world=False
        ),
    )


def _describe(invoker: Invoker) -> str:
    words = " ".join(invoker.description.split())
    short = f"{words[:_DESCRIPTION_MAX]}…" if len(words) > _DESCRIPTION_MAX else words
    return f"- {invoker.name}: {short}" if short else f"- {invoker.name}"
