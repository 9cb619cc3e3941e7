# SPDX-License-Identifier: Apache-2.0
"""All conversations of a user: made, found, listed, searched and deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from absence import Absential, absent, is_absent

from ..canisters import Canister
from ..exceptions import ConversationAbsence, PersistenceFailure
from ..hygiene import clean_text
from .conversation import ConversationSurvey, StoredConversation, found_conversation
from .files import raze_folder
from .lines import write_line
from .metadata import ConversationMetadata
from .premises import Premises, find_data_folder
from .searching import ConversationFinding, search_canisters

_LISTED = 5
_LONG_AGO = datetime.fromtimestamp(0, timezone.utc)


class ConversationStore:
    """The conversations of a folder: the user's data directory, if none is named here or by CONVERSER_DATA.

    Any number of stores and processes may use the same folder at once.
    """

    def __init__(self, folder: Absential[str | Path] = absent) -> None:
        self.folder = (
            find_data_folder() if is_absent(folder) else Path(folder).expanduser().absolute()
        )
        self._premises = Premises(self.folder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def create(
        self,
        canisters: Iterable[Canister] = (),
        *,
        name: str = "",
        model: str = "",
        servers: Sequence[str] = (),
        tags: Sequence[str] = (),
    ) -> StoredConversation:
        """A new conversation, on the disk when this returns."""
        metadata = ConversationMetadata(
            name=name, model=model, servers=tuple(servers), tags=tuple(tags)
        )
        lines = [write_line(canister) for canister in canisters]
        with self._premises.hold("write to", self.folder):
            return found_conversation(self._premises, metadata, self._premises.stow(lines))

    def open(self, reference: str) -> StoredConversation:
        """The one conversation that has this identifier, or name, or whose identifier begins so."""
        everything = [self._access(folder) for folder in self._premises.walk()]
        named = [each for each in everything if each.identifier == reference]
        named = named or [each for each in everything if each.metadata.name == reference]
        found = named or [
            each for each in everything if reference and each.identifier.startswith(reference)
        ]
        if len(found) == 1:
            return found[0]
        raise _explain_absence(reference, found or everything, ambiguous=bool(found))

    def list(self) -> tuple[ConversationSurvey, ...]:
        """What there is to tell of each conversation, the one that was used last first."""
        found = map(self._survey, self._premises.walk())
        surveys = (survey for survey in found if survey is not None)
        return tuple(sorted(surveys, key=lambda survey: survey.updated, reverse=True))

    def search(self, words: str) -> Iterator[ConversationFinding]:
        """Where these words stand, upper or lower case, in names, tags, messages, calls and results."""
        for survey in self.list():
            conversation = self._access(self._premises.conversations / survey.identifier)
            try:
                canisters = conversation.salvage()
            except PersistenceFailure:  # gone, or told of in the survey
                canisters = ()
            yield from search_canisters(survey, canisters, words)

    def delete(self, conversation: StoredConversation) -> None:
        """Removes a conversation, and the content that no other one uses."""
        with self._premises.hold("delete", conversation.folder):
            raze_folder(conversation.folder)
            self._premises.collect()

    def collect(self) -> int:
        """Removes content that no conversation uses, such as after `undo`; says how many files."""
        with self._premises.hold("clean", self.folder):
            return self._premises.collect()

    def _survey(self, folder: Path) -> ConversationSurvey | None:
        """What there is to tell of a conversation; nothing, if it was deleted just now."""
        try:
            return self._access(folder).survey()
        except PersistenceFailure as failure:
            if not folder.exists():
                return None
            nothing = ConversationMetadata(created=_LONG_AGO)
            return ConversationSurvey(
                identifier=folder.name,
                title="",
                metadata=nothing,
                updated=_LONG_AGO,
                canisters=0,
                remarks=(str(failure),),
            )

    def _access(self, folder: Path) -> StoredConversation:
        return StoredConversation(self._premises, folder.name)


def _explain_absence(
    reference: str, candidates: Sequence[StoredConversation], *, ambiguous: bool
) -> ConversationAbsence:
    shown = [f"{c.identifier} {c.metadata.name}".rstrip() for c in candidates[:_LISTED]]
    if len(candidates) > _LISTED:
        shown.append(f"and {len(candidates) - _LISTED} more")
    listed = clean_text("; ".join(shown)) or "none"
    subject = clean_text(reference, limit=100)
    if ambiguous:
        return ConversationAbsence(
            f"{subject!r} may be any of {len(candidates)} conversations: {listed}.",
            remedy="Give more of the identifier.",
        )
    return ConversationAbsence(
        f"There is no conversation {subject!r}; there are: {listed}.",
        remedy="Give an identifier, the beginning of one, or a name.",
    )
