# SPDX-License-Identifier: Apache-2.0
"""All faults, by name."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.http_faults import HTTP_FAULTS
from tests.faults.stdio_faults import STDIO_FAULTS

FAULTS = {fault.name: fault for fault in (*STDIO_FAULTS, *HTTP_FAULTS)}


def find_fault(name: str) -> Fault:
    """The fault of that name."""
    return FAULTS[name]
