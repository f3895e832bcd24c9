# SPDX-License-Identifier: MIT
"""Addresses of other machines, where a file or a folder is wanted."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|pipe:")

# As tsi_advice_url() has it, in producer/cli/advice.c.
_HOW = {
    "s3": "mount the bucket, by mount-s3 or s3fs",
    "gs": "mount the bucket, by gcsfuse",
    "hf": "download the data set, by hf download",
}


def refuse(what: str, value: str) -> None:
    """ValueError if that is an address; what is what it was given for."""
    found = _ADDRESS.match(value)
    if found:
        raise ValueError(
            "%s %r: files of this machine alone are read; %s, and give that "
            "folder (docs/operate/object-stores.md)"
            % (
                what,
                value,
                _HOW.get(
                    (found[1] or "").lower(),
                    "mount it, by rclone mount for example, or copy it here",
                ),
            )
        )
