# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the chat from real runs: `.venv/bin/python .auxiliary/screenshots.py`.

It talks to the embedded model, with the servers of the examples, in a terminal of tmux, and has
rich draw what the terminal shows. Needs `tmux` on PATH, the embedded model, and some minutes.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "documentation" / "pictures"
CONFIG = ROOT / "documentation" / "examples" / "chat.toml"
DEADLINE = 300.0
SIZES = {"chat-80": (80, 34), "chat-120": (120, 31)}
THEME = TerminalTheme(
    (24, 26, 31),
    (220, 223, 228),
    [
        (40, 44, 52),
        (224, 108, 117),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (220, 223, 228),
    ],
    [
        (110, 118, 132),
        (224, 108, 117),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (255, 255, 255),
    ],
)


class Terminal:
    """A terminal of tmux, with the chat in it."""

    def __init__(self, name: str, size: tuple[int, int], home: Path) -> None:
        self._name = f"converser-{os.getpid()}-{name}"
        cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        environment = {
            "CONVERSER_DATA": str(home / "data"),
            "CONVERSER_TRUST": "1",
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CACHE_HOME": cache,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "LANG": "C.UTF-8",
        }
        settings = [f"{key}={shlex.quote(value)}" for key, value in environment.items()]
        program = [shlex.quote(sys.executable), "-m", "converser", "chat", "--config", str(CONFIG)]
        columns, lines = size
        self._tmux(
            *("-f", os.devnull, "new-session", "-d", "-x", str(columns), "-y", str(lines)),
            " ".join(["env", *settings, *program]),
        )

    def type(self, *keys: str) -> None:
        """Presses keys, as tmux names them."""
        self._tmux("send-keys", *keys)

    def wait_for(self, words: str) -> None:
        """Waits until words are on the screen."""
        end = time.monotonic() + DEADLINE
        while words not in self.read():
            if time.monotonic() > end:
                sys.exit(f"{words!r} did not come:\n{self.read()}")
            time.sleep(0.2)

    def read(self, *options: str) -> str:
        """What is on the screen."""
        return self._tmux("capture-pane", "-p", *options)

    def close(self) -> None:
        """Ends it, and all in it."""
        self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._name, *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, encoding="utf-8", timeout=60
        ).stdout


def converse(terminal: Terminal) -> None:
    """The conversation that is shown: a call, one that asks, and a command."""
    terminal.wait_for("2 of 2 servers")
    terminal.type("What's the weather in Oslo?", "Enter")
    terminal.wait_for("get_weather")
    terminal.wait_for("2 of 2 servers")
    terminal.type("Add a note: pack a coat for Oslo.", "Enter")
    terminal.wait_for("Allow it?")
    terminal.type("y")
    terminal.wait_for("is kept.")
    terminal.wait_for("2 of 2 servers")
    terminal.type("/servers", "Enter")
    terminal.wait_for("latency")
    terminal.wait_for("2 of 2 servers")


def draw(screen: str, width: int, name: str) -> None:
    """Writes the screen as a picture; its font is whatever the reader has."""
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.rstrip("\n")), soft_wrap=True)
    svg = console.export_svg(title="converser", theme=THEME, unique_id=name)
    head, _, rest = svg.partition("@font-face")
    rest = rest[rest.rindex("@font-face") :].partition("}")[2] if "@font-face" in rest else rest
    svg = head + rest.lstrip()
    (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")


def main() -> None:
    """Makes all pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name, size in SIZES.items():
        with tempfile.TemporaryDirectory() as home:
            terminal = Terminal(name, size, Path(home))
            try:
                converse(terminal)
                draw(terminal.read("-e"), size[0], name)
            finally:
                terminal.close()
        print(f"{PICTURES / name}.svg")


if __name__ == "__main__":
    main()
