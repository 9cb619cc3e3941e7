# SPDX-License-Identifier: Apache-2.0
"""Servers over stdio that are sound but for one fault each, without any SDK."""
