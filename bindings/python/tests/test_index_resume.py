# SPDX-License-Identifier: MIT
"""Indexing that is broken off goes on with the files that aren't done."""

import fcntl
import os
import subprocess

import pytest

import tsock
from hugging import N, cache, check, np, pa, parquet, read, rows, run_python
from tsock.indexing import arrow

pytestmark = pytest.mark.usefixtures("place", "cache")


class Stop(Exception):
    """In place of Ctrl-C."""


def stop_in(monkeypatch, name, rows):
    """Have the reader of Parquet files fail in this one, behind some rows."""
    real = arrow.index_parquet
    read = []

    def stops(table, path, **options):
        read.append(os.path.basename(path))
        for n, share in enumerate(real(table, path, **options)):
            if read[-1] == name and n == rows:
                raise Stop
            yield share

    monkeypatch.setattr(arrow, "index_parquet", stops)
    return read


def write_three(folder, compression="NONE"):
    folder.mkdir()
    for name, which in dict(
        a=range(8), b=range(8, 15), c=range(15, N)
    ).items():
        parquet.write_table(
            rows(which),
            folder / (name + ".parquet"),
            compression=compression,
            use_dictionary=False,
        )
    return folder


def break_off(root, table, **options):
    """While the third file is read."""
    with pytest.MonkeyPatch.context() as patched:
        stop_in(patched, "c.parquet", 2)
        with pytest.raises(Stop):
            tsock.index(root, table, **options)
    assert os.path.exists(str(table) + ".partial")


@pytest.mark.parametrize("compression", ["NONE", "SNAPPY"])
def test_an_indexing_goes_on_where_it_was_broken_off(tmp_path, compression):
    root = write_three(tmp_path / "d", compression)
    fields = dict(fields=["caption"])
    tsock.index(root, tmp_path / "whole", **fields)
    break_off(root, tmp_path / "t", **fields)
    assert not (tmp_path / "t").exists()
    with pytest.MonkeyPatch.context() as patched:
        seen = stop_in(patched, "", 0)
        assert tsock.index(root, tmp_path / "t", **fields) == N
    assert seen == ["c.parquet"]
    left = {p.name for p in tmp_path.glob("t*")}
    assert left == {"NONE": {"t"}, "SNAPPY": {"t", "t.data"}}[compression]
    whole, again = (tmp_path / n for n in ("whole", "t"))
    if compression == "NONE":
        assert whole.read_bytes() == again.read_bytes()
    else:
        data = [
            (tmp_path / (n + ".data")).read_bytes() for n in ("whole", "t")
        ]
        assert data[0] == data[1]


@pytest.mark.parametrize(
    "what, read_again",
    [("a", "abc"), ("b", "bc"), ("cut", "bc"), ("asked", "abc")],
)
def test_what_has_changed_meanwhile_is_indexed_again(
    tmp_path, what, read_again
):
    root = write_three(tmp_path / "d")
    break_off(root, tmp_path / "t")
    options = {}
    if what == "cut":  # as by a kill while a record is written
        size = os.path.getsize(tmp_path / "t.partial")
        os.truncate(tmp_path / "t.partial", size - 3)
    elif what == "asked":
        options = {"fields": ["caption"]}
    else:
        os.utime(root / (what + ".parquet"), ns=(1, 1))
    with pytest.MonkeyPatch.context() as patched:
        seen = stop_in(patched, "", 0)
        assert tsock.index(root, tmp_path / "t", **options) == N
    assert seen == [name + ".parquet" for name in read_again]
    got = read(tmp_path / "t", *options.get("fields", ()))
    check(got, range(N))
    assert not (tmp_path / "t.partial").exists()


def test_columns_keep_what_they_are_over_a_break(tmp_path):
    root = tmp_path / "d"
    root.mkdir()
    for k, name in enumerate("abc"):
        more = dict(
            ids=pa.array([list(range(i % 4)) for i in range(8)]),
            pose=pa.array([[1.5, k]] * 8),
            small=pa.array([k] * 8, pa.int16()),
        )
        table = rows(range(8), **more)
        parquet.write_table(table, root / (name + ".parquet"))
    asked = dict(fields=["caption", "ids", "pose", "small"])
    tsock.index(root, tmp_path / "whole", **asked)
    break_off(root, tmp_path / "t", **asked)
    tsock.index(root, tmp_path / "t", **asked)
    whole, again = (
        read(tmp_path / name, "ids", "pose", "small", "caption")
        for name in ("whole", "t")
    )
    for a, b in zip(whole, again):
        assert all(np.array_equal(x, y) for x, y in zip(a, b))
        assert len(a) == len(b) == 24 and type(a[0]) is type(b[0])
    assert again[4][0].dtype == np.int16


def test_a_table_that_another_process_writes_is_refused(tmp_path):
    root = write_three(tmp_path / "d")
    with open(tmp_path / "t.partial", "wb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="another process writes the table"):
            tsock.index(root, tmp_path / "t")
    assert tsock.index(root, tmp_path / "t") == N


def test_ctrl_c_says_how_to_go_on(tmp_path):
    root = write_three(tmp_path / "d")
    code = (
        "import sys\n"
        "from tsock.index.__main__ import main\n"
        "from tsock.indexing import arrow\n"
        "real = arrow.index_parquet\n"
        "def stops(table, path, **options):\n"
        "    for n, share in enumerate(real(table, path, **options)):\n"
        "        if path.endswith('c.parquet') and n == 2:\n"
        "            raise KeyboardInterrupt\n"
        "        yield share\n"
        "arrow.index_parquet = stops\n"
        "sys.exit(main([%r, %r]))\n" % (str(root), str(tmp_path / "t"))
    )
    done = run_python(code, stderr=subprocess.PIPE, text=True)
    said = done.communicate()[1]
    assert done.returncode == 130
    assert said == (
        "tsock.index: interrupted; the same command goes on with the files "
        "that aren't done\n"
    )
