# SPDX-License-Identifier: Apache-2.0
"""`converser chat`: a conversation at the terminal, with every server at hand."""
