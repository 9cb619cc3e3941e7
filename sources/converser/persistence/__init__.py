# SPDX-License-Identifier: Apache-2.0
"""Conversations on disk: a folder for each, large content shared by hash, nothing shown ever lost."""
