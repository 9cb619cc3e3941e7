# SPDX-License-Identifier: Apache-2.0
"""A program that works on stored conversations until it is killed, and tells what it has done once it is done.

`python -m tests.persistence_worker FOLDER IDENTIFIER append|everything COUNT`
"""

from __future__ import annotations

import itertools
import random
import sys

from converser import Canister, ConversationStore, ImageContent, assistant, user

LARGE = "x" * 3_000


def make_batch(number: int) -> list[Canister]:
    """A turn, with content that is stored aside."""
    picture = ImageContent(data=number.to_bytes(4, "big") * 500, mimetype="image/png")
    return [user(f"{number}", picture), assistant(f"{number} {LARGE}")]


def append(store: ConversationStore, identifier: str, count: int) -> None:
    """Append batches, and print the identifiers of each once the append has returned."""
    conversation = store.open(identifier)
    for number in range(count):
        batch = make_batch(number)
        conversation.append(batch)
        print(*(canister.identifier for canister in batch), flush=True)


def do_everything(store: ConversationStore, identifier: str, count: int) -> None:
    """Append, undo, revise, fork and delete, in any order; print a line for each."""
    conversation = store.open(identifier)
    chance = random.Random(identifier)
    forks = [conversation.fork()]
    for number in itertools.islice(itertools.count(), count):
        chosen = chance.choice(forks)
        work = chance.choice(("append", "append", "undo", "revise", "fork", "delete"))
        if work == "append":
            chosen.append(make_batch(number))
        elif work == "undo":
            chosen.undo()
        elif work == "revise":
            chosen.revise(name=f"name {number}", tags=[work])
        elif work == "fork":
            forks.append(chosen.fork())
        elif len(forks) > 1:
            forks.remove(chosen)
            store.delete(chosen)
        print(work, flush=True)


if __name__ == "__main__":
    folder, identifier, what, count = sys.argv[1:]
    work = {"append": append, "everything": do_everything}[what]
    work(ConversationStore(folder), identifier, int(count))
