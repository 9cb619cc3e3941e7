# SPDX-License-Identifier: Apache-2.0
"""What tests of `ask` and `chat` share: a folder with servers and a model that says what it is told."""

from __future__ import annotations

import json
from pathlib import Path

from tests.chat_service import Service, call, chunk
from tests.servers.processes import awkward_command

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
