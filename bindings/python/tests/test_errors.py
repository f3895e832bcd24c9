# SPDX-License-Identifier: MIT
"""Errors: their classes, Python's and ours, and the C library's codes."""

import importlib
import pickle
import sys

import pytest

import tsock
from conftest import N, everything, indices, until
from tsock import _ffi, errors

pytest.importorskip("numpy")
INDEX = dict(fields=("index",), dtype="uint8")


def test_tsock_ray_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "tsock.ray", raising=False)
    with pytest.raises(ImportError, match=r"needs Ray.*pip install ray"):
        importlib.import_module("tsock.ray")


@pytest.mark.parametrize(
    "code, ours, pythons",
    [
        (-3, tsock.StreamEnded, RuntimeError),
        (-4, tsock.ProducerLost, RuntimeError),
        (-5, tsock.InvalidArgument, ValueError),
        (-6, tsock.OutOfMemory, MemoryError),
        (-7, tsock.Error, RuntimeError),
        (-8, tsock.NoProducer, RuntimeError),
        (-9, tsock.Refused, RuntimeError),
        (-11, tsock.Error, RuntimeError),
        (-13, tsock.StreamFailed, RuntimeError),
    ],
)
def test_classes_and_codes(code, ours, pythons):
    error = errors.from_code(code, "why")
    assert type(error) is ours
    assert isinstance(error, (tsock.Error,)) and isinstance(error, pythons)
    assert error.code == _ffi.lib.tsock_strerror(code).decode()
    if code != errors.EFORK:
        assert str(error) == "why"
    for copy in (errors.again(error), pickle.loads(pickle.dumps(error))):
        assert type(copy) is ours and copy.code == error.code
        assert str(copy) == str(error)


def test_a_timeout_is_pythons_too(serve):
    serve("--min-consumers", 2)
    loader = tsock.DataLoader("toy", 16, timeout=0.1, **INDEX)
    iterator = iter(loader)
    for kind in (TimeoutError, RuntimeError, tsock.TimedOut):
        with pytest.raises(kind, match="timed out after 0.1 seconds"):
            next(iterator)
    until(lambda: tsock.query("toy")["consumers"] == 1)


def test_what_the_library_refuses_has_its_code(place):
    with pytest.raises(ValueError, match="name") as e:
        tsock.query("/", 0.1)
    assert e.value.code == "TSOCK_EARG"


@pytest.mark.kills
def test_an_iterator_repeats_why_it_has_ended(serve):
    served = serve("--ring", 64, "--max-batch", 16, "--join-window", 32)
    loader = tsock.DataLoader("toy", 16, rejoin_timeout=0, **INDEX)
    iterator = iter(loader)
    next(iterator)
    served.kill()
    with pytest.raises(tsock.ProducerLost) as first:
        for _ in iterator:
            pass
    for _ in range(3):
        with pytest.raises(tsock.ProducerLost) as again:
            next(iterator)
        assert str(again.value) == str(first.value)
        assert again.value.code == "TSOCK_ELOST"


def test_one_more_iterator_meets_no_other_producer_unnoticed(serve):
    old = serve("--ring", 64, "--max-batch", 16, "--join-window", 32)
    loader = tsock.DataLoader("toy", 16, rejoin_timeout=0, **INDEX)
    reading = iter(loader)
    next(reading)
    old.kill()
    serve()
    tsock.DataLoader("toy", 16).close()  # it is up
    for _ in range(2):
        with pytest.raises(tsock.ProducerLost, match="restarted") as e:
            next(iter(loader))
        assert e.value.code == "TSOCK_ELOST"
    with pytest.raises(tsock.ProducerLost):
        for _ in reading:
            pass
    again = tsock.DataLoader("toy", 16, **INDEX)
    assert sorted(int(i) for (b,) in again for i in b) == list(range(N))


def test_a_bad_file_is_named_with_its_stream_failed(serve, tmp_path, images):
    import shutil

    root = tmp_path / "data"
    shutil.copytree(images, root)
    bad = root / "class1" / "100.jpg"
    bad.write_bytes(bad.read_bytes()[:200])
    serve("--on-error", "raise", root=root)
    loader = tsock.DataLoader("toy", 16, **INDEX)
    with pytest.raises(tsock.StreamFailed, match="100.jpg") as e:
        for _ in range(2):
            for _ in loader:
                pass
    assert e.value.code == "TSOCK_ESTREAM"


def test_the_end_of_a_stream_is_the_same_for_every_iterator(serve):
    served = serve("--epochs", 1)
    other = tsock.DataLoader("toy", 16, **INDEX)
    stays = iter(other)
    next(stays)  # the stream runs until this one has left
    loader = tsock.DataLoader("toy", 16, **INDEX)
    for _ in loader:
        pass

    def meets_the_end():
        for _ in range(3):
            with pytest.raises(tsock.StreamEnded) as e:
                next(iter(loader))
            assert e.value.code == "TSOCK_EENDED"

    meets_the_end()
    until(lambda: tsock.query("toy")["consumers"] == 1)
    for _ in stays:
        pass
    assert served.ended() == 0
    meets_the_end()


@pytest.mark.kills
@pytest.mark.parametrize(
    "seconds, why", [(0, ""), (0.05, ", and no other one came within 0.05 s")]
)
def test_one_more_iterator_waits_no_longer_than_one_that_reads(
    serve, seconds, why
):
    """The call makes a connection, for which a first loader would wait."""
    served = serve()
    loader = tsock.DataLoader(
        "toy", 16, rejoin_timeout=seconds, wait=1000, **INDEX
    )
    first = iter(loader)
    next(first)
    served.kill()
    with pytest.raises(tsock.ProducerLost) as caught:
        next(iter(loader))
    text = "the producer of 'toy' is gone%s: make a new tsock.DataLoader" % why
    assert str(caught.value).startswith(text)
    assert caught.value.code == "TSOCK_ELOST"
    assert str(served.log) in str(caught.value)
    loader.close()


@pytest.mark.kills
def test_one_more_iterator_says_that_it_waits_for_a_producer(
    serve, monkeypatch, caplog
):
    monkeypatch.setattr(tsock.connection, "PATIENCE", 0.05)
    served = serve()
    loader = tsock.DataLoader("toy", 16, rejoin_timeout=0.5, **INDEX)
    first = iter(loader)
    next(first)
    served.kill()
    with pytest.raises(tsock.ProducerLost):
        next(iter(loader))
    said = [m for m in caplog.messages if "for the next producer" in m]
    assert len(said) == 1
    assert said[0].startswith("'toy': this loader has waited 0 s for the next")
    assert said[0].endswith("it waits for 0.5 s at most (rejoin_timeout)")
    loader.close()


def test_one_more_iterator_goes_on_with_the_next_producer(serve, monkeypatch):
    served = serve()
    loader = tsock.DataLoader("toy", 16, **INDEX)
    first = iter(loader)
    next(first)
    served.kill()
    slept = []

    def sleep(seconds):
        if not slept:
            serve()
        slept.append(seconds)

    monkeypatch.setattr(tsock.connection.time, "sleep", sleep)
    assert sorted(indices(loader)) == everything()
    assert slept
    loader.close()


def test_a_closed_loader_says_what_to_do(serve):
    serve()
    loader = tsock.DataLoader("toy", 16, **INDEX)
    loader.close()
    with pytest.raises(tsock.Error, match="is closed: make another one"):
        iter(loader)
