# SPDX-License-Identifier: MIT
"""A loader whose producer is gone goes on with the next one."""

import os
import re
import signal

import pytest

tsock = pytest.importorskip("tsock")

from conftest import N, until  # noqa: E402

RING = ("--ring", 64, "--max-batch", 16, "--join-window", 32)
FIELDS = {"fields": ("image", "label", "index"), "framework": "numpy"}


def said(batches):
    """What came, sample by sample."""
    return [
        (int(index), int(label), image.tobytes())
        for images, labels, indices in batches
        for image, label, index in zip(images, labels, indices)
    ]


def undisturbed(serve, epochs, **keywords):
    served = serve(*RING)
    with tsock.DataLoader("toy", 16, **dict(FIELDS, **keywords)) as loader:
        epochs = [said(loader) for _ in range(epochs)]
    served.stop()
    return epochs


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_loader_goes_on_with_the_next_producer(serve, signum, dtype):
    want = undisturbed(serve, 2, dtype=dtype)
    served = serve(*RING)
    with tsock.DataLoader("toy", 16, dtype=dtype, **FIELDS) as loader:
        got = []
        for _ in range(2):
            batches = []
            for i, batch in enumerate(loader):
                batches.append(batch)
                if i == 1:
                    served.process.send_signal(signum)
                    served.ended()
                    served = serve(*RING)
            got.append(said(batches))
        assert got == want
        # One more connection is to the same stream, too.
        assert len(said(iter(loader))) == N


def test_a_loader_with_root_starts_its_producer_again(place, images):
    options = {"size": 32, "threads": 1, "no_cache": True, "ring": 64}
    options.update(max_batch=16, join_window=32, **FIELDS)
    loader = tsock.DataLoader("toy", 16, root=images, **options)
    seen = []
    for i, batch in enumerate(loader):
        seen.append(batch)
        if i == 0:
            os.kill(tsock.query("toy")["pid"], signal.SIGKILL)
    assert sorted(index for index, _, _ in said(seen)) == list(range(N))
    # Between two epochs, too.
    os.kill(tsock.query("toy")["pid"], signal.SIGKILL)
    assert len(said(loader)) == N
    pid = tsock.query("toy")["pid"]
    loader.close()
    os.kill(pid, signal.SIGTERM)
    until(lambda: not tsock.streams())


@pytest.mark.kills
def test_the_error_says_how_long_was_waited(serve):
    served = serve(*RING)
    loader = tsock.DataLoader("toy", 16, rejoin_timeout=0.3, **FIELDS)
    iterator = iter(loader)
    next(iterator)
    served.kill()
    with pytest.raises(tsock.ProducerLost, match=re.escape("within 0.3 s")):
        for _ in iterator:
            pass


def still_waits(iterator, caplog):
    with pytest.raises(tsock.TimedOut):
        next(iterator)
    return "waiting up to 60 s for a producer" in caplog.text


@pytest.mark.kills
def test_who_says_nothing_waits_for_a_minute(serve, caplog):
    served = serve(*RING)
    loader = tsock.DataLoader("toy", 16, **FIELDS)
    next(iterator := iter(loader))
    served.kill()
    loader.timeout = 0.05
    with pytest.raises(tsock.TimedOut):
        for _ in iterator:
            pass
    until(lambda: still_waits(iterator, caplog), what="the warning")


def test_a_wait_without_limit_says_so(serve, caplog):
    served = serve(*RING)
    loader = tsock.DataLoader("toy", 16, rejoin_timeout=None, **FIELDS)
    iterator = iter(loader)
    seen = [next(iterator)]
    served.kill()
    loader.timeout = 0.05
    while "for a producer of the same stream" not in caplog.text:
        try:
            seen.append(next(iterator))
        except tsock.TimedOut:
            pass
    assert "; waiting, without limit, for a producer of" in caplog.text
    loader.timeout = 0
    serve(*RING)
    seen += iterator
    assert len(said(seen)) == N


def test_rejoin_timeout_is_checked():
    for wrong in (-1, "a", True, float("nan")):
        with pytest.raises(ValueError, match="rejoin_timeout"):
            tsock.DataLoader("toy", rejoin_timeout=wrong, wait=0)
