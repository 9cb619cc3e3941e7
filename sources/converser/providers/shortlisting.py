# SPDX-License-Identifier: Apache-2.0
"""Has a small model look again at the few tools that it likes best, where its first look left it in doubt.

In a list of forty it misses what tells two tools apart. Here it reads of a few all that is said, after examples of
other trades, in a text that goes on. Both looks err, but not alike: what is good in both is mostly right.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

_SHORTLIST_MAX = 6
_SURE = 2.5
_SHORTLIST = """\
Which tool serves which request? People say the same thing in many ways: what matters is what shall happen.

Tools:
- %ANSWER%: Talk to the user: greet, thank, explain
- get_flight(number, airport): Status of a flight
- book_seat(flight, seat): Reserve a seat on a flight
- cancel_booking(number): Cancel a booking
- search_invoices(words): Find invoices by words in them
- get_invoice_details(number): Date, sum and state of an invoice
- print_invoice(number, first_page?, last_page?): Print pages of an invoice
- list_letters(box): List the letters in a box
- open_letter(number): Text of a letter
- send_letter(to, text): Write a letter to somebody
- move_letter(number, box): Put a letter into another box
- create_box(name): Make a new box for letters
- lamp_status(): Which lamps are on or off
- lamp_set(lamp, color?, brightness?): Change a lamp
- lamp_history(lamp?, most?): What happened to the lamps, newest first
- lamp_event(number): What one event changed
- measure_distance(a, b): Distance between two places

Request: "whats in letter 12, does it mention any guests?"
Tool: "open_letter"
Request: "Hello!"
Tool: "%ANSWER%"
Request: "The kitchen one is too bright, make it half of that."
Tool: "lamp_set"
Request: "Where on earth is that invoice about the roof"
Tool: "search_invoices"
Request: "I don't need 17 any more, get rid of it. It's the booking for Rome"
Tool: "cancel_booking"
Request: "only the last two pages of invoice 8, on paper"
Tool: "print_invoice"
Request: "anything still on upstairs?"
Tool: "lamp_status"
Request: "who switched off the lamps lately?"
Tool: "lamp_history"
Request: "Say, what was changed by event 5?"
Tool: "lamp_event"
Request: "Letter 3 belongs with the bills."
Tool: "move_letter"
Request: "I need some place for my holiday letters"
Tool: "create_box"
Request: "from Rome to Oslo, how far"
Tool: "measure_distance"
Request: "what have I got in the blue box?"
Tool: "list_letters"
Request: "When did invoice 9 come and was it paid"
Tool: "get_invoice_details"
Request: "Tell Anna that I'm late."
Tool: "send_letter"
Request: "12A please, on flight 88"
Tool: "book_seat"
Request: "thx!"
Tool: "%ANSWER%"

Tools:
- %ANSWER%: Talk to the user: greet, thank, explain
"""


def is_in_doubt(scores: Mapping[str, float]) -> bool:
    """Whether the second best is so near to the best that a second look is worth its time."""
    best = heapq.nlargest(2, scores.values())
    return len(best) > 1 and best[0] - best[1] < _SURE


def list_best(scores: Mapping[str, float], answer: str) -> list[str]:
    """The tools to look at again, the best first; to answer is always a choice."""
    tools = [name for name in scores if name != answer]
    return heapq.nlargest(_SHORTLIST_MAX, tools, key=lambda name: scores[name])


def write_shortlist(request: str, lines: Iterable[str], answer: str) -> str:
    """The text that goes on with the name of a tool, and a quotation mark after it."""
    said = " ".join(request.split()).replace('"', "'")
    beginning = _SHORTLIST.replace("%ANSWER%", answer)
    return beginning + "\n".join((*lines, "", f'Request: "{said}"', 'Tool: "'))
