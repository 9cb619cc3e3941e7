# SPDX-License-Identifier: Apache-2.0
"""One family; each message carries its remedy, and each failure behaves as Python expects of it."""

from __future__ import annotations

import copy
import pickle
import sys
import traceback
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress

import anyio
import pytest

from converser import exceptions
from converser.contents import TextualContent
from converser.exceptions import (
    ConfigurationFailure,
    ConverserFailure,
    MCPExecutionFailure,
    MCPFailure,
    MCPTimeoutFailure,
    ToolExecutionFailure,
)
from converser.outcomes import Outcome

FAMILY = [
    member
    for member in vars(exceptions).values()
    if isinstance(member, type)
    and issubclass(member, Exception)
    and member.__module__ == exceptions.__name__
]
SERVER_FAMILY = [member for member in FAMILY if issubclass(member, MCPFailure)]
each_failure = pytest.mark.parametrize("family", FAMILY)
each_server_failure = pytest.mark.parametrize("family", SERVER_FAMILY)


@each_failure
def test_each_is_of_the_one_family_and_drawn_at_the_top(family):
    assert issubclass(family, ConverserFailure)
    assert family.__name__ in exceptions.__doc__
    assert len(FAMILY) == 19


@each_failure
def test_the_message_says_what_happened_and_what_to_do(family):
    failure = family("It broke.", remedy="Mend it.")
    assert str(failure) == "It broke. Mend it."
    assert (failure.message, failure.remedy) == ("It broke.", "Mend it.")
    assert str(family("It broke.")) == "It broke."


@each_failure
def test_attributes_cannot_be_changed_added_or_removed(family):
    failure = family("It broke.", remedy="Mend it.")
    for name in ("message", "remedy", "novel"):
        with pytest.raises(AttributeError):
            setattr(failure, name, "changed")
    with pytest.raises(AttributeError):
        del failure.message
    assert failure.message == "It broke."


@each_failure
def test_it_can_be_raised_from_another_and_shows_both(family):
    cause = OSError("disk")
    with pytest.raises(family) as caught:
        raise family("It broke.") from cause
    assert caught.value.__cause__ is cause
    assert caught.value.__suppress_context__
    shown = "".join(traceback.format_exception(caught.value))
    assert "It broke." in shown
    assert "disk" in shown


@each_failure
def test_it_can_be_raised_while_another_is_handled_and_again_with_a_traceback(family):
    failure = family("It broke.")
    with suppress(family):
        try:
            raise KeyError("first")
        except KeyError:
            raise failure  # noqa: B904
    assert isinstance(failure.__context__, KeyError)
    with pytest.raises(family) as caught:
        raise failure.with_traceback(None)
    assert caught.value is failure
    failure.__traceback__ = None
    failure.__cause__ = None


@each_failure
@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no notes")
def test_notes_can_be_added_and_are_shown_and_pickled(family):
    failure = family("It broke.")
    failure.add_note("Twice.")
    failure.add_note("Thrice.")
    assert failure.__notes__ == ["Twice.", "Thrice."]
    assert "Thrice." in "".join(traceback.format_exception(failure))
    assert pickle.loads(pickle.dumps(failure)).__notes__ == ["Twice.", "Thrice."]


@each_failure
def test_it_passes_through_context_managers(family):
    @contextmanager
    def manage():
        try:
            yield
        finally:
            with suppress(KeyError):
                raise KeyError("in the clean-up")

    failure = family("It broke.")
    with pytest.raises(family) as caught, manage(), manage():
        raise failure
    assert caught.value is failure


@each_failure
async def test_it_passes_through_asynchronous_context_managers(family):
    @asynccontextmanager
    async def manage():
        try:
            yield
        finally:
            await anyio.lowlevel.checkpoint()

    failure = family("It broke.")

    async def fail():
        async with manage(), AsyncExitStack() as stack:
            await stack.enter_async_context(manage())
            raise failure

    with anyio.fail_after(10), pytest.raises(family) as caught:
        await fail()
    assert caught.value is failure


@each_failure
def test_it_replaces_another_failure_in_a_stack_of_exits(family):
    def fail_on_exit(*_):
        raise family("It broke on the way out.")

    def fail():
        with ExitStack() as stack:
            stack.push(fail_on_exit)
            stack.push(lambda *_: False)
            raise KeyError("first")

    with pytest.raises(family) as caught:
        fail()
    assert isinstance(caught.value.__context__, KeyError)


@each_failure
def test_it_survives_pickle_and_copy_and_stays_immutable(family):
    failure = family("It broke.", remedy="Mend it.")
    revived = [pickle.loads(pickle.dumps(failure, each)) for each in range(6)]
    for each in (*revived, copy.copy(failure), copy.deepcopy(failure)):
        assert type(each) is family
        assert str(each) == "It broke. Mend it."
        assert each.args == failure.args
        assert (each.message, each.remedy) == ("It broke.", "Mend it.")
        with pytest.raises(AttributeError):
            each.message = "changed"


@each_server_failure
def test_a_server_failure_says_where_and_why(family):
    cause = OSError("disk")
    failure = family("It broke.", server="s", tool="t", transport="stdio", cause=cause)
    assert (failure.server, failure.tool, failure.transport) == ("s", "t", "stdio")
    assert failure.cause is failure.__cause__ is cause
    assert isinstance(failure.outcome, Outcome)
    revived = pickle.loads(pickle.dumps(failure))
    assert (revived.server, revived.tool, revived.transport) == ("s", "t", "stdio")
    assert revived.outcome is failure.outcome
    assert repr(revived.cause) == repr(cause)


@each_server_failure
def test_a_tool_failure_can_be_raised_from_a_server_failure(family):
    server_failure = family("The server broke.", server="s")
    with pytest.raises(ToolExecutionFailure) as caught:
        raise ToolExecutionFailure("The tool broke.", tool="t") from server_failure
    assert caught.value.__cause__ is server_failure


def test_a_tool_failure_carries_outcome_contents_and_data():
    failure = ToolExecutionFailure(
        "It broke.",
        tool="t",
        ensemble="e",
        outcome=Outcome.REFUSED,
        contents=[TextualContent(text="no")],
        structured={"a": 1},
    )
    revived = pickle.loads(pickle.dumps(failure))
    for each in (failure, revived):
        assert (each.tool, each.ensemble, each.outcome) == ("t", "e", Outcome.REFUSED)
        assert each.contents == (TextualContent(text="no"),)
        assert each.structured == {"a": 1}


def test_an_execution_failure_carries_what_the_server_said():
    failure = MCPExecutionFailure(
        "It broke.", contents=[TextualContent(text="no")], structured=[1], code=-32000
    )
    assert failure.contents == (TextualContent(text="no"),)
    assert (failure.structured, failure.code) == ([1], -32000)


def test_a_timeout_is_an_outcome_of_its_own():
    failure = MCPTimeoutFailure("Late.", outcome=Outcome.TIMED_OUT)
    assert failure.outcome is Outcome.TIMED_OUT


def test_mistakes_in_configuration_come_all_at_once():
    assert ConfigurationFailure("Two.", mistakes=["one", "two"]).mistakes == ("one", "two")
