# SPDX-License-Identifier: MIT
"""tsock.index(images=): several images a sample, made by the same draws."""

import io
import json
import struct
import tarfile
from concurrent import futures

import pytest

import tsock
from test_identity import handle_of
from test_index import feature, protobuf
from tsock.index.__main__ import main

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
v2 = pytest.importorskip("torchvision.transforms.v2")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

pytestmark = pytest.mark.usefixtures("place")

RAW = dict(dtype="uint8", layout="hwc", wait=60)
N = 23
SIDES = ("left", "right", "far")
ANY = "CenterCrop((40, 48))"
# By what is drawn, for images of any size, ...
SHARED = [
    ANY,
    "Resize((30, 50))",
    "Resize(40) CenterCrop(36)",
    "RandomHorizontalFlip() RandomVerticalFlip() " + ANY,
    "RandomResize(30, 60) ColorJitter(0.4, 0.3, 0.2, 0.1) " + ANY,
    "RandomRotation(30) RandomGrayscale(0.5) Resize((24, 24))",
    "Resize((40, 40)) RandomErasing(0.8, value=(9, 99, 9)) RandomCrop(32)",
    "Pad((3, 5)) RandomChoice([RandomSolarize(9, 1.0), RandomInvert(1.0)]) "
    + ANY,
    "Resize((40, 40)) TrivialAugmentWide()",
    ANY + " RandomAffine(20, translate=(0.2, 0.1), shear=10)",
]
# ... and for those of one size.
SIZED = {
    "RandomResizedCrop((24, 32)) RandomHorizontalFlip()": (
        v2.RandomResizedCrop(24)
    ),
    "RandomCrop(20)": v2.RandomCrop(20),
    "RandomAffine(20, translate=(0.2, 0.1)) " + ANY: v2.RandomAffine(20),
    "RandomPerspective(0.4, 1.0) " + ANY: v2.RandomPerspective(0.4, 1.0),
    "RandomErasing(1.0) " + ANY: v2.RandomErasing(1.0),
    "RandomApply([RandomCrop(20)], 1.0) Resize((8, 8))": v2.RandomApply(
        [v2.RandomCrop(20)], 1.0
    ),
}
# v2 refuses several images here, whatever their sizes.
POLICIES = ["RandAugment() Resize((20, 20))", "AutoAugment() " + ANY]


def its_image(i, side, equal=False):
    """Those of a sample may have several sizes."""
    rng = np.random.default_rng(100 + i)
    sizes = rng.integers(24, 90, (len(SIDES), 2))
    width, height = map(int, sizes[0 if equal else SIDES.index(side)])
    pixels = np.random.default_rng([i, SIDES.index(side)])
    return Image.fromarray(
        pixels.integers(0, 256, (height, width, 3), dtype=np.uint8)
    )


def its_bytes(i, side, equal=False):
    to = io.BytesIO()
    its_image(i, side, equal).save(to, "PNG")
    return to.getvalue()


def write(folder, equal=False):
    """The images as files; their paths below the folder."""
    for side in SIDES:
        (folder / side).mkdir()
        for i in range(N):
            path = folder / side / ("%02d.png" % i)
            path.write_bytes(its_bytes(i, side, equal))
    return [
        {side: "%s/%02d.png" % (side, i) for side in SIDES} for i in range(N)
    ]


def write_csv(folder, equal=False, sides=SIDES):
    lines = [",".join(row.values()) for row in write(folder, equal)]
    rows = ["%s,%d" % (line, i) for i, line in enumerate(lines)]
    text = "\n".join([",".join(SIDES) + ",label"] + rows) + "\n"
    (folder / "t.csv").write_text(text)
    tsock.index(folder / "t.csv", folder / "t", images=sides)
    return folder / "t"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("several"))


@pytest.fixture(scope="module")
def equals(tmp_path_factory):
    """The images of a sample have one size."""
    return write_csv(tmp_path_factory.mktemp("equal"), equal=True)


def loader(root, transform=ANY, **more):
    fields = ("image", "right", "far", "label", "index")
    if "Random" in transform or "Augment" in transform:
        fields += ("draws",)
    given = dict(root=root, transform=transform, fields=fields, as_dict=True)
    given.update(batch_size=5, seed=3, **RAW)
    return tsock.DataLoader(**{**given, **more})


def must_replay(made, equal=False, batches=None):
    """These batches or an epoch's, each image made again; their labels."""
    seen = []
    for batch in made if batches is None else batches:
        for k, i in enumerate(batch["label"].tolist()):
            draws = batch["draws"][k] if "draws" in batch else []
            for field, side in zip(("image", "right", "far"), SIDES):
                if field not in batch:
                    continue
                want = tsock.replay(
                    its_image(i, side, equal), draws, made.transform
                )
                got = batch[field][k].numpy()
                assert (np.asarray(want) == got).all(), (i, field)
            seen.append(i)
    return seen


@pytest.mark.parametrize("transform", SHARED)
def test_images_of_any_size_share_what_is_drawn(table, transform):
    with loader(table, transform) as made:
        for _ in range(2):
            assert sorted(must_replay(made)) == list(range(N))


@pytest.mark.parametrize("transform", [*SIZED, *POLICIES, "RandomCrop(20)"])
def test_images_of_one_size_share_every_draw(equals, transform):
    with loader(equals, transform) as made:
        for _ in range(2):
            assert sorted(must_replay(made, True)) == list(range(N))


@pytest.mark.parametrize("transform", SHARED[:3])
def test_without_draws_they_are_v2s(table, transform):
    steps = {
        "Cent": [v2.CenterCrop((40, 48))],
        "Resi": [v2.Resize((30, 50))],
    }[transform[:4]]
    if transform.endswith("(36)"):
        steps = [v2.Resize(40), v2.CenterCrop(36)]
    with loader(table, transform) as made:
        for batch in made:
            for k, i in enumerate(batch["label"].tolist()):
                want = v2.Compose(steps)([its_image(i, s) for s in SIDES])
                for image, field in zip(want, ("image", "right", "far")):
                    assert (np.asarray(image) == batch[field][k].numpy()).all()


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """All images have the size of their row's first one but for row 3's."""
    folder = tmp_path_factory.mktemp("uneven")
    rows = [
        {side: its_bytes(i, side, i != 3) for side in SIDES} for i in range(N)
    ]
    labelled = [dict(row, label=i) for i, row in enumerate(rows)]
    tsock.index(labelled, folder / "t", images=SIDES)
    return folder / "t"


@pytest.mark.parametrize("transform", SIZED)
def test_sizes_that_v2_refuses_are_a_bad_file(uneven, table, transform):
    images = [
        tv_tensors.Image(torch.zeros(3, *size, dtype=torch.uint8))
        for size in ((60, 80), (50, 40))
    ]
    with pytest.raises(ValueError, match="multiple C?HxW|multiple CxHxW"):
        SIZED[transform](images)
    with loader(uneven, transform, allow_bad=0.1) as made:
        assert set(must_replay(made, True)) == set(range(N)) - {3}
    said = refused(uneven, transform, name="strict")
    sizes = [its_image(3, side).size for side in SIDES[:2]]
    assert "its image right (t.data): Random" in said
    assert "they are %d x %d and %d x %d pixels" % sum(sizes, ()) in said
    # Where that is so of all of them there is no stream.
    sizes = [its_image(0, side).size for side in SIDES[:2]]
    said = refused(table, transform, name="none")
    assert "none can be made: left/00.png: left/00.png: its image" in said
    assert "they are %d x %d and %d x %d pixels" % sum(sizes, ()) in said


def refused(table, transform, **more):
    """What a stream says that stops at its first bad file."""
    given = dict(on_error="raise", order="sequential", **more)
    with pytest.raises(tsock.Error) as e:
        with loader(table, transform, **given) as made:
            list(made)
    return str(e.value)


def test_a_pair_of_one_image_has_it_twice(tmp_path):
    path = tmp_path / "a.png"
    its_image(3, "left").save(path)
    same = [{"left": path, "right": path, "label": k} for k in range(5)]
    tsock.index(same, tmp_path / "t", images=("left", "right"))
    recipe = "RandomResizedCrop(24) ColorJitter(0.5) RandomRotation(20)"
    with loader(
        tmp_path / "t", recipe, fields=("image", "right"), as_dict=False
    ) as made:
        for left, right in made:
            assert torch.equal(left, right)


def test_a_bad_image_makes_its_sample_a_bad_one(tmp_path):
    rows = [{side: its_bytes(i, side) for side in SIDES} for i in range(N)]
    for i, row in enumerate(rows):
        row["label"] = i
    half = its_bytes(11, "right")
    rows[11]["right"] = half[: len(half) // 2]
    rows[7]["far"] = b"GIF89a" + bytes(90)
    rows[3]["left"] = b"nothing"
    tsock.index(rows, tmp_path / "t", images=SIDES)
    with loader(tmp_path / "t", "Resize((24, 24))", allow_bad=0.9) as made:
        for _ in range(2):
            seen = must_replay(made)
            assert set(seen) == set(range(N)) - {3, 7, 11} and len(seen) == N
    rows[3]["left"] = its_bytes(3, "left")
    rows[11]["right"] = its_bytes(11, "right")
    tsock.index(rows, tmp_path / "u", images=SIDES)
    said = refused(tmp_path / "u", ANY)
    assert "u.data: its image far (u.data): " in said
    rows[7]["far"] = its_bytes(7, "far")
    rows[11]["right"] = half[: len(half) // 2]
    tsock.index(rows, tmp_path / "v", images=SIDES)
    assert "its image right (v.data): " in refused(tmp_path / "v", ANY)


def test_damage_below_a_crop_is_none(tmp_path):
    """As of the first image: a sample depends on its own draws alone."""
    rows = []
    for i in range(N):
        to = io.BytesIO()
        its_image(i, "left").resize((64, 64)).save(to, "JPEG", quality=95)
        data = to.getvalue()
        # The sample of the first row is always good.
        half = data[: len(data) * 2 // 3] if i else data
        rows.append({"left": data, "right": half, "label": i})
    tsock.index(rows, tmp_path / "t", images=("left", "right"))
    made = []
    for threads in (1, 3):
        with loader(
            tmp_path / "t",
            "RandomCrop(24)",
            name="t%d" % threads,
            threads=threads,
            allow_bad=1.0,
            fields=("image", "right", "index"),
            as_dict=False,
        ) as one:
            made.append([batch for _ in range(3) for batch in one])
    seen = set()
    for (left, right, index), (again, other, same) in zip(*made):
        assert torch.equal(left, again) and torch.equal(right, other)
        assert torch.equal(left, right) and torch.equal(index, same)
        seen |= set(index.tolist())
    assert len(seen) > N // 2


def test_rows_stay_together_shuffled_resumed_and_in_shards(table):
    with loader(table, SHARED[3], batch_size=4) as made:
        some = iter(made)
        first = must_replay(made, batches=[next(some) for _ in range(2)])
        state = json.loads(json.dumps(made.state_dict()))
        rest = must_replay(made, batches=some)
    with loader(table, SHARED[3], batch_size=4) as made:
        made.load_state_dict(state)
        assert must_replay(made) == rest
    assert sorted(first + rest) == list(range(N)) != first + rest
    parts = []
    for rank in range(2):
        shard = dict(shard=(rank, 2), name="part%d" % rank)
        with loader(table, SHARED[3], order="torch", **shard) as made:
            parts += must_replay(made)
    assert set(parts) == set(range(N)) and len(parts) == N + 1


def test_ranks_read_the_parts_of_an_epoch(table):
    def read(rank):
        with loader(
            table, SHARED[3], rank=rank, world_size=2, job="one"
        ) as made:
            return must_replay(made)

    with futures.ThreadPoolExecutor(2) as pool:
        first, second = pool.map(read, range(2))
    assert set(first + second) == set(range(N))
    assert len(first) == len(second)


def test_a_selection_a_subset_and_a_cache_keep_rows_together(table, tmp_path):
    chosen = [4, 9, 17]
    lines = "".join("left/%02d.png\n" % i for i in chosen)
    (tmp_path / "some").write_text(lines)
    with loader(table, select=tmp_path / "some", name="some") as made:
        assert sorted(must_replay(made)) == chosen
    with loader(table, subset=chosen, name="all") as made:
        assert sorted(must_replay(made)) == chosen
    with loader(table, cache="100M", name="kept") as made:
        for _ in range(3):
            assert sorted(must_replay(made)) == list(range(N))


def test_the_streams_identity_lists_the_images(table):
    with loader(table, name="one") as made:
        must_replay(made)
        text = tsock._ffi.lib.tsock_identity(handle_of(made))
    assert "\nimages=image,right,far\n" in text.decode()


def test_boxes_are_moved_with_the_first_image(tmp_path):
    boxes = np.array([[5, 4, 20, 22], [0, 0, 9, 12]], np.float32)
    rows = [
        dict(
            left=its_bytes(i, "left"),
            right=its_bytes(i, "right"),
            boxes=boxes[: 1 + i % 2],
            label=i,
        )
        for i in range(N)
    ]
    tsock.index(rows, tmp_path / "t", images=("left", "right"))
    fields = ("image", "right", "boxes", "boxes_length", "label", "draws")
    recipe = "RandomHorizontalFlip() RandomResize(30, 60) " + ANY
    with loader(tmp_path / "t", recipe, boxes="boxes", fields=fields) as made:
        for batch in made:
            must_replay(made, batches=[batch])
            for k, i in enumerate(batch["label"].tolist()):
                _, want, _ = tsock.replay(
                    its_image(i, "left"),
                    batch["draws"][k],
                    made.transform,
                    boxes=boxes[: 1 + i % 2],
                )
                n = int(batch["boxes_length"][k])
                assert n == len(want)
                got = batch["boxes"][k, :n]
                assert torch.allclose(got, want.as_subclass(torch.Tensor))


# ---- what tsock.index() reads ----


def jsonl(folder):
    rows = write(folder)
    lines = [json.dumps(dict(row, label=i)) for i, row in enumerate(rows)]
    (folder / "t.jsonl").write_text("\n".join(lines))
    return folder / "t.jsonl", {}


def samples(folder):
    """Paths and bytes."""
    write(folder)
    rows = []
    for i in range(N):
        row = {side: its_bytes(i, side) for side in SIDES}
        row[SIDES[i % 3]] = folder / SIDES[i % 3] / ("%02d.png" % i)
        rows.append(dict(row, label=i))
    return rows, {}


def arrow_table(which, paths=None):
    pa = pytest.importorskip("pyarrow")
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {
        side: pa.array(
            [
                (
                    {"bytes": its_bytes(i, side), "path": None}
                    if side != paths
                    else {"bytes": None, "path": "%s/%02d.png" % (side, i)}
                )
                for i in which
            ],
            kind,
        )
        for side in SIDES
    }
    return pa.table({**columns, "label": pa.array(which, pa.int64())})


def arrow(folder):
    pa = pytest.importorskip("pyarrow")
    write(folder)
    for name, which in (("a", range(9)), ("b", range(9, N))):
        of = arrow_table(list(which), "far")
        with pa.OSFile(str(folder / (name + ".arrow")), "wb") as f:
            with pa.ipc.new_stream(f, of.schema) as out:
                out.write_table(of, 5)
    return folder, {"kind": "arrow"}


def parquet(folder, compression="NONE"):
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(
        arrow_table(list(range(N))),
        folder / "t.parquet",
        compression=compression,
        use_dictionary=False,
        row_group_size=8,
    )
    return folder / "t.parquet", {}


def compressed(folder):
    return parquet(folder, "SNAPPY")


def put(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def tars(folder):
    with tarfile.open(folder / "0.tar", "w") as tar:
        for i in range(N):
            put(tar, "%02d.cls" % i, b"%d" % i)
            for side in SIDES:
                put(tar, "%02d.%s.png" % (i, side), its_bytes(i, side))
    return folder, {"kind": "webdataset"}


def mds(folder):
    """As MDSWriter writes it, but for what a table doesn't need."""
    names = [*SIDES, "label"]
    rows = []
    for i in range(N):
        images = [its_bytes(i, side) for side in SIDES]
        sizes = struct.pack("<3I", *map(len, images))
        rows.append(sizes + b"".join(images) + struct.pack("<q", i))
    at, ends = 4 + 4 * (N + 1), []
    for row in rows:
        ends.append(at)
        at += len(row)
    head = struct.pack("<%dI" % (N + 2), N, *ends, at)
    (folder / "shard.mds").write_bytes(head + b"".join(rows))
    shard = {
        "format": "mds",
        "raw_data": {"basename": "shard.mds"},
        "column_names": names,
        "column_encodings": ["png", "png", "png", "int"],
        "column_sizes": [None, None, None, 8],
    }
    (folder / "index.json").write_text(json.dumps({"shards": [shard]}))
    return folder, {}


def tfrecord(folder):
    out = []
    for i in range(N):
        features = b"".join(
            feature(side, 1, its_bytes(i, side)) for side in SIDES
        )
        features += feature("label", 3, bytes([i]))
        example = protobuf(1, features)
        out.append(struct.pack("<Q", len(example)) + bytes(4))
        out.append(example + bytes(4))
    (folder / "a.tfrecord").write_bytes(b"".join(out))
    return folder / "a.tfrecord", {}


@pytest.mark.parametrize(
    "make", [jsonl, samples, arrow, parquet, compressed, tars, mds, tfrecord]
)
def test_each_format_may_have_several_images(tmp_path, make):
    source, options = make(tmp_path)
    n = tsock.index(source, tmp_path / "t", images=SIDES, **options)
    assert n == N
    with loader(tmp_path / "t", SHARED[3]) as made:
        assert sorted(must_replay(made)) == list(range(N))
    assert (tmp_path / "t.data").exists() == (make in (samples, compressed))


def test_the_program_writes_tables_of_several_images(tmp_path):
    source, _ = jsonl(tmp_path)
    main(
        [str(source), str(tmp_path / "t"), "--images", ",".join(SIDES)]
    )
    with loader(tmp_path / "t") as made:
        assert sorted(must_replay(made)) == list(range(N))


def test_one_image_is_an_image(tmp_path):
    source, _ = jsonl(tmp_path)
    tsock.index(source, tmp_path / "t", images=["right"])
    with loader(tmp_path / "t", fields=("image", "label")) as made:
        for batch in made:
            for k, i in enumerate(batch["label"].tolist()):
                image = its_image(i, "right")
                want = tsock.replay(image, [], made.transform)
                assert (np.asarray(want) == batch["image"][k].numpy()).all()


@pytest.mark.parametrize(
    "options, why",
    [
        (dict(images="left"), "images='left': it is a list of names"),
        (dict(images=["left"], image="far"), "image= and images=: pass one"),
        (dict(images=["left", "left"]), "'left' is named twice"),
        (dict(images=["left", "far"], label="far"), "'far' is named twice"),
        (dict(images=["left", "far"], fields=["far"]), "'far' is named twice"),
        (dict(images=["left", "up"]), "no column 'up'; its columns are left"),
        (dict(images=["left", "none"]), "row 0 has no image 'none'"),
        (dict(images=["left", "index"]), "a column can't be called 'index'"),
        (dict(images=["left", "r" * 32]), "a name has 1 to 31 bytes"),
    ],
)
def test_what_cant_be_several_images_is_said(tmp_path, options, why):
    row = dict(left="l", far="f", index="i", none="")
    row["r" * 32] = "r"
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(ValueError) as e:
        tsock.index(tmp_path / "t.jsonl", tmp_path / "t", **options)
    assert why in str(e.value)


@pytest.mark.parametrize(
    "rows, why",
    [
        ([dict(a=b"1")], "sample 0 has no image 'b': it has ['a']"),
        ([(b"1", 3)], "sample 0 is a pair, and with images= samples are"),
        ([dict(a=b"1", b=b"")], "row 0: an image of no bytes"),
        (
            [dict(a=b"1", b=b"2"), dict(a=b"1", b=b"2", c=3)],
            "row 1 has the fields ['b', 'c'], those before ['b']",
        ),
    ],
)
def test_what_is_wrong_in_samples_is_said(tmp_path, rows, why):
    with pytest.raises(ValueError) as e:
        tsock.index(rows, tmp_path / "t", images=["a", "b"])
    assert why in str(e.value)


def test_more_images_than_a_sample_may_have_are_refused(tmp_path):
    names = ["i%d" % k for k in range(13)]
    rows = [{name: its_bytes(1, "left") for name in names}]
    with pytest.raises(ValueError, match="13 images a sample: 12 are the"):
        tsock.index(rows, tmp_path / "t", images=names)
    rows = [dict(row, label=1) for row in rows]
    del rows[0]["i12"]
    tsock.index(rows, tmp_path / "t", images=names[:12])
    with loader(tmp_path / "t", fields=("image", "i11"), as_dict=False) as m:
        for first, last in m:
            assert torch.equal(first, last)


@pytest.mark.parametrize(
    "transform, more, why",
    [
        (ANY, dict(views=2), "3 images a sample, of which no views"),
        ("Views([CenterCrop(9)], [CenterCrop(8)])", {}, "no views can be"),
        (ANY, dict(masks=True), "masks belong to image files of their own"),
    ],
)
def test_what_several_images_cant_be_combined_with(
    table, transform, more, why
):
    if "masks" in more:
        more = dict(masks=table.parent)
    with pytest.raises(tsock.Error) as e:
        loader(table, transform, **more)
    assert why in str(e.value)
