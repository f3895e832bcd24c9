# SPDX-License-Identifier: MIT
"""subset= and where a job has come to."""

import json

import pytest

import tsock
from test_subset import EVENS, FOLDS, INDEX, indices

pytest.importorskip("numpy")


def test_a_state_is_in_samples_of_the_subset(serve):
    serve()
    for batches in range(1, 11):
        loader = tsock.DataLoader("toy", 10, subset=EVENS, **INDEX)
        iterator = iter(loader)
        seen = [next(iterator)[0].tolist() for _ in range(batches)]
        state = json.loads(json.dumps(loader.state_dict()))
        assert state["samples_yielded"] == 10 * batches
        assert not state["finished"]
        other = tsock.DataLoader("toy", 7, subset=reversed(EVENS), **INDEX)
        other.load_state_dict(state)
        assert other.state_dict() == state
        running = iter(other)
        after = next(running)[0].tolist()
        now = other.state_dict()["samples_yielded"]
        assert now == len(after) + 10 * batches
        after += indices(running)
        assert after == indices(iterator)
        assert sorted(sum(seen, []) + after) == list(EVENS)
        assert other.resumed == "held"
        assert other.state_dict()["finished"]
        loader.close()
        other.close()
    loader = tsock.DataLoader("toy", 10, subset=EVENS, **INDEX)
    assert sorted(indices(loader)) == list(EVENS)
    state = dict(state)
    strange = tsock.DataLoader("toy", 10, subset=FOLDS[0], **INDEX)
    with pytest.raises(ValueError, match="subset is 102 samples, .* there"):
        strange.load_state_dict(state)
    del state["samples_passed"]
    with pytest.raises(ValueError, match="no state"):
        loader.load_state_dict(state)
    plain = tsock.DataLoader("toy", 10, **INDEX)
    with pytest.raises(ValueError, match="subset is .*not said here"):
        plain.load_state_dict(loader.state_dict())


def test_a_state_goes_on_where_the_stream_comes_again(serve):
    served = serve()
    loader = tsock.DataLoader("toy", 10, subset=EVENS, **INDEX)
    indices(loader)
    iterator = iter(loader)
    first = [next(iterator)[0].tolist() for _ in range(6)]
    state = loader.state_dict()
    after = indices(iterator)
    loader.close()
    served.stop()
    serve()
    other = tsock.DataLoader("toy", 16, subset=EVENS, **INDEX)
    other.load_state_dict(state)
    assert indices(other) == after and other.resumed == "moved"
    assert sorted(sum(first, []) + after) == list(EVENS)
