# SPDX-License-Identifier: Apache-2.0
"""The fault bench: servers that misbehave on purpose, and what a caller must see of it."""
