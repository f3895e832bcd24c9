# SPDX-License-Identifier: MIT
"""tsock.share: pipelines of the webdataset package."""

import io
import tarfile

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
wds = pytest.importorskip("webdataset")
from torch.utils.data import DataLoader  # noqa: E402
from torchvision import transforms as T  # noqa: E402

import tsock  # noqa: E402
from conftest import N  # noqa: E402
from tsock.sharing import shards, webdataset  # noqa: E402
from tsock.sharing.look import look  # noqa: E402
from tsock.sharing.patch import Patch  # noqa: E402
from tsock.sharing.plan import NotNative  # noqa: E402
from test_share import cache, same, shared  # noqa: E402,F401

pytestmark = pytest.mark.usefixtures("warm")

EVAL = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()])
TRAIN = T.Compose(
    [T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()]
)
SHARDS = 4
KEYS = "jpg;png;jpeg"


def same_label(label):
    return label


def next_label(label):
    return label + 1


def is_even(sample):
    return sample["cls"] % 2 == 0


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


@pytest.fixture(scope="session")
def folder(images, tmp_path_factory):
    """The folder's images, and as label the number of each, in tar files."""
    folder = tmp_path_factory.mktemp("shards")
    paths = sorted(images.rglob("*.jpg"), key=lambda path: path.name)
    for k in range(SHARDS):
        with tarfile.open(folder / ("toy-%03d.tar" % k), "w") as tar:
            for i in range(k, N, SHARDS):
                add(tar, "s/%05d.jpg" % i, paths[i].read_bytes())
                add(tar, "s/%05d.cls" % i, b"%d\n" % i)
                add(tar, "s/%05d.json" % i, b'{"a": 1}')
    return folder


@pytest.fixture
def urls(folder):
    return str(folder / ("toy-{000..%03d}.tar" % (SHARDS - 1)))


def pipeline(urls, transform, buffer=0, **more):
    more.setdefault("shardshuffle", SHARDS if buffer else False)
    data = wds.WebDataset(urls, **more).shuffle(buffer).decode("pil")
    return data.to_tuple(KEYS, "cls").map_tuple(transform, same_label)


def evaluation(urls, batch_size=20, **more):
    return pipeline(urls, EVAL, **more).batched(batch_size)


def why(loader):
    plan = look(loader)
    assert not plan.native
    return plan.why


# ---- what is native ----


@pytest.mark.parametrize("partial", [True, False])
def test_an_evaluation_pipeline_has_the_script_s_batches(
    urls, partial, shared
):
    data = pipeline(urls, EVAL).batched(20, partial=partial)
    loader = DataLoader(data, batch_size=None)
    mine = shared(loader)
    assert same(mine, loader) == (N if partial else N - N % 20)
    assert mine.identity["dataset"] == "webdataset"
    assert mine.name.startswith("toy-")


def test_torch_s_loader_makes_the_batches(urls, shared):
    for drop_last in (False, True):
        loader = DataLoader(pipeline(urls, EVAL), 20, drop_last=drop_last)
        mine = shared(loader)
        assert same(mine, loader) == (N - N % 20 if drop_last else N)


def test_a_webloader_that_cuts_batches_anew(urls, shared):
    loader = wds.WebLoader(evaluation(urls, 7), batch_size=None)
    assert same(shared(loader), loader) == N
    loader = loader.unbatched().batched(20)
    assert same(shared(loader), loader) == N


def test_a_datapipeline_of_stages(urls, shared):
    data = wds.DataPipeline(
        wds.SimpleShardList(urls),
        wds.split_by_worker,
        wds.tarfile_to_samples(),
        wds.decode("pilrgb"),
        wds.to_tuple("jpg", "cls"),
        wds.map_tuple(EVAL),
        wds.batched(20),
    )
    loader = wds.WebLoader(data, batch_size=None)
    assert same(shared(loader), loader) == N


def test_a_training_pipeline_has_each_sample_once(urls, shared, caplog):
    data = pipeline(urls, TRAIN, 50).batched(32)
    loader = wds.WebLoader(data, batch_size=None, num_workers=2)
    mine = shared(loader)
    epochs = [[int(i) for _, y in mine for i in y] for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(N))
    assert epochs[0] != epochs[1] and epochs[0] != sorted(epochs[0])
    sizes = [len(x) for x, _ in mine]
    assert sizes == [32] * (N // 32) + [N % 32]
    assert "shuffles all samples" in caplog.text
    assert "one shorter batch" in caplog.text
    assert "random numbers" in caplog.text


def test_the_table_names_the_parts(urls, capsys):
    loader = wds.WebLoader(evaluation(urls), batch_size=None)
    tsock.explain(loader)
    said = capsys.readouterr().out
    assert "Python" not in said and "makes a native stream" in said
    assert "order       native  as in the files" in said
    assert "read and decode" in said and "together" in said


def test_a_shuffle_of_one_shard_or_by_one_is_none(folder, urls):
    one = str(folder / "toy-001.tar")
    data = evaluation(one, shardshuffle=100)
    assert look(DataLoader(data, None)).options["order"] == "sequential"
    data = pipeline(urls, EVAL, 1, shardshuffle=False).batched(8)
    assert look(DataLoader(data, None)).options["order"] == "sequential"
    data = evaluation(urls, shardshuffle=100)
    assert look(DataLoader(data, None)).options["order"] == "philox"


def test_ranks_read_the_stream_together(urls, monkeypatch):
    data = evaluation(urls, nodesplitter=wds.split_by_node)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    plan = look(DataLoader(data, None))
    assert plan.native
    assert (plan.keywords["rank"], plan.keywords["world_size"]) == (1, 3)
    assert "for one process" in why(DataLoader(evaluation(urls), None))
    assert webdataset.ranks_of(DataLoader(data, None)) == 3
    assert webdataset.ranks_of(DataLoader(evaluation(urls), None)) == 1


RANK = """
import sys
import torch
from torchvision import transforms as T
import tsock
import webdataset as wds

crop = T.Compose([T.RandomResizedCrop(32), T.ToTensor()])
keep = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()])
for transform, buffer in ((crop, 50), (keep, 0)):
    data = wds.WebDataset(
        sys.argv[1], shardshuffle=buffer, nodesplitter=wds.split_by_node
    ).shuffle(buffer).decode("pil").to_tuple("jpg", "cls")
    data = data.map_tuple(transform).batched(10)
    mine = tsock.share(wds.WebLoader(data, batch_size=None), native=True)
    print(*(int(i) for _, y in mine for i in y))
    mine.close()
"""


def test_ranks_of_one_job_divide_an_epoch(urls, cache, script):
    jobs = [script(RANK, urls, RANK=k, WORLD_SIZE="2") for k in "01"]
    said = [job.communicate() for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], said
    lines = [out.splitlines() for out, _ in said]
    train, test = ([line.split() for line in both] for both in zip(*lines))
    assert len(train[0]) == len(train[1]) == -(-N // 2)
    assert {int(i) for i in train[0] + train[1]} == set(range(N))
    assert sorted(int(i) for i in test[0] + test[1]) == list(range(N))


def test_ranks_that_are_run_read_each_sample_once(urls, monkeypatch):
    data = evaluation(urls, nodesplitter=wds.split_by_node)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    opened = []
    monkeypatch.setattr(
        "tsock.sharing.native.opened",
        lambda plan, name, more: opened.append((plan, more)),
    )
    loader = DataLoader(data, None)
    patch = Patch()
    patch.install()
    try:
        list(loader)
    finally:
        patch.close()
    (plan, more), *_ = opened
    assert plan.keywords["world_size"] == 2 and "even" not in more


# ---- what isn't ----


def of(urls, **more):
    return wds.WebDataset(urls, shardshuffle=False, **more)


PAIRS = [KEYS, "cls"]

OTHERS = {
    "stage select": lambda u: of(u)
    .decode("pil")
    .select(is_even)
    .to_tuple(*PAIRS)
    .map_tuple(EVAL),
    "chooses its tar files": lambda u: wds.WebDataset(u, resampled=True)
    .decode("pil")
    .to_tuple(*PAIRS)
    .map_tuple(EVAL),
    "epochs of its own": lambda u: pipeline(u, EVAL).with_epoch(10),
    "WebDataset_Length": lambda u: pipeline(u, EVAL).with_length(
        N, silent=True
    ),
    "stage islice": lambda u: pipeline(u, EVAL).slice(10),
    "handler": lambda u: pipeline(u, EVAL, handler=wds.warn_and_continue),
    "given select_files": lambda u: pipeline(
        u, EVAL, select_files=lambda name: True
    ),
    "changes labels": lambda u: of(u)
    .decode("pil")
    .to_tuple(*PAIRS)
    .map_tuple(EVAL, next_label),
    "otherwise than by 'pil'": lambda u: of(u)
    .decode("torchrgb")
    .to_tuple(*PAIRS),
    "the endings jp2": lambda u: of(u)
    .decode("pil")
    .to_tuple("jp2", "cls")
    .map_tuple(EVAL),
    "else than image and label": lambda u: of(u)
    .decode("pil")
    .to_tuple("jpg", "cls", "__key__"),
    "missing_is_error": lambda u: of(u)
    .decode("pil")
    .to_tuple(KEYS, "cls", missing_is_error=False),
    "at another place": lambda u: of(u).to_tuple(*PAIRS),
    "whole samples": lambda u: of(u).decode("pil"),
    "images of Pillow": lambda u: of(u).decode("pil").to_tuple(*PAIRS),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reason", OTHERS)
def test_another_pipeline_is_the_script_s(urls, reason):
    assert reason in why(DataLoader(OTHERS[reason](urls), 8))


def test_batches_of_another_kind_are_the_script_s(urls):
    assert "batches of batches" in why(DataLoader(evaluation(urls), 2))
    single = DataLoader(pipeline(urls, EVAL), batch_size=None)
    assert "one sample after the other" in why(single)
    # Labels are numpy's there.
    numpy = wds.WebLoader(pipeline(urls, EVAL), batch_size=None).batched(8)
    assert "something else than images and labels" in why(numpy)
    lists = pipeline(urls, EVAL).listed(8)
    assert "something else" in why(DataLoader(lists, None))
    short = wds.WebLoader(
        pipeline(urls, EVAL).batched(8, partial=False), batch_size=None
    )
    assert "drops samples" in why(short.unbatched().batched(4))


def test_workers_that_read_the_same_are_the_script_s(urls):
    data = evaluation(urls, workersplitter=None)
    assert look(DataLoader(data, None)).native
    assert "in each worker" in why(DataLoader(data, None, num_workers=2))


def test_other_pipelines_are_served(urls, shared):
    data = of(urls).decode("pil").select(is_even).to_tuple(*PAIRS)
    loader = DataLoader(data.map_tuple(EVAL).batched(20), None)
    with pytest.raises(ValueError, match="has the stage select"):
        tsock.share(loader, native=True)
    mine = shared(loader, native="auto")
    labels = [int(i) for _, y in mine for i in y]
    assert labels == [int(i) for _, y in loader for i in y]
    tsock.stop(mine.name, force=True)


def test_a_sample_s_image_is_the_script_s(images, tmp_path, cache, shared):
    some = sorted(images.rglob("*.jpg"))
    path = tmp_path / "several.tar"
    with tarfile.open(path, "w") as tar:
        for i in range(20):
            add(tar, "%02d.cls" % i, b"%d" % i)
            add(tar, "%02d.jpeg" % i, some[i].read_bytes())

    def loader(endings):
        data = of(str(path)).decode("pil").to_tuple(endings, "cls")
        return DataLoader(data.map_tuple(EVAL), 8)

    assert same(shared(loader("jpeg")), loader("jpeg")) == 20
    assert list((cache / "noted").iterdir())
    assert look(loader("jpg;jpeg;png")).native
    with tarfile.open(path, "a") as tar:
        add(tar, "20.cls", b"20")
        add(tar, "20.jpeg", some[20].read_bytes())
        add(tar, "20.png", some[21].read_bytes())
    assert "1 samples with several" in why(loader("jpeg"))
    assert "1 samples with several" in why(loader("jpg;jpeg;png"))
    assert look(loader("jpg;png;jpeg")).native
    assert look(loader("webp;png;jpeg")).native


def labelled(path, images, labels):
    some = sorted(images.rglob("*.jpg"))
    with tarfile.open(path, "w") as tar:
        for i, label in enumerate(labels):
            add(tar, "%03d.jpg" % i, some[i].read_bytes())
            add(tar, "%03d.cls" % i, b"%d" % label)
    return DataLoader(evaluation(str(path)), None)


def test_labels_that_are_no_classes(images, tmp_path, shared):
    loader = labelled(tmp_path / "near.tar", images, [3, 4, -1])
    assert "no classes" in why(loader)
    loader = labelled(tmp_path / "far.tar", images, [1] * 40 + [-1])
    with pytest.raises(tsock.NoProducer, match="040.cls .*native=False"):
        shared(loader)


# ---- tar files ----


def files(folder, *names):
    for name in names:
        (folder / name).touch()
    return [str(folder / name) for name in names]


def test_a_root_is_one_file_a_range_or_a_folder(tmp_path):
    def root(urls, ordered=True):
        return shards.root_of(urls, ordered).path

    some = files(tmp_path, *("x-%02d.tar" % i for i in range(8, 12)))
    assert root(some) == str(tmp_path / "x-{08..11}.tar")
    assert root(some[1:3]) == str(tmp_path / "x-{09..10}.tar")
    assert root(some[2:3]) == str(tmp_path / "x-10.tar")
    assert root(some[::-1], False) == str(tmp_path / "x-{08..11}.tar")
    assert root(["file:" + some[0]]) == some[0]
    other = files(tmp_path, "y.tar")
    assert root(some + other) == str(tmp_path)
    assert root(other + some, False) == str(tmp_path)
    assert root(files(tmp_path, "n9.tar", "n10.tar")).endswith("n{9..10}.tar")


@pytest.mark.parametrize(
    "names, reason",
    [
        (["x-1.tar", "x-3.tar"], "a part of"),
        (["x-3.tar", "x-2.tar", "x-1.tar"], "a part of"),
        (["x-1.tar", "x-02.tar"], "a part of"),
        (["x-1.tar", "x-1.tar"], "twice"),
        (["a/x-1.tar", "x-2.tar"], "several folders"),
        (["x-{.tar"], "braces"),
        (["x-1.tgz"], "reads x-1.tgz"),
        (["pipe:cat x-1.tar"], "reads pipe:cat"),
        (["http://host/x-1.tar"], "reads http:"),
    ],
)
def test_other_tar_files_are_no_root(tmp_path, monkeypatch, names, reason):
    monkeypatch.chdir(tmp_path)
    files(tmp_path, "x-1.tar", "x-02.tar", "x-2.tar", "x-3.tar")
    with pytest.raises(NotNative, match=reason):
        shards.root_of(names, True)


RUN = """
import sys
import webdataset as wds
from torchvision import transforms as T

EVAL = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()])
data = wds.WebDataset(sys.argv[1], shardshuffle=False).decode("pil")
data = data.to_tuple("jpg", "cls").map_tuple(EVAL).batched(7)
loader = wds.WebLoader(data, batch_size=None).unbatched().batched(20)
print(*(int(i) for _, y in loader for i in y))
"""


def test_a_script_that_is_run_reads_the_stream(urls, cache, script):
    (cache.parent.parent / "train.py").write_text(RUN)
    done = script(
        "import runpy, sys; sys.argv[:] = ['tsock.run', *sys.argv[1:]];"
        "runpy.run_module('tsock.run', run_name='__main__')",
        cache.parent.parent / "train.py",
        urls,
    )
    said, log = done.communicate()
    assert done.returncode == 0, log
    labels = [int(i) for i in said.split()]
    assert labels == [i for k in range(SHARDS) for i in range(k, N, SHARDS)]
    assert "which is native" in log
