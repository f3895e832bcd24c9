# SPDX-License-Identifier: MIT
"""What pack_fn and unpack_fn make comes through a stream as it was."""

from collections import namedtuple

import pytest

from tsock import payload
from tsock.payload import TensorPayload

torch = pytest.importorskip("torch")

Pair = namedtuple("Pair", "first second")


def a(n):
    return torch.arange(float(n))


@pytest.mark.parametrize(
    "made",
    [
        (TensorPayload(a(3)), 7),
        {"x": TensorPayload(a(3)), "name": "left as it is"},
        [{"deep": (TensorPayload(a(2)), [TensorPayload(a(1)), a(4)])}],
        TensorPayload(a(5)),
        a(2),
        (),
    ],
)
def test_what_a_pack_fn_made_comes_back(made):
    sent = payload.to_serve(made)
    assert payload.is_packed(sent)
    assert not has_payload(sent)
    back = payload.as_packed(sent)
    assert same(back, made)


def has_payload(value):
    found = []
    payload.each(value, lambda v: found.append(isinstance(v, TensorPayload)))
    return any(found)


def same(one, other):
    if isinstance(other, TensorPayload):
        return isinstance(one, TensorPayload) and same(one.tensor, other.tensor)
    if type(one) is not type(other):
        return False
    if payload.is_tensor(other):
        return torch.equal(one, other)
    if isinstance(other, dict):
        return list(one) == list(other) and all(
            same(one[key], other[key]) for key in other
        )
    if isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def test_the_usual_functions_undo_each_other():
    for batch in (a(3), 4), {"x": a(3), "n": 4}:
        packed = payload.pack(batch)
        assert has_payload(packed)
        assert same(payload.unpack(packed), batch)
    assert isinstance(payload.pack([a(1)]), tuple)


def test_a_batch_is_a_dict_or_a_tuple():
    batch = {"x": 1}
    assert payload.as_tuple(batch) is batch
    assert payload.as_tuple([1, 2]) == (1, 2)
    assert payload.as_tuple((1, 2)) == (1, 2)
    assert payload.as_tuple(1) == (1,)


def test_a_nest_keeps_its_types():
    nest = {"a": [1, (2, Pair(3, 4))]}
    twice = payload.each(nest, lambda v: 2 * v)
    assert twice == {"a": [2, (4, Pair(6, 8))]}
    assert type(twice["a"][1][1]) is Pair


def test_a_stream_of_dicts_is_not_mistaken_for_a_packed_one():
    assert not payload.is_packed({"image": a(1)})
    assert not payload.is_packed(a(1))
    inner = payload.to_serve(a(1))
    assert not payload.is_packed(dict(inner, more=1))


def test_padding_is_of_the_last_dimension():
    to_four = payload.padded(4)
    batch = {
        "input_ids": torch.ones(2, 3, dtype=torch.int64),
        "labels": torch.ones(2, 3, dtype=torch.int64),
        "number": torch.ones(2),
        "text": "as it is",
    }
    got = to_four(batch)
    assert got["input_ids"].tolist() == [[1, 1, 1, 0]] * 2
    assert got["labels"].tolist() == [[1, 1, 1, -100]] * 2
    assert got["number"] is batch["number"]
    assert got["text"] is batch["text"]
    assert to_four((a(1),))[0].tolist() == [0.0]
    with pytest.raises(ValueError, match="'x' is 5 long, and max_tensor"):
        to_four({"x": torch.ones(1, 5)})
