# SPDX-License-Identifier: MIT
"""--cache SIZE: the same bytes, and later epochs read next to nothing."""

import re

import pytest

import tsock
from conftest import N, RAW

pytest.importorskip("torch")
pytest.importorskip("PIL")
EPOCHS = 4


def _bytes(name):
    loader = tsock.DataLoader(
        name, 48, fields=("image", "label", "index", "box"), wait=60, **RAW
    )
    return [
        [field.numpy().tobytes() for field in batch]
        for _ in range(EPOCHS)
        for batch in loader
    ]


def _end(served):
    """What the producer says at its end."""
    served.ended()
    return served.log.read_text()


def test_a_cache_changes_no_byte(serve):
    serve("--epochs", EPOCHS)
    plain = _bytes("toy")
    cached = serve("--epochs", EPOCHS, "--cache", "8M", name="cached")
    assert _bytes("cached") == plain
    log = _end(cached)
    share = re.search(r"cache: (\d+) images .* ([0-9.]+) %", log)
    assert share and int(share.group(1)) == N, log
    # All but the first epoch, and what was begun before it was over.
    assert float(share.group(2)) > 60


def test_the_memory_is_shown(serve, images, capfd):
    log = _end(serve("--dry-run", "--cache", "64M"))
    assert re.search(r"--cache +67.1 MB", log), log
    log = _end(serve("--cache", "900T"))
    assert "--cache is" in log and "lower it" in log, log
