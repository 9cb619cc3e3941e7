# SPDX-License-Identifier: Apache-2.0
"""What tests of conversations share: small tools, a provider that says what it is given, and what is valid."""

from __future__ import annotations

import anyio

from converser.canisters import (
    AssistantCanister,
    InvocationCanister,
    ResultCanister,
    assistant,
    user,
)
from converser.contents import TextualContent
from converser.ensembles import Ensemble, EnsembleConfiguration
from converser.events import (
    TextDelta,
)
from converser.invokers import InvocationResult, Tool
from converser.turns import TurnCompleted

INTEGER_SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}


def make_ensemble(name="local", configuration=None, **invocables):
    """An ensemble of async functions that take the arguments and return text."""

    def wrap(function):
        async def invoke(_, arguments):
            return InvocationResult(contents=(TextualContent(text=await function(arguments)),))

        return invoke

    return Ensemble(
        name,
        tools=[(Tool(name=key), wrap(function)) for key, function in invocables.items()],
        configuration=configuration or EnsembleConfiguration(),
    )


async def echo(arguments):
    return str(arguments.get("text", ""))


async def hang(_):
    await anyio.sleep_forever()
    return ""


async def converse(model, canisters=(), **options):
    with anyio.fail_after(10):
        return await model.converse(canisters or [user("Hello")], **options)


def results_of(canisters):
    return [canister for canister in canisters if isinstance(canister, ResultCanister)]


def assert_valid(canisters):
    """Each invocation is followed by exactly one result, and each result has its invocation."""
    invocations = [c.identifier for c in canisters if isinstance(c, InvocationCanister)]
    results = [result.invocation_identifier for result in results_of(canisters)]
    assert invocations == results
    assert len(set(invocations)) == len(invocations)


class SpokenProvider:
    """A provider whose turns are lists of what it yields; the last turn is said for ever."""

    name = "spoken"

    def __init__(self, *turns):
        self.turns = list(turns)
        self.requests = []
        self.closed = False

    async def stream_turn(self, request):
        self.requests.append(request)
        items = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        for item in items:
            if isinstance(item, BaseException):
                raise item
            yield item

    async def close(self):
        self.closed = True


def calling(*calls, stop_reason="tool-use"):
    return [TurnCompleted(canister=AssistantCanister(stop_reason=stop_reason), calls=calls)]


def saying(text, stop_reason="stop"):
    canister = AssistantCanister(contents=assistant(text).contents, stop_reason=stop_reason)
    return [TextDelta(text=text), TurnCompleted(canister=canister)]
