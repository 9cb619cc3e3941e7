# SPDX-License-Identifier: Apache-2.0
"""Our own stdio transport: linear, bounded, watchful, and sure to end what it started."""
