# SPDX-License-Identifier: MIT
"""The parts of several producers, by bytes: step by step, all ranks together
have what the stream of one producer has.

The ranks are handles of this process, on the library's own functions, since the
rings hold more than is read here.
"""

import hashlib
from ctypes import byref, c_uint64, c_void_p, string_at

import pytest

from conftest import N, SIZE
from tsock import _ffi, errors
from tsock.order import Order

lib = _ffi.lib
BYTES = SIZE * SIZE * 3
NODES = {"a": (0, 1), "b": (2, 4)}  # names of streams, first and last ranks
WORLD, BATCH = 5, 7


class Rank:
    """A rank of a job on one stream."""

    def __init__(self, name, rank, world, flags=0, batch=BATCH, job=b"j" * 16):
        self.opts = _ffi.Opts(
            batch_size=batch,
            timeout_ms=60000,
            device=-1,
            world=world,
            rank=rank,
            flags=flags,
            between=1,
            rejoin_ms=0,
        )
        self.opts.std[:] = 1, 1, 1
        self.opts.job[:] = job
        self.handle = c_void_p()
        check(
            lib.tsock_open(
                name.encode(), byref(self.opts), byref(self.handle)
            )
        )
        self.info = _ffi.Info()
        check(lib.tsock_get_info(self.handle, byref(self.info)))
        said = lib.tsock_identity(self.handle).decode()
        self.identity = dict(
            line.split("=", 1) for line in said.splitlines() if line
        )

    def begin(self):
        check(lib.tsock_begin_timed(self.handle, 60000))
        return self.epoch()

    def begin_from(self, epoch):
        check(lib.tsock_begin_from(self.handle, epoch, 60000))
        return self.epoch()

    def epoch(self):
        return lib.tsock_epoch(self.handle)

    def next(self):
        """The next batch's samples, [] at the epoch's end: a number that says
        which, and what is in it."""
        batch = c_void_p()
        code = lib.tsock_next(self.handle, 60000, byref(batch))
        if code == errors.EEPOCH:
            return []
        check(code)
        count = lib.tsock_batch_count(batch)
        image = string_at(lib.tsock_batch_data(batch, 0), count * BYTES)
        index = string_at(lib.tsock_batch_data(batch, 2), count * 8)
        lib.tsock_batch_release(batch)
        return [
            (
                int.from_bytes(index[8 * i : 8 * i + 8], "little"),
                hashlib.sha1(image[BYTES * i : BYTES * i + BYTES]).digest(),
            )
            for i in range(count)
        ]

    def part(self):
        i = self.info
        return _ffi.PartOpts(
            shard=i.shard,
            shard_ranks=i.shard_ranks,
            shards=i.shards,
            whole_len=i.whole_len,
            start_epoch=i.start_epoch,
            start=i.start,
        )

    def place(self):
        """(epoch, position in the whole order)"""
        start, samples, place = c_uint64(), c_uint64(), c_uint64()
        check(
            lib.tsock_position(self.handle, byref(start), byref(samples))
        )
        epoch = start.value // self.info.epoch_len
        check(
            lib.tsock_part_position(
                byref(self.part()), epoch, samples.value, byref(place)
            )
        )
        return epoch, place.value

    def resume(self, epoch, position):
        samples = c_uint64()
        check(
            lib.tsock_part_samples(
                byref(self.part()), epoch, position, byref(samples)
            )
        )
        code = lib.tsock_resume(
            self.handle, epoch * self.info.epoch_len, samples.value, 50
        )
        if code != errors.EAGAIN:
            check(code)
        return code == 0

    def close(self):
        lib.tsock_close(self.handle)


def check(code):
    if code:
        raise _ffi.failure(code)


@pytest.fixture
def ranks():
    """ranks({stream: (first, last)}) are all ranks of a job."""
    opened = []

    def open_all(nodes, **keywords):
        job = [
            Rank(name, rank, last - first + 1, **keywords)
            for name, (first, last) in nodes.items()
            for rank in range(last - first + 1)
        ]
        opened.extend(job)
        return job

    yield open_all
    for rank in opened:
        rank.close()


def serve_parts(serve, nodes, world, *options):
    for name, (first, last) in nodes.items():
        serve("--shard", "%d-%d/%d" % (first, last, world), *options, name=name)


def step(job):
    return [sample for rank in job for sample in rank.next()]


def whole_epoch(job):
    """What one producer's stream has, sample by sample."""
    assert len(job) == 1
    samples = []
    while True:
        batch = job[0].next()
        if not batch:
            return samples
        samples += batch


@pytest.mark.parametrize("order", ["philox", "sequential"])
def test_all_parts_together_have_what_one_stream_has(serve, ranks, order):
    options = "--seed", 3, "--order", order
    serve(*options, name="one")
    serve_parts(serve, NODES, WORLD, *options)
    one, job = ranks({"one": (0, 0)}), ranks(NODES)
    block = WORLD * BATCH
    for epoch in range(2):
        assert {rank.begin() for rank in one + job} == {epoch}
        whole = whole_epoch(one)
        assert len(whole) == N
        for at in range(0, N - N % block, block):
            assert sorted(step(job)) == sorted(whole[at : at + block])
            assert {rank.place() for rank in job} == {(epoch, at + block)}
        rest = step(job)
        left = whole[N - N % block :]
        if order == "philox":  # as many for each rank
            left += whole[: -N % WORLD]
        assert sorted(rest) == sorted(left)
        assert step(job) == []
        assert {rank.place() for rank in job} == {(epoch, N)}


def test_evaluating_ranks_may_have_equally_many(serve, ranks):
    serve_parts(serve, NODES, WORLD, "--order", "sequential")
    once, even = ranks(NODES), ranks(NODES, flags=_ffi.EVEN, job=b"k" * 16)
    for job in once, even:
        for rank in job:
            rank.begin()
    seen = [[len(rank.next()) for _ in range(7)] for rank in once + even]
    sums = [sum(counts) for counts in seen]
    assert sums == [41, 41, 41, 40, 40] + [41] * WORLD
    batches = [lib.tsock_epoch_batches(rank.handle) for rank in once + even]
    assert batches == [sum(map(bool, counts)) for counts in seen]


def test_parts_drop_what_one_stream_drops(serve, ranks):
    """51 rows are three batches of 17, but the last one isn't whole."""
    parts = {"a": (0, 0), "b": (1, 3)}
    serve("--seed", 3, name="one")
    serve_parts(serve, parts, 4, "--seed", 3)
    one = ranks({"one": (0, 0)})
    job = ranks(parts, flags=_ffi.DROP_LAST, batch=17)
    for rank in one + job:
        rank.begin()
    whole = whole_epoch(one)
    for at in (0, 68):
        assert sorted(step(job)) == sorted(whole[at : at + 68])
    assert step(job) == []
    assert {rank.place() for rank in job} == {(0, N)}
    assert {lib.tsock_epoch_batches(rank.handle) for rank in job} == {2}


def test_the_order_of_a_part_can_be_told(serve, ranks):
    serve("--shard", "1-2/4", "--seed", 2, "--start", "1:9", name="a")
    (rank,) = ranks({"a": (0, 0)})
    order = Order("a", rank.identity)
    assert rank.identity["shard"] == "1-2/4"
    assert rank.identity["start"] == "1:9"
    assert rank.begin() == 2
    assert [i for i, _ in whole_epoch([rank])] == list(order.indices(2))
    rest = 2 * -(-(N - 9) // 4)
    start = rank.info.epoch_len - rest
    check(lib.tsock_resume(rank.handle, rank.info.epoch_len, start, 60000))
    told = list(order.indices(1))[start:]
    assert [i for i, _ in whole_epoch([rank])] == told


def test_a_job_goes_on_with_other_ranks_amid_an_epoch(serve, ranks):
    """A row of 5 and one of 3 begin at different places of the order."""
    serve("--seed", 3, name="one")
    serve_parts(serve, NODES, WORLD, "--seed", 3)
    one, job = ranks({"one": (0, 0)}), ranks(NODES)
    for rank in one + job:
        rank.begin()
    whole = whole_epoch(one)
    taken = step(job) + step(job)
    ((epoch, position),) = {rank.place() for rank in job}
    assert (epoch, position) == (0, 2 * WORLD * BATCH)
    smaller = {"c": (0, 0), "d": (1, 2)}
    # The parts that begin with each epoch have no row there.
    serve_parts(serve, smaller, 3, "--seed", 3)
    lost = ranks(smaller)
    with pytest.raises(errors.Refused, match="--start 0:70"):
        lost[0].resume(epoch, position)
    smaller = {"e": (0, 0), "f": (1, 2)}
    serve_parts(serve, smaller, 3, "--seed", 3, "--start", "0:70")
    job = ranks(smaller)
    # The ranks of one stream wait for each other.
    waiting = job
    while waiting:
        waiting = [r for r in waiting if not r.resume(epoch, position)]
    for at in range(position, N - (N - position) % 21, 21):
        got = step(job)
        assert sorted(got) == sorted(whole[at : at + 21])
        taken += got
    taken += step(job)
    assert step(job) == []
    assert sorted(set(taken)) == sorted(whole)
    assert len(taken) == 70 + 3 * -(-(N - 70) // 3)
    assert {rank.begin() for rank in job + one} == {1}
    assert sorted(step(job)) == sorted(whole_epoch(one)[:21])
    # What was read before isn't in this stream.
    with pytest.raises(errors.Refused, match="amid an epoch"):
        check(lib.tsock_resume(job[0].handle, 0, 0, 60000))
    # Those who come later get whole epochs alone.
    (late,) = ranks({"e": (0, 0)}, job=b"l" * 16)
    assert late.begin() > 0


def test_ranks_of_several_streams_agree_on_an_epoch(serve, ranks):
    """Another job is further in one stream than in the other."""
    serve_parts(serve, NODES, WORLD, "--ring", 2048)
    (ahead,) = ranks({"b": (0, 0)}, job=b"l" * 16)
    # By no more than two epochs: a stream that has readers isn't moved further.
    for epoch in range(2):
        assert ahead.begin() == epoch
        whole_epoch([ahead])
    job = ranks(NODES)
    could = [rank.begin() for rank in job]
    assert could[:2] == [0, 0]
    assert len(set(could[2:])) == 1 and could[2] > 0
    most = max(could)
    # Its own is kept meanwhile; the others find theirs alone.
    assert [rank.begin_from(most) for rank in job] == [most] * WORLD
    assert [rank.begin_from(most) for rank in job] == [most] * WORLD
    assert len({index for index, _ in step(job)}) == WORLD * BATCH
    # Once something was taken it is the next one; nobody is asked to go back.
    assert [rank.begin_from(0) for rank in job] == [most + 1] * WORLD


def test_ranks_go_to_any_epoch_of_a_stream_that_no_other_job_reads(
    serve, ranks
):
    serve("--shard", "0-1/4", "--seed", 3, name="a")
    first, second = job = ranks({"a": (0, 1)})
    assert [rank.begin() for rank in job] == [0, 0]
    assert [rank.begin_from(90) for rank in job] == [90, 90]
    assert len(step(job)) == 2 * BATCH
    # The second one is given what the first one has begun.
    assert [first.begin_from(2000), second.begin_from(900)] == [2000, 2000]
    assert len(step(job)) == 2 * BATCH
    # The first one reads on, and the second one waits, until both agree.
    assert [first.begin_from(3000), second.begin_from(5000)] == [3000, 5000]
    batch = c_void_p()
    code = lib.tsock_next(second.handle, 0, byref(batch))
    assert code == errors.EAGAIN
    while first.next():
        pass
    assert first.begin() == 3001
    assert first.next()
    assert first.begin_from(4000) == 5000
    assert len(step(job)) == 2 * BATCH


def test_a_stream_that_others_read_does_not_go_far(serve, ranks):
    serve("--shard", "0-1/4", name="a")
    (other,) = ranks({"a": (0, 0)}, job=b"l" * 16)
    other.begin()
    job = ranks({"a": (0, 1)})
    with pytest.raises(errors.Refused, match="epoch 9 can't be begun"):
        job[0].begin_from(9)
    other.close()
    other.handle = None
    assert [rank.begin_from(9) for rank in job] == [9, 9]


def test_an_evaluating_rank_that_begins_at_a_segment_is_refused(serve):
    serve("--shard", "3/4", "--order", "sequential", name="a")
    opts = _ffi.Opts(batch_size=4, timeout_ms=60000, device=-1, join=1)
    handle = c_void_p()
    code = lib.tsock_open(b"a", byref(opts), byref(handle))
    assert code == -9
    assert "TSOCK_EVEN" in lib.tsock_errmsg().decode()
