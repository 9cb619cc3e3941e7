# SPDX-License-Identifier: Apache-2.0
"""Tests, as a package so that they can share their servers."""
