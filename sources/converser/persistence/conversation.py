# SPDX-License-Identifier: Apache-2.0
"""One conversation on disk: what was appended stays, whatever becomes of the program."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from absence import Absential, absent, is_absent

from ..canisters import Canister
from ..collecting import ease_collector
from ..exceptions import ConfigurationFailure, ConverserFailure, PersistenceFailure
from ..hygiene import clean_text
from .files import explain, raise_folder, write_new
from .journal import Entry, Journal, split
from .lines import peek, read_line, write_line
from .metadata import KINDS, ConversationMetadata, read_metadata, write_metadata
from .premises import MESSAGES, METADATA, Premises
from .turns import answer_calls, find_turn_starts, is_call_open

_TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSurvey:
    """What a list of conversations tells of each."""

    identifier: str
    title: str
    """Its name; else the first words of the person in it."""
    metadata: ConversationMetadata
    updated: datetime
    canisters: int
    remarks: tuple[str, ...] = ()
    """What is amiss with it."""


class StoredConversation:
    """A conversation in a folder; any number of objects and processes may use the same one at once.

    All methods are plain and quick ones, of some milliseconds. `remarks` has what was repaired or
    left out, as it came up.
    """

    def __init__(self, premises: Premises, identifier: str) -> None:
        self._premises = premises
        self.identifier = identifier
        self.remarks: list[str] = []
        self._journal = Journal(self.folder / MESSAGES)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._premises.conversations / self.identifier

    @property
    def metadata(self) -> ConversationMetadata:
        """Its name, model, servers, tags and origin, read anew each time."""
        remarks: list[str] = []
        metadata = read_metadata(self.folder / METADATA, remarks)
        self._remark(remarks)
        return metadata

    def append(self, canisters: Iterable[Canister]) -> None:
        """Writes canisters at the end; when this returns, they are on the disk."""
        lines = [write_line(canister) for canister in canisters]
        with self._work("append to"):
            self._journal.append(self._premises.stow(lines))

    def load(self) -> tuple[Canister, ...]:
        """All canisters, exactly as they were appended; any damage is a `PersistenceFailure`."""
        return self._read(strict=True)

    def salvage(self) -> tuple[Canister, ...]:
        """All that can still be read; what is damaged is left out, and remarked."""
        return self._read(strict=False)

    def resume(self) -> tuple[Canister, ...]:
        """What a model can go on with: all that can be read, and a result for each call that was cut off."""
        return answer_calls(self.salvage())

    def undo(self, turns: int = 1) -> tuple[Canister, ...]:
        """Drops the last turns, each from what the person said on, and gives what was dropped."""
        with self._work("change"):
            entries = list(split(self._journal.read()))
            starts = find_turn_starts([peek(entry.data).get("kind") for entry in entries])
            if turns < 1 or not starts:
                return ()
            start = starts[-min(turns, len(starts))]
            dropped = self._interpret(entries[start:], strict=False)
            self._journal.cut(entries[start].offset)
        return dropped

    def fork(self, at: int | None = None, *, name: Absential[str] = absent) -> StoredConversation:
        """A new conversation with the first `at` canisters of this one, or all; it shares their content."""
        with self._work("fork"):
            data = self._journal.read()
            entries = list(split(data))
            length = len(entries) if at is None else at
            if at is not None:
                self._check_fork([peek(entry.data) for entry in entries], at)
            kept = data if length == len(entries) else data[: entries[length].offset]
            metadata = self.metadata
            title = f"{metadata.name} (fork)" if metadata.name else ""
            metadata = ConversationMetadata(
                name=title if is_absent(name) else name,
                model=metadata.model,
                servers=metadata.servers,
                tags=metadata.tags,
                parent=self.identifier,
            )
            return found_conversation(self._premises, metadata, kept)

    def revise(
        self,
        *,
        name: Absential[str] = absent,
        model: Absential[str] = absent,
        servers: Absential[Sequence[str]] = absent,
        tags: Absential[Sequence[str]] = absent,
    ) -> ConversationMetadata:
        """Changes what is known of the conversation; what is not given stays."""
        given = {"name": name, "model": model, "servers": servers, "tags": tags}
        changes: dict[str, Any] = {
            key: value if isinstance(value, str) else tuple(value)
            for key, value in given.items()
            if not is_absent(value)
        }
        with self._work("change"):
            metadata = replace(self.metadata, **changes)
            write_metadata(self.folder / METADATA, metadata, changes)
        return metadata

    def survey(self) -> ConversationSurvey:
        """What a list of conversations tells of this one."""
        with explain("read", self.folder):
            data = self._journal.read()
            seconds = self._journal.path.stat().st_mtime
        metadata = self.metadata
        entries = list(split(data[: data.rfind(b"\n") + 1]))
        return ConversationSurvey(
            identifier=self.identifier,
            title=metadata.name or self._find_title(entries),
            metadata=metadata,
            updated=datetime.fromtimestamp(seconds, timezone.utc),
            canisters=len(entries),
            remarks=tuple(self.remarks),
        )

    @contextmanager
    def _work(self, verb: str) -> Generator[None]:
        """Holds the lock, with the file known to be sound."""
        with self._premises.hold(verb, self.folder):
            if remark := self._journal.mend():
                self._remark([clean_text(remark)])
            yield

    def _remark(self, remarks: Iterable[str]) -> None:
        self.remarks += [remark for remark in remarks if remark not in self.remarks]

    def _read(self, *, strict: bool) -> tuple[Canister, ...]:
        with self._work("read"):
            data = self._journal.read()
        with ease_collector():
            return self._interpret(split(data), strict=strict)

    def _interpret(self, entries: Iterable[Entry], *, strict: bool) -> tuple[Canister, ...]:
        """The canisters of lines; damage raises, or is remarked."""
        found: list[Canister] = []
        fetch = self._premises.vault.get
        for number, _, line in entries:
            complaints: list[str] = []
            try:
                canister = read_line(line, fetch, None if strict else complaints)
            except ConverserFailure as failure:
                raise PersistenceFailure(
                    f"{self._name_line(number)}: {failure.message}",
                    remedy=f"{failure.remedy} Until then, `salvage` gives the rest.",
                ) from failure
            self._remark(f"{self._name_line(number)}: {words}" for words in complaints)
            if canister is not None:
                found.append(canister)
        return tuple(found)

    def _name_line(self, number: int) -> str:
        return clean_text(f"Line {number} of {self._journal.path}")

    def _find_title(self, entries: Sequence[Entry]) -> str:
        """The first words of the person; some lines from the beginning, or there are none."""
        for _, _, line in islice(entries, 20):
            if peek(line).get("kind") == "user":
                canister = read_line(line, self._premises.vault.get, [])
                words = " ".join(getattr(canister, "text", "").split())
                return clean_text(words[:_TITLE_LENGTH])
        return ""

    def _check_fork(self, lines: Sequence[dict[str, Any]], length: int) -> None:
        """Refuses to fork where there is nothing, or between a call and its result."""
        if not 0 <= length <= len(lines):
            raise ConfigurationFailure(
                f"Conversation {self.identifier} cannot be forked at {length}.",
                remedy=f"It has {len(lines)} canisters: give a number from 0 to {len(lines)}.",
            )
        if is_call_open(lines, length):
            raise ConfigurationFailure(
                f"Conversation {self.identifier} cannot be forked at {length}, between a call and"
                " its result.",
                remedy="Give a number before that call, or after its result.",
            )


def found_conversation(
    premises: Premises, metadata: ConversationMetadata, lines: bytes
) -> StoredConversation:
    """Makes a new conversation, whole from the first moment; who calls holds the lock."""
    conversation = StoredConversation(premises, secrets.token_hex(6))
    with raise_folder(conversation.folder) as draft:
        write_new(draft / MESSAGES, lines)
        write_metadata(draft / METADATA, metadata, KINDS)
    return conversation
