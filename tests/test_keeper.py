# SPDX-License-Identifier: Apache-2.0
"""The keeper of a server's process, by itself: whoever ends, the whole tree ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from converser.mcp.stdio import keeper
from tests.places import Marked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there, the SDK keeps processes")
PATIENCE = 20.0
# Imported, and not run as the script that it is, so that coverage can see it.
KEEPER = (sys.executable, "-c", f"import sys; from {keeper.__name__} import main; sys.exit(main())")
TREE = """
import os, signal, sys, time
if {stubborn}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
pids = [os.getpid()]
reading, writing = os.pipe()
if (child := os.fork()) == 0:
    os.setsid()
    if (grandchild := os.fork()) == 0:
        os.write(writing, b"x")
        time.sleep(600)
    os.write(writing, str(grandchild).encode())
    os._exit(0)
os.waitpid(child, 0)
grandchild = os.read(reading, 50).replace(b"x", b"").decode()
print(os.getpid(), grandchild, flush=True)
{then}
"""


@contextmanager
def kept(then: str, *, stubborn: bool = False) -> Generator[tuple[subprocess.Popen[str], int]]:
    """A keeper, and the end of its lifeline that we hold."""
    reading, lifeline = os.pipe()
    script = TREE.format(then=then, stubborn=stubborn)
    command = [*KEEPER, str(reading), sys.executable, "-c", script]
    with subprocess.Popen(
        command, pass_fds=(reading,), stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as process:
        os.close(reading)
        try:
            yield process, lifeline
        finally:
            process.kill()


def read_pids(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(pid) for pid in process.stdout.readline().split()]


def read_soon(stream: int) -> bytes:
    assert select.select([stream], [], [], PATIENCE)[0], "nothing came, nor the end"
    return os.read(stream, 1_000)


def wait_until_gone(pids: list[int]) -> None:
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "some of the tree is still there"
        time.sleep(0.02)


@pytest.mark.parametrize("stubborn", [False, True])
def test_the_tree_ends_with_us(stubborn: bool) -> None:
    with kept("time.sleep(600)", stubborn=stubborn) as (process, lifeline):
        pids = read_pids(process)
        assert len(pids) == 2
        os.close(lifeline)
        assert process.wait(PATIENCE) == 143
        wait_until_gone(pids)


@pytest.mark.parametrize(
    ("end", "code"),
    [("sys.exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", 137), ("sys.exit(0)", 0)],
)
def test_the_tree_ends_with_the_server_whose_code_is_told(end: str, code: int) -> None:
    with kept(end) as (process, lifeline):
        pids = read_pids(process)
        assert process.wait(PATIENCE) == code
        wait_until_gone(pids)
        os.close(lifeline)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_tree_ends_at_a_signal(number: signal.Signals) -> None:
    with kept("time.sleep(600)") as (process, lifeline):
        pids = read_pids(process)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 143
        wait_until_gone(pids)
        os.close(lifeline)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of such an end")
@pytest.mark.parametrize("stopped", [False, True])
def test_the_server_ends_even_with_a_keeper_that_is_killed(stopped: bool) -> None:
    with kept("time.sleep(600)", stubborn=True) as (process, lifeline):
        server, grandchild = read_pids(process)
        if stopped:
            process.send_signal(signal.SIGSTOP)
        process.kill()
        wait_until_gone([server])
        assert process.wait(PATIENCE) == -signal.SIGKILL
        os.kill(grandchild, signal.SIGKILL)
        os.close(lifeline)


def test_a_program_that_is_not_there_is_told() -> None:
    reading, lifeline = os.pipe()
    ended = subprocess.run(
        [*KEEPER, str(reading), "/no/such/program"],
        pass_fds=(reading,),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    os.close(reading)
    os.close(lifeline)
    assert ended.returncode == 127
    assert "No such file" in ended.stderr


def test_a_stream_that_the_server_closes_has_ended_though_the_keeper_was_handed_a_copy() -> None:
    """As uvloop does it; the server, too, gets nothing but its streams."""
    reading, lifeline = os.pipe()
    output, copy = os.pipe()
    script = "import os, time; os.write(1, str(sorted(os.listdir('/dev/fd'))).encode()); os.close(1); time.sleep(600)"
    command = [*KEEPER, str(reading), sys.executable, "-c", script]
    with subprocess.Popen(command, pass_fds=(reading, copy), stdout=copy) as process:
        os.close(reading)
        os.close(copy)
        try:
            said = [read_soon(output) for _ in range(2)]
            assert process.poll() is None
        finally:
            os.close(output)
            os.close(lifeline)
        assert process.wait(PATIENCE) == 143
    assert said == [b"['0', '1', '2', '3']", b""]  # the last one is the listing itself


HOST = """
import asyncio, converser, json, os, sys, time
async def main():
    command, notes = json.loads(sys.stdin.readline())
    client = converser.StdioMCPClient(command, {"FAULT_NOTES": notes})
    async with await converser.discover_mcp_tools(client, "kept") as ensemble:
        await ensemble.access_invoker("trouble")()
        if (fork := os.fork()) == 0:
            time.sleep(600)
        print(fork, flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such daemons cannot be found")
@pytest.mark.parametrize("killed", [False, True])
def test_the_tree_ends_though_a_fork_of_ours_lives_on(killed: bool, tmp_path: Path) -> None:
    """Such as a worker of `multiprocessing`, which has inherited all that we hold open."""
    folder = Path(__file__).parent / "faults" / "overstdio"
    marked = Marked([sys.executable, str(folder), "SetsidGrandchildren"])
    with subprocess.Popen(
        [sys.executable, "-c", HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdin is not None
        print(json.dumps([marked.command, str(tmp_path / "notes")]), file=host.stdin, flush=True)
        (fork,) = read_pids(host)
        try:
            assert len(marked.find_processes()) > 3
            if killed:
                host.kill()
            else:
                print(file=host.stdin, flush=True)
            host.wait(PATIENCE)
            wait_until(lambda: not marked.find_processes())
        finally:
            os.kill(fork, signal.SIGKILL)
