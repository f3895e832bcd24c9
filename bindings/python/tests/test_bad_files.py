# SPDX-License-Identifier: MIT
"""Classes and data sets of which too much can't be read."""

import collections
import logging
import shutil
import warnings

import pytest

import tsock
from conftest import N, SIZE, until

numpy = pytest.importorskip("numpy")

LABELS = dict(
    fields=("index", "label"), dtype="uint8", layout="hwc", timeout=60
)
SMALL = dict(size=SIZE, threads=1, no_cache=True, batch_size=32)
EACH = len(range(1, N, 3))  # files of class1
HEIC = b"\0\0\0\x18ftypheic" + bytes(20)


@pytest.fixture
def spoilt(images, tmp_path):
    """spoil(change, class): a copy in which change(bytes) is in its files.

    Its data set has N files in three classes; suffix: what they are called.
    """
    root = tmp_path / "data"
    shutil.copytree(images, root)

    def spoil(change, of="class1", suffix=".jpg", most=N):
        for path in sorted(root.glob(of + "/*.jpg"))[:most]:
            data = change(path.read_bytes())
            path.unlink()
            path.with_suffix(suffix).write_bytes(data)
        return root

    return spoil


def heic(_):
    return HEIC


def cut(data):
    """Its head is good, and the middle of the image is not there."""
    return data[: len(data) * 2 // 5]


def epoch(loader):
    """(index, label) of each sample."""
    return [
        pair
        for index, label in loader
        for pair in zip(index.tolist(), label.tolist())
    ]


def warned(record):
    return [
        str(w.message)
        for w in record
        if issubclass(w.category, tsock.BadFilesWarning)
    ]


@pytest.mark.parametrize("suffix", [".tif", ".jpg"])
def test_a_class_of_another_format_is_an_error_at_the_start(
    place, spoilt, suffix
):
    root = spoilt(heic, suffix=suffix)
    with pytest.raises(tsock.NoProducer) as e:
        tsock.DataLoader("toy", root=root, **SMALL)
    text = str(e.value)
    assert "%d of %d files (33" % (EACH, N) in text
    assert "class class1 has no other" in text
    assert "but a HEIC image" in text
    assert "allow_bad=0.34" in text


def test_with_allow_bad_others_share_its_places(place, spoilt, recwarn):
    root = spoilt(heic, suffix=".tif")
    loader = tsock.DataLoader(
        "toy", root=root, allow_bad=0.34, **SMALL, **LABELS
    )
    assert loader.bad == EACH == tsock.query("toy")["bad_files"]
    epochs = [epoch(loader) for _ in range(3)]
    for seen in epochs:
        assert len(seen) == N
        labels = collections.Counter(label for _, label in seen)
        assert set(labels) == {0, 2} and min(labels.values()) > N // 3
        assert max(collections.Counter(seen).values()) <= 6
        assert len(set(seen)) == N - EACH
    # Others each time.
    counts = [collections.Counter(seen) for seen in epochs]
    assert counts[0] != counts[1] != counts[2]
    assert loader.bad == EACH
    assert not warned(recwarn)


def test_a_share_that_is_too_large_names_the_first_file(place, spoilt):
    root = spoilt(heic, most=4)
    with pytest.raises(tsock.NoProducer) as e:
        tsock.DataLoader("toy", root=root, **SMALL)
    assert "4 of %d files" % N in str(e.value)
    assert "has no other" not in str(e.value)
    loader = tsock.DataLoader("toy", root=root, allow_bad=1, **SMALL, **LABELS)
    assert loader.bad == 4
    assert len(epoch(loader)) == N


def test_on_error_raise_starts_and_stops_at_the_first(place, spoilt):
    root = spoilt(heic)
    loader = tsock.DataLoader(
        "toy", root=root, on_error="raise", **SMALL, **LABELS
    )
    with pytest.raises(tsock.StreamFailed, match="HEIC"):
        epoch(loader)


def test_what_is_found_later_is_a_warning_in_every_job(
    serve, spoilt, caplog
):
    serve("--preset", "eval", root=spoilt(cut))
    loaders = [tsock.DataLoader("toy", size, **LABELS) for size in (32, 16)]
    assert loaders[0].bad == 0
    with caplog.at_level(logging.WARNING, "tsock"):
        for loader in loaders:
            caplog.clear()
            said, logged, files = warnings_of(loader, caplog)
            (class_,) = [text for text in said if "class class1" in text]
            assert "none of its %d files can be read" % EACH in class_
            assert "class1/" in class_ and "JPEG" in class_
            assert "allow_bad=0.34" in class_
            shares = [text for text in said if text.startswith("so far")]
            assert len(shares) == len(said) - 1 == 3
            assert shares[0].startswith("so far 3 of %d files" % N)
            # At the line that reads; and in the log, each once.
            assert files == {__file__}
            for text in said:
                assert sum(text in line for line in logged) == 1
            assert warnings_of(loader, caplog)[0] == []
            assert loader.bad == EACH


def warnings_of(loader, caplog):
    """What an epoch warns of, what is logged, and whose lines are blamed."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        epoch(loader)
    said = warned(record)

    def logged():
        return [r.getMessage() for r in caplog.records]

    # Another thread writes the log.
    until(lambda: all(any(t in line for line in logged()) for t in said))
    return said, logged(), {w.filename for w in record}


def test_an_allowed_share_is_no_warning(serve, spoilt, recwarn):
    served = serve(
        "--preset", "eval", "--allow-bad", 0.5, root=spoilt(cut)
    )
    loader = tsock.DataLoader("toy", 32, **LABELS)
    for _ in range(2):
        assert {label for _, label in epoch(loader)} == {0, 2}
    assert not warned(recwarn)
    assert loader.bad == EACH
    served.stop()
    # Nobody is there to ask.
    assert loader.bad == EACH


def test_a_warning_that_is_an_error_loses_no_batch(serve, spoilt):
    serve("--preset", "eval", root=spoilt(cut))
    loader = tsock.DataLoader("toy", 32, **LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        epoch(loader)
    again = tsock.DataLoader("toy", 32, **LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tsock.BadFilesWarning)
        iterator = iter(again)
        with pytest.raises(tsock.BadFilesWarning):
            next(iterator)
        seen = [index for batch in iterator for index in batch[0].tolist()]
    assert len(seen) == N


def test_a_foreign_name_may_be_wrong(place, spoilt):
    """JPEG files that are called .tif are read."""
    root = spoilt(lambda data: data, suffix=".tif")
    loader = tsock.DataLoader("toy", root=root, **SMALL, **LABELS)
    assert {index for index, _ in epoch(loader)} == set(range(N))
    assert loader.bad == 0


def test_the_same_samples_whoever_finds_them_bad(serve, spoilt):
    """By the scan, or when they are read by one thread or by several."""
    root = spoilt(cut)
    streams = []
    for i, more in enumerate((["--threads", 1], ["--threads", 4])):
        served = serve(
            "--allow-bad", 1, "--seed", 3, *more, root=root, name="s%d" % i
        )
        until(served.begun, what="the stream")
        loader = tsock.DataLoader("s%d" % i, 32, **LABELS)
        streams.append([epoch(loader) for _ in range(2)])
        loader.close()
    assert streams[0] == streams[1]
