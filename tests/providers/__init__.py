# SPDX-License-Identifier: Apache-2.0
"""One contract for all providers, spoken to the real SDKs over real HTTP."""
