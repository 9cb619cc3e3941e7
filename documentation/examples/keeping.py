# SPDX-License-Identifier: Apache-2.0
"""Keep a conversation on disk, go on with it later, fork it, and write it as a page."""

from pathlib import Path

import anyio

import converser
from converser.testing import ScriptedModel

FOLDER = Path("conversations-of-mine")


async def begin(store: converser.ConversationStore) -> None:
    model = ScriptedModel(["Take the path to Vettakollen."])
    said = [converser.user("Where shall we hike?")]
    conversation = store.create(said, name="A hike", model=model.name)
    reply = await model.converse(said)
    conversation.append(reply)  # On the disk when this returns.


async def go_on(store: converser.ConversationStore) -> None:
    model = ScriptedModel(["Two hours."])
    conversation = store.open("A hike")
    question = converser.user("How long does it take?")
    conversation.append([question])
    conversation.append(await model.converse(conversation.resume()))


def look(store: converser.ConversationStore) -> None:
    for survey in store.list():
        print(f"{survey.title}: {survey.canisters} canisters")
    for finding in store.search("hours"):
        print(f"{finding.survey.title}, {finding.number}: {finding.excerpt}")


def change(store: converser.ConversationStore) -> None:
    conversation = store.open("A hike")
    fork = conversation.fork(2, name="Another hike")
    print("The fork has", [canister.text for canister in fork.load()])
    print("Undone:", [canister.text for canister in conversation.undo()])
    Path("hike.html").write_text(converser.export_conversation(fork, "html"), encoding="utf-8")
    store.delete(fork)


store = converser.ConversationStore(FOLDER)
anyio.run(begin, store)
anyio.run(go_on, store)
look(store)
change(store)
look(store)
