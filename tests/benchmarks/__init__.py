# SPDX-License-Identifier: Apache-2.0
"""What converser costs beside the bare SDK: `python -m tests.benchmarks`."""
