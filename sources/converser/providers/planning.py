# SPDX-License-Identifier: Apache-2.0
"""Has a small model say a request in other words before it sees any tool: its parts, and what kind of task each is.

Of the request alone it knows well what has to be done; with forty tools before its eyes it takes the first that sounds
alike.
Both are texts that go on, with examples of other trades, since that is what a small model does best.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_TASK = """\
Say in a few plain words what has to be done for the user: a verb and what kind of thing it is about, without names or \
numbers.

Is flight 88 from Frankfurt late? => look up the status of a flight
How many guests does letter 12 mention? => read the text of a letter
Who signed papers/rent.doc? => read the content of a file
Where are my invoices from May? => search for invoices
The green lamp is now called Kermit. => rename a lamp
Hello! => greet the user
Put 3 apples on my shopping list. => add items to a shopping list
Is anything wrong with the printer? => show the status of a printer
What did Anna's last message change? => show the content of a message
I do not want that booking any more. => cancel a booking
Which songs do I have? => list the songs
Show me plan.doc and budget.xls side by side. => read several files
Thank you! => thank the user
"""
_PARTS = """\
Split each request into what has to be done, one thing after the other. Most are one thing only.

Compare the prices of tea and coffee. => Compare the prices of tea and coffee.
Book a table and send Anna the address. => Book a table. | Send Anna the address.
How warm is it in Oslo and in Rome? => How warm is it in Oslo? | How warm is it in Rome?
Tell Anna that I am late and sorry. => Tell Anna that I am late and sorry.
Open the door, then switch on the light. => Open the door. | Switch on the light.
Find the invoice from May and tell me its total. => Find the invoice from May. | Tell me the total of the invoice.
Buy milk and bread. => Buy milk and bread.
Multiply 3 by 4, then halve the result. => Multiply 3 by 4. | Halve the result.
Rename the song to Rain and Snow. => Rename the song to Rain and Snow.
Play a song called Blue and add it to my list. => Play a song called Blue. | Add the song Blue to my list.
"""
_JOINTS = re.compile(r"\b(and|then|afterwards)\b", re.IGNORECASE)
_NAME = r"(?:'[^']+'|\"[^\"]+\"|\w+(?:[./:_~-]+\w+)+|\d+)"
_NAMES = re.compile(_NAME)
_PAIRS = re.compile(rf"({_NAME}) and (?={_NAME})")
_PARTS_MAX = 4
STOP = "\n"
TASK_TOKENS = 16
PARTS_TOKENS = 120


def write_task(request: str, fields: Iterable[str]) -> str:
    """The text that goes on with the kind of task that a request is, in the fields of some tools."""
    named = ", ".join(map(_flatten, fields))
    context = f"\nWith tools for {named}:\n" if named else ""
    return f"{_TASK}{context}{_flatten(request)} =>"


def read_task(text: str) -> str:
    """What the model wrote of the task; a quotation mark would end the JSON around it."""
    return _flatten(text).replace('"', "'").replace("\\", "")


def has_joints(request: str) -> bool:
    """Whether a request may have parts; what joins two names or two numbers is only a list."""
    return _JOINTS.search(_PAIRS.sub(r"\1, ", request)) is not None


def write_parts(request: str) -> str:
    """The text that goes on with the parts of a request."""
    return f"{_PARTS}{_flatten(request)} =>"


def read_parts(request: str, text: str) -> list[str]:
    """The parts that the model found; the whole request, where they have lost or invented something."""
    parts = [part.strip() for part in text.split("|") if part.strip()]
    said = _list_names(request)
    kept = _list_names(text)
    again = any(one.rstrip(".?!") in other for one in parts for other in parts if one != other)
    is_sound = 1 < len(parts) <= _PARTS_MAX and said == kept and not again
    return parts if is_sound else [request]


def join_next(parts: list[str], at: int, request: str) -> None:
    """Joins a part that needs no tool with the next one, of which it mostly tells something."""
    both = parts[at : at + 2]
    parts[at : at + 2] = [request if both == parts else " ".join(both)]


def _list_names(text: str) -> set[str]:
    """What must not be lost: numbers, paths and the like, and whatever is quoted."""
    return {found.strip("'\"") for found in _NAMES.findall(text)}


def _flatten(text: str) -> str:
    return " ".join(text.split())
