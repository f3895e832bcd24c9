# SPDX-License-Identifier: MIT
"""labels=: labels and fields of images that a file has."""

import io
import json
import shutil
import subprocess
import tarfile

import pytest

import tsock
from conftest import PRODUCER

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

N = 12
SMALL = dict(
    transform="CenterCrop(8)", order="sequential", epochs=1, wait=60
)

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def data(tmp_path):
    """DIR/val, a flat folder whose images have their numbers as colours."""
    (tmp_path / "val").mkdir()
    for i in range(N):
        Image.new("RGB", (16, 16), (i, 0, 0)).save(
            tmp_path / "val" / ("im_%02d.png" % i)
        )
    return tmp_path


@pytest.fixture
def read(data):
    """Reads an epoch, and gives what its one batch has."""
    names = []

    def of(spec, fields=("image", "label"), **more):
        names.append("%s-%d" % (data.name, len(names)))
        with tsock.DataLoader(
            names[-1],
            N,
            root=more.pop("root", data / "val"),
            labels=spec,
            fields=fields,
            **{**SMALL, **more},
        ) as loader:
            # Asked before the stream has ended; its order is the data set's.
            targets = getattr(loader.dataset, "targets", None)
            [batch] = list(loader)
            labels = batch[fields.index("label")]
            if torch.is_tensor(labels):
                assert np.array(targets).tolist() == labels.tolist()
            else:
                assert targets is None
            return loader.classes, batch

    yield of
    for name in names:
        try:
            tsock.stop(name)
        except tsock.Error:
            pass


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_a_csv_names_the_classes_of_a_flat_folder(data, read):
    names = ["dog", "ant", "cat"]
    lines = ["im_%02d.png,%s" % (i, names[i % 3]) for i in range(N)]
    file = write(data / "val.csv", ["filename,breed"] + lines[::-1])
    classes, (images, labels) = read(file)
    assert classes == ["ant", "cat", "dog"]
    assert labels.dtype == torch.int64
    assert labels.tolist() == [2, 0, 1] * (N // 3)
    # Each label is that of its image.
    assert len(images) == N


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_several_classes_and_texts_come_with_their_images(data, read, kind):
    tags = [["a"], ["a", "b"], [], ["c"]]
    texts = ["é", 'say "hi"', "", "two\nlines"]
    if kind == "csv":
        rows = [
            'im_%02d,%s,"%s"'
            % (i, "|".join(tags[i % 4]), texts[i % 4].replace('"', '""'))
            for i in range(N)
        ]
        file = write(data / "l.csv", ["name,tags,caption"] + rows)
    else:
        rows = [
            json.dumps(
                {"id": "im_%02d" % i, "tags": tags[i % 4]}
                | {"caption": texts[i % 4]}
            )
            for i in range(N)
        ]
        file = write(data / "l.jsonl", rows)
    classes, (labels, captions) = read(
        "%s:fields=caption" % file, fields=("label", "caption")
    )
    assert classes == ["a", "b", "c"]
    assert labels.dtype == torch.float32 and labels.shape == (N, 3)
    assert labels[:4].tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert captions == texts * (N // 4)


def test_numbers_and_vectors_are_float32(data, read):
    rows = ["im_%02d,%g,%g" % (i, i / 2, -i) for i in range(N)]
    file = write(data / "l.csv", ["image,x,y"] + rows)
    _, (labels,) = read("%s:label=x+y" % file, fields=("label",))
    assert labels.tolist() == [[i / 2, -i] for i in range(N)]
    _, (labels,) = read("%s:label=x,as=float" % file, fields=("label",))
    assert labels.tolist() == [i / 2 for i in range(N)]


def test_imagenets_validation_set_has_the_classes_of_train(data, read):
    """As torchvision, which moves these files into folders, numbers them."""
    wnids = ["n03", "n01", "n02"]  # by the devkit's numbers, from 1
    for name in wnids:
        (data / "train" / name).mkdir(parents=True)
        shutil.copy(data / "val" / "im_00.png", data / "train" / name)
    write(
        data / "map_clsloc.txt",
        ["%s %d word" % (name, k + 1) for k, name in enumerate(wnids)],
    )
    truth = write(
        data / "ILSVRC2012_validation_ground_truth.txt",
        [str(i % 3 + 1) for i in range(N)],
    )
    solution = write(
        data / "LOC_val_solution.csv",
        ["ImageId,PredictionString"]
        + ["im_%02d,%s 1 2 3 4 " % (i, wnids[i % 3]) for i in range(N)],
    )
    want = [2, 0, 1] * (N // 3)
    for spec in (str(truth) + ":classes=map_clsloc.txt", solution):
        classes, (_, labels) = read(spec)
        assert classes == ["n01", "n02", "n03"]
        assert labels.tolist() == want
    # The split of a tree that is recognised.
    classes, (_, labels) = read(solution, root=data, split="val")
    assert labels.tolist() == want


def test_files_beside_the_images_are_labels(data, read):
    for i in range(N):
        write(data / "val" / ("im_%02d.label" % i), [str(i % 5)])
    classes, (_, labels) = read(data / "val")
    assert labels.tolist() == [i % 5 for i in range(N)]
    assert classes == list("01234")


def put_shard(path, first, last, **more):
    """A tar file of images, as img2dataset writes it: with .txt and .json."""
    with tarfile.open(path, "w") as tar:
        for i in range(first, last):
            parts = {
                "png": (path.parent / "val" / ("im_%02d.png" % i)).read_bytes(),
                "txt": ("a cat\n no. %d \n" % i).encode(),
                "json": json.dumps({"meta": {"w": i / 2}}).encode(),
                **{k: v(i) for k, v in more.items()},
            }
            for ending, data in parts.items():
                info = tarfile.TarInfo("%05d.%s" % (i, ending))
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def test_captions_and_values_in_tar_files_are_fields(data, read):
    shards = data / "shards"
    shards.mkdir()
    (shards / "val").symlink_to(data / "val")
    put_shard(shards / "0.tar", 0, 5)
    put_shard(shards / "1.tar", 5, N)
    (shards / "val").unlink()
    _, (labels, texts, w) = read(
        "%s:fields=.txt+.json.meta.w" % shards,
        root=shards,
        fields=("label", "txt", "w"),
    )
    assert labels.tolist() == [-1] * N  # there are none
    assert texts == ["a cat\n no. %d" % i for i in range(N)]
    assert w.tolist() == [i / 2 for i in range(N)]
    # A label of text, which a .txt is without more ado.
    _, (labels,) = read(
        "%s:label=.txt" % shards, root=shards, fields=("label",)
    )
    assert labels == texts
    # Or those of a list, by the samples' keys.
    lines = ["%05d,%d" % (i, i % 4) for i in range(N)]
    file = write(data / "l.csv", ["key,label"] + lines)
    classes, (_, labels) = read(file, root=shards)
    assert labels.tolist() == [i % 4 for i in range(N)]
    assert classes == list("0123")


def test_classes_in_tar_files_may_come_with_fields(data, read):
    put_shard(data / "0.tar", 0, N, cls=lambda i: b"%d" % (i % 3))
    classes, (_, labels, texts) = read(
        "%s:label=.cls,fields=.txt" % data,
        root=data / "0.tar",
        fields=("image", "label", "txt"),
    )
    assert labels.tolist() == [i % 3 for i in range(N)]
    assert classes == list("012") and texts[1] == "a cat\n no. 1"


def test_jobs_share_a_stream_by_the_content_of_the_labels(data):
    lines = ["im_%02d,%d" % (i, i % 3) for i in range(N)]
    one = write(data / "one.csv", ["path,label"] + lines)
    same = write(data / "same.csv", ["path,label"] + lines)
    other = write(data / "other.csv", ["path,label"] + lines[1:] + lines[:1])
    options = dict(root=data / "val", wait=60, transform="CenterCrop(8)")
    name = data.name
    with tsock.DataLoader(name, 4, labels=one, **options):
        with tsock.DataLoader(name, 4, labels=same, **options) as loader:
            assert len(loader.classes) == 3
        with pytest.raises(tsock.Error, match="labels"):
            tsock.DataLoader(name, 4, labels=other, **options)
        with pytest.raises(tsock.Error, match="labels"):
            tsock.DataLoader(name, 4, **options)
    tsock.stop(name)


def test_a_mistake_is_an_error_of_one_sentence(data):
    file = write(data / "l.csv", ["path,label", "im_00,a", "im_01,b"])
    run = subprocess.run(
        [PRODUCER, "--check-config", "--root", str(data / "val")]
        + ["--labels", str(file)],
        capture_output=True,
        text=True,
    )
    assert run.returncode
    assert "no label for %d of %d images: im_02.png, im_03.png, im_04.png" % (
        N - 2,
        N,
    ) in run.stderr
