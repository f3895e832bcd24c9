# SPDX-License-Identifier: MIT
"""A pack gives the bytes of the folder that it was made of."""

import os
import signal
import subprocess
import time

import pytest

import tsock
from conftest import N, PRODUCER, RAW

pytest.importorskip("torch")
pytest.importorskip("PIL")
PACK = os.path.join(os.path.dirname(PRODUCER), "tsock-pack")
FIELDS = ("image", "label", "index", "box")


def _pack(*arguments):
    return subprocess.run(
        [PACK, "--no-cache"] + [str(a) for a in arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )


def _bytes(loader):
    return [
        [field.numpy().tobytes() for field in batch]
        for _ in range(2)
        for batch in loader
    ]


def test_a_pack_gives_the_folders_bytes(serve, images, tmp_path):
    done = _pack(images, tmp_path / "pack")
    assert done.returncode == 0, done.stderr
    assert "%d samples" % N in done.stdout and "%d packed" % N in done.stdout
    serve("--epochs", 2)
    serve("--epochs", 2, name="packed", root=tmp_path / "pack")
    folder = tsock.DataLoader("toy", 48, fields=FIELDS, **RAW)
    packed = tsock.DataLoader("packed", 48, fields=FIELDS, wait=60, **RAW)
    assert packed.dataset.targets == folder.dataset.targets
    assert packed.dataset.keys == folder.dataset.keys
    assert _bytes(folder) == _bytes(packed)
    assert packed.dataset.classes == folder.dataset.classes
    with pytest.raises(AttributeError, match="dataset=packed.*dataset.keys"):
        packed.dataset.samples


def test_a_loader_finds_a_pack(images, place, tmp_path):
    root = tmp_path / "pack"
    assert _pack(images, root).returncode == 0
    options = dict(
        size=32, preset="eval", no_cache=True, fields=("index",), **RAW
    )
    loader = tsock.DataLoader(
        "p", 40, root=root, threads=1, exit_when_idle=10, **options
    )
    assert [int(i) for (index,) in loader for i in index] == list(range(N))
    # As what it was made of, too.
    again = tsock.DataLoader(
        "p", 40, root=root, dataset="imagefolder", **options
    )
    next(iter(again))
    again.close()
    loader.close()


def test_a_killed_pack_goes_on(images, tmp_path):
    assert _pack(images, tmp_path / "whole").returncode == 0
    part = tmp_path / "pack"
    process = subprocess.Popen(
        [PACK, "--no-cache", str(images), str(part)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None:
        if (tmp_path / "pack.part" / "journal").exists():
            process.send_signal(signal.SIGKILL)
            process.wait()
        time.sleep(0.001)
    if process.returncode:
        assert not part.exists()
        assert _pack(images, part).returncode == 0
    for name in os.listdir(tmp_path / "whole"):
        assert (part / name).read_bytes() == (
            tmp_path / "whole" / name
        ).read_bytes()


def test_what_it_cant_do_it_says(images, tmp_path):
    assert "usage: tsock-pack" in _pack("--help").stdout
    for arguments, words in (
        ((images,), "two folders"),
        ((tmp_path / "none", tmp_path / "p"), "no folder"),
        (("--threads", 0, images, tmp_path / "p"), "--threads 0"),
        (("--nothing", images, tmp_path / "p"), "--nothing"),
        (("--dataset", "imagenot", images, tmp_path / "p"), "imagenet"),
        ((tmp_path, tmp_path / "p"), "class folders"),
        ((images, images), "there already"),
    ):
        done = _pack(*arguments)
        assert done.returncode != 0
        assert done.stderr.startswith("tsock-pack: ") or "scanning" in done.stderr
        assert words in done.stderr
        assert not (tmp_path / "p").exists()
