# SPDX-License-Identifier: Apache-2.0
"""Calls of one turn run at the same time; those of tools that ask for it, one by one in the model's order."""

import asyncio

import converser
from converser.testing import ScriptedModel

BOOKS = [100]


@converser.tool(sequential=True)
async def book(amount: int) -> str:
    """Books an amount; two of these at once would lose one."""
    before = BOOKS[-1]
    await asyncio.sleep(0.01)
    BOOKS.append(before + amount)
    return f"{amount:+} makes {BOOKS[-1]}"


async def main() -> None:
    calls = [("book", {"amount": amount}) for amount in (20, -50, 7)]
    reply = await ScriptedModel([calls, "All booked."]).converse(
        [converser.user("Book these.")],
        ensembles=[converser.create_local_ensemble("till", [book])],
    )
    for canister in reply:
        if isinstance(canister, converser.ResultCanister):
            print(canister.text)


if __name__ == "__main__":
    asyncio.run(main())
