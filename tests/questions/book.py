# SPDX-License-Identifier: Apache-2.0
"""The questions of `data/questions`, and the judgement on what a model made of them.

A question has a `text`, the `calls` that answer it, in order, and what its answer must say:
- A call has a `tool`, or a list of tools that are as good; its `arguments`, of which a text that begins with `~`
  is a pattern; and the names of arguments which are `free`, because they may be anything or absent.
- Each of `facts` is a pattern whose group is looked up in what the servers really returned; the answer must have it.
- Each of `says` is a pattern that the answer must match.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

from converser.canisters import InvocationCanister, ResultCanister
from converser.outcomes import Outcome
from converser.replies import Reply

BOOKS = Path(__file__).resolve().parents[2] / "data" / "questions"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and what is right for it."""

    text: str
    calls: tuple[Mapping[str, Any], ...]
    facts: tuple[str, ...] = ()
    says: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return ("no tool", "one tool")[len(self.calls)] if len(self.calls) < 2 else "two steps"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call that a model made, and what came of it."""

    tool: str
    arguments: Mapping[str, Any]
    is_accepted: bool
    text: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was right; arguments can be right only where the tool is."""

    tool: bool
    arguments: bool
    answer: bool


def read_book(name: str) -> list[Question]:
    """All questions of a book, such as `measured`."""
    document = tomli.loads((BOOKS / f"{name}.toml").read_text(encoding="utf-8"))
    return [
        Question(
            text=entry["text"],
            calls=tuple(entry["calls"]),
            facts=tuple(entry.get("facts", ())),
            says=tuple(entry.get("says", ())),
        )
        for entry in document["question"]
    ]


def list_attempts(reply: Reply) -> list[Attempt]:
    """The calls of a conversation in order."""
    results = {
        each.invocation_identifier: each
        for each in reply.canisters
        if isinstance(each, ResultCanister)
    }
    return [
        Attempt(
            tool=each.name,
            arguments=each.arguments,
            is_accepted=results[each.identifier].outcome is Outcome.SUCCESS,
            text=results[each.identifier].text,
        )
        for each in reply.canisters
        if isinstance(each, InvocationCanister)
    ]


def judge(question: Question, attempts: Sequence[Attempt], answer: str, place: Path) -> Judgement:
    """Holds what a model did against what is right.

    Of its calls those count that a tool accepted, since a model may mend what was refused; a right
    call counts too where the tool itself could not do it. The same call again is no harm.
    """
    made: list[Attempt] = []
    for attempt in attempts:
        known = any(_fits(call, attempt, place) for call in question.calls)
        again = any((attempt.tool, attempt.arguments) == (a.tool, a.arguments) for a in made)
        if (attempt.is_accepted or known) and not again:
            made.append(attempt)
    wanted = question.calls
    tool = len(made) >= len(wanted) and all(
        attempt.tool in _list_tools(call) for call, attempt in zip(wanted, made, strict=False)
    )
    right = tool and all(_fits(call, each, place) for call, each in zip(wanted, made, strict=False))
    if not wanted:
        tool = right = not attempts
    return Judgement(tool, right, right and _answers(question, attempts, answer))


def _answers(question: Question, attempts: Sequence[Attempt], answer: str) -> bool:
    if answer.strip() in ("", question.text):  # Small models parrot.
        return False
    returned = "\n".join(attempt.text for attempt in attempts)
    for pattern in question.facts:
        found = re.search(pattern, returned)
        facts = [group for group in found.groups() if group] if found else []
        if not any(_mentions(answer, fact) for fact in facts):
            return False
    return all(re.search(each, answer, re.IGNORECASE) for each in question.says)


def _mentions(answer: str, fact: str) -> bool:
    """Whether an answer has a fact; the time of day may be written in two ways."""
    form = re.escape(fact)
    if re.fullmatch(r"\d\d:\d\d", fact):
        hour, minute = int(fact[:2]), fact[3:]
        half = "a" if hour < 12 else "p"
        plain = rf"0?{hour}:{minute}(?!(:\d\d)?\s*[ap]\.?m)"
        form = rf"{plain}|0?{(hour + 11) % 12 + 1}:{minute}(:\d\d)?\s*{half}\.?m"
    return re.search(rf"(?<![\w.])({form})(?!\w|\.\d)", answer, re.IGNORECASE) is not None


def _list_tools(call: Mapping[str, Any]) -> list[str]:
    return [call["tool"]] if isinstance(call["tool"], str) else list(call["tool"])


def _fits(call: Mapping[str, Any], attempt: Attempt, place: Path) -> bool:
    if attempt.tool not in _list_tools(call):
        return False
    free = call.get("free", ())
    given = {key: value for key, value in attempt.arguments.items() if key not in free}
    wanted = {key: value for key, value in call["arguments"].items() if key not in free}
    if any(value is not None for key, value in given.items() if key not in wanted):
        return False
    return all(key in given and _matches(wanted[key], given[key], place) for key in wanted)


def _matches(wanted: Any, given: Any, place: Path) -> bool:
    if isinstance(wanted, str):
        text = str(given)
        if wanted.startswith("~"):
            return re.fullmatch(wanted[1:], text) is not None
        return wanted == text or wanted == _relate(text, place)
    if isinstance(wanted, list):
        return (
            isinstance(given, Sequence)
            and len(given) == len(wanted)
            and all(_matches(one, other, place) for one, other in zip(wanted, given, strict=True))
        )
    return isinstance(given, (int, float)) and math.isclose(wanted, given)


def _relate(text: str, place: Path) -> str:
    """A path as seen from the workspace, where it is one."""
    path = Path(text or ".")
    return str(path.relative_to(place)) if path.is_relative_to(place) else str(path)
