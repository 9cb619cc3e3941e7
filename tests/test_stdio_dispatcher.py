# SPDX-License-Identifier: Apache-2.0
"""No line of a server can upset the dispatcher: it answers a call, fails it, or is counted as a stray."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st
from mcp import MCPError

from converser.mcp.oversize.spills import USUAL_BOUNDS, Bounds, Spill
from converser.mcp.stdio.dispatcher import LeanDispatcher
from converser.mcp.stdio.framing import Framer
from converser.mcp.stdio.process import ServerProcess

ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(ATOMS, lambda i: st.lists(i) | st.dictionaries(st.text(), i), max_leaves=8)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.sampled_from([1, "1", "²", "٣", 1.5, True]) | JSON,
        "method": st.sampled_from(
            ["notifications/progress", "notifications/cancelled", "ping", "tools/list"]
        )
        | JSON,
        "params": st.fixed_dictionaries({}, optional={"progressToken": JSON, "requestId": JSON})
        | JSON,
        "result": JSON,
        "error": st.fixed_dictionaries({}, optional={"code": JSON, "message": JSON, "data": JSON})
        | JSON,
    },
)


class Recorder(ServerProcess):
    """A process that only remembers what it is told."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    @property
    def unsent(self) -> int:
        return 0

    def write(self, line: bytes) -> bool:
        self.lines.append(json.loads(line))
        return True


@given(st.lists(MESSAGES.map(lambda m: json.dumps(m).encode()) | st.binary(), max_size=5))
def test_no_line_upsets_the_dispatcher(lines: list[bytes]) -> None:
    async def serve() -> None:
        dispatcher = LeanDispatcher(lambda: None, lambda _, result: result, USUAL_BOUNDS)
        recorder = Recorder()
        dispatcher.attach(recorder)

        async def handle(*_: Any) -> dict[str, Any]:
            return {}

        async def hear(*_: Any) -> None: ...

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(dispatcher.run, handle, hear)
                call = asyncio.ensure_future(dispatcher.send_raw_request("tools/call", {}))
                await anyio.lowlevel.checkpoint()
                for line in lines:
                    dispatcher.take_line(line.replace(b"\n", b""))
                good = {"jsonrpc": "2.0", "id": recorder.lines[0]["id"], "result": {"good": True}}
                dispatcher.take_line(json.dumps(good).encode())
                assert await call == {"good": True}
                dispatcher.end()

    asyncio.run(serve())


@pytest.mark.parametrize(
    "broken", ['{"id": %d, "result": {', 'x {"id": "a", "x": {"id": %d}', "%d"]
)
def test_a_broken_line_fails_the_call_whose_id_it_names(broken: str) -> None:
    async def serve() -> None:
        dispatcher = LeanDispatcher(lambda: None, lambda _, result: result, USUAL_BOUNDS)
        recorder = Recorder()
        dispatcher.attach(recorder)
        call = asyncio.ensure_future(
            dispatcher.send_raw_request("tools/call", {}, {"timeout": 0.05})
        )
        await anyio.lowlevel.checkpoint()
        dispatcher.take_line((broken % recorder.lines[0]["id"]).encode())
        with anyio.fail_after(10), pytest.raises(MCPError) as caught:
            await call
        assert ("timed out" in str(caught.value)) == (broken == "%d")

    asyncio.run(serve())


@given(st.binary(), st.lists(st.integers(0, 50)), st.integers(1, 40))
def test_lines_are_the_same_however_they_are_cut(data: bytes, cuts: list[int], limit: int) -> None:
    data = data.replace(b"\0", b"\n")
    expected = [len(line) if len(line) > limit else line for line in data.split(b"\n")[:-1] if line]
    framer, places = Framer(Bounds(limit)), sorted(min(cut, len(data)) for cut in cuts)
    found: list[bytes | Spill] = []
    for begin, end in zip([0, *places], [*places, len(data)], strict=True):
        found += framer.feed(data[begin:end])
    framer.discard()
    assert [_measure(each) for each in found] == expected


def _measure(line: bytes | Spill) -> bytes | int:
    """A line as it is, or the length of one that went into a file, all of which must be there."""
    if isinstance(line, bytes):
        return line
    line.close()
    if line.path is not None:
        assert line.path.stat().st_size == line.size
    line.discard()
    return line.size


def test_an_oversized_line_that_nobody_waits_for_is_not_kept() -> None:
    async def serve() -> None:
        bounds = Bounds(1_000)
        dispatcher = LeanDispatcher(lambda: None, lambda _, result: result, bounds)
        [line] = Framer(bounds).feed(b"x" * 2_000 + b"\n")
        assert isinstance(line, Spill)
        path = line.path
        assert path is not None
        dispatcher.take_line(line)
        assert dispatcher.strays == 1
        assert not path.exists()

    asyncio.run(serve())
