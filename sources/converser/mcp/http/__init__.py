# SPDX-License-Identifier: Apache-2.0
"""HTTP, streamable and with the older events: faults caught, sizes bounded, addresses and logins kept to themselves."""
