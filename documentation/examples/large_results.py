# SPDX-License-Identifier: Apache-2.0
"""A result over the budget: the model gets head, tail and a handle, and reads on; history keeps it whole."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import converser
from converser.testing import ScriptedModel


def read_log() -> str:
    """Reads the log of the ferry."""
    return "\n".join(f"{hour:04} all quiet" for hour in range(5000)).replace("4321 all", "4321 not")


def look_closer(canisters: Sequence[converser.Canister]) -> list[tuple[str, dict[str, Any]]]:
    """What a model would do: it finds the handle in what it was shown, and searches there."""
    shown = canisters[-1]
    assert isinstance(shown, converser.ResultCanister)
    print(f"The model was shown {len(shown.text)} characters.")
    handle = re.findall(r'handle "(.+?)"', shown.text)[0]
    return [("read_result", {"handle": handle, "search": "not quiet", "length": 9})]


async def main() -> None:
    model = ScriptedModel([[("read_log", {})], look_closer, "There was something at 4321."])
    reply = await model.converse(
        [converser.user("Did anything happen?")],
        ensembles=[converser.create_local_ensemble("ferry", [read_log])],
        limits=converser.Limits(result_budget=1000),
    )
    whole, piece = [each for each in reply if isinstance(each, converser.ResultCanister)]
    print(f"History has {len(whole.text)} characters.")
    print(f"It read: {piece.text.splitlines()[-1]}")
    print(reply.text)


if __name__ == "__main__":
    asyncio.run(main())
