# SPDX-License-Identifier: Apache-2.0
"""A conversation engine: canisters, models that continue them, and ensembles of tools.

Names are loaded when they are first used, so that `import converser` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
