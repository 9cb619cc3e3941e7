# SPDX-License-Identifier: Apache-2.0
"""A conversation that is cancelled in the middle of a call keeps what was completed, and goes on."""

import asyncio

import converser
from converser.testing import ScriptedModel

calls = asyncio.Queue[str]()


async def count_ferries() -> str:
    """Counts the ferries in the harbour."""
    return "11 ferries"


async def count_gulls() -> str:
    """Counts the gulls, which takes for ever."""
    await calls.put("count_gulls")
    await asyncio.sleep(3600)
    return "too many"


async def main() -> None:
    harbour = converser.create_local_ensemble("harbour", [count_ferries, count_gulls])
    model = ScriptedModel(
        [
            [("count_ferries", {})],
            [("count_gulls", {})],
            "There are 11 ferries; of gulls, who knows.",
        ]
    )
    # Given a transcript in place of a list, `converse` extends it as it goes.
    transcript = converser.Transcript([converser.user("Count all in the harbour.")])
    task = asyncio.create_task(model.converse(transcript, ensembles=[harbour]))
    await calls.get()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")
    for canister in transcript:
        match canister:
            case converser.InvocationCanister():
                print(f"{canister.name}:")
            case converser.ResultCanister():
                print(f"  {canister.outcome}: {canister.error or canister.text}")
            case _:
                pass

    # Every invocation has its result, so any model can go on from here.
    transcript.append(converser.user("Never mind the gulls."))
    reply = await model.converse(transcript, ensembles=[harbour])
    print(reply.text)


if __name__ == "__main__":
    asyncio.run(main())
