# SPDX-License-Identifier: Apache-2.0
"""The rooms that speak MCP; only these import the `mcp` package, and only when they are used."""
