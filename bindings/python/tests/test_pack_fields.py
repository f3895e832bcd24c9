# SPDX-License-Identifier: MIT
"""A pack has all fields of what it was made of: tables, labels, tar files."""

import io
import itertools
import os
import resource
import shutil
import struct
import subprocess
import tarfile

import pytest

import tsock
from conftest import PRODUCER

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
PACK = os.path.join(os.path.dirname(PRODUCER), "tsock-pack")
COUNT = 37
WIDEST = 50
numbers = itertools.count()  # of streams: none is read twice

pytestmark = pytest.mark.usefixtures("place")


def run_pack(*arguments):
    return subprocess.run(
        [PACK, "--no-cache"] + [str(a) for a in arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )


def pack(*arguments):
    done = run_pack(*arguments)
    assert done.returncode == 0, done.stderr
    return done


def encoded(i, kind="JPEG"):
    pixels = np.random.RandomState(i).randint(0, 255, (40, WIDEST, 3), "uint8")
    out = io.BytesIO()
    Image.fromarray(pixels).resize((WIDEST, 36)).save(out, kind)
    return out.getvalue()


def open_loader(root, **options):
    options.setdefault("name", "s%d" % next(numbers))
    return tsock.DataLoader(
        root=str(root),
        **dict(
            dict(
                size=24,
                batch_size=8,
                threads=1,
                dtype="uint8",
                layout="hwc",
                as_dict=True,
                no_cache=True,
                exit_when_idle=5,
                seed=3,
            ),
            **options
        )
    )


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else list(value)


def read(root, fields, **options):
    """Two epochs, shuffled, and what the classes are called."""
    loader = open_loader(
        root, fields=("image", "index", "box") + tuple(fields), **options
    )
    try:
        said = [
            {name: plain(value) for name, value in batch.items()}
            for _ in range(2)
            for batch in loader
        ]
        return said, loader.dataset.classes
    finally:
        loader.close()


def check_same(source, packed, fields, **options):
    want, classes = read(source, fields, **options)
    options = {n: v for n, v in options.items() if n in ("keys", "sampler")}
    got, others = read(packed, fields, **options)
    assert len(want) == 2 * -(-COUNT // 8)
    assert [b["index"] for b in want[:5]] != [b["index"] for b in want[5:]]
    assert got == want
    assert others == classes
    return want, classes


def columns(i):
    return {
        "label": "class %d" % (i % 5),
        "caption": "what %d shows" % i * (i % 3),
        "score": i / 8,
        "boxes": np.float32([[i, k, 1, 2] for k in range(i % 4)]).reshape(-1, 4),
        "pose": np.float64([[i, 1, 2], [3, 4, i]]),
        "tokens": list(range(i % 6)),
        "rank": np.int16(-i),
    }


FIELDS = (
    "label caption score boxes boxes_length pose tokens tokens_length rank key"
).split()


@pytest.fixture
def table(tmp_path):
    kinds = "JPEG PNG BMP PPM GIF".split()
    tsock.index(
        ((encoded(i, kinds[i % 5]), columns(i)) for i in range(COUNT)),
        tmp_path / "t.table",
    )
    return tmp_path / "t.table"


def test_a_pack_of_a_table_has_all_its_columns(table, tmp_path):
    done = pack(table, tmp_path / "pack")
    assert "%d samples" % COUNT in done.stdout and "8 packed" in done.stdout
    want, classes = read(table, FIELDS[:-1])
    # The source is needed no more.
    os.remove(table)
    os.remove(str(table) + ".data")
    assert read(tmp_path / "pack", FIELDS[:-1]) == (want, classes)
    assert classes == ["class %d" % k for k in range(5)]
    first = want[0]
    for k, i in enumerate(first["index"]):
        c = columns(i)
        assert first["caption"][k] == c["caption"]
        assert first["rank"][k] == -i and first["score"][k] == i / 8
        n = first["boxes_length"][k]
        assert n == i % 4 and first["boxes"][k][:n] == c["boxes"].tolist()


def test_a_pack_of_a_table_keeps_the_names(tmp_path):
    names = []
    for i in range(COUNT):
        names.append("%02d.jpg" % i)
        (tmp_path / names[-1]).write_bytes(encoded(i))
    lines = "".join("%s,%d,%d\n" % (n, i % 3, i) for i, n in enumerate(names))
    (tmp_path / "t.csv").write_text("path,label,n\n" + lines)
    tsock.index(tmp_path / "t.csv", tmp_path / "t", fields=["n"])
    pack("--dataset", "table", tmp_path / "t", tmp_path / "pack")
    want, _ = check_same(
        tmp_path / "t", tmp_path / "pack", ("label", "n", "key"), keys=True
    )
    assert want[0]["key"] == [names[i] for i in want[0]["index"]]
    (tmp_path / "some").write_text("%s\n%s\n" % (names[5], names[2]))
    loader = open_loader(
        tmp_path / "pack",
        select=str(tmp_path / "some"),
        fields=("n",),
    )
    assert sorted(i for b in loader for i in b["n"].tolist()) == [2, 5]
    loader.close()
    # A pack of a pack, too.
    pack(tmp_path / "pack", tmp_path / "again")
    check_same(
        tmp_path / "t", tmp_path / "again", ("label", "n", "key"), keys=True
    )


@pytest.mark.parametrize(
    "value",
    [int, float, lambda i: [i / 2, 1.0, 3.5], lambda i: [0] * (i % 3)],
    ids=["int", "float", "vector", "ragged"],
)
def test_labels_need_not_be_classes(value, tmp_path):
    tsock.index(
        ((encoded(i), value(i)) for i in range(COUNT)), tmp_path / "t"
    )
    pack(tmp_path / "t", tmp_path / "pack")
    _, classes = check_same(tmp_path / "t", tmp_path / "pack", ("label",))
    assert not classes


def folder_of(tmp_path):
    root = tmp_path / "flat"
    root.mkdir()
    for i in range(COUNT):
        (root / ("%02d.jpg" % i)).write_bytes(encoded(i))
    return root


@pytest.mark.parametrize(
    "labels, has_classes",
    [
        (lambda i: "dog" if i % 3 else "cat", True),
        (lambda i: "|".join("abcd"[: i % 5]) or "d", True),
        (lambda i: str(i * 1000003), False),
        (lambda i: str(i / 4), False),
    ],
    ids=["class", "classes", "int", "float"],
)
def test_labels_of_a_file_are_packed(labels, has_classes, tmp_path):
    root = folder_of(tmp_path)
    lines = [
        "%02d,%s,%d,about %d\n" % (i, labels(i), i % 7, i) for i in range(COUNT)
    ]
    (tmp_path / "l.csv").write_text("id,label,age,caption\n" + "".join(lines))
    given = "%s:fields=age+caption" % (tmp_path / "l.csv")
    pack("--labels", given, root, tmp_path / "pack")
    want, classes = check_same(
        root, tmp_path / "pack", ("label", "age", "caption"), labels=given
    )
    assert bool(classes) == has_classes
    assert want[0]["caption"] == ["about %d" % i for i in want[0]["index"]]


def test_images_without_labels_are_packed(tmp_path):
    root = folder_of(tmp_path)
    pack("--dataset", "images", root, tmp_path / "pack")
    want, classes = check_same(
        root, tmp_path / "pack", ("label",), dataset="images"
    )
    assert not classes and want[0]["label"] == [-1] * 8
    # Labels that a file has go with it as with the folder.
    (tmp_path / "l.csv").write_text(
        "id,label\n" + "".join("%02d,%d\n" % (i, i % 4) for i in range(COUNT))
    )
    given = str(tmp_path / "l.csv")
    assert read(tmp_path / "pack", ["label"], labels=given) == read(
        root, ["label"], labels=given
    )


def test_fields_of_tar_files_are_packed(tmp_path):
    (tmp_path / "tars").mkdir()
    with tarfile.open(tmp_path / "tars" / "0.tar", "w") as tar:
        for i in range(COUNT):
            for ending, data in (
                ("jpg", encoded(i)),
                ("cls", b"%d" % (i % 3)),
                ("txt", b"about %d" % i),
                ("json", b'{"meta": {"width": %d}}' % i),
            ):
                info = tarfile.TarInfo("%03d.%s" % (i, ending))
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    given = "%s:label=.cls,fields=.txt+.json.meta.width" % (tmp_path / "tars")
    pack("--labels", given, tmp_path / "tars", tmp_path / "pack")
    want, _ = check_same(
        tmp_path / "tars",
        tmp_path / "pack",
        ("label", "txt", "width", "key"),
        labels=given,
        keys=True,
    )
    assert want[0]["width"] == want[0]["index"]


def end_in_the_middle():
    """Of the process that is to be: no file may have more bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))


def index_numbers(path, first):
    tsock.index(
        ((encoded(i), {"n": i + first}) for i in range(COUNT)), path
    )


def test_a_pack_that_was_broken_off_is_gone_on_with(tmp_path):
    index_numbers(tmp_path / "t", 0)
    done = subprocess.run(
        [PACK, "-q", str(tmp_path / "t"), str(tmp_path / "pack")],
        preexec_fn=end_in_the_middle,
        stderr=subprocess.DEVNULL,
    )
    assert done.returncode
    assert not (tmp_path / "pack").exists()
    # Not with a table whose values are others.
    index_numbers(tmp_path / "t", 1)
    done = run_pack(tmp_path / "t", tmp_path / "pack")
    assert done.returncode and "another data set" in done.stderr
    shutil.rmtree(tmp_path / "pack.part")
    pack(tmp_path / "t", tmp_path / "pack")
    check_same(tmp_path / "t", tmp_path / "pack", ("n",))


def dry_run(root, *options):
    return subprocess.run(
        [PRODUCER, "--root", str(root), "--dry-run"] + list(options),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )


def places(whole):
    """Bytes of the head, of the entries, and of each column."""
    yield from (8, 17, 25, 33, 37)
    for k in range(struct.unpack_from("<I", whole, 32)[0]):
        entry = 64 + 128 * k
        offset, length = struct.unpack_from("<QQ", whole, entry + 88)
        yield from (entry, entry + 48, entry + 77, offset + length - 1)
        yield offset + length // 2


def test_damaged_fields_are_refused(table, tmp_path):
    pack(table, tmp_path / "pack")
    path = tmp_path / "pack" / "pack.columns"
    whole = path.read_bytes()
    for at in places(whole):
        path.write_bytes(
            whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        )
        done = dry_run(tmp_path / "pack")
        assert done.returncode, at
        assert "pack.columns is damaged" in done.stdout
    path.unlink()
    done = dry_run(tmp_path / "pack")
    assert done.returncode and "pack.columns" in done.stdout


def test_bad_images_of_a_table_are_known_at_the_start(tmp_path):
    tsock.index(
        (
            (b"no image" if i == 7 else encoded(i), {"n": i})
            for i in range(COUNT)
        ),
        tmp_path / "t",
    )
    assert "1 bad" in pack(tmp_path / "t", tmp_path / "pack").stdout
    done = dry_run(tmp_path / "pack", "--allow-bad", "0.05")
    # It is called as --keys calls it.
    assert "00000.pack: 7: " in done.stdout, done.stdout


def mask_of(i):
    pixels = np.random.RandomState(i).randint(0, 21, (36, WIDEST), "uint8")
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def masks_of(tmp_path, but=()):
    (tmp_path / "masks").mkdir()
    for i in range(COUNT):
        if i not in but:
            (tmp_path / "masks" / ("%02d.png" % i)).write_bytes(mask_of(i))
    return tmp_path / "masks"


def read_masks(root, masks, names, **options):
    return read(root, ("mask",) + names, masks=str(masks), **options)


@pytest.mark.parametrize("labelled", [False, True])
def test_masks_are_packed(labelled, tmp_path):
    root, masks, given = folder_of(tmp_path), masks_of(tmp_path), []
    options = {}
    if labelled:
        (tmp_path / "l.csv").write_text(
            "id,label\n" + "".join("%02d,%d\n" % (i, i % 4) for i in range(COUNT))
        )
        options = {"labels": str(tmp_path / "l.csv")}
        given = ["--labels", options["labels"]]
    # Masks lie in shards of their own, too.
    given += ["--shard-size", "1M", "--masks", masks]
    pack(*given, root, tmp_path / "pack")
    want = read_masks(root, masks, ("label",), **options)
    shutil.rmtree(root)
    shutil.rmtree(masks)
    got = read_masks(tmp_path / "pack", tmp_path / "pack", ("label",))
    assert got == want
    # Samples alone that are selected have their own masks.
    (tmp_path / "some").write_text("09.jpg\n04.jpg\n")
    some, _ = read_masks(
        tmp_path / "pack",
        tmp_path / "pack",
        (),
        select=str(tmp_path / "some"),
        transform="CenterCrop((36, %d))" % WIDEST,
        size=None,
    )
    masks = dict(zip(some[0]["index"], some[0]["mask"]))
    for k, i in enumerate((9, 4)):
        assert masks[k] == np.asarray(Image.open(io.BytesIO(mask_of(i)))).tolist()
    # A pack of the pack.
    pack("--masks", tmp_path / "pack", tmp_path / "pack", tmp_path / "again")
    again = read_masks(tmp_path / "again", tmp_path / "again", ("label",))
    assert again == want
    # Images alone, without masks.
    assert read(tmp_path / "pack", ("label",))[1] == want[1]


def test_masks_of_class_folders_keep_the_classes(tmp_path):
    for i in range(COUNT):
        for part, data in (("a", encoded(i)), ("m", mask_of(i))):
            folder = tmp_path / part / ("class%d" % (i % 3))
            folder.mkdir(parents=True, exist_ok=True)
            name = "%d.%s" % (i, "jpg" if part == "a" else "png")
            (folder / name).write_bytes(data)
    pack(
        "--dataset", "imagefolder", "--masks", tmp_path / "m",
        tmp_path / "a", tmp_path / "pack",
    )  # fmt: skip
    want = read_masks(
        tmp_path / "a", tmp_path / "m", ("label",), dataset="imagefolder"
    )
    assert want[1] == ["class0", "class1", "class2"]
    got = read_masks(tmp_path / "pack", tmp_path / "pack", ("label",))
    assert got == want


def test_masks_in_tar_files_are_packed(tmp_path):
    (tmp_path / "tars").mkdir()
    with tarfile.open(tmp_path / "tars" / "0.tar", "w") as tar:
        for i in range(COUNT):
            for ending, data in (("jpg", encoded(i)), ("seg.png", mask_of(i))):
                info = tarfile.TarInfo("%03d.%s" % (i, ending))
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    root = tmp_path / "tars"
    pack("--masks", root, root, tmp_path / "pack")
    names = ("label", "key")
    want = read_masks(root, root, names, keys=True)
    got = read_masks(tmp_path / "pack", tmp_path / "pack", names, keys=True)
    assert got == want and not want[1]


def test_an_image_without_a_mask_is_bad_in_the_pack_too(tmp_path):
    root, masks = folder_of(tmp_path), masks_of(tmp_path, but=[5])
    done = pack("--masks", masks, root, tmp_path / "pack")
    assert "1 bad" in done.stdout
    done = dry_run(
        tmp_path / "pack", "--masks", str(tmp_path / "pack"), "--allow-bad", "0.1"
    )
    assert "mask of 05.jpg" in done.stdout, done.stdout


def test_masks_of_a_pack_are_asked_for_by_its_path(tmp_path):
    root, masks = folder_of(tmp_path), masks_of(tmp_path)
    pack("--dataset", "images", root, tmp_path / "none")
    done = dry_run(tmp_path / "none", "--masks", str(masks))
    assert done.returncode and "is a pack without masks" in done.stdout
    pack("--masks", masks, root, tmp_path / "pack")
    done = dry_run(tmp_path / "pack", "--masks", str(masks))
    assert done.returncode and "masks of its own" in done.stdout
    (tmp_path / "empty").mkdir()
    done = run_pack("--masks", tmp_path / "empty", root, tmp_path / "x")
    assert done.returncode and "no image of" in done.stderr


def test_a_pack_that_was_broken_off_in_its_masks_is_gone_on_with(tmp_path):
    root, masks = folder_of(tmp_path), masks_of(tmp_path)
    pack("--dataset", "images", root, tmp_path / "images")
    pack("--masks", masks, root, tmp_path / "whole")
    most = os.path.getsize(tmp_path / "images" / "00000.pack") + 4000
    done = subprocess.run(
        [PACK, "--no-cache", "--masks", str(masks), str(root)]
        + [str(tmp_path / "pack")],
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (most, most)
        ),
        stderr=subprocess.DEVNULL,
    )
    assert done.returncode and not (tmp_path / "pack").exists()
    done = pack("--masks", masks, root, tmp_path / "pack")
    assert "of these 18 samples by an earlier run" in done.stdout
    for name in os.listdir(tmp_path / "whole"):
        whole = (tmp_path / "whole" / name).read_bytes()
        assert (tmp_path / "pack" / name).read_bytes() == whole
    assert len(os.listdir(tmp_path / "pack")) == 3
