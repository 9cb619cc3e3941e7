# SPDX-License-Identifier: Apache-2.0
"""An answer as an object: asked for by its type, validated, and mended by the model where it misses the form."""

import asyncio
from dataclasses import dataclass
from datetime import date

import converser
from converser.testing import ScriptedModel


@dataclass
class Crossing:
    ferry: str
    day: date
    passengers: int


async def main() -> None:
    model = ScriptedModel(
        [
            "The ferry to Lofoten carries eleven people on the 3rd of May.",
            '{"ferry": "Lofoten", "day": "2027-05-03"}',
            '{"ferry": "Lofoten", "day": "2027-05-03", "passengers": 11}',
        ]
    )
    reply = await model.converse([converser.user("Which ferry is it?")], answer=Crossing)
    print(reply.answer)
    for canister in reply[2:]:
        if isinstance(canister, converser.UserCanister):
            print(f"The model was told: {canister.text.splitlines()[0]}")

    limits = converser.Limits(answer_repairs=0)
    stubborn = await ScriptedModel(["A big one."]).converse(
        [converser.user("Which ferry is it?")], answer=Crossing, limits=limits
    )
    print(f"{stubborn.reason}: {stubborn.text}")
    try:
        print(stubborn.answer)
    except converser.AnswerInvalidity as failure:
        print(failure.message)


if __name__ == "__main__":
    asyncio.run(main())
