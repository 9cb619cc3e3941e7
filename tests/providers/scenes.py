# SPDX-License-Identifier: Apache-2.0
"""What the tests of all providers share: the wires, and tools that note how they were called."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from converser.canisters import user
from converser.contents import ImageContent, TextualContent
from converser.ensembles import Ensemble
from converser.invokers import InvocationResult, Tool
from tests.conversations import converse
from tests.providers.google_wire import GoogleWire
from tests.providers.openai_wires import ChatWire, ResponsesWire
from tests.providers.service import Answer, Service
from tests.providers.wires import AnthropicWire

WIRES = {wire.name: wire for wire in (AnthropicWire(), ResponsesWire(), ChatWire(), GoogleWire())}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
"""A schema that strict modes take as it is."""
OSLO = ("call_1", "time", {"city": "Oslo"})
ROME = ("call_2", "time", {"city": "Rome"})
PICTURE = b"\x89PNG picture"


def demand(wire):
    """Skips the test where the SDK of the wire is not installed."""
    if find_spec(wire.package.partition(".")[0]) is None:
        pytest.skip(f"needs the package {wire.package!r}")
    return wire


def make_clock():
    """An ensemble, and the cities that it was asked for."""
    calls = []

    async def tell(_, arguments):
        calls.append(arguments["city"])
        return InvocationResult(contents=(TextualContent(text=f"12:00 in {arguments['city']}"),))

    async def photograph(_, __):
        return InvocationResult(
            contents=(
                TextualContent(text="The tower:"),
                ImageContent(data=PICTURE, mimetype="image/png"),
            )
        )

    time = Tool(name="time", description="Tells the time.", arguments_schema=SCHEMA)
    photo = Tool(name="photo", description="Takes a photograph.")
    ensemble = Ensemble("clock", tools=[(time, tell), (photo, photograph)])
    return ensemble, calls


def make_tools(**schemas):
    """An ensemble of tools that do nothing."""

    async def run(*_):
        return InvocationResult()

    tools = [Tool(name=name, arguments_schema=schema) for name, schema in schemas.items()]
    return Ensemble("tools", tools=[(tool, run) for tool in tools])


class Stage(Service):
    """A service that speaks one wire, and can be asked over it."""

    def __init__(self, wire, *models):
        self.wire = demand(wire)
        super().__init__(wire.listing(*(models or ("model-1",))))

    def will_answer(self, *args, **options):
        """Lets it give one whole answer."""
        before, after = self.wire.answer(*args, **options)
        self.will_stream(*before, *after)

    def will_refuse(self, flaw, status, message, text):
        """Lets it refuse each request that has this flaw, and answer the others, at once or in any order."""
        before, after = self.wire.answer(text)
        refusal = json.dumps(self.wire.error(status, message)).encode()
        self.decide = lambda body: (
            Answer(refusal, status=status, kind="application/json")
            if flaw(body)
            else Answer(b"".join((*before, *after)))
        )

    async def ask(self, canisters=(), model="model-1", **options):
        """One conversation with a model of it."""
        async with self.wire.access(self, model=model) as accessed:
            return await converse(accessed, canisters or [user("Go")], **options)
