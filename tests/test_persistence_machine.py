# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to stored conversations, in whatever order, they hold what a plain list would hold."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from converser import (
    Canister,
    ConversationStore,
    ImageContent,
    StoredConversation,
    assistant,
    supervisor,
    user,
)

_TEXTS = ("short", "long " * 300, "other " * 300)
_PICTURES = tuple(ImageContent(data=bytes([number]) * 9, mimetype="image/png") for number in (1, 2))
canisters = st.builds(
    lambda create, text, parts: create(text, *parts),
    st.sampled_from([user, user, assistant, supervisor]),
    st.sampled_from(_TEXTS),
    st.lists(st.sampled_from(_PICTURES), max_size=1),
)
any_number = st.integers(0, 100)


@dataclass
class Expectation:
    """What the model knows of one conversation."""

    handle: StoredConversation
    name: str = ""
    canisters: list[Canister] = field(default_factory=list)

    def undo(self, turns: int) -> None:
        """What is left when the last turns are gone."""
        starts = [place for place, each in enumerate(self.canisters) if is_user(each)]
        if starts:
            del self.canisters[starts[-min(turns, len(starts))] :]


def is_user(canister: Canister) -> bool:
    return type(canister).__name__ == "UserCanister"


class StoreMachine(RuleBasedStateMachine):
    """A store, and a model of it."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.store = ConversationStore(self._folder.name)
        self.model: list[Expectation] = []

    def teardown(self) -> None:
        self._folder.cleanup()

    def pick(self, number: int) -> Expectation:
        return self.model[number % len(self.model)]

    @rule(said=st.lists(canisters, max_size=3))
    def create(self, said):
        self.model.append(Expectation(self.store.create(said), canisters=said))

    @precondition(lambda self: self.model)
    @rule(number=any_number, said=st.lists(canisters, max_size=3))
    def append(self, number, said):
        chosen = self.pick(number)
        chosen.handle.append(said)
        chosen.canisters += said

    @precondition(lambda self: self.model)
    @rule(number=any_number, at=any_number)
    def fork(self, number, at):
        chosen = self.pick(number)
        kept = chosen.canisters[: at % (len(chosen.canisters) + 1)]
        fork = chosen.handle.fork(len(kept), name="forked")
        assert fork.metadata.parent == chosen.handle.identifier
        self.model.append(Expectation(fork, "forked", kept))

    @precondition(lambda self: self.model)
    @rule(number=any_number, turns=st.integers(1, 3))
    def undo(self, number, turns):
        chosen = self.pick(number)
        before = list(chosen.canisters)
        chosen.undo(turns)
        assert chosen.handle.undo(turns) == tuple(before[len(chosen.canisters) :])

    @precondition(lambda self: self.model)
    @rule(number=any_number, name=st.sampled_from(["", "one", "two"]))
    def rename(self, number, name):
        chosen = self.pick(number)
        chosen.handle.revise(name=name)
        chosen.name = name

    @precondition(lambda self: self.model)
    @rule(number=any_number)
    def delete(self, number):
        chosen = self.pick(number)
        self.store.delete(chosen.handle)
        self.model.remove(chosen)

    @rule()
    def reopen(self):
        self.store = ConversationStore(self.store.folder)
        for each in self.model:
            each.handle = self.store.open(each.handle.identifier)

    @rule()
    def collect(self):
        """Nothing is left but what some conversation uses."""
        self.store.collect()
        used = {
            getattr(part, "data", None) or part.text.encode()
            for each in self.model
            for canister in each.canisters
            for part in canister.contents
            if type(canister).__name__ == "SupervisorCanister"
            or not hasattr(part, "text")
            or len(part.text) > 1_024
        }
        files = [path for path in self.store.folder.glob("contents/*/*") if path.is_file()]
        assert {path.read_bytes() for path in files} == used
        assert len(files) == len(used)

    @invariant()
    def all_is_as_expected(self):
        surveys = {survey.identifier: survey for survey in self.store.list()}
        assert surveys.keys() == {each.handle.identifier for each in self.model}
        for each in self.model:
            assert each.handle.load() == tuple(each.canisters)
            assert each.handle.remarks == []
            survey = surveys[each.handle.identifier]
            assert survey.metadata.name == each.name
            assert survey.canisters == len(each.canisters)


StoreMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
test_a_store_is_where_the_model_says = StoreMachine.TestCase
