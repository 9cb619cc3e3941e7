# SPDX-License-Identifier: Apache-2.0
"""A conversation that is written down as it goes: on the disk before it is on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...canisters import Canister
from ...exceptions import ConversationAbsence
from ...turns import Transcript

if TYPE_CHECKING:
    from ...persistence.conversation import StoredConversation
    from ...persistence.store import ConversationStore


class KeptTranscript(Transcript):
    """A transcript whose canisters are stored the moment that they are added, if they shall be."""

    __slots__ = ("_early", "conversation")

    def __init__(
        self, canisters: Iterable[Canister] = (), conversation: StoredConversation | None = None
    ) -> None:
        super().__init__(canisters)
        self.conversation = conversation
        self._early: set[str] = set()

    def append(self, canister: Canister) -> None:
        """Stores one canister, and adds it."""
        self.extend([canister])

    def extend(self, canisters: Iterable[Canister]) -> None:
        """Stores canisters, and adds them."""
        added = list(canisters)
        self._store([each for each in added if each.identifier not in self._early])
        super().extend(added)

    def keep(self, canister: Canister) -> None:
        """Stores a canister that will be added later, since it is about to be shown."""
        if canister.identifier not in self._early:
            self._store([canister])
            self._early.add(canister.identifier)

    def _store(self, canisters: Sequence[Canister]) -> None:
        if self.conversation is not None and canisters:
            self.conversation.append(canisters)


def find_conversation(store: ConversationStore, name: str | None) -> StoredConversation:
    """The conversation of that name or identifier; without one, the one that was used last."""
    if name:
        return store.open(name)
    surveys = store.list()
    if not surveys:
        raise ConversationAbsence(
            "There is no conversation to go on with.", remedy="Begin one: leave --continue out."
        )
    return store.open(surveys[0].identifier)
