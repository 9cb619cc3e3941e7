# SPDX-License-Identifier: Apache-2.0
"""The protocol's official conformance suite, driven against our ensembles: `python -m tests.conformance`."""
