# SPDX-License-Identifier: MIT
"""The programs in examples/ do what they say, from the public header alone."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

import tsock
from conftest import BUILD, CHECKOUT, N, finish, until

pytestmark = pytest.mark.usefixtures("warm")

EXAMPLES = os.path.join(CHECKOUT, "examples")
LIB = os.path.join(BUILD, "lib")


@pytest.fixture(scope="session")
def readme_program(tmp_path_factory):
    """The C program of the README, with an empty train().

    It waits a tenth of a second, not a minute, for the next producer.
    """
    cc = shutil.which(os.environ.get("CC", "cc"))
    if not cc:
        pytest.skip("no C compiler")
    with open(os.path.join(CHECKOUT, "README.md")) as f:
        source = re.search(r"^```c\n(.*?)^```$", f.read(), re.M | re.S).group(1)
    size = "opts.batch_size = 256;"
    assert size in source
    out = tmp_path_factory.mktemp("readme") / "train"
    subprocess.run(
        [cc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-x", "c", "-"]
        + ["-Dtrain(data,count)=(void)(data),(void)(count)"]
        + ["-I" + os.path.join(CHECKOUT, "include"), "-o", str(out)]
        + ["-L" + LIB, "-Wl,-rpath," + LIB, "-ltsock"],
        input=source.replace(size, size + " opts.rejoin_ms = 100;"),
        text=True,
        check=True,
    )
    return str(out)


def test_the_readmes_program_trains_to_the_streams_end(
    serve, readme_program, run
):
    serve("--epochs", 2, "--max-batch", 256, name="imagenet")
    finish(run(readme_program))


def test_the_readmes_program_says_what_is_wrong(
    monkeypatch, readme_program, run
):
    monkeypatch.setenv("TSOCK_DIR", "/" + "long" * 100)
    process = run(readme_program)
    _, err = process.communicate(timeout=150)
    assert process.returncode == 1 and "longlong" in err


@pytest.mark.kills
def test_the_readmes_program_says_when_the_producer_dies(
    serve, readme_program, run
):
    served = serve("--max-batch", 256, name="imagenet")
    process = run(readme_program)
    until(
        lambda: b"joins" in open(served.log, "rb").read(),
        what="the consumer's join",
    )
    served.kill()
    _, err = process.communicate(timeout=150)
    assert process.returncode == 1 and "imagenet" in err


def test_the_environment_shows_how_a_c_program_joins(
    monkeypatch, serve, build, run
):
    until(serve(name="toy").begun)
    program = build("train.c")
    _, err = finish(run(program, "toy", 16, 1))
    assert err == ""
    monkeypatch.setenv("TSOCK_LOG", "debug")
    _, err = finish(run(program, "toy", 16, 1))
    assert "debug: 'toy' is served in " in err
    assert "debug: joined 'toy': batches of 16 from host memory" in err


def proofs(process):
    out, _ = finish(process)
    lines = [line for line in out.splitlines() if "checksum" in line]
    assert all("each exactly once" in line for line in lines), out
    return [re.search("checksum (\\w+)", line).group(1) for line in lines]


def test_seen_proves_that_two_batch_sizes_saw_the_same(serve, build, run):
    seen = build("seen.c")
    serve("--epochs", 2, "--min-consumers", 2, "--max-batch", 100)
    runs = [run(seen, "toy", size, 2) for size in (48, 100)]
    one, two = [proofs(process) for process in runs]
    assert one == two and len(one) == 2 and one[0] != one[1]


def test_seen_reads_to_the_streams_end(serve, build, run):
    seen = build("seen.c")
    serve("--epochs", 3)
    assert len(proofs(run(seen, "toy", 7, 0))) == 3


def test_serve_serves_records_that_seen_finds_complete(place, build, run):
    server, seen = build("serve.c"), build("seen.c")
    process = run(server, "spiral", 3)
    assert len(set(proofs(run(seen, "spiral", 100, 0)))) == 3
    finish(process)


def test_serve_ends_by_ctrl_c(place, build, run):
    server, seen = build("serve.c"), build("seen.c")
    process = run(server, "spiral", 0)
    assert len(proofs(run(seen, "spiral", 512, 2))) == 2
    process.send_signal(signal.SIGINT)
    finish(process)


def test_tokens_serves_every_piece_once_and_shuffled(
    place, build, run, tmp_path
):
    numpy = pytest.importorskip("numpy")
    corpus = tmp_path / "corpus.bin"
    numpy.arange(1009, dtype="uint16").tofile(corpus)
    process = run(build("tokens.c"), corpus, 10, "text", 2)
    loader = tsock.DataLoader(
        "text",
        7,
        dtype="uint8",
        framework="numpy",
        fields=("tokens", "next", "index"),
    )
    orders = []
    for _ in range(2):
        orders.append([])
        for tokens, following, index in loader:
            right = index[:, None] * 10 + numpy.arange(10)
            assert (tokens == right).all() and (following == right + 1).all()
            orders[-1] += index.tolist()
        assert sorted(orders[-1]) == list(range(100))
    assert orders[0] != orders[1] != list(range(100))
    loader.close()
    finish(process)


def test_tokens_says_what_is_wrong(place, build, run, tmp_path):
    short = tmp_path / "short.bin"
    short.write_bytes(b"12345678")
    for path, text in ((short, "less than 11"), ("/none", "No such file")):
        process = run(build("tokens.c"), path, 10, "text", 1)
        assert text in process.communicate(timeout=150)[1]
        assert process.returncode == 1


LONGEST, DOCUMENTS = 30, 101


@pytest.fixture
def corpus(tmp_path):
    """(file, documents): tokens in documents that end with 0, of 1 to 40."""
    numpy = pytest.importorskip("numpy")
    documents = [
        numpy.append(numpy.arange(i * 7, i * 7 + i * 17 % 40) + 1, 0)
        for i in range(DOCUMENTS)
    ]
    path = tmp_path / "documents.bin"
    numpy.concatenate(documents).astype("uint16").tofile(path)
    return path, documents


def checksum(documents):
    """As read_batches.c has it, of documents by their number."""
    total = 0
    for number, tokens in documents:
        value = number
        for token in tokens.tolist():
            value = (value ^ token) * 0x100000001B3 % 2**64
        total += value
    return "%016x" % (total % 2**64)


def said(process):
    """What read_batches says of each epoch, by name."""
    out, _ = finish(process)
    pattern = (
        r"epoch (\d+): (\d+) batches, (\d+) documents, (\d+) tokens of "
        r"(\d+) places, checksum (\w+)\n"
    )
    assert re.fullmatch("(%s)*" % pattern, out), out
    return re.findall(pattern, out)


def test_token_batches_are_padded_and_have_every_document_once(
    place, build, run, corpus
):
    numpy = pytest.importorskip("numpy")
    path, documents = corpus
    process = run(build("token_batches.c"), path, 0, LONGEST, 8, "text", 2)
    loader = tsock.DataLoader("text", None, framework="numpy")
    orders, shapes = [], set()
    for _ in range(2):
        orders.append([])
        for batch in loader:
            ids, mask = batch["input_ids"], batch["attention_mask"]
            assert (ids.dtype, mask.dtype) == ("int32", "bool")
            assert ids.shape == mask.shape
            shapes.add(ids.shape)
            right = [documents[i][:LONGEST] for i in batch["document"]]
            assert ids.shape == (len(right), max(map(len, right)))
            for row, used, tokens in zip(ids, mask, right):
                assert (row[used] == tokens).all()
                assert used.tolist() == sorted(used.tolist(), reverse=True)
                assert not row[~used].any()
            orders[-1] += batch["document"].tolist()
        assert sorted(orders[-1]) == list(range(DOCUMENTS))
    assert orders[0] != orders[1] and len(shapes) > 2
    loader.close()
    finish(process)


def test_token_batches_are_read_in_c(place, build, run, corpus):
    path, documents = corpus
    reader = build("read_batches.c")
    process = run(build("token_batches.c"), path, 0, LONGEST, 8, "text", 2)
    epochs = said(run(reader, "text"))
    finish(process)
    cut = [tokens[:LONGEST] for tokens in documents]
    wanted = ("13", str(DOCUMENTS), str(sum(map(len, cut))))
    assert [epoch[0] for epoch in epochs] == ["0", "1"]
    for epoch in epochs:
        assert epoch[1:4] == wanted
        assert epoch[5] == checksum(enumerate(cut))
    assert int(epochs[0][4]) > int(wanted[2])


def test_batches_that_python_serves_are_read_in_c(place, build, run):
    numpy = pytest.importorskip("numpy")
    reader = build("read_batches.c")
    batches, rows = [], []
    for rank, width in ((3, 7), (1, 1), (5, 0), (2, 300)):
        mask = numpy.zeros((rank, width), "bool")
        ids = numpy.arange(rank * width, dtype="int32").reshape(mask.shape)
        for i in range(rank):
            mask[i, : width - i] = True
            rows.append((len(rows), ids[i][mask[i]]))
        batches.append(
            {
                "input_ids": ids,
                "attention_mask": mask,
                "document": numpy.arange(len(rows) - rank, len(rows)),
            }
        )
    server = tsock.serve(
        batches, "text", ragged=True, batch_bytes=8192, epochs=2
    )
    with server:
        epochs = said(run(reader, "text"))
        server.run()
    tokens = sum(len(row) for _, row in rows)
    wanted = ("4", "11", str(tokens), str(21 + 1 + 600), checksum(rows))
    assert epochs == [("0",) + wanted, ("1",) + wanted]


@pytest.mark.parametrize(
    "change, ragged, word",
    [
        ({"more": 3}, True, "nested as"),
        ({"input_ids": "int16"}, True, "other dtypes or shapes"),
        ({"document": "int32"}, True, "other dtypes or shapes"),
        ({}, False, "no ragged batches"),
    ],
)
def test_batches_of_another_kind_are_refused_in_c(
    place, build, run, change, ragged, word
):
    numpy = pytest.importorskip("numpy")
    reader = build("read_batches.c")
    batch = {
        "input_ids": numpy.ones((3, 7), "int32"),
        "attention_mask": numpy.ones((3, 7), "bool"),
        "document": numpy.arange(3),
    }
    for name, value in change.items():
        batch[name] = batch[name].astype(value) if name in batch else value
    with tsock.serve([batch], "text", ragged=ragged, length=1 if ragged else 3):
        process = run(reader, "text")
        _, err = process.communicate(timeout=150)
    assert process.returncode == 1 and word in err


def test_token_batches_say_what_is_wrong(place, build, run, tmp_path):
    program = build("token_batches.c")
    empty = tmp_path / "empty.bin"
    empty.write_bytes(b"1")
    for path, text in ((empty, "no tokens"), ("/none", "No such file")):
        process = run(program, path, 0, LONGEST, 8, "text", 1)
        assert text in process.communicate(timeout=150)[1]
        assert process.returncode == 1


def test_a_dataset_of_ones_own_is_served(script, place):
    pytest.importorskip("torch")
    with open(os.path.join(EXAMPLES, "serve_dataset.py")) as f:
        text = f.read()
    server = script(text, "serve", "tones", 2)
    out, _ = finish(script(text, "train", "tones", 100))
    assert out == "epoch 0: 600 tones\nepoch 1: 600 tones\n"
    out, _ = finish(server)
    assert "served 1200 samples" in out


@pytest.mark.parametrize("source", ["train.c", "train_raii.cpp"])
def test_training_in_c_and_cpp(serve, build, run, source):
    train = build(source)
    serve()
    out, _ = finish(run(train, "toy", 48, 3))
    lines = out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "epoch 0",
        "epoch 1",
        "epoch 2",
    ]
    assert all("%d samples" % N in line for line in lines)


@pytest.mark.parametrize("source", ["seen.c", "train.c", "train_raii.cpp"])
def test_examples_pass_on_what_the_library_says(serve, build, run, source):
    program = build(source)
    serve("--max-batch", 16)
    process = run(program, "toy", 17, 1)
    _, err = process.communicate(timeout=150)
    assert process.returncode == 1
    assert "17" in err and "16" in err


def test_training_learns(serve, build, run):
    train = build("train.c")
    serve()
    out, _ = finish(run(train, "toy", 48, 30))
    losses = [float(v) for v in re.findall(r"loss (\S+)", out)]
    assert losses[-1] < losses[0]


def test_train_py_trains(serve, script, place):
    pytest.importorskip("torch")
    serve("--max-batch", 256)
    with open(os.path.join(EXAMPLES, "train.py")) as f:
        out, _ = finish(script(f.read(), "toy", "2"))
    assert "epoch 0: last loss" in out and "epoch 1: last loss" in out


@pytest.fixture
def example(run, place, monkeypatch):
    """example("kfold.py", arguments) runs a program in Python."""
    pytest.importorskip("torch")
    path = os.path.join(CHECKOUT, "bindings", "python")
    monkeypatch.setenv("PYTHONPATH", path)
    return lambda name, *more: run(
        sys.executable, os.path.join(EXAMPLES, name), *more
    )


def test_kfold_py_makes_images_and_learns_them(example):
    out, _ = finish(example("kfold.py"), timeout=170)
    found = re.findall(r"on 144 samples, (\d+) of 36 others", out)
    assert len(found) == 5 and sum(map(int, found)) > 5 * 36 * 0.6


def test_sweep_py_trains_four_jobs_on_one_producer(example, images):
    out, _ = finish(example("sweep.py", images, 2), timeout=170)
    assert re.findall(r"^lr (\S+): loss \d", out, re.M) == [
        "0.001",
        "0.01",
        "0.1",
        "1",
    ]
    assert "best: lr " in out
    until(lambda: not tsock.streams(), what="the producer's end")
