# SPDX-License-Identifier: MIT
"""What the constructor takes: no producer is needed to be told off."""

import math
import os
import subprocess
import tempfile

import pytest

import tsock
from conftest import PRODUCER
from tsock import _ffi, arguments, gpu, producer, tensors

pytestmark = pytest.mark.usefixtures("warm")


def refused(kind, *arguments, **keywords):
    with pytest.raises(kind) as caught:
        tsock.DataLoader(*arguments, wait=0.1, **keywords)
    return str(caught.value)


@pytest.fixture(autouse=True)
def no_stream(place):
    """None of these may get as far as to look for a producer."""


@pytest.mark.parametrize(
    "size", [0, -1, 1.5, True, [1], "8", 2**32, float("nan")]
)
def test_batch_size_is_a_positive_whole_number(size):
    assert "batch_size %r" % (size,) in refused(ValueError, "toy", size)


@pytest.mark.parametrize(
    "keyword, choices",
    [
        ("dtype", ["float32", "float16", "bfloat16", "uint8"]),
        ("layout", ["chw", "hwc"]),
        ("join", ["epoch", "segment", "now"]),
        ("between", ["hold", "leave", "None"]),
        ("framework", ["torch", "numpy"]),
    ],
)
@pytest.mark.parametrize("value", ["sideways", 7, []])
def test_an_unknown_choice_is_answered_with_the_choices(
    keyword, choices, value
):
    text = refused(ValueError, "toy", **{keyword: value})
    assert keyword in text
    for choice in choices:
        assert choice in text


@pytest.mark.parametrize("fields", [(), False, 3, ("image", 4)])
def test_fields_are_names(fields):
    assert "fields" in refused(ValueError, "toy", fields=fields)


@pytest.mark.parametrize(
    "normalize",
    [
        "cifar",
        5,
        (1, 2, 3),
        ((0, 0), (1, 1)),
        ((0, 0, 0), (1, 1, 0)),
        ((0, 0, 0), (1, 1, -1)),
        ((0, 0, math.nan), (1, 1, 1)),
        ((0, 0, "x"), (1, 1, 1)),
        b"ab",
        "ab",
    ],
)
def test_normalize_is_a_name_none_or_mean_and_deviation(normalize):
    assert "normalize" in refused(ValueError, "toy", normalize=normalize)


@pytest.mark.parametrize("normalize", ["imagenet", ((0,) * 3, (1,) * 3)])
def test_raw_bytes_are_not_normalized(normalize):
    assert "uint8" in refused(
        ValueError, "toy", dtype="uint8", normalize=normalize
    )


def test_numpy_has_no_bfloat16():
    pytest.importorskip("numpy")
    assert "bfloat16" in refused(
        ValueError, "toy", dtype="bfloat16", framework="numpy"
    )


@pytest.mark.parametrize("seconds", [-1, math.nan, "1", True])
@pytest.mark.parametrize("keyword", ["timeout", "wait"])
def test_times_are_seconds(keyword, seconds):
    with pytest.raises(ValueError, match=keyword):
        tsock.DataLoader("toy", **{keyword: seconds})


@pytest.mark.parametrize("keyword", ["shuffle", "sampler", "collate_fn"])
def test_what_torch_has_and_we_have_not_says_where_it_went(keyword):
    text = refused(TypeError, "toy", **{keyword: 1})
    assert keyword in text and ": " in text


def test_a_data_set_is_no_stream_name():
    assert "name of a stream" in refused(TypeError, [1, 2, 3])


def test_a_name_with_a_nul_is_no_stream_name():
    # C would take it for "toy".
    assert "NUL" in refused(ValueError, "toy\0x")
    with pytest.raises(ValueError, match="NUL"):
        tsock.query("toy\0x", timeout=0.1)


def test_options_reach_c_as_they_were_meant():
    opts = _ffi.Opts()
    assert arguments.set_normalize(opts, "float32", arguments.DEFAULT) == (
        "imagenet"
    )
    assert opts.normalize == _ffi.MEAN_STD
    assert list(opts.mean) == pytest.approx([0.485, 0.456, 0.406])
    assert list(opts.std) == pytest.approx([0.229, 0.224, 0.225])
    assert arguments.set_normalize(opts, "float16", None) is None
    assert opts.normalize == _ffi.UNIT
    arguments.set_normalize(opts, "uint8", arguments.DEFAULT)
    assert opts.normalize == _ffi.RAW


def test_all_choices_of_a_batch_are_in_one_struct():
    opts, dtype, told = arguments.options(
        "float16", "hwc", None, "now", "hold", True, False
    )
    assert (dtype, told) == ("float16", None)
    assert opts.device == -1 and opts.size and not opts.batch_size
    assert opts.dtype == _ffi.DTYPES["float16"]
    assert opts.layout == _ffi.LAYOUTS["hwc"]
    assert opts.normalize == _ffi.UNIT
    assert opts.join == _ffi.JOINS["now"]
    assert opts.between == _ffi.BETWEENS["hold"]
    assert opts.flags == _ffi.DROP_LAST
    opts = arguments.options(
        "uint8", "chw", arguments.DEFAULT, "epoch", None, False, True
    )[0]
    assert opts.dtype == _ffi.DTYPES["uint8"]
    assert opts.normalize == _ffi.RAW
    assert opts.between == _ffi.BETWEENS[None]
    assert opts.flags == _ffi.EVEN


def test_dtypes_of_torch_and_numpy_are_understood():
    numpy = pytest.importorskip("numpy")
    assert arguments.dtype_name(numpy.float16) == "float16"
    assert arguments.dtype_name(numpy.dtype("uint8")) == "uint8"
    torch = pytest.importorskip("torch")
    assert arguments.dtype_name(torch.bfloat16) == "bfloat16"


def test_without_torch_there_is_numpy_and_without_either_an_error(
    monkeypatch,
):
    pytest.importorskip("numpy")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert tensors.framework(None).name == "numpy"
    with pytest.raises(ImportError, match="torch"):
        tensors.framework("torch")
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    with pytest.raises(ImportError, match="neither"):
        tensors.framework(None)


def test_a_missing_producer_names_the_places_that_were_looked_at(
    monkeypatch, tmp_path
):
    import os
    import shutil
    import tempfile

    # Without $TSOCK_DIR there are three places.
    folder = tempfile.mkdtemp(prefix="tsock-")
    try:
        monkeypatch.delenv("TSOCK_DIR")
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        with pytest.raises(tsock.NoProducer) as caught:
            tsock.DataLoader("nobody-serves-this", wait=0.1)
        text = str(caught.value)
        assert "nobody-serves-this" in text
        assert folder in text
        assert "/tmp/tsock-%d" % os.getuid() in text
        assert "/run/user/%d/tsock" % os.getuid() in text
        assert caught.value.code == "TSOCK_ENOPROD"
    finally:
        shutil.rmtree(folder)


def test_waiting_is_said_once_on_stderr_and_wait_is_kept(script, place):
    process = script(
        "import time, tsock\n"
        "began = time.monotonic()\n"
        "try:\n"
        "    tsock.DataLoader('toy', wait=0.7)\n"
        "except tsock.NoProducer:\n"
        "    print(time.monotonic() - began)\n"
    )
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0, err
    assert 0.6 < float(out) < 60
    assert err.count("waiting for producer") == 1, err
    assert "toy" in err and place in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "folder",
    ["flowers", "-.my set!..", "a" * 80, "a" * 62 + "._" + "b", "...", "Bäume"],
)
def test_a_folder_gives_the_program_and_python_the_same_name(
    images, tmp_path, folder
):
    root = tmp_path / folder
    root.symlink_to(images)
    # The longest name fits a socket's path in a short folder alone.
    with tempfile.TemporaryDirectory(prefix="tsock-", dir="/tmp") as short:
        plan = subprocess.run(
            [PRODUCER, "--dataset", "imagefolder", "--root", root, "--dry-run"],
            check=True,
            capture_output=True,
            env=dict(os.environ, TSOCK_DIR=short),
        ).stdout.decode()
    checked = dict(dataset="imagefolder", root=str(root) + "/")
    name = producer.describe(PRODUCER, checked)[0]
    assert "stream        %s\n" % name in plan


@pytest.mark.parametrize(
    "device, shown", [("gpu", "'gpu'"), ("mps", "'mps'"), ([1], r"'\[1\]'")]
)
def test_what_is_no_gpu_is_named_as_it_was_given(device, shown):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="^device %s: it is None" % shown):
        gpu.Cuda(device, tensors.framework("torch"))


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_data_sets_folder_is_told_of_root(tmp_path, slash):
    """Its parent is open to others, which is as it should be."""
    tmp_path.chmod(0o755)
    root = str(tmp_path / "train") + slash
    assert "no stream" in refused(tsock.Refused, root.rstrip("/"), 32)
    os.mkdir(root)
    for name in (root, tmp_path / "train"):
        text = refused(ValueError, name, 32)
        assert "a stream's name" in text and "is a folder" in text
        assert "root=%r" % os.fspath(name) in text
        assert "chmod" not in text
    shard = tmp_path / "shard.tar"
    shard.write_bytes(b"")
    assert "root=%r" % str(shard) in refused(ValueError, str(shard))
    assert "data set 's3://x/y': files" in refused(ValueError, "s3://x/y")


def test_a_name_that_a_folder_has_is_told_of_root(tmp_path, monkeypatch):
    (tmp_path / "train").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "is read by root='train'" in refused(tsock.NoProducer, "train", 32)
