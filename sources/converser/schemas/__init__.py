# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas: compiled, explained, and with examples.

The rooms import one way: plain ◄ keywords ◄ atlas ◄ engines ◄ walks, patterns, limits, examples,
everyday, slips ◄ explanations ◄ validators ◄ objects.
"""

from __future__ import annotations

from .examples import example_for as example_for
from .explanations import Violation as Violation
from .plain import MAXIMUM_DEPTH as MAXIMUM_DEPTH
from .slips import list_readings as list_readings
from .validators import Validator as Validator, compile_schema as compile_schema
