# SPDX-License-Identifier: Apache-2.0
"""A thousand tools: the model is sent a search and what is pinned, and gets the tools that it finds."""

import asyncio

import converser
from converser.testing import ScriptedModel

METALS = ("iron", "copper", "zinc", "silver", "tin")


async def weigh(
    context: converser.Context, arguments: dict[str, object]
) -> converser.InvocationResult:
    return converser.InvocationResult(contents=(converser.TextualContent(text="12 kg"),))


async def main() -> None:
    tools = [
        (
            converser.Tool(
                name=f"weigh_{metal}_in_hall_{hall}",
                description=f"Weighs the {metal} that is stored in hall {hall}.",
            ),
            weigh,
        )
        for metal in METALS
        for hall in range(200)
    ]
    configuration = converser.EnsembleConfiguration(pinned=("weigh_tin_in_hall_0",))
    stores = converser.Ensemble("stores", tools=tools, configuration=configuration)
    print(f"All definitions take about {sum(stores.cost().values())} tokens.")
    model = ScriptedModel(
        [
            [("search_tools", {"query": "silver hall 42", "limit": 1})],
            [("weigh_silver_in_hall_42", {})],
            "There are 12 kg.",
        ]
    )
    reply = await model.converse(
        [converser.user("How much silver is in hall 42?")],
        ensembles=[stores],
        limits=converser.Limits(tools_budget=10_000),
    )
    for number, request in enumerate(model.requests, 1):
        print(f"Turn {number}: {', '.join(request.invokers)}")
    print(reply.text)


if __name__ == "__main__":
    asyncio.run(main())
