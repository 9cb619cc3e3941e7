# SPDX-License-Identifier: Apache-2.0
"""Messages that are too large to be taken into memory: kept in files, and made small in another process."""
