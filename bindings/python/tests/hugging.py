# SPDX-License-Identifier: MIT
"""Files as Hugging Face's library writes them, and what is served of them."""

import json
import os
import subprocess
import sys

import pytest

import pictures
import tsock
from pictures import N, check_images, np, png

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

BREEDS = ["akita", "beagle", "corgi"]


def rows(which, **more):
    """As Hugging Face's library has images and classes in Arrow's terms."""
    image = pa.array(
        [{"bytes": png(i), "path": None} for i in which],
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )
    label = pa.array([i % 3 for i in which], pa.int64())
    caption = pa.array(["dog %d" % i for i in which])
    columns = {"image": image, "label": label, "caption": caption, **more}
    features = {
        "image": {"_type": "Image"},
        "label": {"_type": "ClassLabel", "names": BREEDS},
    }
    info = json.dumps({"info": {"features": features}})
    return pa.table(columns).replace_schema_metadata({"huggingface": info})


def write_parquet(folder, **of):
    """NAME=range: NAME.parquet of these samples."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, which in of.items():
        parquet.write_table(
            rows(which),
            folder / (name + ".parquet"),
            compression="NONE",
            use_dictionary=False,
        )
    return folder


def write_arrow(path, which):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = rows(which)
    with pa.OSFile(str(path), "wb") as f:
        with pa.ipc.new_stream(f, table.schema) as to:
            to.write_table(table, max_chunksize=8)


def read(root, *fields, **options):
    got = pictures.read(root, "label", *fields, **options)
    read.classes, read.name = pictures.read.classes, pictures.read.name
    return got


def check(got, which):
    images, labels = got[:2]
    assert labels == [i % 3 for i in which]
    check_images(images, which)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Where tables are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tsock" / "tables"


def run_python(code, **more):
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=os.path.dirname(os.path.dirname(tsock.__file__)),
        **more,
    )
