# SPDX-License-Identifier: Apache-2.0
"""How well the embedded model uses tools: `python -m tests.questions` asks it questions over real servers."""
