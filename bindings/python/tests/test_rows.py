# SPDX-License-Identifier: MIT
"""Data sets of arrays in files: NumPy's, records, tokens, CIFAR, ImageNet64."""

import os
import pickle
import re
import struct
import subprocess

import pytest

import tsock
from conftest import PRODUCER

np = pytest.importorskip("numpy")

AS_STORED = dict(dtype="uint8", layout="hwc", framework="numpy", wait=60)

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def stream(tmp_path):
    """stream(...) makes a loader, whose producer ends with the test."""
    names = []

    def make(root, batch_size=7, **more):
        names.append("rows-%d" % len(names))
        return tsock.DataLoader(
            name=names[-1],
            root=root,
            batch_size=batch_size,
            **{**AS_STORED, **more},
        )

    yield make
    for name in names:
        try:
            tsock.stop(name, force=True)
        except tsock.Error:
            pass  # there is none, since it refused


@pytest.fixture
def in_memory():
    """in_memory(n) makes a file of n zeros: its descriptor and its path.

    It takes no memory, and may be larger than a file on a disk."""
    made = []

    def make(n):
        made.append(os.memfd_create("data.bin", 0))
        os.ftruncate(made[-1], n)
        return made[-1], "/proc/%d/fd/%d" % (os.getpid(), made[-1])

    yield make
    for fd in made:
        os.close(fd)


def rows(loader):
    """Each field's rows, in the order of the data set."""
    batches = list(loader)
    columns = [np.concatenate(parts) for parts in zip(*batches)]
    order = np.argsort(columns[-1], kind="stable")
    return [column[order] for column in columns[:-1]]


def refused(root, *options):
    """What the producer says of a data set that it doesn't serve."""
    done = subprocess.run(
        [PRODUCER, "--root", str(root), "--dry-run", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert done.returncode, done.stdout
    return done.stdout


# ---- NumPy ----------------------------------------------------------------


def test_arrays_of_a_folder_are_fields_and_parts_follow_by_number(
    tmp_path, stream, rng
):
    parts = [rng.standard_normal((n, 3, 2)).astype("f4") for n in (5, 8, 4)]
    for k, part in zip((1, 2, 10), parts):
        np.save(tmp_path / ("emb_%d.npy" % k), part)
    labels = rng.integers(0, 9, 17)
    np.save(tmp_path / "labels.npy", labels)
    loader = stream(
        tmp_path, dataset="npy", fields=("emb", "label", "index")
    )
    emb, label = rows(loader)
    assert emb.dtype == np.float32 and label.dtype == np.int64
    assert np.array_equal(emb, np.concatenate(parts))
    assert np.array_equal(label, labels)


def test_without_fields_a_batch_has_all_that_the_data_set_has(
    tmp_path, stream, rng
):
    np.savez(tmp_path / "a.npz", a=rng.integers(0, 9, (4, 2)), b=np.arange(4.0))
    loader = stream(tmp_path / "a.npz", dataset="npy", as_dict={"a": "A"})
    (batch,) = list(loader)
    assert sorted(batch) == ["A", "b"] and loader.fields == ("a", "b")


@pytest.mark.parametrize(
    "dtype",
    "u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8 bool".split(),
)
def test_each_dtype_comes_as_it_is(tmp_path, stream, rng, dtype):
    values = rng.integers(0, 2, (9, 3)).astype(dtype)
    np.save(tmp_path / "v.npy", values)
    (got,) = rows(
        stream(tmp_path / "v.npy", dataset="npy", fields=("v", "index"))
    )
    assert got.dtype == values.dtype and np.array_equal(got, values)


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_of_pixels_are_images(tmp_path, stream, rng, planar, channels):
    shape = (11, channels, 19, 17) if planar else (11, 19, 17, channels)
    pixels = rng.integers(0, 256, shape, dtype="u1")
    np.savez(tmp_path / "a.npz", images=pixels, labels=np.arange(11) % 3)
    whole = stream(tmp_path / "a.npz", fields=("image", "index"))
    (image,) = rows(whole)
    want = pixels.transpose(0, 2, 3, 1) if planar else pixels
    assert np.array_equal(image, want)
    loader = stream(
        tmp_path / "a.npz",
        dataset="npy",
        transform="Pad(2) CenterCrop((19, 17))",
        fields=("image", "label", "index"),
    )
    image, label = rows(loader)
    assert np.array_equal(image, np.broadcast_to(want, image.shape))
    assert np.array_equal(label, np.arange(11) % 3)


def test_arrays_of_pixels_are_read_by_no_reader_of_files(tmp_path, rng):
    pixels = rng.integers(0, 256, (5, 19, 17, 3), dtype="u1")
    np.save(tmp_path / "images.npy", pixels)
    with subprocess.Popen(
        [PRODUCER, "--root", str(tmp_path), "--name", "stored"],
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        said = next(line for line in run.stderr if " files by " in line)
        run.terminate()
    assert "files by memory mapping; ring" in said


def test_fields_that_nobody_asks_for_are_named(tmp_path, stream, rng, caplog):
    pixels = rng.integers(0, 256, (3, 4, 4, 3), dtype="u1")
    emb = rng.standard_normal((3, 5)).astype("f4")
    np.savez(tmp_path / "a.npz", images=pixels, labels=np.arange(3), emb=emb)
    caplog.set_level("INFO", "tsock")
    for more in {}, {"fields": ("image", "label", "emb")}:
        loader = stream(tmp_path / "a.npz", dataset="npy", **more)
        assert len(next(iter(loader))) == 2 + len(more)
    said = [r.getMessage() for r in caplog.records if "lack" in r.getMessage()]
    assert len(said) == 1
    assert "also has emb, which" in said[0]
    assert "fields=('image', 'label', 'emb')" in said[0]


@pytest.mark.parametrize("planar", [False, True])
def test_a_recipe_need_not_say_the_size_that_all_images_have(
    tmp_path, stream, rng, planar
):
    shape = (11, 3, 19, 17) if planar else (11, 19, 17, 3)
    pixels = rng.integers(0, 256, shape, dtype="u1")
    np.savez(tmp_path / "a.npz", images=pixels)
    want = pixels.transpose(0, 2, 3, 1) if planar else pixels

    def images(transform):
        return rows(
            stream(
                tmp_path / "a.npz",
                dataset="npy",
                transform=transform,
                fields=("image", "box", "index"),
            )
        )

    (padded, _) = images("Pad(4)")
    assert padded.shape == (11, 27, 25, 3)
    assert np.array_equal(
        padded, np.pad(want, ((0, 0), (4, 4), (4, 4), (0, 0)))
    )
    image, box = images("RandomHorizontalFlip()")
    flipped = box[:, 4].astype(bool)
    assert 0 < flipped.sum() < 11
    for k in range(11):
        assert np.array_equal(
            image[k], want[k, :, ::-1] if flipped[k] else want[k]
        )
    said = refused(
        tmp_path / "a.npz", "--dataset=npy", "--transform=RandomResize(9, 12)"
    )
    assert "differ in size" in said


def test_train_and_test_arrays_are_told_apart_by_their_names(
    tmp_path, stream, rng
):
    for part, n in (("train", 12), ("test", 5)):
        np.save(tmp_path / ("x_%s.npy" % part), np.full((n, 2), n))
        np.save(tmp_path / ("y_%s.npy" % part), np.arange(n))
    for split, n in (("train", 12), ("val", 5)):
        loader = stream(
            tmp_path, dataset="npy", split=split, fields=("x", "index")
        )
        (x,) = rows(loader)
        assert len(x) == n and (x == n).all()


def test_of_one_file_with_both_parts_the_split_is_served(tmp_path, stream):
    """As Keras has MNIST."""
    path = tmp_path / "mnist.npz"
    np.savez(
        path,
        x_train=np.full((12, 4, 4), 1, "u1"),
        y_train=np.arange(12),
        x_test=np.full((5, 4, 4), 2, "u1"),
        y_test=np.arange(5),
    )
    for split, n, value in (("train", 12, 1), ("val", 5, 2)):
        loader = stream(
            path, dataset="npy", split=split, fields=("image", "label", "index")
        )
        image, label = rows(loader)
        assert list(label) == list(range(n)) and (image == value).all()


def test_arrays_of_a_file_are_fields_by_their_whole_names(tmp_path, stream):
    np.savez(tmp_path / "a.npz", np.arange(6), np.arange(6) * 2)
    loader = stream(
        tmp_path / "a.npz", dataset="npy", fields=("arr_0", "arr_1", "index")
    )
    first, second = rows(loader)
    assert np.array_equal(first, np.arange(6))
    assert np.array_equal(second, np.arange(6) * 2)


def test_a_name_that_no_field_can_have_is_refused(tmp_path):
    name = "a_name_of_more_than_31_characters"
    np.savez(tmp_path / "a.npz", **{name + "1": np.arange(3)})
    assert "have 34: rename it" in refused(tmp_path, "--dataset=npy")
    np.savez(tmp_path / "a.npz", index=np.arange(3))
    assert "rename it" in refused(tmp_path, "--dataset=npy")


def test_arrays_that_cannot_be_served_are_refused_by_name(tmp_path, rng):
    np.save(tmp_path / "a.npy", np.arange(6))
    np.save(tmp_path / "b.npy", np.arange(5))
    assert "as many" in refused(tmp_path, "--dataset=npy")
    np.save(tmp_path / "b.npy", np.array(["a"] * 6))
    assert "dtype <U1" in refused(tmp_path, "--dataset=npy")
    np.save(tmp_path / "b.npy", np.asfortranarray(rng.random((6, 2))))
    assert "Fortran" in refused(tmp_path, "--dataset=npy")
    np.save(tmp_path / "b.npy", np.arange(6).astype(">i4"))
    assert "byte order" in refused(tmp_path, "--dataset=npy")
    np.save(tmp_path / "b.npy", np.arange(6))
    os.truncate(tmp_path / "b.npy", 150)
    assert "truncated" in refused(tmp_path, "--dataset=npy")
    np.savez_compressed(tmp_path / "c.npz", a=np.zeros(6))
    assert "savez" in refused(tmp_path / "c.npz", "--dataset=npy")
    assert "no images" in refused(
        tmp_path / "a.npy", "--dataset=npy", "--size=9"
    )


def test_a_file_that_is_cut_short_ends_the_stream_by_name(
    tmp_path, stream, rng
):
    np.save(tmp_path / "a.npy", rng.random((5000, 64)))
    loader = stream(
        tmp_path / "a.npy", dataset="npy", batch_size=8, ring=64, max_batch=8
    )
    with pytest.raises(tsock.StreamFailed, match="a.npy was cut short"):
        for k, _ in enumerate(loader):
            if k == 1:
                os.truncate(tmp_path / "a.npy", 4096)


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_a_subset_has_fields_of_any_dtype(tmp_path, stream, framework):
    pytest.importorskip(framework)
    kinds = "u1 i1 i2 u2 i4 u4 i8 u8 f2 f4 f8 ?".split()
    arrays = {"x%d" % k: np.arange(12).astype(d) for k, d in enumerate(kinds)}
    np.savez(tmp_path / "a.npz", **dict(list(arrays.items())[:6]))
    np.savez(tmp_path / "b.npz", **dict(list(arrays.items())[6:]))
    for name in ("a", "b"):
        loader = stream(
            tmp_path / (name + ".npz"),
            dataset="npy",
            subset=[2, 3, 5, 7, 11],
            framework=framework,
            as_dict=True,
        )
        (batch,) = list(loader)
        assert len(batch) == 6
        for key, got in batch.items():
            got = np.asarray(got)
            want = arrays[key][[2, 3, 5, 7, 11]]
            assert got.dtype == want.dtype
            assert sorted(got.tolist()) == sorted(want.tolist())


# ---- records and tokens ----------------------------------------------------

CRITEO = "label:int32,dense:int32[13],category:int32[26]"


def test_records_have_the_fields_that_the_schema_says(tmp_path, stream, rng):
    day = [rng.integers(0, 1000, (n, 40), dtype="i4") for n in (30, 12)]
    for k, part in enumerate(day):
        part.tofile(tmp_path / ("day_%d" % k))
    loader = stream(
        tmp_path,
        dataset="records",
        schema=CRITEO,
        fields=("label", "dense", "category", "index"),
    )
    label, dense, category = rows(loader)
    want = np.concatenate(day)
    assert np.array_equal(label, want[:, 0])
    assert np.array_equal(dense, want[:, 1:14])
    assert np.array_equal(category, want[:, 14:])


def test_records_that_do_not_fit_the_schema_are_refused(tmp_path):
    (tmp_path / "r").write_bytes(bytes(161))
    assert "--schema" in refused(tmp_path / "r", "--dataset=records")
    said = refused(
        tmp_path / "r", "--dataset=records", "--schema=" + CRITEO
    )
    assert "161 bytes" in said and "160" in said
    for schema, why in {
        "a:int32,a:int8": "twice",
        "a:int33": "dtype",
        "index:int64": "every stream",
        "a:int32[": "length",
        "a:int32 b": "','",
        "a:uint8[99999999999]": "length",
    }.items():
        said = refused(
            tmp_path / "r", "--dataset=records", "--schema=" + schema
        )
        assert why in said, said


@pytest.mark.parametrize("order", ["philox", "sequential"])
def test_more_samples_than_32_bits_count(in_memory, stream, order):
    """A file with a hole: neither memory nor time is in proportion to it."""
    n = (1 << 46) + 7
    fd, path = in_memory(n)
    os.pwrite(fd, bytes(range(1, 9)), n - 8)
    loader = stream(
        path,
        batch_size=8,
        schema="v:uint8",
        dataset="records",
        order=order,
        ring=64,
        max_batch=8,
        fields=("v", "index"),
    )
    assert len(loader.dataset) == n and len(loader) == (n + 7) // 8
    seen = []
    for _, index in loader:
        seen += index.tolist()
        if len(seen) == 32:
            break
    if order == "sequential":
        assert seen == list(range(32))
    else:
        assert len(set(seen)) == 32 and 2**32 < max(seen) < n
    state = loader.state_dict()
    assert state["samples_yielded"] == 32
    # The last whole batch, and what is left behind it.
    state["samples_yielded"] = n - 15
    loader.load_state_dict(state)
    rest = [(v.tolist(), index.tolist()) for v, index in loader]
    assert [len(v) for v, _ in rest] == [8, 7]
    if order == "sequential":
        assert rest == [
            ([0] * 7 + [1], list(range(n - 15, n - 7))),
            (list(range(2, 9)), list(range(n - 7, n))),
        ]
    loader.close()


def test_a_file_larger_than_what_a_process_can_address_is_refused(in_memory):
    _, path = in_memory(1 << 48)
    said = refused(path, "--dataset=records", "--schema=v:uint8")
    assert "has 281475.0 GB, more than" in said
    assert "address space for (ulimit -v;" in said


def test_weights_that_take_more_memory_than_there_is_are_refused(tmp_path):
    n = 1 << 38
    path = tmp_path / "data.bin"
    with open(path, "wb") as f:
        try:
            f.truncate(5 * n)
        except OSError as e:
            pytest.skip("no file can be as large here: %s" % e)
    said = refused(
        path,
        "--dataset=records",
        "--schema=v:uint8,weight:float32",
        "--sampler=weighted",
    )
    assert "to draw from %d samples takes %d" % (n, 28 * n // 10**6) in said
    assert "are available (by " in said and "--select" in said


def windows(tokens, size):
    n = (len(tokens) - 1) // size
    return np.stack([tokens[k * size : (k + 1) * size + 1] for k in range(n)])


@pytest.mark.parametrize("kind", ["nanogpt", "llm.c", "megatron"])
def test_windows_of_tokens_overlap_by_one(tmp_path, stream, rng, kind):
    dtype = "i4" if kind == "megatron" else "u2"
    parts = [rng.integers(0, 50257, n).astype(dtype) for n in (100, 65, 3)]
    for k, part in enumerate(parts):
        head = b""
        if kind == "llm.c":
            words = np.zeros(256, dtype="i4")
            words[:3] = 20240520, 1, len(part)
            head = words.tobytes()
        if kind == "megatron":
            (tmp_path / ("t_%d.idx" % k)).write_bytes(
                b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 1, 1)
            )
        (tmp_path / ("t_%d.bin" % k)).write_bytes(head + part.tobytes())
    loader = stream(
        tmp_path,
        dataset="tokens",
        schema="int32[16]" if kind == "megatron" else "uint16[16]",
        fields=("tokens", "index"),
    )
    (got,) = rows(loader)
    want = np.concatenate([windows(part, 16) for part in parts[:2]])
    assert got.dtype == want.dtype and np.array_equal(got, want)


def test_tokens_say_what_they_are_or_are_asked(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(63))
    assert "--schema uint16[1024]" in refused(tmp_path, "--dataset=tokens")
    said = refused(tmp_path, "--dataset=tokens", "--schema=uint16[8]")
    assert "63 bytes" in said
    (tmp_path / "a.bin").write_bytes(bytes(64))
    said = refused(tmp_path, "--dataset=tokens", "--schema=uint16[99]")
    assert "samples shorter" in said
    words = np.zeros(300, dtype="i4")
    words[:3] = 20240801, 7, 44
    words.tofile(tmp_path / "a.bin")
    said = refused(tmp_path, "--dataset=tokens", "--schema=uint16[8]")
    assert "--schema uint32[8]" in said
    words[2] = 45
    words.tofile(tmp_path / "a.bin")
    said = refused(tmp_path, "--dataset=tokens", "--schema=uint32[8]")
    assert "45 tokens, and it holds 44" in said


# ---- CIFAR and downsampled ImageNet -----------------------------------------


def python2(batch):
    """A dictionary as Python 2 pickled it, with str that are bytes."""

    def text(s):
        if len(s) < 256:
            return b"U" + bytes([len(s)]) + s
        return b"T" + struct.pack("<i", len(s)) + s

    def number(n):
        return b"J" + struct.pack("<i", n)

    out = b"\x80\x02}q\x01("
    for key, value in batch.items():
        out += text(key.encode())
        if isinstance(value, np.ndarray):
            out += (
                b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
                b"K\x00\x85U\x01b\x87R(K\x01"
                + b"".join(map(number, value.shape))
                + b"\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN"
                + number(-1) * 2
                + b"K\x00tb\x89"
                + text(value.tobytes())
                + b"tb"
            )
        elif isinstance(value, list):
            kind = number if isinstance(value[0], int) else text
            out += b"](" + b"".join(map(kind, value)) + b"e"
        else:
            out += text(value)
    return out + b"u."


def batch_of(rng, n, classes, labels, side=32):
    pixels = rng.integers(0, 256, (n, 3 * side * side), dtype="u1")
    numbers = [int(v) for v in rng.integers(0, classes, n)]
    return {labels: numbers, "data": pixels}


def images_of(batches, side=32):
    data = np.concatenate([b["data"] for b in batches])
    return data.reshape(-1, 3, side, side).transpose(0, 2, 3, 1)


def test_cifar_10_is_read_in_both_of_its_forms(tmp_path, stream, rng):
    train = [batch_of(rng, 6 + k, 10, "labels") for k in range(5)]
    test = batch_of(rng, 9, 10, "labels")
    names = ["class %d" % k for k in range(10)]
    py = tmp_path / "py" / "cifar-10-batches-py"
    binary = tmp_path / "bin"
    py.mkdir(parents=True)
    binary.mkdir()
    files = [("data_batch_%d" % (k + 1), b) for k, b in enumerate(train)]
    for name, batch in files + [("test_batch", test)]:
        extra = {"batch_label": b"x", "filenames": [b"a.png", b"b.png"]}
        (py / name).write_bytes(python2({**extra, **batch}))
        (binary / (name + ".bin")).write_bytes(
            b"".join(
                bytes([label]) + pixels.tobytes()
                for label, pixels in zip(batch["labels"], batch["data"])
            )
        )
    (py / "batches.meta").write_bytes(
        python2({"label_names": [n.encode() for n in names]})
    )
    (binary / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    for root in (tmp_path / "py", py, binary):
        for split, batches in (("train", train), ("val", [test])):
            loader = stream(
                root,
                dataset="cifar10",
                split=split,
                transform="CenterCrop(32)",
                fields=("image", "label", "index"),
            )
            image, label = rows(loader)
            assert np.array_equal(image, images_of(batches))
            assert list(label) == sum((b["labels"] for b in batches), [])
            assert loader.classes == names
    assert "cifar-10-batches-py" in refused(tmp_path, "--dataset=cifar10")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_cifar_100_has_a_coarse_label_too(tmp_path, stream, rng, protocol):
    batch = batch_of(rng, 12, 100, "fine_labels")
    batch["coarse_labels"] = [n // 5 for n in batch["fine_labels"]]
    meta = {"fine_label_names": ["f%d" % k for k in range(100)]}
    held = batch_of(rng, 3, 100, "fine_labels")
    held["coarse_labels"] = [0, 1, 2]
    for name, value in (("train", batch), ("test", held), ("meta", meta)):
        with open(tmp_path / name, "wb") as f:
            if protocol == 2 and name != "meta":
                f.write(python2(value))
            else:
                pickle.dump(value, f, protocol=max(protocol, 3))
    loader = stream(
        tmp_path,
        dataset="cifar100",
        transform="CenterCrop(32)",
        fields=("image", "label", "coarse_label", "index"),
    )
    image, label, coarse = rows(loader)
    assert np.array_equal(image, images_of([batch]))
    assert list(label) == batch["fine_labels"]
    assert list(coarse) == batch["coarse_labels"]


def test_cifars_default_recipe_pads_crops_and_flips(tmp_path, stream, rng):
    batch = batch_of(rng, 12, 100, "fine_labels")
    batch["coarse_labels"] = [0] * 12
    meta = {"fine_label_names": ["f%d" % k for k in range(100)]}
    for name, value in (("train", batch), ("test", batch), ("meta", meta)):
        with open(tmp_path / name, "wb") as f:
            pickle.dump(value, f)
    loader = stream(
        tmp_path, dataset="cifar100", fields=("image", "box", "index")
    )
    assert loader.transform.startswith("RandomCrop(size=(32, 32), padding=4")
    image, box = rows(loader)
    padded = np.pad(images_of([batch]), ((0, 0), (4, 4), (4, 4), (0, 0)))
    for k, (top, left, _, _, flip) in enumerate(box):
        want = padded[k, top + 4 : top + 36, left + 4 : left + 36]
        assert np.array_equal(image[k], want[:, ::-1] if flip else want)
    evaluation = stream(tmp_path, dataset="cifar100", split="val")
    assert evaluation.transform == "CenterCrop(size=(32, 32))"


@pytest.mark.parametrize("form", ["pickle", "npz"])
def test_downsampled_imagenet_counts_classes_from_1(
    tmp_path, stream, rng, form
):
    batches = [batch_of(rng, 5, 1000, "labels", 64) for _ in range(11)]
    for k, batch in enumerate(batches):
        name = "train_data_batch_%d" % (k + 1) if k < 10 else "val_data"
        stored = {
            "data": batch["data"],
            "labels": [n + 1 for n in batch["labels"]],
            "mean": batch["data"].mean(0),
        }
        if form == "npz":
            np.savez(tmp_path / (name + ".npz"), **stored)
        else:
            with open(tmp_path / name, "wb") as f:
                pickle.dump(stored, f)
    for split, part in (("train", batches[:10]), ("val", batches[10:])):
        loader = stream(
            tmp_path,
            dataset="imagenet64",
            split=split,
            transform="CenterCrop(64)",
            fields=("image", "label", "index"),
        )
        image, label = rows(loader)
        assert np.array_equal(image, images_of(part, 64))
        assert list(label) == sum((b["labels"] for b in part), [])
    said = refused(tmp_path, "--dataset=imagenet32")
    assert "32 x 32" in said


def test_mnist_has_one_channel(tmp_path, stream, rng):
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    parts = {}
    for part, n in (("train", 13), ("t10k", 6)):
        image = rng.integers(0, 256, (n, 28, 28), dtype="u1")
        label = rng.integers(0, 10, n, dtype="u1")
        (raw / (part + "-images-idx3-ubyte")).write_bytes(
            struct.pack(">4I", 0x803, n, 28, 28) + image.tobytes()
        )
        (raw / (part + "-labels-idx1-ubyte")).write_bytes(
            struct.pack(">2I", 0x801, n) + label.tobytes()
        )
        parts[part] = image, label
    for split, part in (("train", "train"), ("val", "t10k")):
        loader = stream(
            tmp_path, split=split, fields=("image", "label", "index")
        )
        image, label = rows(loader)
        assert np.array_equal(image[..., 0], parts[part][0])
        assert image.shape[1:] == (28, 28, 1)
        assert np.array_equal(label, parts[part][1])
    os.truncate(raw / "t10k-images-idx3-ubyte", 999)
    said = refused(tmp_path, "--dataset=mnist", "--split=val")
    assert "t10k-images-idx3-ubyte is truncated" in said
    (raw / "t10k-images-idx3-ubyte").write_bytes(bytes(99))
    said = refused(tmp_path, "--dataset=mnist", "--split=val")
    assert "no IDX file" in said


def test_a_pickle_that_does_more_than_hold_data_is_refused(tmp_path, rng):
    for name in ("train", "test", "meta"):
        (tmp_path / name).write_bytes(b"cos\nsystem\n(S'touch /tmp/x'\ntR.")
    said = refused(tmp_path, "--dataset=cifar100")
    assert "does more than hold arrays" in said


# ---- what all have in common -------------------------------------------------


def test_what_rows_have_not_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6))
    (tmp_path / "names").write_text("a\n")
    for option in ("--keys", "--select=%s" % (tmp_path / "names")):
        said = refused(tmp_path / "a.npy", "--dataset=npy", option)
        assert "no names" in said
    said = refused(tmp_path, "--dataset=images", "--schema=int8")
    assert "means nothing" in said


def dry_run(root, *options):
    """The lines of --dry-run, by their first words."""
    said = subprocess.run(
        [PRODUCER, "--root", str(root), "--dry-run", *options],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    lines = (re.split("  +", line.strip(), 1) for line in said.splitlines())
    return {line[0]: line[-1] for line in lines}


def test_a_dry_run_says_nothing_of_images_where_there_are_none(tmp_path, rng):
    np.save(tmp_path / "emb.npy", rng.random((6, 4)))
    said = dry_run(tmp_path / "emb.npy", "--dataset=npy")
    assert said["samples"].startswith("6 (scanned")
    of_images = "bad files|images|transform|cost|as decoded|float32|float16"
    assert not set(of_images.split("|")) & set(said)
    assert {"epoch", "order", "ring", "as stored", "available"} <= set(said)
    np.save(tmp_path / "x.npy", rng.integers(0, 9, (6, 5, 5), dtype="u1"))
    said = dry_run(tmp_path / "x.npy", "--dataset=npy")
    assert said["samples"].startswith("6 (scanned")
    assert set(of_images.split("|")) <= set(said)


def test_only_a_data_set_of_classes_has_classes(tmp_path, stream, rng):
    np.save(tmp_path / "a.npy", np.arange(6))
    (tmp_path / "t.bin").write_bytes(bytes(64))
    np.savez(
        tmp_path / "i.npz",
        images=rng.integers(0, 9, (6, 5, 5), dtype="u1"),
        labels=np.arange(6) % 2,
    )
    for root, more in {
        "a.npy": dict(dataset="npy"),
        "i.npz": dict(dataset="npy"),
        "t.bin": dict(dataset="tokens", schema="uint16[4]"),
    }.items():
        loader = stream(tmp_path / root, **more)
        assert loader.classes == []
        assert len(list(loader)) == 1


def test_a_file_that_was_changed_or_replaced_is_another_data_set(
    tmp_path, stream
):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(40))
    first = stream(path, dataset="npy")
    list(first)
    state = first.state_dict()
    # The same bytes in another file are the same data set.
    np.save(tmp_path / "b.npy", np.arange(40))
    os.rename(tmp_path / "b.npy", path)
    again = stream(path, dataset="npy")
    again.load_state_dict(state)
    with open(path, "r+b") as f:
        f.seek(-8, os.SEEK_END)
        f.write(b"changed!")
    changed = stream(path, dataset="npy")
    with pytest.raises(ValueError, match="files is"):
        changed.load_state_dict(state)
    np.save(tmp_path / "b.npy", np.arange(40)[::-1])
    os.rename(tmp_path / "b.npy", path)
    replaced = stream(path, dataset="npy")
    with pytest.raises(ValueError, match="files is"):
        replaced.load_state_dict(state)


def test_another_schema_is_another_stream(tmp_path, stream):
    (tmp_path / "r").write_bytes(bytes(64))
    first = stream(tmp_path / "r", dataset="records", schema="a:int32[4]")
    with pytest.raises(tsock.OtherStream, match="schema"):
        tsock.DataLoader(
            name=first.name,
            root=tmp_path / "r",
            batch_size=2,
            dataset="records",
            schema="a:int32[2]",
            **AS_STORED,
        )


def test_an_epoch_is_shuffled_and_goes_on_from_its_state(
    tmp_path, stream, rng
):
    np.save(tmp_path / "a.npy", np.arange(40))
    more = dict(dataset="npy", batch_size=4, fields=("a",))
    loader = stream(tmp_path / "a.npy", **more)
    it = iter(loader)
    head = [next(it)[0] for _ in range(3)]
    state = loader.state_dict()
    rest = [batch[0] for batch in it]
    seen = np.concatenate(head + rest)
    assert sorted(seen) == list(range(40)) and list(seen) != list(range(40))
    again = stream(tmp_path / "a.npy", **more)
    again.load_state_dict(state)
    assert np.array_equal(
        np.concatenate([batch[0] for batch in again]), np.concatenate(rest)
    )
