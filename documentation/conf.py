# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds this documentation: `python3 .auxiliary/develop.py document`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sources"))

from converser import __version__

project = "converser"
copyright = "the authors of converser; Apache-2.0"
release = __version__

extensions = ["sphinx.ext.autodoc"]
exclude_patterns = ["_build", "examples"]
html_theme = "furo"
html_title = f"converser {release}"

# Without markup, as in docstrings, single backticks are code.
default_role = "code"
autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
