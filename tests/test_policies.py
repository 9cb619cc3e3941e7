# SPDX-License-Identifier: Apache-2.0
"""One gate stands in front of every invocation."""

from __future__ import annotations

import anyio
import pytest

from converser.contents import TextualContent
from converser.ensembles import Ensemble
from converser.functions import create_local_ensemble, tool
from converser.invokers import Annotations, InvocationResult, Tool
from converser.outcomes import Outcome
from converser.policies import Decision, Verdict, allow, ask, deny
from converser.testing import ScriptedModel
from tests.conversations import (
    INTEGER_SCHEMA,
    assert_valid,
    converse,
    results_of,
)

pytestmark = pytest.mark.anyio


def make_tools(**readers):
    """Tools by name, each read-only, not, or silent on it."""

    async def invoke(_, arguments):
        return InvocationResult(contents=(TextualContent(text=f"ran {dict(arguments)}"),))

    return Ensemble(
        "local",
        tools=[
            (
                Tool(
                    name=name,
                    arguments_schema=INTEGER_SCHEMA,
                    annotations=Annotations(read_only=read_only),
                ),
                invoke,
            )
            for name, read_only in readers.items()
        ],
    )


async def decide(*calls, tools=None, **options):
    model = ScriptedModel([list(calls), "Done."])
    reply = await converse(model, ensembles=[tools or make_tools(read=True, write=None)], **options)
    assert_valid(reply)
    return results_of(reply)


async def test_a_denied_call_is_refused_with_the_reason():
    def forbid(invoker, arguments):
        return deny(f"Not {arguments['n']}.") if invoker.name == "write" else None

    read, write = await decide(("read", {"n": 1}), ("write", {"n": 2}), policies=[forbid])
    assert read.outcome is Outcome.SUCCESS
    assert write.outcome is Outcome.REFUSED
    assert "refused, and not made. Not 2." in write.error


@pytest.mark.parametrize(
    ("decisions", "outcome"),
    [
        ([allow(), deny("no")], Outcome.REFUSED),
        ([deny("no"), allow()], Outcome.REFUSED),
        ([None, allow()], Outcome.SUCCESS),
        ([allow(), ask("sure?")], Outcome.REFUSED),
        ([], Outcome.SUCCESS),
        ([None], Outcome.SUCCESS),
    ],
)
async def test_the_strictest_policy_is_followed_and_asking_nobody_is_a_refusal(decisions, outcome):
    policies = [lambda *_, decision=decision: decision for decision in decisions]
    (result,) = await decide(("write", {"n": 1}), policies=policies)
    assert result.outcome is outcome


async def test_by_default_the_approver_is_asked_for_all_but_read_only_tools_in_order():
    asked, open_questions = [], 0

    async def approve(request):
        nonlocal open_questions
        open_questions += 1
        asked.append((request.invoker.name, dict(request.arguments), request.reason))
        await anyio.wait_all_tasks_blocked()
        assert open_questions == 1
        open_questions -= 1
        return request.arguments["n"] != 3

    calls = [("write", {"n": "2"}), ("read", {"n": 1}), ("write", {"n": 3})]
    first, second, third = await decide(*calls, approver=approve)
    assert [name for name, _, _ in asked] == ["write", "write"]
    assert [arguments for _, arguments, _ in asked] == [{"n": 2}, {"n": 3}]
    assert "only reads" in asked[0][2]
    assert [r.outcome for r in (first, second, third)] == [
        Outcome.SUCCESS,
        Outcome.SUCCESS,
        Outcome.REFUSED,
    ]
    assert "did not approve" in third.error


async def test_the_approver_is_asked_in_the_models_order_also_where_some_calls_are_made_one_by_one():
    asked = []

    async def approve(request):
        asked.append(request.arguments["n"])
        return True

    @tool(sequential=True)
    async def write(n: int) -> None: ...

    async def send(n: int) -> None: ...

    ensembles = [create_local_ensemble("local", [write, send])]
    calls = [("write", {"n": 1}), ("send", {"n": 2}), ("send", {"n": 3}), ("write", {"n": 4})]
    model = ScriptedModel([calls, "Done."])
    await converse(model, ensembles=ensembles, approver=approve)
    assert asked == [1, 2, 3, 4]


async def test_nobody_is_asked_about_arguments_that_are_invalid_anyway():
    async def approve(request):
        raise AssertionError("asked")

    (result,) = await decide(("write", {"n": "many"}), approver=approve)
    assert result.outcome is Outcome.INVALID


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (allow(), Outcome.SUCCESS),
        (deny("Too dear."), Outcome.REFUSED),
        (ask("?"), Outcome.REFUSED),
        ("yes", Outcome.REFUSED),
        (Decision(Verdict.ALLOW), Outcome.SUCCESS),
    ],
)
async def test_an_approver_may_answer_with_a_decision_and_only_a_clear_yes_counts(answer, outcome):
    async def approve(_):
        return answer

    (result,) = await decide(("write", {"n": 1}), approver=approve)
    assert result.outcome is outcome
    assert ("of type str" in (result.error or "")) == (answer == "yes")


class Panic(BaseException):
    """What extensions written in Rust raise when they panic."""


@pytest.mark.parametrize("failure", [RuntimeError("boom"), Panic("boom")])
async def test_a_policy_or_an_approver_that_raises_is_a_refusal(failure):
    def explode(*_):
        raise failure

    async def approve(_):
        raise failure

    (by_nonsense,) = await decide(("read", {"n": 1}), policies=[lambda *_: True])
    assert by_nonsense.outcome is Outcome.REFUSED
    assert "no decision, but a value of type bool" in by_nonsense.error
    (by_policy,) = await decide(("read", {"n": 1}), policies=[explode])
    (by_approver,) = await decide(("write", {"n": 1}), approver=approve)
    assert by_policy.outcome is by_approver.outcome is Outcome.REFUSED
    assert "boom" in by_policy.error


@pytest.mark.filterwarnings("error")
async def test_a_policy_that_is_async_is_told_and_an_approver_may_be_plain():
    async def forbid(*_):
        return deny("no")

    (result,) = await decide(("read", {"n": 1}), policies=[forbid])
    assert result.outcome is Outcome.REFUSED
    assert "make it a plain function" in result.error
    for answer, outcome in ((True, Outcome.SUCCESS), (False, Outcome.REFUSED)):
        (result,) = await decide(("write", {"n": 1}), approver=lambda _, answer=answer: answer)
        assert result.outcome is outcome
