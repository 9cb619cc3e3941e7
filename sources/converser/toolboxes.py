# SPDX-License-Identifier: Apache-2.0
"""What tools a model has in a turn: those of the ensembles, and our own where they are of use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .digests import READING_TOOL, Digest
from .ensembles import Ensemble, EnsembleConfiguration, gather_invokers
from .invokers import Invocable, Invoker, Tool
from .naming import Naming
from .turns import Transcript

_OWN = "converser"
"""The name of the ensemble of our own tools."""


class Toolbox:
    """Gives one consistent set of tools for each turn; the same set is the same object."""

    def __init__(self, ensembles: Sequence[Ensemble]) -> None:
        self._ensembles = tuple(ensembles)
        self._listings: tuple[Mapping[str, Invoker], ...] | None = None
        self._gathered: Mapping[str, Invoker] = {}
        self._stale = True
        self._reader: Invoker | None = None
        self.invokers: Mapping[str, Invoker] = {}
        """The tools of this turn, as the model sees them."""

    def survey(self, view: Transcript) -> None:
        """Settles the tools for the next turn, given what the model sees of the conversation."""
        self._gather()
        if isinstance(view, Digest) and view.has_more:
            self._offer_reader(view)
        if self._stale:
            own = {} if self._reader is None else {self._reader.name: self._reader}
            self.invokers = {**self._gathered, **own}
            self._stale = False

    def _offer_reader(self, view: Digest) -> None:
        """Adds the tool that reads what was left out of results."""
        if self._reader is None or self._reader.name != view.reader:
            self._reader = create_own_invoker(READING_TOOL, view.read, view.reader)
            self._stale = True

    def name_reader(self) -> str:
        """The name of the tool that reads results, which no other tool has."""
        self._gather()
        name = READING_TOOL.name
        return f"{_OWN}_{name}" if name in self._gathered else name

    def _gather(self) -> None:
        """Takes the tools of the ensembles, where they are not what they were."""
        listings = tuple(ensemble.invokers for ensemble in self._ensembles)
        known = self._listings
        if known is not None and all(a is b for a, b in zip(known, listings, strict=True)):
            return
        self._gathered = gather_invokers(self._ensembles)
        self._listings = listings
        self._stale = True


def create_own_invoker(tool: Tool, invocable: Invocable, name: str) -> Invoker:
    """A tool of our own, under a name on the wire."""
    naming = Naming(renames={tool.name: name})
    settings = EnsembleConfiguration(naming=naming)
    ensemble = Ensemble(_OWN, tools=[(tool, invocable)], configuration=settings)
    return ensemble.access_invoker(name)
