# SPDX-License-Identifier: Apache-2.0
"""Asks the embedded model the questions, with all tools of four real servers, and counts what was right.

`python -m tests.questions --help`. What was asked is kept, so that a run which was broken off goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio

import converser

from .book import BOOKS, Question, judge, list_attempts, read_book
from .workspace import NOTE, make_workspace, open_servers

RECORDS = Path(__file__).resolve().parents[2] / ".auxiliary" / "caches" / "questions"
_ASPECTS = ("tool", "arguments", "answer")
_LIMITS = converser.Limits(turns=6, seconds=600)


def main() -> None:
    options = _read_options()
    questions = [each for each in read_book(options.book) if options.only in each.text]
    questions.sort(key=_shuffle)
    record = options.record or RECORDS / f"{options.book}.jsonl"
    record.parent.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        record.unlink(missing_ok=True)
    known = _read_record(record)
    todo = [each for each in questions if each.text not in known][: options.limit]
    if todo:
        with tempfile.TemporaryDirectory(prefix="converser-questions-") as folder:
            anyio.run(_ask_all, todo, options.model, Path(folder).resolve(), record)
    known = _read_record(record)
    _summarize([known[each.text] for each in questions if each.text in known])


def _shuffle(question: Question) -> bytes:
    """Always the same order, in which any part is a fair sample of the whole."""
    return hashlib.sha256(question.text.encode()).digest()


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.questions", description=__doc__)
    books = sorted(path.stem for path in BOOKS.glob("*.toml"))
    parser.add_argument("book", nargs="?", default="measured", choices=books)
    parser.add_argument("--only", default="", help="ask only questions with this in their text")
    parser.add_argument("--limit", type=int, help="ask at most so many")
    parser.add_argument("--fresh", action="store_true", help="forget what was asked before")
    parser.add_argument("--model", default="embedded", help="another model, such as ollama:qwen3")
    parser.add_argument("--record", type=Path, help="keep what was asked in this file")
    return parser.parse_args()


async def _ask_all(questions: Sequence[Question], name: str, place: Path, record: Path) -> None:
    async with open_servers(place) as ensembles, converser.access_model(name) as model:
        for question in questions:
            make_workspace(place)
            entry = await _ask(question, model, ensembles, place)
            with record.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(entry)}\n")
            _show(entry)


async def _ask(
    question: Question,
    model: converser.Model,
    ensembles: Sequence[converser.Ensemble],
    place: Path,
) -> dict[str, Any]:
    started = time.monotonic()
    canisters = [converser.supervisor(NOTE), converser.user(question.text)]
    reply = await model.converse(canisters, ensembles=ensembles, limits=_LIMITS)
    seconds = time.monotonic() - started
    attempts = list_attempts(reply)
    return {
        "text": question.text,
        "kind": question.kind,
        "seconds": round(seconds, 1),
        "usage": asdict(reply.usage),
        "calls": [
            {
                "tool": a.tool,
                "arguments": a.arguments,
                "accepted": a.is_accepted,
                "text": a.text[:500],
            }
            for a in attempts
        ],
        "reply": reply.text,
        **asdict(judge(question, attempts, reply.text, place)),
    }


def _read_record(record: Path) -> dict[str, dict[str, Any]]:
    if not record.exists():
        return {}
    entries = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return {entry["text"]: entry for entry in entries}


def _show(entry: dict[str, Any]) -> None:
    print(f"\n{entry['text']}  ({entry['seconds']} s)")
    for call in entry["calls"]:
        mark = "" if call["accepted"] else "  (refused or failed)"
        print(f"    {call['tool']} {json.dumps(call['arguments'], ensure_ascii=False)}{mark}")
    print(f"    = {entry['reply']}")
    marks = [f"{aspect} {'right' if entry[aspect] else 'WRONG'}" for aspect in _ASPECTS]
    print(f"    {', '.join(marks)}")
    sys.stdout.flush()


def _summarize(entries: Sequence[dict[str, Any]]) -> None:
    print(
        f"\n{'':12}{'count':>8}{'tool':>12}{'arguments':>12}{'answer':>12}{'median':>10}{'longest':>10}"
    )
    for kind in ("one tool", "two steps", "no tool"):
        group = [entry for entry in entries if entry["kind"] == kind]
        if not group:
            continue
        counts = [sum(entry[aspect] for entry in group) for aspect in _ASPECTS]
        shares = "".join(f"{count:>6} {count / len(group):>5.0%}" for count in counts)
        times = sorted(entry["seconds"] for entry in group)
        median = times[len(times) // 2]
        print(f"{kind:12}{len(group):>8}{shares}{median:>8} s{times[-1]:>8} s")


if __name__ == "__main__":
    main()
