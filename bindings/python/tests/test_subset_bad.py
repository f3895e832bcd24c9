# SPDX-License-Identifier: MIT
"""subset= where files of the data set are bad."""

import logging
import shutil

import pytest

import tsock
from test_subset import EVENS, FOLDS, INDEX, indices, rest_of

pytest.importorskip("numpy")


@pytest.fixture
def spoilt(images, tmp_path):
    """A copy of the images; spoil(indices) makes these files bad."""
    root = tmp_path / "data"
    shutil.copytree(images, root)
    files = sorted(root.glob("*/*.jpg"))

    def spoil(indices):
        for i in indices:
            files[i].write_bytes(b"no image")
        return root

    return spoil


def test_a_bad_file_lets_no_other_sample_in_and_costs_no_batch(
    serve, spoilt, caplog
):
    bad = [0, 17, 18, 50, 202]
    serve("--allow-bad", 1, root=spoilt(bad))
    for subset, size in ((EVENS, 10), (rest_of(EVENS), 7), (FOLDS[2], 64)):
        loader = tsock.DataLoader("toy", size, subset=subset, **INDEX)
        good = sorted(set(subset) - set(bad))
        for _ in range(3):
            caplog.clear()
            batches = [index.tolist() for (index,) in loader]
            seen = sum(batches, [])
            assert len(batches) == len(loader) and len(seen) == len(subset)
            missing = len(subset) - len(good)
            # What was first comes again at the end.
            assert sorted(seen[: len(good)]) == good
            assert seen[len(good):] == seen[:missing]
        assert loader.state_dict()["finished"]
        loader.close()


def test_who_lacks_samples_is_told_once(serve, spoilt, caplog):
    serve("--allow-bad", 1, root=spoilt([4]))
    loader = tsock.DataLoader("toy", 10, subset=EVENS, **INDEX)
    with caplog.at_level(logging.WARNING, "tsock"):
        indices(loader)
        indices(loader)
    said = [r.getMessage() for r in caplog.records if "subset" in r.message]
    assert len(said) == 1 and "stand in" in said[0]


def test_many_bad_files_make_whole_batches_of_what_comes_again(serve, spoilt):
    bad = range(40, 200)
    serve("--allow-bad", 1, root=spoilt(bad))
    wanted = range(30, 110)
    good = list(range(30, 40))
    loader = tsock.DataLoader("toy", 8, subset=wanted, **INDEX)
    batches = [index.tolist() for (index,) in loader]
    assert [len(b) for b in batches] == [8] * 10
    seen = sum(batches, [])
    assert sorted(seen[:10]) == good and set(seen[10:]) <= set(good)
    dropping = tsock.DataLoader(
        "toy", 33, subset=wanted, drop_last=True, **INDEX
    )
    assert [len(b) for (b,) in dropping] == [33] * 2


def test_a_subset_of_bad_files_alone_is_an_error(serve, spoilt):
    bad = [5, 6, 100]
    serve("--allow-bad", 1, root=spoilt(bad))
    loader = tsock.DataLoader("toy", 8, subset=bad, **INDEX)
    for _ in range(2):
        iterator = iter(loader)
        for _ in range(2):
            with pytest.raises(tsock.Error, match="none of the samples"):
                next(iterator)


def test_a_state_after_bad_files(serve, spoilt):
    bad = [2, 60, 61, 140]
    serve("--allow-bad", 1, root=spoilt(bad))
    loader = tsock.DataLoader("toy", 10, subset=EVENS, **INDEX)
    iterator = iter(loader)
    seen = [next(iterator)[0].tolist() for _ in range(5)]
    state = loader.state_dict()
    other = tsock.DataLoader("toy", 10, subset=EVENS, **INDEX)
    other.load_state_dict(state)
    again = indices(other)
    after = indices(iterator)
    good = len(after) - 3
    assert len(again) == len(after) and again[:good] == after[:good]
    assert set(sum(seen, []) + again) == set(EVENS) - set(bad)
