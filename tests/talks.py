# SPDX-License-Identifier: Apache-2.0
"""What tests of `ask` and `chat` share: a folder with servers and a model that says what it is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.chat_service import Service, call, chunk
from tests.servers.processes import awkward_command

DEADLINE = 120.0
MODEL = "local:m-1"


def write_project(folder: Path, service: Service) -> Path:
    """A `converser.toml` with the awkward server, one that is broken, and a model behind a real wire."""
    (folder / "converser.toml").write_text(
        f"""
[model]
name = "{MODEL}"

[provider.local]
type = "openai"
base_url = "{service.url}"
key = "sk-very-secret"

[mcp.awkward]
transport = "stdio"
command = {json.dumps(awkward_command())}

[mcp.broken]
enabled = false
transport = "stdio"
command = ["no-such-program-anywhere"]
""",
        encoding="utf-8",
    )
    return folder


def make_environment(folder: Path, **more: str) -> dict[str, str]:
    """Nothing of the developer's own: no keys, no files, no conversations, no colours."""
    kept = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_TOKEN"))}
    homes = {
        name: str(folder / "home")
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    }
    return {**kept, **homes, "CONVERSER_TRUST": "1", "PYTHONIOENCODING": "utf-8", **more}


def run(
    *arguments: str | Path, cwd: Path, stdin: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the real program in pipes."""
    given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(
        [sys.executable, "-m", "converser", *map(str, arguments)],
        cwd=cwd,
        env=make_environment(cwd, **environment),
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE,
        check=False,
        **given,
    )


def will_say(service: Service, *pieces: str, finish: str = "stop") -> None:
    """The model's next turn: words, in these pieces."""
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    service.will_stream(
        *(chunk(content=piece) for piece in pieces), chunk(finish), chunk(usage=usage)
    )


def will_call(service: Service, *calls: tuple[str, dict]) -> None:
    """The model's next turn: calls of tools, by their names on the wire."""
    parts = [
        call(number, identifier=f"c{number}", name=name, arguments=json.dumps(arguments))
        for number, (name, arguments) in enumerate(calls)
    ]
    service.will_stream(chunk(tool_calls=parts), chunk("tool_calls"))


def list_said(service: Service) -> list[str]:
    """What the model was last sent, as text of each message."""
    return [json.dumps(message, ensure_ascii=False) for message in service.bodies[-1]["messages"]]
