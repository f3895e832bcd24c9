# SPDX-License-Identifier: MIT
"""shard_cache=: shards are read from local copies, with the same bytes."""

import io
import itertools
import os
import subprocess
import tarfile

import pytest

import tsock
from conftest import N, PRODUCER, RAW, until

pytest.importorskip("torch")
pytest.importorskip("PIL")

pytestmark = pytest.mark.usefixtures("place")

SHARDS = 4


def _add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


@pytest.fixture
def shards(images, tmp_path):
    files = sorted(images.glob("*/*.jpg"))
    folder = tmp_path / "shards"
    folder.mkdir()
    for k in range(SHARDS):
        with tarfile.open(folder / ("s-%d.tar" % k), "w") as tar:
            for i in range(k, N, SHARDS):
                _add(tar, "%06d.jpg" % i, files[i].read_bytes())
                _add(tar, "%06d.cls" % i, b"%d" % (i % 3))
    return folder


def _loader(name, shards, **more):
    return tsock.DataLoader(
        name, 32, root=shards, dataset="webdataset", size=32, threads=2,
        no_cache=True, exit_when_idle=20, seed=4, fields=("image", "index"),
        wait=60, **RAW, **more
    )


def _epoch(loader):
    return [x.numpy().tobytes() for batch in loader for x in batch]


def _copies(cache):
    return sorted(p.name for p in cache.iterdir() if p.suffix == ".shard")


def test_two_streams_share_copies_and_have_the_same_bytes(shards, tmp_path):
    cache = tmp_path / "cache"
    with _loader("plain", shards) as loader:
        want = [_epoch(loader) for _ in range(3)]
    given = dict(shard_cache=cache, shard_cache_size="1G")
    with _loader("one", shards, **given) as one:
        with _loader("two", shards, **given) as two:
            for epoch in want[:2]:
                assert _epoch(one) == epoch
                assert _epoch(two) == epoch
            until(lambda: len(_copies(cache)) == SHARDS, what="copies")
            assert _epoch(one) == want[2]
            assert _epoch(two) == want[2]
    sizes = sorted(p.stat().st_size for p in shards.iterdir())
    assert sorted((cache / n).stat().st_size for n in _copies(cache)) == sizes
    assert not list(cache.glob("*.part"))


def test_a_later_stream_reads_the_copies_and_new_shards(shards, tmp_path):
    cache = tmp_path / "cache"
    with _loader("one", shards, shard_cache=cache) as loader:
        want = _epoch(loader)
        until(lambda: len(_copies(cache)) == SHARDS, what="copies")
    kept = {n: (cache / n).stat().st_ino for n in _copies(cache)}
    # Another time: the shard is copied anew, beside the earlier copy.
    changed = shards / "s-0.tar"
    os.utime(changed, ns=(1, changed.stat().st_mtime_ns + 1))
    with _loader("two", shards, shard_cache=cache) as loader:
        assert _epoch(loader) == want
        until(lambda: len(_copies(cache)) == SHARDS + 1, what="a copy")
    for name, inode in kept.items():
        assert (cache / name).stat().st_ino == inode


def test_a_folder_that_cant_be_used_is_said_once(shards, tmp_path):
    wrong = tmp_path / "a file"
    wrong.write_text("")
    log = tmp_path / "log"
    with open(log, "wb") as out:
        producer = subprocess.Popen(
            [PRODUCER, "--root", shards, "--dataset", "webdataset", "--name",
             "wrong", "--size", "32", "--no-cache", "--seed", "4",
             "--shard-cache", wrong, "--epochs", "2"],
            stderr=out,
        )
        try:
            with tsock.DataLoader("wrong", 32, fields=("index",), wait=60,
                                  **RAW) as loader:
                seen = list(itertools.chain.from_iterable(
                    batch[0].tolist() for batch in loader))
            assert sorted(seen) == list(range(N))
        finally:
            producer.terminate()
            producer.wait()
    said = [x for x in log.read_text().splitlines() if "--shard-cache" in x]
    assert len(said) == 1
    assert "shards are read from where they are" in said[0]


def test_a_size_without_a_folder_is_refused(shards):
    said = subprocess.run(
        [PRODUCER, "--root", shards, "--shard-cache-size", "1G"],
        capture_output=True, text=True,
    )
    assert said.returncode != 0
    assert "--shard-cache-size says nothing without --shard-cache" in said.stderr
