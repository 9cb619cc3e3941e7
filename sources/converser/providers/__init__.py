# SPDX-License-Identifier: Apache-2.0
"""The rooms that speak to LLM services; each imports its SDK late, and only when it is used."""
