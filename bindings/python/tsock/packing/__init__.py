# SPDX-License-Identifier: MIT
"""Samples of an iterable, on their way into a pack."""
