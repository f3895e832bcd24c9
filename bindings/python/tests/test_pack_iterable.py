# SPDX-License-Identifier: MIT
"""tsock.pack(): samples of an iterable become a pack, all of them or none."""

import os
import signal
import subprocess
import sys

import pytest

import tsock
from conftest import CHECKOUT
from test_pack_fields import COUNT, check_same, encoded, open_loader, read

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

pytestmark = pytest.mark.usefixtures("place")


def fields(i):
    return {
        "label": "class %d" % (i % 3),
        "caption": "about %d" % i,
        "tokens": list(range(i % 5)),
        "pose": np.float64([i, 2]),
    }


NAMES = ("label", "caption", "tokens", "tokens_length", "pose")


def pixels(i, shape=(36, 50, 3)):
    return np.random.RandomState(i).randint(0, 256, shape, "uint8")


def test_bytes_and_paths_are_packed_with_their_fields(tmp_path):
    samples = []
    for i in range(COUNT):
        image = encoded(i, "JPEG PNG BMP PPM GIF".split()[i % 5])
        if i % 2:
            (tmp_path / ("%d.img" % i)).write_bytes(image)
            image = tmp_path / ("%d.img" % i)
        samples.append((image, fields(i)))
    assert tsock.pack(iter(samples), tmp_path / "pack", threads=2) == COUNT
    tsock.index(samples, tmp_path / "t")
    want, classes = check_same(tmp_path / "t", tmp_path / "pack", NAMES)
    assert classes == ["class 0", "class 1", "class 2"]
    assert sorted(os.listdir(tmp_path / "pack")) == [
        "00000.pack",
        "pack.columns",
        "pack.index",
    ]
    assert not [n for n in os.listdir(tmp_path) if n.startswith("pack.")]


def as_pil(i):
    return Image.fromarray(pixels(i))


@pytest.mark.parametrize(
    "image",
    [
        pixels,
        as_pil,
        lambda i: torch.from_numpy(pixels(i)),
        lambda i: pixels(i)[:, ::-1][:, ::-1],
    ],
    ids=["numpy", "pil", "torch", "strided"],
)
def test_pixels_are_kept_as_they_are(image, tmp_path):
    tsock.pack(
        ({"image": image(i), "key": "k%d" % i} for i in range(COUNT)),
        tmp_path / "pack",
    )
    got, _ = read(
        tmp_path / "pack",
        ("key",),
        keys=True,
        size=None,
        transform="CenterCrop((36, 50))",
    )
    for batch in got:
        for k, i in enumerate(batch["index"]):
            assert batch["image"][k] == pixels(i).tolist()
            assert batch["key"][k] == "k%d" % i


def test_grey_pixels_and_labels_alone(tmp_path):
    images = [pixels(0, (9, 8)), pixels(1, (9, 8, 1)), as_pil(2).convert("L")]
    images[2] = images[2].crop((0, 0, 8, 9))
    tsock.pack(zip(images, [1, 0, 1]), tmp_path / "pack", classes=["no", "yes"])
    got, classes = read(
        tmp_path / "pack",
        ("label",),
        size=None,
        transform="CenterCrop((9, 8))",
    )
    assert classes == ["no", "yes"]
    for batch in got:
        for k, i in enumerate(batch["index"]):
            grey = np.asarray(images[i]).reshape(9, 8, 1).repeat(3, 2)
            assert batch["image"][k] == grey.tolist()
            assert batch["label"][k] == [1, 0, 1][i]


class Truncated:
    """An image of PIL whose file was cut short."""

    mode = "CMYK"

    def convert(self, mode):
        raise OSError("it ends")

    def tobytes(self):
        raise AssertionError("it has no pixels")


def good(n):
    return [(encoded(i), {"n": i}) for i in range(n)]


@pytest.mark.parametrize(
    "bad, error, words",
    [
        (3, TypeError, "neither .image, label."),
        ((None, {"n": 1}), TypeError, "neither bytes nor a path"),
        ((b"", {"n": 1}), ValueError, "has no bytes"),
        (("none.jpg", {"n": 1}), FileNotFoundError, "there is no file"),
        ({"n": 1}, ValueError, "has no image, those before have one"),
        ((pixels(1, (3, 9, 9)), {"n": 1}), TypeError, r"uint8 \[3, 9, 9\]"),
        ((np.float32(pixels(1)), {"n": 1}), TypeError, "array of float32"),
        ((Truncated(), {"n": 1}), ValueError, "can't be read: it ends"),
        ((encoded(1), {"m": 1}), ValueError, "has the fields"),
        ((encoded(1), {"n": "text"}), ValueError, "is a text"),
        ((encoded(1), {"n": [1]}), ValueError, "has the shape"),
        ((encoded(1), {"n": 1, "box": 2}), ValueError, "has the fields"),
    ],
)
def test_a_sample_that_cannot_be_packed_is_named(bad, error, words, tmp_path):
    with pytest.raises(error, match="sample 3 can't be packed: .*" + words):
        tsock.pack(good(3) + [bad] + good(2), tmp_path / "pack")
    assert os.listdir(tmp_path) == []


def test_fields_may_be_called_as_what_says_where_images_are(tmp_path):
    (tmp_path / "0.jpg").write_bytes(encoded(0))
    more = {"length": 5, "offset": 7, "path": "x", "data": 8}
    tsock.pack(
        [(tmp_path / "0.jpg", more), (encoded(1), more)], tmp_path / "pack"
    )
    got, _ = read(tmp_path / "pack", sorted(more))
    assert sorted(got[0]["index"]) == [0, 1]
    for name, value in more.items():
        assert got[0][name] == [value] * 2


def test_an_iterable_that_fails_leaves_nothing(tmp_path):
    def samples():
        yield from good(3)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tsock.pack(samples(), tmp_path / "pack")
    with pytest.raises(ValueError, match="there is no sample"):
        tsock.pack([], tmp_path / "pack")
    assert os.listdir(tmp_path) == []


def test_bytes_that_are_no_image_are_bad_files(tmp_path):
    samples = good(COUNT)
    samples[4] = (b"no image at all", {"n": 4})
    with pytest.warns(tsock.BadFilesWarning, match="1 of 37 .*: 4: "):
        assert tsock.pack(samples, tmp_path / "pack") == COUNT


def test_nothing_is_taken_where_the_pack_cannot_go(tmp_path):
    def never():
        raise AssertionError("a sample was taken")
        yield

    tsock.pack(good(2), tmp_path / "pack")
    with pytest.raises(FileExistsError, match="is a pack already"):
        tsock.pack(never(), tmp_path / "pack")
    with pytest.raises(FileExistsError, match="no empty folder"):
        tsock.pack(never(), tmp_path)
    (tmp_path / "other.part").mkdir()
    with pytest.raises(FileExistsError, match="a part of another pack"):
        tsock.pack(never(), tmp_path / "other")
    assert sorted(os.listdir(tmp_path)) == ["other.part", "pack"]
    with pytest.raises(ValueError, match="labels= means nothing"):
        tsock.pack(never(), tmp_path / "x", labels="l.csv")


def test_one_process_at_a_time_packs_to_a_place(tmp_path):
    def samples():
        yield from good(2)
        with pytest.raises(FileExistsError, match="another process"):
            tsock.pack(good(1), tmp_path / "pack")
        yield from good(1)

    assert tsock.pack(samples(), tmp_path / "pack") == 3


KILLED = """
import sys
sys.path[:0] = sys.argv[2:4]
import tsock
from test_pack_iterable import good

def samples():
    yield from good(5)
    print("taken", flush=True)
    sys.stdin.read()

tsock.pack(samples(), sys.argv[1])
"""


def test_a_killed_pack_is_begun_anew(tmp_path, capfd):
    folders = [
        os.path.join(CHECKOUT, "bindings", "python"),
        os.path.dirname(os.path.abspath(__file__)),
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "pack")] + folders,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"taken\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert not (tmp_path / "pack").exists()
    # So much of it was packed when it was killed, perhaps.
    (tmp_path / "pack.part").mkdir()
    (tmp_path / "pack.part" / "journal").write_bytes(b"another one's")
    assert tsock.pack(good(COUNT), tmp_path / "pack") == COUNT
    assert "broken off, and is begun anew" in capfd.readouterr().err
    assert os.listdir(tmp_path) == ["pack"]
    got, _ = read(tmp_path / "pack", ("n",))
    assert all(b["n"] == b["index"] for b in got)


def test_a_path_is_packed_as_by_the_program(images, tmp_path):
    assert tsock.pack(str(images), tmp_path / "pack", threads=1) == 203
    with pytest.raises(tsock.Error, match="is a pack already"):
        tsock.pack(images, tmp_path / "pack")
    with pytest.raises(ValueError, match="--dataset imagenot"):
        tsock.pack(images, tmp_path / "x", dataset="imagenot")
    with pytest.raises(ValueError, match="classes= is for"):
        tsock.pack(images, tmp_path / "x", classes=["a"])
    with pytest.raises(ValueError, match="mount the bucket"):
        tsock.pack("s3://bucket/x", tmp_path / "x")


def test_labels_go_into_the_pack_of_a_path(tmp_path):
    (tmp_path / "flat").mkdir()
    for i in range(COUNT):
        (tmp_path / "flat" / ("%02d.jpg" % i)).write_bytes(encoded(i))
    (tmp_path / "l.csv").write_text(
        "id,label\n" + "".join("%02d,%d\n" % (i, i % 4) for i in range(COUNT))
    )
    labels = tmp_path / "l.csv"
    n = tsock.pack(tmp_path / "flat", tmp_path / "pack", labels=labels)
    assert n == COUNT
    check_same(
        tmp_path / "flat", tmp_path / "pack", ("label",), labels=str(labels)
    )


def test_progress_is_told(tmp_path, capfd):
    tsock.pack(good(2), tmp_path / "pack", progress=True)
    assert "scanned: 2 samples" in capfd.readouterr().err
    tsock.pack(good(2), tmp_path / "quiet")
    assert capfd.readouterr().err == ""


def mask(i):
    return np.full((36, 50), i, "u1")


def test_samples_may_have_a_mask_each(tmp_path):
    made = ({"image": encoded(i), "seg": mask(i), "label": i} for i in range(9))
    assert tsock.pack(made, tmp_path / "pack", masks="seg") == 9
    said, _ = read(
        tmp_path / "pack", ("mask", "label"), masks=tmp_path / "pack"
    )
    for batch in said:
        for shown, label in zip(batch["mask"], batch["label"]):
            assert np.all(np.array(shown) == label)


def test_samples_may_have_several_images(tmp_path):
    made = [
        {"before": encoded(i), "after": pixels(i + 20), "n": i}
        for i in range(9)
    ]
    tsock.pack(made, tmp_path / "pack", images=["before", "after"])
    tsock.pack(((one["after"], one["n"]) for one in made), tmp_path / "other")
    said, _ = read(tmp_path / "pack", ("after",))
    want, _ = read(tmp_path / "other", ("label",))
    # The same draws for both: the crops of all images of one size are.
    assert [b["after"] for b in said] == [b["image"] for b in want]


def test_samples_may_have_no_image(tmp_path):
    made = [
        {"tokens": list(range(i)), "y": i / 2, "key": "k%d" % i}
        for i in range(9)
    ]
    assert tsock.pack(made, tmp_path / "pack") == 9
    loader = open_loader(
        tmp_path / "pack",
        fields=("tokens", "tokens_length", "y", "key"),
        keys=True,
        size=None,
    )
    with loader:
        for batch in loader:
            for n, y, key in zip(
                batch["tokens_length"], batch["y"], batch["key"]
            ):
                assert (y, key) == (n / 2, "k%d" % n)


@pytest.mark.parametrize(
    "sample, words, options",
    [
        ({"image": b"x"}, "no field seg, which", {"masks": "seg"}),
        ({"image": b"x", "seg": np.ones((2, 2))}, "float64", {"masks": "seg"}),
        ({"a": b"x"}, "no field b, which", {"images": ["a", "b"]}),
    ],
)
def test_what_masks_and_images_name_has_to_be_there(
    sample, words, options, tmp_path
):
    with pytest.raises(TypeError, match="sample 0 can't be packed: .*" + words):
        tsock.pack([sample], tmp_path / "pack", **options)
    assert os.listdir(tmp_path) == []
