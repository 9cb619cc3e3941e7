# SPDX-License-Identifier: Apache-2.0
"""A model outlives an event loop, and a portal: each of them gets connections of its own."""

from __future__ import annotations

import asyncio
import gc
import threading
from dataclasses import replace

import pytest

from converser.blocking import open_portal
from converser.canisters import user
from converser.providers.clients import Clients
from tests.conversations import converse
from tests.providers.scenes import WIRES, Stage


@pytest.fixture(params=WIRES.values(), ids=WIRES)
def stage(request):
    """A service whose connections stay open, as those of real ones do."""
    with Stage(request.param) as stage:
        for text in ("One.", "Two.", "Three."):
            stage.will_answer(text)
        stage.answers = [replace(answer, lasts=True) for answer in stage.answers]
        yield stage


def ask_in_three_loops(stage):
    model = stage.wire.access(stage, retries=0)
    texts = [asyncio.run(converse(model)).text for _ in range(2)]

    async def end():
        async with model:
            return await converse(model)

    return [*texts, asyncio.run(end()).text]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_model_can_be_used_in_one_loop_after_another(stage):
    assert ask_in_three_loops(stage) == ["One.", "Two.", "Three."]
    gc.collect()  # A loop that ends with connections open is warned of, here and now.


def test_loops_of_other_threads_come_while_those_that_ended_are_sought():
    async def close(_): ...

    clients = Clients(object, close)
    others = [threading.Thread(target=lambda: asyncio.run(clients.get())) for _ in range(2)]

    class Loop(asyncio.SelectorEventLoop):
        def is_closed(self):
            """Lets a loop of another thread come at the worst of times."""
            if others:
                other = others.pop()
                other.start()
                other.join(10)
            return super().is_closed()

    loop = Loop()
    try:
        first = loop.run_until_complete(clients.get())
        assert asyncio.run(clients.get()) is not first
        asyncio.run(clients.close())
    finally:
        loop.close()
    assert others == []


def test_a_model_that_was_closed_with_a_portal_can_be_used_again(stage):
    model = stage.wire.access(stage, retries=0)
    texts = []
    for _ in range(3):
        with open_portal() as portal:
            texts.append(portal.converse(model, [user("Go")]).text)
    assert texts == ["One.", "Two.", "Three."]
