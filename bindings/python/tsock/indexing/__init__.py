# SPDX-License-Identifier: MIT
"""Tables: files that say where the bytes of a data set's samples are.

docs/reference/table.md describes the file; table.py writes it, and each of the
other modules finds the samples of one kind of data set.
"""
