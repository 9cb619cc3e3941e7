# SPDX-License-Identifier: Apache-2.0
"""All the servers of an application: opened at once, surveyed, revised, and remembered."""
