# SPDX-License-Identifier: Apache-2.0
"""The command line: one room for each command; `program.py` is where it begins."""
