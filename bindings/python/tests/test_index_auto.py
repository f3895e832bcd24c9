# SPDX-License-Identifier: MIT
"""Folders of Arrow and Parquet files as root=: indexed once, by whoever comes
first, and again where they have changed."""

import io
import logging
import os
import signal
import subprocess
import sys

import pytest

import tsock
from conftest import PRODUCER
from hugging import BREEDS, N, cache, check, pa, parquet, png, read, rows
from hugging import run_python, write_arrow, write_parquet
from tsock.indexing import automatic, telling

pytestmark = pytest.mark.usefixtures("place", "cache")


def tables(cache):
    return sorted(cache.glob("*/*.json"))


def test_a_folder_of_parquet_files_is_served_as_it_is(tmp_path, cache):
    root = write_parquet(tmp_path / "dogs", a=range(12), b=range(12, N))
    got = read(root, "caption")
    check(got, range(N))
    assert got[2] == ["dog %d" % i for i in range(N)]
    assert read.classes == BREEDS and read.name == "dogs"
    (one,) = tables(cache)
    assert not list(one.parent.glob("*.data*"))  # nothing was copied


def test_a_file_alone_is_served_as_it_is(tmp_path):
    root = write_parquet(tmp_path / "some", dogs=range(N))
    check(read(root / "dogs.parquet"), range(N))
    assert read.name == "dogs"


def test_folders_of_save_to_disk_are_served_by_their_splits(tmp_path):
    root = tmp_path / "set"
    write_arrow(root / "train" / "data-00000-of-00002.arrow", range(8))
    write_arrow(root / "train" / "data-00001-of-00002.arrow", range(8, 15))
    write_arrow(root / "test" / "data-00000-of-00001.arrow", range(15, N))
    write_arrow(root / "train" / "cache-12ab.arrow", range(3))
    (root / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    check(read(root), range(15))
    check(read(root, split="val"), range(15, N))
    assert read.name == "set-val"


def test_the_librarys_own_folder_is_served_as_it_is(tmp_path):
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("tqdm").tqdm.monitor_interval = 0
    datasets.disable_progress_bars()
    features = datasets.Features(
        image=datasets.Image(), label=datasets.ClassLabel(names=BREEDS)
    )
    made = {
        "image": [{"bytes": png(i), "path": None} for i in range(N)],
        "label": [i % 3 for i in range(N)],
    }
    whole = datasets.Dataset.from_dict(made, features=features)
    datasets.DatasetDict(
        train=whole.select(range(15)), test=whole.select(range(15, N))
    ).save_to_disk(tmp_path / "set", num_shards={"train": 3, "test": 1})
    check(read(tmp_path / "set"), range(15))
    check(read(tmp_path / "set", split="val"), range(15, N))


def test_the_val_split_is_evaluated(tmp_path):
    root = write_parquet(
        tmp_path / "d", train=range(9), validation=range(9, N)
    )
    chosen = automatic.with_table({"root": str(root), "split": "val"})
    assert chosen["preset"] == "eval" and chosen["order"] == "sequential"
    assert set(chosen) == {"root", "preset", "order"}
    chosen = automatic.with_table({"root": str(root), "split": "train"})
    assert set(chosen) == {"root"}


def test_a_split_that_no_files_name_has_is_said(tmp_path):
    root = write_parquet(tmp_path / "d", a=range(3))
    with pytest.raises(ValueError, match="validation or test in its name"):
        read(root, split="val")


def test_it_is_indexed_once_and_again_after_a_change(tmp_path, cache, caplog):
    caplog.set_level(logging.INFO, "tsock")
    root = write_parquet(tmp_path / "dogs", a=range(12))
    check(read(root), range(12))
    (before,) = tables(cache)
    stamp = os.stat(before).st_mtime_ns
    check(read(root), range(12))
    said = [r.message for r in caplog.records if "indexed 12" in r.message]
    assert len(said) == 1 and "the image is 'image'" in said[0]
    assert os.stat(before).st_mtime_ns == stamp
    tsock.stop(read.name)
    write_parquet(root, b=range(12, N))
    check(read(root), range(N))
    assert any("indexing it again" in r.message for r in caplog.records)


@pytest.mark.parametrize("what", ["table", "sources.json", "a.parquet"])
def test_a_table_that_is_not_whole_is_written_again(tmp_path, cache, what):
    root = write_parquet(tmp_path / "dogs", a=range(N))
    options = {"root": str(root)}
    table = automatic.with_table(options)["root"]
    path = {"table": table, "sources.json": tables(cache)[0]}.get(
        what, root / what
    )
    if what == "a.parquet":
        write_parquet(root, a=range(N - 1))
    else:
        os.truncate(path, os.path.getsize(path) // 2)
    assert automatic.with_table(options)["root"] == table
    check(read(root), range(N - (what == "a.parquet")))


def test_a_killed_indexing_leaves_nothing_that_counts(tmp_path, cache):
    root = write_parquet(tmp_path / "dogs", a=range(12), b=range(12, N))
    code = (
        "import os, signal\n"
        "from tsock.indexing import automatic, arrow\n"
        "real = arrow.index_parquet\n"
        "def stops(*a, **k):\n"
        "    for n, share in enumerate(real(*a, **k)):\n"
        "        if n == 5: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        yield share\n"
        "arrow.index_parquet = stops\n"
        "automatic.with_table({'root': %r})\n" % str(root)
    )
    assert run_python(code).wait() == -signal.SIGKILL
    assert not tables(cache)
    check(read(root), range(N))


def test_two_that_start_at_once_index_once(tmp_path, cache):
    root = write_parquet(tmp_path / "dogs", a=range(N))
    code = (
        "import logging, sys\n"
        "logging.basicConfig(level=logging.INFO, stream=sys.stdout)\n"
        "from tsock.indexing import automatic\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "print(automatic.with_table({'root': %r}))\n" % str(root)
    )
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    both = [run_python(code, **pipes) for _ in range(2)]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    for one in both:
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate()[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert "".join(said).count("indexed 20 samples") == 1, said


def test_a_second_one_waits_for_the_first(tmp_path, cache):
    root = write_parquet(tmp_path / "dogs", a=range(N))
    kept = automatic.Kept(str(root), "parquet", None, str(cache.parent))
    code = (
        "from tsock.indexing import automatic\n"
        "print(automatic.with_table({'root': %r})['root'])\n" % str(root)
    )
    with kept.locked():
        other = run_python(
            code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # It says so after a second.
        assert "waiting for another process" in other.stderr.readline()
        kept.write()
        stamp = os.stat(kept.path).st_mtime_ns
    assert other.communicate()[0] == kept.path + "\n"
    assert os.stat(kept.path).st_mtime_ns == stamp


def test_columns_that_no_table_can_have_are_left_out(tmp_path, caplog):
    caplog.set_level(logging.INFO, "tsock")
    columns = dict(
        gap=pa.array([None] + list(range(1, N))),
        long=pa.array(["x" * 5000] * N),
        ids=pa.array([list(range(i)) for i in range(N)]),
        when=pa.array([0] * N, pa.timestamp("s")),
        **{"n%d" % k: pa.array([k] * N) for k in range(6)},
    )
    (tmp_path / "d").mkdir()
    parquet.write_table(
        rows(range(N), **columns), tmp_path / "d" / "a.parquet"
    )
    got = read(tmp_path / "d", "ids", "n4", "caption")
    check(got, range(N))
    assert [list(one)[:i] for i, one in enumerate(got[2])] == [
        list(range(i)) for i in range(N)
    ]
    assert got[3] == [4] * N
    (said,) = [r.message for r in caplog.records if "indexed" in r.message]
    for part in (
        "'gap' is left out: column 'gap', row 0",
        "'long' is left out: its longest row has 5001 bytes",
        "'n5' is left out: a stream has 8 fields at most",
    ):
        assert part in said
    with pytest.raises(ValueError, match="field .gap.: stream .d. has"):
        read(tmp_path / "d", "gap")


def test_rows_without_an_image_are_served_too(tmp_path):
    (tmp_path / "text").mkdir()
    tokens = {"ids": [list(range(8)) for _ in range(N)], "label": [1] * N}
    parquet.write_table(pa.table(tokens), tmp_path / "text" / "a.parquet")
    loader = tsock.DataLoader(
        root=str(tmp_path / "text"), framework="numpy", exit_when_idle=5
    )
    assert sorted(loader.fields) == ["ids", "label"]
    loader.close()


def test_images_beside_parquet_are_a_folder_of_images(tmp_path):
    write_parquet(tmp_path, metadata=range(2))
    (tmp_path / "0.png").write_bytes(png(0))
    assert automatic.recognise(str(tmp_path)) is None
    (tmp_path / "classes" / "a").mkdir(parents=True)
    (tmp_path / "classes" / "a" / "0.png").write_bytes(png(0))
    assert automatic.recognise(str(tmp_path / "classes")) is None


def test_without_a_cache_the_way_is_said(tmp_path):
    root = write_parquet(tmp_path / "d", a=range(3))
    with pytest.raises(ValueError, match=r"write one with tsock.index\(\)"):
        read(root, no_cache=True)


def test_several_columns_of_images_have_to_be_chosen_from(tmp_path):
    (tmp_path / "d").mkdir()
    two = {"left": pa.array([png(0)]), "right": pa.array([png(1)])}
    parquet.write_table(pa.table(two), tmp_path / "d" / "a.parquet")
    with pytest.raises(ValueError, match="columns of images: left, right"):
        read(tmp_path / "d")


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_the_program_names_the_command(tmp_path, kind):
    root = tmp_path / "dogs"
    if kind == "parquet":
        write_parquet(root, a=range(3))
    else:
        write_arrow(root / "data-00000-of-00001.arrow", range(3))
    for more in ([], ["--dataset", kind], ["--split", "val"]):
        done = subprocess.run(
            [PRODUCER, "--root", root, "--dry-run", *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 78
        command = "%s is no table: python -m tsock.index %s " % (root, root)
        assert command in done.stdout


def index_by_shell(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tsock.index", *map(str, arguments)],
        cwd=os.path.dirname(os.path.dirname(tsock.__file__)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "RuntimeWarning" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("split", [None, "train", "val"])
def test_the_commands_table_is_that_of_loaders(tmp_path, cache, split):
    root = write_parquet(
        tmp_path / "d", train=range(9), validation=range(9, N)
    )
    said = () if split is None else ("--split", split)
    path = index_by_shell(root, *said).strip()
    (one,) = tables(cache)
    assert path == str(one.parent / ("d-val" if split == "val" else "d"))
    before = os.stat(path).st_mtime_ns
    done = subprocess.run(
        [PRODUCER, "--root", path, "--dry-run", *said],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert ("d-val" in done.stdout) == (split == "val"), done.stdout
    assert "d-val-val" not in done.stdout
    which = range(9, N) if split == "val" else range(9)
    check(read(root, **({} if split is None else {"split": split})), which)
    assert index_by_shell(root, *said).strip() == path
    assert os.stat(path).st_mtime_ns == before


def test_a_table_of_a_name_has_the_files_of_a_split(tmp_path):
    root = write_parquet(
        tmp_path / "d", train=range(9), validation=range(9, N)
    )
    said = index_by_shell(
        root, tmp_path / "t", "--split", "val", "--label", "label"
    )
    assert said == "%s: %d samples\n" % (tmp_path / "t", N - 9)
    check(read(tmp_path / "t"), range(9, N))
    with pytest.raises(ValueError, match="split= means nothing for samples"):
        tsock.index([{"a": 1}], tmp_path / "t", split="val")
    with pytest.raises(ValueError, match="'train' or 'val'"):
        tsock.index(root, tmp_path / "t", split="test")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--label", "label"], "--label needs the name of a table"),
        (["--pack-to", "4"], "--pack-to needs the name of a table"),
        ([], "holds no Arrow and no Parquet files"),
    ],
)
def test_what_a_kept_table_can_not_have_is_said(
    tmp_path, arguments, said, capsys
):
    from tsock.index.__main__ import main

    (tmp_path / "d").mkdir()
    try:
        assert main([str(tmp_path / "d"), *arguments]) == 1
    except SystemExit as e:
        assert e.code == 2
    assert said in capsys.readouterr().err


def test_a_table_is_evaluated_where_split_val_says_so(tmp_path):
    tsock.index(({"n": i} for i in range(N)), tmp_path / "t")
    with tsock.DataLoader(
        root=str(tmp_path / "t"), split="val", batch_size=N, exit_when_idle=5
    ) as loader:
        assert loader.name == "t-val"
        ((n,),) = list(loader)
    assert n.tolist() == list(range(N))


def test_a_long_indexing_says_how_far_it_is():
    now = [0.0]
    out = io.StringIO()
    told = telling.Telling("d", 1000, out, lambda: now[0])
    told.at(10, 1)
    assert out.getvalue() == ""
    now[0] = 2.0
    told.at(4000, 250)
    told.at(4001, 250)
    assert out.getvalue() == (
        "d: 4,000 samples, 2,000 a second, 25 %, 0:06 left\n"
    )
