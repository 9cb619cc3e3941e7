# SPDX-License-Identifier: Apache-2.0
"""The judge of the questions for the embedded model, and its books."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.questions.book import Attempt, Judgement, Question, judge, read_book

PLACE = Path("/place")
READ = {"tool": ["read", "open"], "arguments": {"path": "a/b.txt"}, "free": ["limit"]}
QUESTION = Question("What is in it?", (READ,), facts=(r"at (\d\d:\d\d)",))


def attempt(tool="read", *, accepted=True, text="at 21:30", **arguments):
    return Attempt(tool, arguments or {"path": "a/b.txt"}, accepted, text)


@pytest.mark.parametrize(
    ("attempts", "answer", "judgement"),
    [
        ([attempt()], "It says 21:30.", (True, True, True)),
        ([attempt("open", path="/place/a/b.txt", limit=3)], "9:30 PM", (True, True, True)),
        ([attempt(path="./a/b.txt"), attempt(path="./a/b.txt")], "21:30", (True, True, True)),
        ([attempt(path="c", accepted=False), attempt()], "21:30", (True, True, True)),
        ([attempt()], "It says 9:30 AM.", (True, True, False)),
        ([attempt()], "What is in it?", (True, True, False)),
        ([attempt(path="c"), attempt()], "21:30", (True, False, False)),
        ([attempt(path="a/b.txt", mode="x")], "21:30", (True, False, False)),
        ([attempt("list")], "21:30", (False, False, False)),
        ([], "21:30", (False, False, False)),
    ],
)
def test_a_conversation_is_held_against_what_is_right(attempts, answer, judgement):
    assert judge(QUESTION, attempts, answer, PLACE) == Judgement(*judgement)


def test_where_no_tool_is_needed_none_may_be_called():
    question = Question("Thanks!", ())
    assert judge(question, [], "Welcome.", PLACE) == Judgement(True, True, True)
    assert judge(question, [attempt()], "Welcome.", PLACE) == Judgement(False, False, False)


def test_steps_count_in_their_order():
    add = {"tool": "add", "arguments": {"a": 1, "files": ["x"]}}
    question = Question("Both", (add, READ))
    first = attempt("add", a=1.0, files=["./x"])
    assert judge(question, [first, attempt()], "Done.", PLACE).arguments
    assert not judge(question, [attempt(), first], "Done.", PLACE).arguments
    assert not judge(question, [first], "Done.", PLACE).tool


def test_what_is_measured_is_enough_and_not_what_is_tuned_on():
    measured, tuned = read_book("measured"), [*read_book("tuning"), *read_book("validation")]
    assert sum(question.kind == "one tool" for question in measured) >= 40
    assert not {each.text for each in measured} & {each.text for each in tuned}
