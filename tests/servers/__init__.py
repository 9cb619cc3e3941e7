# SPDX-License-Identifier: Apache-2.0
"""Servers that tests talk to: two of our own that are awkward on purpose, and pinned ones of others."""
