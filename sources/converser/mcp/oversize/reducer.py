# SPDX-License-Identifier: Apache-2.0
"""Makes a message small enough for memory: what is large in its result becomes links to files.

Runs as `python -I -S reducer.py MESSAGE FOLDER ROOM`, and imports nothing of ours. It never holds more than
a piece of the message, whatever is in it. It prints the files that it made, and then the message.
"""

from __future__ import annotations

import base64
import binascii
import json
import mmap
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_HEAD = 256 * 1024
_SMALL = 64 * 1024
_TINY = 100
_BLOCKS_MAX = 1_000
_DEPTH_MAX = 1_000
_PIECE = 1024 * 1024
_SPACE = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^\s,\]}:]+")
# Repetitions are bounded, as the memory that they take then is.
_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,1000}', re.DOTALL)
_LEAF = rb'[\[{][^"\[\]{}]*(?:"[^"\\]*"[^"\[\]{}]*){0,64}[\]}]'
_STRUCTURE = re.compile(
    rb'(?:%b[^"\[\]{}]*){1,256}|"[^"\\]*(?:\\.[^"\\]*){0,100}"|["\[\]{}]' % _LEAF, re.DOTALL
)
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"


def compile_pieces(length: int, count: int) -> re.Pattern[bytes]:
    """Finds up to so many escapes and stretches of so many bytes; two escapes may be one character."""
    parts = (rb"[^\\]{1,%d}" % length, _HIGH + _LOW, rb"\\u[0-9a-fA-F]{4}", rb"\\[^u]")
    return re.compile(rb"(?:%b){1,%d}" % (b"|".join(parts), count))


_PIECES = compile_pieces(4_096, 256)
_DATA_LINE = re.compile(rb"(?:\A|\r\n|\n|\r)data:? ?")

Span = tuple[int, int]


class Irreducible(Exception):
    """Nothing in the message can be taken out of it."""


class Scanner:
    """Finds where values begin and end, without decoding them."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self._ends: dict[int, int] = {}

    def skip_space(self, place: int) -> int:
        match = _SPACE.match(self.data, place)
        return match.end() if match else place

    def find_end(self, place: int) -> int:
        """The place behind the value that begins here."""
        first = self.data[place : place + 1]
        if first == b'"':
            return self._end_string(place)
        if first in (b"{", b"["):
            return self._end_container(place)
        if (match := _SCALAR.match(self.data, place)) is None:
            raise Irreducible("it is not valid JSON")
        return match.end()

    def _end_string(self, start: int) -> int:
        if (known := self._ends.get(start)) is not None:
            return known
        place = start + 1
        while (match := _STRING.match(self.data, place)) and match.end() > place:
            place = match.end()
        if self.data[place : place + 1] != b'"':
            raise Irreducible("it is not valid JSON")
        if place - start > _SMALL:
            self._ends[start] = place + 1
        return place + 1

    def _end_container(self, start: int) -> int:
        if (known := self._ends.get(start)) is not None:
            return known
        open_ones, place = [start], start + 1
        while open_ones:
            for match in _STRUCTURE.finditer(self.data, place):
                if match.end() - match.start() > 1:
                    continue  # a text, or containers that hold no others
                token = match[0]
                if token == b'"':  # a text with many escapes in it
                    place = self._end_string(match.start())
                    break
                if token in b"{[":
                    open_ones.append(match.start())
                    if len(open_ones) > _DEPTH_MAX:
                        raise Irreducible("it is nested too deeply")
                elif self._close(open_ones.pop(), match.end()) == start:
                    return match.end()
            else:
                break
        raise Irreducible("it is not valid JSON")

    def _close(self, start: int, end: int) -> int:
        if end - start > _SMALL:
            self._ends[start] = end  # this was work
        return start

    def iterate(self, place: int) -> Iterator[Span]:
        """The values of an array, or the keys and values of an object in turn."""
        place = self.skip_space(place + 1)
        while self.data[place : place + 1] not in (b"]", b"}", b""):
            end = self.find_end(place)
            yield place, end
            place = self.skip_space(end)
            if self.data[place : place + 1] in (b",", b":"):
                place = self.skip_space(place + 1)

    def read_object(self, span: Span) -> dict[str, Span]:
        """The values of an object by their keys."""
        if self.data[span[0] : span[0] + 1] != b"{":
            raise Irreducible("it is not a result")
        found: dict[str, Span] = {}
        parts = self.iterate(span[0])
        for start, end in parts:
            if end - start > _SMALL or (value := next(parts, None)) is None:
                raise Irreducible("it is not valid JSON")
            found[str(self.load((start, end)))] = value
            if len(found) > _BLOCKS_MAX:
                raise Irreducible("it has too many keys")
        return found

    def load(self, span: Span) -> object:
        """A small value."""
        try:
            return json.loads(self.data[span[0] : span[1]].decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise Irreducible("it is not valid JSON") from None

    def load_text(self, span: Span | None) -> str:
        """A small text, or an empty one."""
        if span is None or span[1] - span[0] > _SMALL:
            return ""
        value = self.load(span)
        return value if isinstance(value, str) else ""

    def iterate_text(self, span: Span) -> Iterator[str]:
        """A large text, piece by piece, without its escapes; none of these is halved, nor a character."""
        place, end = span[0] + 1, span[1] - 1
        while place < end:
            if (match := _PIECES.match(self.data, place, end)) is None:
                raise Irreducible("it is not valid JSON")
            cut = match.end()
            while cut < end and cut > place + 1 and self.data[cut] & 0xC0 == 0x80:
                cut -= 1
            piece = self.data[place:cut].decode("utf-8", "replace")
            try:
                text: str = json.loads(f'"{piece}"', strict=False)
            except ValueError:
                raise Irreducible("it is not valid JSON") from None
            yield text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            place = cut


class Reducer:
    """Rewrites one message; large parts go into files in a folder."""

    def __init__(self, scanner: Scanner, folder: Path, room: int) -> None:
        self._scanner = scanner
        self._folder = folder
        self._room = room
        self._head = min(_HEAD, room // 4)
        self.files: list[tuple[str, str]] = []
        """Their names, which are their handles, and MIME types."""

    def reduce(self, start: int) -> bytes:
        """The message, made small."""
        place = self._scanner.skip_space(start)
        message = self._scanner.read_object((place, place))
        if "result" not in message or "id" not in message:
            raise Irreducible("it is not the result of a call")
        fields = self._scanner.read_object(message["result"])
        if "content" not in fields and "structuredContent" not in fields:
            raise Irreducible("it is not the result of a call")
        result: dict[str, bytes] = {}
        blocks = self._reduce_content(fields.pop("content", None))
        for key, span in fields.items():
            if (raw := self._take(span, self._room // 4)) is not None:
                result[key] = raw
            else:
                note = f"What this result has as {key!r}, which is too large for memory."
                blocks.append(self._link(self._store_raw(span), "application/json", note))
        result["content"] = b"[" + b",".join(blocks) + b"]"
        identifier = self._take(message["id"], _TINY) or b"null"
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (identifier, _join(result))

    def _take(self, span: Span, limit: int) -> bytes | None:
        """A part as it is, as long as there is room."""
        length = span[1] - span[0]
        if length > _TINY and length > min(limit, self._room):
            return None
        self._room -= length
        return self._scanner.data[span[0] : span[1]]

    def _reduce_content(self, span: Span | None) -> list[bytes]:
        if span is None or self._scanner.data[span[0] : span[0] + 1] != b"[":
            return []
        blocks: list[bytes] = []
        for start, end in self._scanner.iterate(span[0]):
            if len(blocks) > _BLOCKS_MAX or self._room <= self._head:
                rest = self._store((b"[", *self._iterate_raw((start, span[1]))))
                note = "The further blocks of this result, as JSON."
                blocks.append(self._link(rest, "application/json", note))
                break
            whole = self._take((start, end), self._head)
            blocks.extend(self._reduce_block((start, end)) if whole is None else (whole,))
        return blocks

    def _reduce_block(self, span: Span) -> list[bytes]:
        """Blocks in place of one that is large: its beginning, where it is text, and a link."""
        scanner = self._scanner
        try:
            fields = scanner.read_object(span)
            kind = scanner.load_text(fields.get("type"))
            if kind == "text":
                return self._reduce_text(fields, "text/plain", lambda text: {"text": text})
            if kind in ("image", "audio"):
                mimetype = scanner.load_text(fields.get("mimeType")) or "application/octet-stream"
                note = f"Data of the type {kind}, which is too large for memory."
                return [self._link(self._store_binary(fields["data"]), mimetype, note)]
            if kind == "resource":
                return self._reduce_resource(scanner.read_object(fields["resource"]))
        except (Irreducible, KeyError, binascii.Error):
            pass
        note = "A block of this result, as JSON, which is too large for memory."
        return [self._link(self._store_raw(span), "application/json", note)]

    def _reduce_resource(self, fields: dict[str, Span]) -> list[bytes]:
        scanner = self._scanner
        uri = scanner.load_text(fields.get("uri"))
        mimetype = scanner.load_text(fields.get("mimeType"))
        if "text" not in fields:
            note = f"The embedded resource {uri}, which is too large for memory."
            stored = self._store_binary(fields["blob"])
            return [self._link(stored, mimetype or "application/octet-stream", note)]

        def embed(text: str) -> dict[str, object]:
            about = {"mimeType": mimetype} if mimetype else {}
            return {"resource": {"uri": uri, **about, "text": text}, "type": "resource"}

        return self._reduce_text(fields, mimetype or "text/plain", embed)

    def _reduce_text(
        self, fields: dict[str, Span], mimetype: str, embed: Callable[[str], dict[str, object]]
    ) -> list[bytes]:
        span = fields["text"]
        if span[1] - span[0] <= self._head or self._scanner.data[span[0] : span[0] + 1] != b'"':
            raise Irreducible("its text is not what is large")
        pieces = self._scanner.iterate_text(span)
        stored = self._store(piece.encode() for piece in pieces)
        with stored.open("rb") as file:
            head = file.read(self._head).decode("utf-8", "ignore")
        self._room -= len(head)
        block = _dump({"type": "text", **embed(head)})
        if len(head.encode()) == stored.stat().st_size:  # it was only its escapes that were long
            stored.unlink()
            return [block]
        note = f"The whole text of which the block before has the first {len(head.encode())} bytes."
        if not mimetype.startswith("text/"):
            mimetype = "text/plain"  # whatever it is besides, it can be read as that
        return [block, self._link(stored, mimetype, note)]

    def _store_raw(self, span: Span) -> Path:
        return self._store(self._iterate_raw(span))

    def _iterate_raw(self, span: Span) -> Iterator[bytes]:
        for place in range(span[0], span[1], _PIECE):
            yield self._scanner.data[place : min(place + _PIECE, span[1])]

    def _store_binary(self, span: Span) -> Path:
        return self._store(self._iterate_binary((span[0] + 1, span[1] - 1)))

    def _iterate_binary(self, span: Span) -> Iterator[bytes]:
        rest = b""
        for piece in self._iterate_raw(span):
            rest = (rest + piece).replace(b"\\/", b"/")
            cut = len(rest) // 4 * 4 - (4 if rest.endswith(b"\\") else 0)
            yield base64.b64decode(rest[:cut], validate=True)
            rest = rest[cut:]
        yield base64.b64decode(rest, validate=True)

    def _store(self, pieces: Iterator[bytes] | tuple[bytes, ...]) -> Path:
        path = self._folder / f"excess-{secrets.token_hex(6)}"
        try:
            with path.open("xb") as file:
                file.writelines(pieces)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def _link(self, path: Path, mimetype: str, note: str) -> bytes:
        self.files.append((path.name, mimetype))
        size = path.stat().st_size
        about = {"mimeType": mimetype, "size": size, "description": note}
        return _dump(
            {"type": "resource_link", "uri": path.as_uri(), "name": path.name, "title": path.name}
            | about
        )


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


def _join(fields: dict[str, bytes]) -> bytes:
    return b"{" + b",".join(_dump(key) + b":" + raw for key, raw in fields.items()) + b"}"


def _find_start(data: mmap.mmap) -> int:
    """Where the message begins, also in an event whose one line of data it is."""
    if data[:1] == b"{" or not (lines := list(_DATA_LINE.finditer(data))):
        return 0
    if len(lines) > 1:
        raise Irreducible("its data is in several lines")
    return lines[0].end()


def main() -> int:
    """Prints the files and the message, or the reason why there are none."""
    path, folder, room = sys.argv[1:4]
    with Path(path).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        reducer = Reducer(Scanner(data), Path(folder), int(room))
        try:
            message = reducer.reduce(_find_start(data))
        except Irreducible as failure:
            for name, _ in reducer.files:
                Path(folder, name).unlink()
            sys.stdout.write(str(failure))
            return 3
    sys.stdout.buffer.write(_dump(reducer.files) + b"\n" + message)
    return 0


if __name__ == "__main__":
    sys.exit(main())
