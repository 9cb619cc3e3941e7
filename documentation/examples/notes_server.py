# SPDX-License-Identifier: Apache-2.0
"""An MCP server that keeps notes while it runs; to add one is more than to read, so it needs approval."""

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("notes", log_level="WARNING")
notes: list[str] = []


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
def add_note(text: str) -> str:
    """Adds a note to the user's notes."""
    notes.append(text)
    return f"Note {len(notes)} is kept."


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_notes() -> list[str]:
    """Lists all of the user's notes."""
    return notes


if __name__ == "__main__":
    server.run("stdio")
