# SPDX-License-Identifier: Apache-2.0
"""What is too large for memory is kept in files and can be read; nothing of a result is lost."""

from __future__ import annotations

import base64
import json
import mmap
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings, strategies as st

import converser
from converser import excesses
from converser.digests import Digest
from converser.invokers import NO_CONTEXT
from converser.mcp.oversize import reducer
from converser.mcp.oversize.events import shrink_events
from converser.mcp.oversize.parking import Parking
from converser.mcp.oversize.reducer import Irreducible, Reducer, Scanner
from converser.mcp.oversize.spills import Bounds
from converser.testing import ScriptedModel
from tests.servers import processes

JSON = dict[str, Any]
LIMIT = 65_536
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WIDE = st.text(st.sampled_from('ab\\"\n/\u00e9\u20ac\U0001f600'), min_size=100)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


def _reduce(message: Any, room: int, place: Path, *, ascii_only: bool = True) -> Any:
    path = place / "message"
    path.write_bytes(json.dumps(message, ensure_ascii=ascii_only).encode())
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reduced = Reducer(Scanner(data), place, room).reduce(0)
    return json.loads(reduced)


def _compose_text(text: str) -> JSON:
    return {"type": "text", "text": text}


def _compose_resource(text: str) -> JSON:
    return {"type": "resource", "resource": {"uri": "a:b", "text": text}}


def _compose_image(data: bytes) -> JSON:
    return {"type": "image", "mimeType": "a/b", "data": base64.b64encode(data).decode()}


BLOCKS = st.lists(
    (TEXT | WIDE).map(_compose_text)
    | WIDE.map(_compose_resource)
    | st.binary(min_size=60).map(_compose_image),
    max_size=6,
)


@settings(max_examples=200)
@given(BLOCKS, st.recursive(TEXT, lambda inner: st.dictionaries(TEXT, inner)), st.booleans())
def test_every_part_is_in_the_message_or_in_a_file(
    blocks: list[JSON], structured: Any, ascii_only: bool
) -> None:
    result = {"content": blocks, "structuredContent": structured, "isError": False}
    message = {"jsonrpc": "2.0", "id": 7, "result": result}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        reduced = _reduce(message, 600, place, ascii_only=ascii_only)
        assert reduced["id"] == 7
        found = _restore(reduced["result"].pop("content"), place)
    extra = [] if "structuredContent" in reduced["result"] else [structured]
    assert found == [*blocks, *extra]
    assert reduced["result"] == {"isError": False} | (
        {} if extra else {"structuredContent": structured}
    )


@settings(max_examples=300)
@given(
    st.text(st.sampled_from('a\\"u\n/d8\u00e9\u20ac\U0001f600')), st.booleans(), st.integers(4, 9)
)
def test_a_text_is_the_same_in_whatever_pieces_it_is_read(
    text: str, ascii_only: bool, piece: int
) -> None:
    """No piece ends within a character, an escape, or one half of a pair of escapes."""
    literal = json.dumps(text, ensure_ascii=ascii_only).encode()
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reducer, "_PIECES", reducer.compile_pieces(piece, piece - 3))
        file.write(literal)
        file.flush()
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        scanner = Scanner(data)
        assert scanner.find_end(0) == len(literal)
        assert "".join(scanner.iterate_text((0, len(literal)))) == text


def _restore(content: list[Any], place: Path) -> list[Any]:
    """The blocks of a result before it was reduced, and what else was taken out of it."""
    found: list[Any] = []
    for block in content:
        if block["type"] != "resource_link":
            found.append(block)
            continue
        data = (place / block["name"]).read_bytes()
        assert len(data) == block["size"]
        if block["mimeType"] == "application/json":
            value = json.loads(data)
            found.extend(value if "further" in block["description"] else [value])
        elif block["mimeType"] == "a/b":
            found.append(_compose_image(data))
        else:
            head = found[-1].get("resource", found[-1])
            assert data.startswith(head["text"].encode())
            head["text"] = data.decode()
    return found


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"[",
        b"{",
        b'{"id": 1, "result": {"content": [}',
        b'{"id": 1, "result": {"tools": []}}',
        b'{"id": 1, "method": "x"}',
        b'{"id": 1, "result": {"content": "x" "y"}}',
        b'{"id": 1, "result": {"content": [], "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}",
    ],
)
def test_what_is_no_result_is_left_alone(message: bytes, folder: Path) -> None:
    path = folder / "message"
    path.write_bytes(message or b" ")
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with pytest.raises(Irreducible):
        Reducer(Scanner(data), folder, 1_000).reduce(0)
    assert [each.name for each in folder.iterdir()] == ["message"]


@pytest.mark.anyio
@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.text("ab\n", max_size=5), st.sampled_from(["\n\n", "\r\n\r\n", "\r\r"]))),
    st.lists(st.integers(0, 40)),
)
async def test_events_are_the_same_however_they_are_cut(
    events: list[tuple[str, str]], cuts: list[int]
) -> None:
    data = "".join(f"data: {text}{end}" for text, end in events).encode()
    places = sorted(min(cut, len(data)) for cut in cuts)

    async def iterate() -> AsyncGenerator[bytes, None]:
        for begin, end in zip([0, *places], [*places, len(data)], strict=True):
            yield data[begin:end]

    assert b"".join([piece async for piece in shrink_events(iterate(), Parking())]) == data


@pytest.mark.anyio
async def test_an_event_over_the_limit_becomes_a_small_one() -> None:
    result = {"content": [{"type": "text", "text": "x" * 500_000}]}
    message = json.dumps({"jsonrpc": "2.0", "id": 3, "result": result}).encode()
    data = b"id: 12\ndata: " + message + b"\n\nid: 13\ndata: {}\n\n"

    async def iterate() -> AsyncGenerator[bytes, None]:
        for place in range(0, len(data), 50_000):
            yield data[place : place + 50_000]

    with anyio.fail_after(60):
        pieces = [piece async for piece in shrink_events(iterate(), Parking(Bounds(LIMIT)))]
    [large, small] = [piece for piece in pieces if piece]
    assert small == b"id: 13\ndata: {}\n\n"
    assert large.startswith(b"id: 12\ndata: ")
    assert len(large) < LIMIT
    [head, link] = json.loads(large.partition(b"data: ")[2])["result"]["content"]
    assert head["text"].startswith("xxx")
    assert link["size"] == 500_000


def _open(**options: Any) -> Any:
    client = converser.StdioMCPClient(processes.raw_command("large"), **options)
    return converser.discover_mcp_tools(client, "large")


def _find_links(result: converser.InvocationResult) -> list[converser.LinkContent]:
    return [part for part in result.contents if isinstance(part, converser.LinkContent)]


@pytest.mark.anyio
async def test_a_text_over_the_limit_is_whole_in_a_file() -> None:
    with anyio.fail_after(60):
        async with await _open(result_limit=LIMIT) as ensemble:
            result = await ensemble.access_invoker("good")({"size": 400_000})
    assert result.text.startswith("small\nthe beginning \u20ac and so on")
    [link] = _find_links(result)
    excess = converser.access_excess(link)
    assert excess is not None
    assert link.uri == excess.path.as_uri()
    assert excess.path.read_text("utf-8") == (
        "the beginning" + " \u20ac and so on" * (400_000 // 16) + " the very end"
    )
    assert stat.S_IMODE(excess.path.parent.stat().st_mode) == 0o700


@pytest.mark.anyio
async def test_a_text_within_the_limit_is_no_file() -> None:
    with anyio.fail_after(60):
        async with await _open() as ensemble:
            result = await ensemble.access_invoker("good")({"size": 1_000_000})
    assert result.text.endswith("the very end")
    assert not _find_links(result)


@pytest.mark.anyio
async def test_too_many_values_are_whole_in_a_file() -> None:
    with anyio.fail_after(60):
        async with await _open() as ensemble:
            result = await ensemble.access_invoker("also_good")({"size": 600_000})
    [link] = _find_links(result)
    excess = converser.access_excess(link)
    assert result.structured is None
    assert excess is not None
    assert json.loads(excess.path.read_bytes()) == {"numbers": list(range(600_000))}
    [remark] = result.remarks
    assert "too large" in remark


@pytest.mark.anyio
async def test_many_values_within_the_limit_are_interpreted_and_checked() -> None:
    with anyio.fail_after(60):
        async with await _open() as ensemble:
            result = await ensemble.access_invoker("also_good")({"size": 100_000})
    assert result.structured == {"numbers": list(range(100_000))}
    assert result.remarks == ()


@pytest.mark.anyio
async def test_what_is_over_every_limit_is_kept_from_its_beginning() -> None:
    """And the call fails with an unknown outcome, since the tool has done its work."""
    with anyio.fail_after(60):
        async with await _open(result_limit=LIMIT) as ensemble:
            with pytest.raises(converser.ToolExecutionFailure) as caught:
                await ensemble.access_invoker("good")({"size": 17 * LIMIT})
            again = await ensemble.access_invoker("good")()
    assert again.text.startswith("small")
    assert caught.value.outcome is converser.Outcome.UNKNOWN
    [handle] = excesses.HANDLE.findall(str(caught.value))[:1]
    excess = excesses.STORE.find(handle)
    assert excess is not None
    assert str(excess.path) in str(caught.value)
    assert excess.size == 16 * LIMIT
    assert "the beginning" in excess.read(0, 1_000)[0]


@pytest.mark.anyio
async def test_where_nothing_can_be_stored_the_call_fails_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(excesses.STORE, "reserve", refuse)
    with anyio.fail_after(60):
        async with await _open(result_limit=LIMIT) as ensemble:
            with pytest.raises(converser.ToolExecutionFailure, match="No space left") as caught:
                await ensemble.access_invoker("good")({"size": 400_000})
            again = await ensemble.access_invoker("good")()
    assert caught.value.outcome is converser.Outcome.UNKNOWN
    assert again.text.startswith("small")


@pytest.mark.anyio
async def test_an_answer_counts_that_came_before_the_server_ended() -> None:
    """It is being made small when the end of the process is heard of."""
    script = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if 'id' not in m: continue\n"
        "    about = {'name': 'x', 'version': '1'}\n"
        "    results = {'initialize': {'protocolVersion': '2025-06-18', 'serverInfo': about,\n"
        "        'capabilities': {'tools': {}}}, 'tools/list': {'tools': [{'name': 'last',\n"
        "        'inputSchema': {'type': 'object'}}]}, 'tools/call': {'content': [{'type': 'text',\n"
        "        'text': 'x' * 600_000}]}}\n"
        "    answer = {'result': results[m['method']]} if m['method'] in results else \\\n"
        "        {'error': {'code': -32601, 'message': 'unknown'}}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], **answer}), flush=True)\n"
        "    if m['method'] == 'tools/call': sys.exit()\n"
    )
    client = converser.StdioMCPClient(
        [sys.executable, "-c", script], result_limit=LIMIT, reconnect_attempts=0
    )
    with anyio.fail_after(60):
        async with await converser.discover_mcp_tools(client, "brief") as ensemble:
            result = await ensemble.access_invoker("last")()
    [link] = _find_links(result)
    assert link.size == 600_000


@pytest.mark.anyio
async def test_a_model_reads_what_was_too_large_for_memory() -> None:
    with anyio.fail_after(60):
        async with await _open(result_limit=LIMIT) as ensemble:
            model = ScriptedModel([[("good", {"size": 400_000})], _read_the_end, "done"])
            reply = await model.converse([converser.user("go")], ensembles=[ensemble])
    results = [each for each in reply if isinstance(each, converser.ResultCanister)]
    assert "the very end" in results[-1].text
    assert results[-1].outcome is converser.Outcome.SUCCESS


def _read_the_end(canisters: Sequence[converser.Canister]) -> list[tuple[str, dict[str, Any]]]:
    shown = canisters[-1]
    assert isinstance(shown, converser.ResultCanister)
    [handle] = re.findall(r'read_result with the handle "(excess-.+?)"', shown.text)
    return [("read_result", {"handle": handle, "search": "THE VERY END"})]


def test_the_oldest_go_when_there_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excesses, "STORE_MAX", 250)
    store = excesses.ExcessStore()
    kept: list[excesses.Excess] = []
    for _ in range(3):
        path = store.reserve()
        path.write_bytes(b"x" * 100)
        kept.append(store.keep(path, "text/plain"))
    assert [store.find(each.handle) is not None for each in kept] == [False, True, True]
    assert [each.path.exists() for each in kept] == [False, True, True]
    place = kept[0].path.parent
    store.close()
    assert not place.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there, the system sweeps")
def test_what_a_killed_process_left_is_swept(folder: Path) -> None:
    script = (
        "import sys, time; from converser.excesses import STORE\n"
        "path = STORE.reserve(); path.write_text('x'); print(path, flush=True)\n"
        "sys.stdin.read()"
    )
    environment = {**os.environ, "TMPDIR": str(folder)}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", script],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    with start() as killed, start() as alive:
        assert killed.stdout is not None
        assert alive.stdout is not None
        left, kept = Path(killed.stdout.readline().strip()), Path(alive.stdout.readline().strip())
        assert left.exists()
        killed.send_signal(signal.SIGKILL)
        killed.wait(10)
        with start() as next_one:
            assert next_one.stdout is not None
            next_one.stdout.readline()
            assert not left.exists()
            assert kept.exists()
            next_one.communicate("", 10)
        alive.communicate("", 10)
    assert not kept.exists()
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_process_leaves_alone_what_is_not_its_own(folder: Path) -> None:
    script = (
        "import os, sys; from converser.excesses import STORE\n"
        "kept = [STORE.reserve()]; kept[0].write_text('x')\n"
        "if not (child := os.fork()):\n"
        "    STORE.reserve().write_text('y'); sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "print([path.exists() for path in kept], len(os.listdir(sys.argv[1])))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == ("[True] 1\n", "")
    assert list(folder.iterdir()) == []


@pytest.mark.anyio
@pytest.mark.parametrize("length", [1, 3, 5, None])
async def test_text_of_any_language_is_read_whole_whatever_the_offsets_and_lengths(
    length: int | None,
) -> None:
    words = "aé漢😀\n" * 30
    path = excesses.STORE.reserve()
    path.write_text(words, encoding="utf-8", newline="")
    excess = excesses.STORE.keep(path, "text/plain")
    view = Digest(budget=None, vision=True, reader="read_result")

    async def read(**arguments: Any) -> tuple[str, str | None]:
        given = {"handle": excess.handle, **arguments}
        head, _, piece = (await view.read(NO_CONTEXT, given)).text.partition("\n")
        going_on = re.search(r"goes on at offset (\d+)", head)
        return piece, going_on and going_on[1]

    limits = {} if length is None else {"length": length}
    pieces: list[str] = []
    offset: str | None = "0"
    while offset is not None:
        piece, following = await read(offset=int(offset), **limits)
        pieces.append(piece)
        assert following is None or int(following) > int(offset)
        offset = following
    assert "".join(pieces) == words
    assert await read(offset=len(words.encode()) - 2) == ("\n", None)
    assert (await read(offset=4, search="😀"))[0].startswith("😀")
