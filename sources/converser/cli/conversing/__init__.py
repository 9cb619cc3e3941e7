# SPDX-License-Identifier: Apache-2.0
"""What `converser ask` and `converser chat` share: how a conversation is prepared, shown and decided on."""
