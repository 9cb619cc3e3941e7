# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the documentation from a real run: `.venv/bin/python .auxiliary/pictures.py`.

It asks the embedded model about the weather, with the server of the examples, exports the
conversation, and has Chromium draw the page. Needs `chromium` on PATH, and some minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "documentation" / "pictures"
SERVER = ROOT / "documentation" / "examples" / "weather_server.py"
QUESTIONS = (
    "What is the weather in Oslo?",
    "And the forecast for Lagos, for five days?",
    "And what is it in Bergen?",
)
NAME = "Three cities"
SIZES = {"export-light": (1, 1000, 1060), "export-dark": (0, 420, 900)}
"""Of each picture the scheme, as Chromium counts them, the width and the height."""
_BROWSER = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars"
    " --disable-background-networking --disable-component-update --disable-sync"
)


def run(*command: str | Path, folder: Path, **environment: str) -> None:
    """Run a program to its end, and end with it if it fails."""
    print("$", *command, flush=True)
    subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, **environment},
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=1_200,
    )


def converse(folder: Path) -> Path:
    """Have the conversation, and give the page of it."""
    command = f'["{sys.executable}", "{SERVER}"]'
    (folder / "converser.toml").write_text(f"[mcp.weather]\ncommand = {command}\n")
    environment = {"CONVERSER_DATA": str(folder / "data"), "CONVERSER_TRUST": "1", "TZ": "UTC"}
    program = (sys.executable, "-m", "converser")
    for number, question in enumerate(QUESTIONS):
        options = ["--continue"] if number else []
        asked = ("ask", question, "--model", "embedded", "--yes", "--conversation", NAME, *options)
        run(*program, *asked, folder=folder, **environment)
    page = folder / "page.html"
    run(*program, "conversations", "export", NAME, "-o", page, folder=folder, **environment)
    return page


def draw(page: Path, folder: Path) -> None:
    """Have the page drawn, light and wide, dark and narrow."""
    browser = shutil.which("chromium") or sys.exit("There is no chromium on PATH.")
    PICTURES.mkdir(exist_ok=True)
    for name, (scheme, width, height) in SIZES.items():
        run(
            browser,
            *_BROWSER.split(),
            f"--user-data-dir={folder / name}",
            f"--blink-settings=preferredColorScheme={scheme}",
            f"--window-size={width},{height}",
            f"--screenshot={PICTURES / f'{name}.png'}",
            page.as_uri(),
            folder=folder,
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        draw(converse(Path(name)), Path(name))
