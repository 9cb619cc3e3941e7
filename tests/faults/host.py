# SPDX-License-Identifier: Apache-2.0
"""A host to be killed: `python -m tests.faults.host FAULT MARK NOTES [bare]` connects, says so, and waits."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.faults.catalogue import find_fault
from tests.faults.scene import Scene


async def _host_ours(scene: Scene) -> None:
    import converser
    from tests.faults.ours import create_client

    ensemble = await converser.discover_mcp_tools(create_client(scene), "faulty")
    await ensemble.access_invoker("trouble")()
    print("ready", flush=True)
    await asyncio.Event().wait()


async def _host_bare(scene: Scene) -> None:
    from tests.faults.bare import create_client

    async with create_client(scene) as client:
        await client.call_tool("trouble", {})
        print("ready", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Runs until it is killed."""
    name, mark, notes, *side = sys.argv[1:]
    scene = Scene(fault=find_fault(name), mark=mark, notes=Path(notes))
    asyncio.run(_host_bare(scene) if side else _host_ours(scene))


if __name__ == "__main__":
    main()
