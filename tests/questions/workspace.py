# SPDX-License-Identifier: Apache-2.0
"""The place that the questions are about: a small project under git, always the same, and four servers on it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import converser
from tests.servers import third_party

NOTE = "The project is the git repository at '.'. Write paths as the user does."
"""What an application would tell its model of the place."""

_LOG = [f"08:{minute:02} INFO pump {minute % 4 + 1} runs" for minute in range(1, 19)]
_FILES = {
    "README.md": "# Orchard\n\nOrchard tracks the harvest of a fruit farm.\nMaintainer: Ingrid Solheim\n",
    "config/settings.toml": 'port = 8473\nhost = "orchard.local"\nretries = 5\n',
    "data/harvest.csv": "tree,kilos\napple,412\npear,187\nplum,95\n",
    "logs/server.log": "\n".join(
        ["08:00 INFO server started", *_LOG, "08:19 ERROR pump 3 stopped"]
    ),
    "notes/meeting.txt": "The next meeting is on Friday, in the barn.\nBring the ledger.\n",
    "notes/todo.txt": "Mend the fence.\nOrder crates.\n",
    "source/press.py": "def press(fruit, force=3):\n    return fruit * force\n",
    "source/scale.py": "FACTOR = 1.00\n",
}
_PRICES = "fruit,price\napple,2.40\npear,3.15\nplum,4.05\n"
_PEOPLE = {
    "Ingrid Solheim": "ingrid@orchard.example",
    "Tomas Lind": "tomas@orchard.example",
}


def make_workspace(place: Path) -> None:
    """Empties a folder, and fills it with the project as it is at the beginning of every question."""
    for entry in place.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    _git(place, "init", "--quiet", "--initial-branch=main")
    for key, value in (("name", "Ingrid Solheim"), ("email", _PEOPLE["Ingrid Solheim"])):
        _git(place, "config", f"user.{key}", value)
    _write(place, _FILES)
    _commit(place, "Start the project", "Ingrid Solheim", 1)
    _write(place, {"data/prices.csv": _PRICES})
    _commit(place, "Add prices", "Ingrid Solheim", 2)
    _git(place, "branch", "harvest-2026")
    _git(place, "checkout", "--quiet", "-b", "fix-scale")
    _write(place, {"source/scale.py": "FACTOR = 1.02\n"})
    _commit(place, "Try another factor", "Tomas Lind", 3)
    _git(place, "checkout", "--quiet", "main")
    _write(place, {"source/scale.py": "FACTOR = 1.01\n"})
    _commit(place, "Calibrate the scale", "Tomas Lind", 4)
    _write(place, {"data/prices.csv": f"{_PRICES}quince,5.20\n"})
    _git(place, "add", "data/prices.csv")
    _write(
        place,
        {
            "notes/todo.txt": f"{_FILES['notes/todo.txt']}Buy a ladder.\n",
            "source/press.py": _FILES["source/press.py"].replace("3", "4"),
            "scratch.txt": "Nothing yet.\n",
        },
    )


def _write(place: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _commit(place: Path, message: str, author: str, day: int) -> None:
    _git(place, "add", "--all")
    person = f"{author} <{_PEOPLE[author]}>"
    date = f"2026-03-{day:02}T10:00:00+00:00"
    _git(place, "commit", "--quiet", f"--message={message}", f"--author={person}", date=date)


def _git(place: Path, *arguments: str, date: str = "") -> None:
    """Runs git as on no machine in particular."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        **({"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}),
    }
    subprocess.run(["git", *arguments], cwd=place, env=environment, check=True, timeout=60)


@asynccontextmanager
async def open_servers(place: Path) -> AsyncGenerator[list[converser.Ensemble]]:
    """The four servers, all at once, as the model gets them."""
    commands = {
        "time": [*third_party.python_server_command("time"), "--local-timezone=UTC"],
        "filesystem": [*third_party.node_server_command("filesystem"), "."],
        "git": third_party.python_server_command("git"),
        "everything": third_party.node_server_command("everything"),
    }
    async with AsyncExitStack() as stack:
        ensembles: list[converser.Ensemble] = []
        for name, command in commands.items():
            client = converser.StdioMCPClient(command=command, cwd=place)
            ensemble = await converser.discover_mcp_tools(client, name)
            ensembles.append(await stack.enter_async_context(ensemble))
        yield ensembles
