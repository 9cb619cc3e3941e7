# SPDX-License-Identifier: Apache-2.0
"""Conversations as one file for people or programs: Markdown, JSON, and an HTML page that needs nothing else."""
