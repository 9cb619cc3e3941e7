# SPDX-License-Identifier: Apache-2.0
"""Leads a small model to a call or an answer by one small decision at a time.

First it chooses a tool, out of a list with a line for each; the list stays the same, so it is read once. How likely it
names each tool is weighed together with the words that the tool shares with the request: both err, but not alike.
Then it is told the parameters of that tool alone, hears the request again, and writes the arguments.
To answer is a tool like the others, only that what follows are words. The history is written in the same form,
so that the model's server finds the beginning of each prompt in its cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ..canisters import (
    AssistantCanister,
    Canister,
    InvocationCanister,
    ResultCanister,
    SupervisorCanister,
    UnknownCanister,
    UserCanister,
)
from ..invokers import Invoker
from ..outcomes import Outcome
from ..searches import ToolIndex, score_tools, search_tools
from .fitting import count_misfits, list_heard, list_named
from .introductions import describe_parameters, is_superseded, summarize_tool
from .translations import Message, describe_content, render_result

TOOLS_MAX = 40
"""Tools that the model is shown; of more, those that the search finds for the user's words."""
_WORDS_WEIGHT = 0.2
_MISFIT_WEIGHT = 1.5
_FILES = re.compile(r"'[^']*'|\"[^\"]*\"|[\w.~-]*/[\w./-]+|\b[\w-]+\.[a-z]{1,4}\b")
"""Names of files, and what is quoted: of their words only that there is a file matters."""
_TIMES = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):([0-5]\d)(?::[\d.]+)?(?:Z|[+-]\d\d:?\d\d)?"
)
_ANSWER = "answer"
_SPEAKERS = (UserCanister, AssistantCanister, ResultCanister)

_INSTRUCTIONS = """\
You help the user with tools. Reply {"task": "WHAT TO DO", "tool": "NAME"}: say in a few words what has to be done, \
and choose the tool that does it. Use a tool whenever one fits: never guess what a tool can tell.
Then you are told the parameters of the tool, and reply with its arguments as a JSON object, taken from the user's \
words; or, for "%ANSWER%", with your answer to the user. When the results have come, answer, and quote them exactly.

Example, with other tools:
User: Hello!
You: {"task": "greet the user", "tool": "%ANSWER%"}
Answer the user, who said: Hello!
You: Hello! What can I do for you?
User: Is flight 88 from Frankfurt late?
You: {"task": "look up a flight", "tool": "track_flight"}
Parameters of track_flight: airport: string (IATA code, e.g. 'JFK'); number: integer; date?: string
Arguments for: Is flight 88 from Frankfurt late?
You: {"airport": "FRA", "number": 88}
Result of track_flight: {"delay": 25, "gate": "B4"}
You: {"task": "tell the user the result", "tool": "%ANSWER%"}
Tell the user the result in a sentence. The user said: Is flight 88 from Frankfurt late?
You: Flight 88 is 25 minutes late.
User: What is in the red box?
You: {"task": "list what is in a box", "tool": "open_box"}
Parameters of open_box: box: string (The box to look into)
Arguments for: What is in the red box?
You: {"box": "red"}
Result of open_box: ink, 3 pens
You: {"task": "tell the user the result", "tool": "%ANSWER%"}
Tell the user the result in a sentence. The user said: What is in the red box?
You: In the red box are ink and 3 pens.
User: How many guests does letter 12 mention?
You: {"task": "read the text of a letter", "tool": "open_letter"}
User: Where are my invoices from May?
You: {"task": "search for invoices", "tool": "find_invoices"}
User: The green lamp is now called Kermit.
You: {"task": "rename a lamp", "tool": "set_lamp"}
User: Thank you!
You: {"task": "thank the user", "tool": "%ANSWER%"}

Your tools:
- %ANSWER%: Talk to the user: greet, thank, explain, tell a result
"""


class Guide:
    """Leads a small model through one set of tools to a call or an answer."""

    def __init__(self, invokers: Mapping[str, Invoker]) -> None:
        self.invokers = {
            name: each for name, each in invokers.items() if not is_superseded(each, invokers)
        }
        self.answer = _ANSWER
        while self.answer in self.invokers:
            self.answer += "_user"
        self._index = ToolIndex(self.invokers.values())

    def select(self, canisters: Iterable[Canister]) -> list[Invoker]:
        """The tools to choose from, in their order: all, or what was used, what fits the words, and some more."""
        if len(self.invokers) <= TOOLS_MAX:
            return list(self.invokers.values())
        used = {each.name for each in canisters if isinstance(each, InvocationCanister)}
        found = search_tools([self._index], read_question(canisters), TOOLS_MAX - len(used))
        wanted = set(list(dict.fromkeys((*used, *found, *self.invokers)))[:TOOLS_MAX])
        return [invoker for name, invoker in self.invokers.items() if name in wanted]

    def list_fields(self) -> list[str]:
        """What the tools are about, as far as the names of their ensembles tell."""
        groups = (each.ensemble for each in self.invokers.values())
        return list(dict.fromkeys(group.name for group in groups if group is not None))

    def write_messages(
        self, canisters: Iterable[Canister], invokers: Iterable[Invoker], part: str = ""
    ) -> list[Message]:
        """The conversation in plain roles, at the point where the model chooses for a request, or a part of it."""
        instructions = _INSTRUCTIONS.replace("%ANSWER%", self.answer)
        system = instructions + "\n".join(map(summarize_tool, invokers))
        messages: list[Message] = [{"role": "system", "content": system}]
        state = _State()
        for canister in canisters:
            state.absorb(canister)
            for role, text in self._narrate(canister, state):
                _say(messages, role, text)
        if part:
            _say(messages, "user", f"Now only: {part}")
        return messages

    @staticmethod
    def begin_choice(task: str) -> str:
        """How the model's choice begins, which goes on with the name of a tool."""
        return f'{{"task": "{task}", "tool": "'

    def score(
        self, request: str, ranks: Mapping[str, float], canisters: Iterable[Canister] = ()
    ) -> dict[str, float]:
        """How good each name is, as the model ranks them, by shared words, and by what the tool has places for."""
        words = score_tools([self._index], _FILES.sub(" file ", request))
        said = [each.text for each in canisters if isinstance(each, _SPEAKERS)]
        named, heard = list_named(request), list_heard("\n".join((request, *said)))
        scores = {name: rank + _WORDS_WEIGHT * words.get(name, 0.0) for name, rank in ranks.items()}
        for name in scores.keys() & self.invokers.keys():
            scores[name] -= _MISFIT_WEIGHT * count_misfits(named, heard, self.invokers[name])
        return scores

    def _narrate(self, canister: Canister, state: _State) -> Iterator[tuple[str, str]]:
        match canister:
            case SupervisorCanister():
                yield "system", f"\n{canister.text}"
            case InvocationCanister():
                yield from self._choose(canister.name, state)
                yield "assistant", json.dumps(canister.arguments, ensure_ascii=False)
            case AssistantCanister():
                if canister.text:
                    yield from self._choose(self.answer, state)
                    yield "assistant", canister.text
            case ResultCanister():
                name = state.names.get(canister.invocation_identifier, "the tool")
                yield "user", f"Result of {name}: {_spell_times(_compact(render_result(canister)))}"
            case UnknownCanister():
                pass
            case _:
                label = "User" if isinstance(canister, UserCanister) else "Document"
                text = "\n".join(describe_content(part) for part in canister.contents)
                yield "user", f"{label}: {text}"

    def _choose(
        self, name: str, state: _State, hidden: Iterable[str] = ()
    ) -> Iterator[tuple[str, str]]:
        """The model's choice, and what it is told then; the question again, since it may be far away."""
        yield "assistant", json.dumps({"tool": name}, ensure_ascii=False)
        if name == self.answer and state.has_failed:
            yield "user", f"Tell the user what went wrong. The user said: {state.question}"
        elif name == self.answer and state.has_result:
            yield "user", f"Tell the user the result in a sentence. The user said: {state.question}"
        elif name == self.answer:
            yield "user", f"Answer the user, who said: {state.question}"
        else:
            invoker = self.invokers.get(name)
            parameters = f"{describe_parameters(invoker, hidden)}\n" if invoker else ""
            yield "user", f"{parameters}Arguments for: {state.question}"

    def write_choice(
        self,
        messages: Sequence[Message],
        name: str,
        canisters: Iterable[Canister],
        part: str = "",
        hidden: Iterable[str] = (),
    ) -> list[Message]:
        """The conversation at the point after the choice, where arguments or an answer come."""
        state = _State()
        for canister in canisters:
            state.absorb(canister)
        state.question = part or state.question
        longer = [dict(message) for message in messages]
        for role, text in self._choose(name, state, hidden):
            _say(longer, role, text)
        return longer


@dataclass(slots=True)
class _State:
    """Where a conversation is."""

    question: str = ""
    has_result: bool = False
    has_failed: bool = False
    names: dict[str, str] = field(default_factory=dict[str, str])

    def absorb(self, canister: Canister) -> None:
        if isinstance(canister, UserCanister):
            self.question, self.has_result, self.has_failed = canister.text, False, False
        elif isinstance(canister, InvocationCanister):
            self.names[canister.identifier] = canister.name
        elif isinstance(canister, ResultCanister):
            self.has_result, self.has_failed = True, canister.outcome is not Outcome.SUCCESS


def read_question(canisters: Iterable[Canister]) -> str:
    """What the user said last."""
    questions = [each.text for each in canisters if isinstance(each, UserCanister)]
    return questions[-1] if questions else ""


def count_served(canisters: Sequence[Canister]) -> int:
    """How many calls have succeeded since the user spoke."""
    count = 0
    for canister in reversed(canisters):
        if isinstance(canister, UserCanister):
            break
        count += isinstance(canister, ResultCanister) and canister.outcome is Outcome.SUCCESS
    return count


def _spell_times(text: str) -> str:
    """A text whose times of day are said in the other way, too, since small models make 6 PM of 06:00."""
    return _TIMES.sub(lambda found: f"{found[0]} ({_say_time(int(found[1]), found[2])})", text)


def _say_time(hour: int, minute: str) -> str:
    return f"{(hour + 11) % 12 + 1}:{minute} {'AM' if hour < 12 else 'PM'}"


def _compact(text: str) -> str:
    """JSON without the spaces that make it easy on people's eyes, and long for a model."""
    with suppress(ValueError):
        return json.dumps(json.loads(text), ensure_ascii=False)
    return text


def _say(messages: list[Message], role: str, text: str) -> None:
    """Adds words to the conversation; chat templates want the roles to take turns, and one system first."""
    if role == "system":
        messages[0]["content"] += f"\n{text}"
    elif messages[-1]["role"] == role:
        messages[-1]["content"] += f"\n{text}"
    else:
        messages.append({"role": role, "content": text})
