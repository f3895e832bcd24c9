# SPDX-License-Identifier: MIT
"""What a stream says of its batches, changed at random.

Of each seed a true description has some of its parts, or of its characters,
replaced.  Then there is a batch, of plain containers, or one tsock.Unreadable;
never another exception, and never more time or memory than its length is worth.
$TSOCK_SEED is the first seed, $TSOCK_SEEDS how many there are.
"""

import collections
import copy
import json
import os
import random
import time
import tracemalloc
import types

import pytest

import tsock
from tsock.serving import consumer, fixed, ragged

numpy = pytest.importorskip("numpy")

SEED = int(os.environ.get("TSOCK_SEED", 1))
SEEDS = int(os.environ.get("TSOCK_SEEDS", 600))
ROWS = 4
Pair = collections.namedtuple("Pair", "left right")
IMPORTER = types.SimpleNamespace(name="numpy")

BATCHES = [
    numpy.arange(ROWS * 6.0).reshape(ROWS, 2, 3),
    {
        "image": numpy.zeros((ROWS, 4, 4, 3), "uint8"),
        "label": numpy.arange(ROWS),
        "meta": {"path": ["a", "bc", "", "d\ud800"], "ok": [True] * ROWS},
        7: [numpy.ones((ROWS, 1, 1, 1, 2), "int16"), (None, 2.5, "text")],
    },
    Pair((1, 2, 3, 4), [[b"x"] * ROWS, {"w": [0.5, 1.5, -1.0, 0.0]}]),
]

ODD = [
    None, True, -1, 0, 1, 3, 1 << 40, 1 << 64, 1e999, float("nan"), 0.5, "",
    "f", "\0", "\ud800", "x" * 300, "__class__", "def", "array", "int64",
    "float64", "object", "O", [], {}, [[]], ["f", 0], ["f", -1], ["f", 1e999],
    ["f", "0"], ["c", []], ["d", [[[], ["c", 1]]]], ["n", "P", "a b", []],
    ["n", "P", ["a", "a"], [["c", 1], ["c", 2]]], ["l", "ff"], ["t", {"f": 1}],
]


def of_kind(value):
    """A batch's structure: what is where, and of which dtype and shape."""
    if isinstance(value, numpy.ndarray):
        return (str(value.dtype), value.shape)
    if isinstance(value, dict):
        return {key: of_kind(part) for key, part in value.items()}
    if hasattr(value, "_fields"):
        return (type(value).__name__, value._fields, list(map(of_kind, value)))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [of_kind(part) for part in value])
    assert value is None or type(value) in (str, bytes, bool, int, float)
    return type(value).__name__


# ---- streams -------------------------------------------------------------


def slots_of(schema, batch):
    """The tensors that a consumer has of a batch."""
    tensors = []
    rows, leaves = schema.read(batch)
    for spec, leaf in zip(schema.specs, leaves):
        room = numpy.zeros(rows * spec.row_bytes, "uint8")
        leaf.copy(room.ctypes.data, 0, rows, spec.row_bytes)
        if spec.is_native:
            room = room.view(spec.dtype).reshape((rows,) + spec.shape)
        else:
            room = room.reshape(rows, spec.row_bytes)
        tensors.append(room)
    return tensors


def stream_of(batch):
    schema = fixed.FixedSchema(batch, 8)
    said = {"structure": json.dumps(schema.as_json()), "batch": str(ROWS)}
    return said, schema.fields(), slots_of(schema, batch)


def ragged_stream_of(batch):
    schema = ragged.RaggedSchema(batch, None)
    slot = numpy.zeros((1, schema.row_bytes), "uint8")
    schema.read(batch)[1][0].copy(slot.ctypes.data, 0, 1, schema.row_bytes)
    said = {"structure": json.dumps(schema.as_json()), "batch": "1"}
    return said, schema.fields(), [slot]


def read(said, fields, tensors):
    """As a loader does."""
    about = types.SimpleNamespace(name="odd", identity=said, fields=fields)
    found = consumer.describe(about)
    assert found.batch_size(None) >= 1
    decode = found.decoder(IMPORTER, None, False, None)
    return decode(list(tensors))


# ---- changes -------------------------------------------------------------


def places(value, to):
    """Every (container, key) in a tree of JSON."""
    keys = (
        value.keys() if isinstance(value, dict)
        else range(len(value)) if isinstance(value, list)
        else ()
    )
    for key in keys:
        to.append((value, key))
        places(value[key], to)
    return to


def change_tree(dice, text):
    tree = {"": json.loads(text)}
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        # A place that was put somewhere else is there twice, or in itself.
        found = places(tree, [])
        at, key = dice.choice(found)
        odd = dice.random()
        if odd < 0.6:
            at[key] = copy.deepcopy(dice.choice(ODD))
        elif odd < 0.8:
            other, where = dice.choice(found)
            at[key] = copy.deepcopy(other[where])
        elif isinstance(at, list):
            at.insert(key, copy.deepcopy(at[key]))
        elif key:
            del at[key]
    return json.dumps(tree[""])


def change_text(dice, text):
    for _ in range(dice.choice((1, 1, 2, 8))):
        at = dice.randrange(len(text) + 1)
        new = dice.choice(('"', "[", "]", "{", ",", "9", "-", "e999", "\\", "f"))
        text = text[:at] + new + text[at + dice.randrange(3) :]
    if dice.random() < 0.1:
        text = text[: dice.randrange(len(text))]
    if dice.random() < 0.05:
        text = "[" * 100000 + text
    return text


def changed(dice, said):
    said = dict(said)
    change = dice.choice((change_tree, change_tree, change_text))
    said["structure"] = change(dice, said["structure"])
    if dice.random() < 0.1:
        said["batch"] = dice.choice(("", "0", "-1", "1e3", "9" * 5000, "\0"))
    if dice.random() < 0.02:
        del said["batch"]
    return said


def changed_slot(dice, slot):
    """Another nest in a slot, or other bytes of its head."""
    slot = slot.copy()
    head = slot[0]
    leaves, length = head[8:16].view("uint32").tolist()
    start = 24 + leaves * 88
    if dice.random() < 0.5:
        for _ in range(dice.choice((1, 2, 8))):
            at = dice.randrange(8, start)
            head[at] = dice.choice((0, 1, 0x7F, 0xFF, dice.randrange(256)))
        return slot
    text = head[start : start + length].tobytes().decode()
    change = dice.choice((change_tree, change_text))
    new = change(dice, text).encode("utf-8", "surrogatepass")[:4000]
    room = start + length + -(start + length) % 64
    shift = max(0, -(-(start + len(new) - room) // 64) * 64)
    made = numpy.zeros((1, slot.shape[1] + shift), "uint8")
    made[0, :start] = head[:start]
    made[0, room + shift :] = head[room:]
    made[0, start : start + len(new)] = numpy.frombuffer(new, "uint8")
    made[0, 12:16].view("uint32")[0] = len(new)
    made[0, 16:24].view("uint64")[0] += shift
    for i in range(leaves):
        at = 24 + i * 88 + 8
        made[0, at : at + 8].view("uint64")[0] += shift
    return made


# ---- the tests -----------------------------------------------------------


def outcome_of(seed, said, fields, tensors):
    """The structure of a batch; None: it was refused."""
    begun = time.process_time()
    tracemalloc.start()
    try:
        made = of_kind(read(said, fields, tensors))
    except tsock.Unreadable as e:
        assert len(str(e)) < 2000
        made = None
    except BaseException:
        print("TSOCK_SEED=%d TSOCK_SEEDS=1: %.2000r" % (seed, said))
        raise
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < (4 << 20) + 200 * len(said["structure"]), seed
    assert time.process_time() - begun < 5, seed
    return made


@pytest.mark.parametrize("kind", range(len(BATCHES)))
def test_a_description_is_read_or_refused(kind):
    said, fields, tensors = stream_of(BATCHES[kind])
    right = of_kind(read(said, fields, tensors))
    assert right == of_kind(BATCHES[kind])
    refused = 0
    for seed in range(SEED, SEED + SEEDS):
        dice = random.Random(seed)
        made = outcome_of(seed, changed(dice, said), fields, tensors)
        refused += made is None
    assert SEEDS < 100 or SEEDS / 4 < refused < SEEDS


@pytest.mark.parametrize("kind", range(len(BATCHES)))
def test_a_packed_batch_is_read_or_refused(kind):
    said, fields, (slot,) = ragged_stream_of(BATCHES[kind])
    right = of_kind(read(said, fields, [slot]))
    assert right == of_kind(BATCHES[kind])
    refused = 0
    for seed in range(SEED, SEED + SEEDS):
        dice = random.Random(seed)
        made = outcome_of(seed, said, fields, [changed_slot(dice, slot)])
        refused += made is None
    assert SEEDS < 100 or SEEDS / 4 < refused < SEEDS


def test_fields_other_than_the_streams_are_refused():
    said, fields, tensors = stream_of(BATCHES[1])
    others = stream_of(BATCHES[2])[1]
    with pytest.raises(tsock.Unreadable, match="other fields"):
        read(said, others, tensors)
    said, fields, tensors = ragged_stream_of(BATCHES[0])
    with pytest.raises(tsock.Unreadable, match="no packed batches"):
        read(said, others, tensors)
