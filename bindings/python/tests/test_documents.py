# SPDX-License-Identifier: MIT
"""Documents of token files: what --documents makes of them, against NumPy."""

import itertools
import struct
import subprocess

import pytest

import tsock
from conftest import PRODUCER, until

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("place")

T = 8
END = 3
CODES = {"u2": 8, "i4": 4, "u1": 1, "i8": 5}
SCHEMAS = {"u2": "uint16", "i4": "int32", "u1": "uint8", "i8": "int64"}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def documents(rng, lengths, dtype="u2"):
    """Documents that end with END, which they have nowhere else."""
    made = [rng.integers(END + 1, 120, n).astype(dtype) for n in lengths]
    for one in made:
        one[-1:] = END
    return made


def index(sequences, first, code, size):
    """Megatron-LM's .idx: sequences' lengths, and each document's first."""
    lengths = [len(s) for s in sequences]
    pointers = [size * sum(lengths[:k]) for k in range(len(lengths))]
    return (
        b"MMIDIDX\0\0"
        + struct.pack("<QBQQ", 1, code, len(lengths), len(first))
        + np.array(lengths, "<i4").tobytes()
        + np.array(pointers, "<i8").tobytes()
        + np.array(first, "<i8").tobytes()
    )


def write(path, parts, kind="megatron", dtype="u2"):
    """A file of documents; Megatron-LM's have two sequences if they can."""
    tokens = np.concatenate(parts)
    if kind == "megatron":
        sequences, first = [], [0]
        for part in parts:
            sequences += [part[:2], part[2:]] if len(part) > 3 else [part]
            first.append(len(sequences))
        path.with_suffix(".idx").write_bytes(
            index(sequences, first, CODES[dtype], tokens.itemsize)
        )
    head = b""
    if kind == "llm.c":
        words = np.zeros(256, "i4")
        words[:3] = 20240520, 1, len(tokens)
        head = words.tobytes()
    path.write_bytes(head + tokens.tobytes())
    return path


NUMBERS = itertools.count()


def load(root, ways, batch_size=4, **options):
    more = dict(order="sequential", exit_when_idle=1, schema="uint16[%d]" % T)
    more["name"] = "documents-%d" % next(NUMBERS)
    return tsock.DataLoader(
        root=str(root),
        dataset="tokens",
        batch_size=batch_size,
        documents=ways,
        **{"framework": "numpy", **more, **options},
    )


def windows(parts):
    """Samples of ignore and mark: tokens, and the document of each."""
    tokens = np.concatenate(parts)
    which = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    for at in range(0, len(tokens) - T, T):
        part = slice(at, at + T + 1)
        yield tokens[part], which[part] - which[at]


def pieces(parts):
    """Documents, and those that are too long in pieces that overlap by one."""
    for part in parts:
        at = 0
        while len(part) - at > T + 1:
            yield part[at : at + T + 1], True
            at += T
        if len(part):
            yield part[at:], False


def packs(parts):
    """As many pieces as fit, whole, one behind the other."""
    now = []
    for piece, goes_on in pieces(parts):
        if sum(map(len, now)) + len(piece) > T + 1:
            yield now
            now = []
        now.append(piece)
        if goes_on:
            yield now
            now = []
    if now:
        yield now


def packed(parts):
    for pack in packs(parts):
        tokens = np.concatenate(pack)
        mark = np.repeat(np.arange(len(pack)), [len(p) for p in pack])
        room = T + 1 - len(tokens)
        yield np.pad(tokens, (0, room)), np.pad(
            mark, (0, room), constant_values=-1
        )


def check_marked(loader, want):
    want = list(want)
    got = [(a, b) for tokens, marks in loader for a, b in zip(tokens, marks)]
    loader.close()
    assert len(got) == len(want)
    for (tokens, marks), (a, b) in zip(got, want):
        assert tokens.dtype == a.dtype and marks.dtype == np.int32
        assert tokens.tolist() == a.tolist()
        assert marks.tolist() == b.tolist()


def check_whole(loader, want):
    want = [piece for piece, _ in want]
    got = []
    for tokens, lengths in loader:
        assert tokens.shape[1] == max(lengths)
        for row, n in zip(tokens, lengths):
            assert not row[n:].any()
            got.append(row[:n])
    loader.close()
    assert [g.tolist() for g in got] == [w.tolist() for w in want]


LENGTHS = {
    "short": [3, 2, 4, 1, 1, 5, 2, 2, 2, 7, 1, 3, 3],
    "long": [30, 2, 9, 10, 17, 18, 1, 25, 8, 8, 33],
    "one": [100],
    "single tokens": [1] * 40,
    "exact": [T + 1] * 5,
    "one more": [T + 2] * 5,
}


@pytest.mark.parametrize("kind", ["megatron", "nanogpt", "llm.c"])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_samples_are_those_of_numpy(tmp_path, rng, kind, lengths):
    parts = documents(rng, lengths)
    path = write(tmp_path / "a.bin", parts, kind)
    more = {} if kind == "megatron" else dict(end_token=END)
    check_marked(load(path, "mark", **more), windows(parts))
    check_whole(load(path, "whole", **more), pieces(parts))
    check_marked(load(path, "pack", **more), packed(parts))


@pytest.mark.parametrize("dtype", CODES)
def test_tokens_are_of_any_size(tmp_path, rng, dtype):
    parts = documents(rng, rng.integers(1, 30, 300), dtype)
    more = dict(schema="%s[%d]" % (SCHEMAS[dtype], T))
    write(tmp_path / "a.bin", parts, "megatron", dtype)
    check_marked(load(tmp_path, "pack", **more), packed(parts))
    write(tmp_path / "b.bin", parts[:9], "megatron", dtype)
    # An end of text tells the same as an index does.
    both = dict(more, end_token=END)
    want = [*packed(parts), *packed(parts[:9])]
    check_marked(load(tmp_path, "pack", **more), want)
    check_marked(load(tmp_path, "pack", **both), want)
    want = [*pieces(parts), *pieces(parts[:9])]
    check_whole(load(tmp_path, "whole", batch_size=11, **more), want)
    check_whole(load(tmp_path, "whole", batch_size=11, **both), want)


def test_a_token_may_be_at_the_beginning(tmp_path, rng):
    parts = [part[::-1] for part in documents(rng, LENGTHS["long"])]
    path = write(tmp_path / "a.bin", parts, "llm.c")
    check_whole(load(path, "whole", begin_token=END), pieces(parts))
    check_marked(load(path, "mark", begin_token=END), windows(parts))


def test_a_file_of_many_pieces_has_each_bound(tmp_path, rng):
    tokens = rng.integers(0, 500, 3_000_000).astype("u2")
    tokens.tofile(tmp_path / "a.bin")
    ends = np.flatnonzero(tokens == 499) + 1
    more = dict(schema="uint16[9000]", end_token=499, max_batch=4)
    loader = load(tmp_path / "a.bin", "whole", **more)
    got = np.concatenate([lengths for _, lengths in loader])
    loader.close()
    want = np.diff([0, *ends, *([len(tokens)] if ends[-1] < 3e6 else [])])
    assert want.max() <= 9001 and got.tolist() == want.tolist()


def test_documents_without_a_token_are_passed_over(tmp_path, rng):
    parts = documents(rng, [4, 3, 2])
    tokens = np.concatenate(parts)
    tokens.tofile(tmp_path / "a.bin")
    empty = tokens[:0]
    (tmp_path / "a.idx").write_bytes(
        index([empty, *parts, empty], [0, 0, 1, 1, 2, 3, 4, 5, 5], 8, 2)
    )
    check_whole(load(tmp_path / "a.bin", "whole"), pieces(parts))
    check_marked(load(tmp_path / "a.bin", "pack"), packed(parts))


def test_the_index_of_windows_is_not_looked_at_without_documents(
    tmp_path, rng
):
    parts = documents(rng, [30, 30])
    path = write(tmp_path / "a.bin", parts)
    idx = path.with_suffix(".idx")
    idx.write_bytes(idx.read_bytes()[:40])
    for way in ("ignore", None):
        loader = load(path, way)
        got = [row.tolist() for (tokens,) in loader for row in tokens]
        loader.close()
        assert got == [row.tolist() for row, _ in windows(parts)]


# ---- what training makes of the marks ---------------------------------------


def test_torch_makes_positions_and_masks_of_the_marks(tmp_path, rng):
    """The lines of docs/guide/data.md, against Megatron-LM's loops."""
    parts = documents(rng, LENGTHS["short"] + LENGTHS["long"])
    path = write(tmp_path / "a.bin", parts)
    for way in ("mark", "pack"):
        loader = load(path, way, framework="torch")
        for tokens, document in loader:
            x, y = tokens[:, :-1].long(), tokens[:, 1:].long()
            inside = document[:, :-1]
            at = torch.arange(x.shape[1])
            begins = torch.ones_like(inside, dtype=torch.bool)
            begins[:, 1:] = inside[:, 1:] != inside[:, :-1]
            position_ids = at - torch.where(begins, at, 0).cummax(1).values
            loss_mask = (inside == document[:, 1:]) & (inside >= 0)
            attends = (inside[:, :, None] == inside[:, None, :]).tril()
            starts = begins.flatten().nonzero().flatten()
            for b in range(len(x)):
                want = torch.arange(x.shape[1])
                mask = torch.ones(x.shape[1], x.shape[1]).tril().bool()
                for i in (x[b] == END).nonzero().flatten().tolist():
                    mask[i + 1 :, : i + 1] = False
                    if i + 1 < len(want):
                        want[i + 1 :] -= want[i + 1].item()
                assert torch.equal(position_ids[b], want)
                assert torch.equal(attends[b], mask)
                real = inside[b] >= 0
                assert torch.equal(
                    loss_mask[b], real & (x[b] != END) & (y[b] != 0)
                )
            assert torch.equal(
                torch.diff(starts, append=torch.tensor([begins.numel()])),
                torch.cat(
                    [
                        row.unique_consecutive(return_counts=True)[1]
                        for row in inside
                    ]
                ),
            )
        loader.close()


# ---- the stream --------------------------------------------------------------


def test_epochs_are_shuffled_and_go_on_from_a_state(tmp_path, rng):
    parts = documents(rng, rng.integers(1, 30, 60))
    path = write(tmp_path / "a.bin", parts)
    for way in ("mark", "whole", "pack"):
        more = dict(order="philox", batch_size=5, fields=("tokens", "index"))
        loader = load(path, way, **more)
        it = iter(loader)
        head = [next(it) for _ in range(4)]
        state = loader.state_dict()
        rest = list(it)
        loader.close()
        want = [
            w[0]
            for w in {"mark": windows, "whole": pieces, "pack": packed}[way](
                parts
            )
        ]
        seen = []
        for tokens, number in head + rest:
            for row, i in zip(tokens, number):
                seen.append(i)
                n = len(want[i])
                assert row[:n].tolist() == want[i].tolist()
                assert not row[n:].any()
        assert sorted(seen) == list(range(len(want)))
        assert seen != list(range(len(want)))
        again = load(path, way, **more)
        again.load_state_dict(state)
        got = list(again)
        again.close()
        assert [n.tolist() for _, n in got] == [n.tolist() for _, n in rest]
        part = load(path, way, **dict(more, subset=[7, 3, 11]))
        (batch,) = list(part)
        part.close()
        assert sorted(batch[1].tolist()) == [3, 7, 11]


def test_ranks_have_all_documents_between_them(tmp_path, rng):
    parts = documents(rng, rng.integers(1, 9, 50))
    path = write(tmp_path / "a.bin", parts)
    seen = []
    for rank in range(2):
        loader = load(path, "whole", shard=(rank, 2), fields=("index",))
        seen += [i for (n,) in loader for i in n.tolist()]
        loader.close()
    assert sorted(seen) == list(range(50))


def test_files_may_be_added(tmp_path, rng):
    folder, made = tmp_path / "tokens", tmp_path / "made"
    folder.mkdir()
    made.mkdir()

    def add(name, lengths):
        write(made / (name + ".bin"), documents(rng, lengths))
        for part in sorted(made.iterdir(), reverse=True):  # .idx first
            part.rename(folder / part.name)

    add("a", [3, 5] * 50)
    loader = load(
        folder, "whole", grows=True, ring=64, max_batch=16, fields=("index",)
    )
    assert [i for (n,) in loader for i in n.tolist()] == list(range(100))
    add("b", [4] * 30)

    def grown():
        return sum(len(n) for (n,) in loader) == 130

    until(grown, what="an epoch with the new file")
    loader.close()


def test_another_way_or_token_is_another_stream(tmp_path, rng):
    path = write(tmp_path / "a.bin", documents(rng, [9] * 9), "nanogpt")
    first = load(path, "pack", end_token=END, name="documents")
    for key, more in (
        ("documents", dict(ways="mark", end_token=END)),
        ("documents", dict(ways="ignore")),
        ("end-token", dict(ways="pack", end_token=50)),
        ("begin-token", dict(ways="pack", begin_token=END)),
    ):
        with pytest.raises(tsock.OtherStream, match=key):
            load(path, name="documents", **more)
    first.close()


def test_another_index_is_another_data_set(tmp_path, rng):
    parts = documents(rng, [9, 9, 9, 9])
    path = write(tmp_path / "a.bin", parts)
    first = load(path, "mark")
    list(first)
    state = first.state_dict()
    first.close()
    path.with_suffix(".idx").write_bytes(index(parts, [0, 1, 2, 4], 8, 2))
    changed = load(path, "mark")
    with pytest.raises(ValueError, match="files is"):
        changed.load_state_dict(state)
    changed.close()


# ---- what is refused ---------------------------------------------------------


def refused(root, *options):
    done = subprocess.run(
        [PRODUCER, "--root", str(root), "--dry-run", "-q", *options],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    said = done.stderr.strip()
    assert done.returncode > 0, said
    assert said.count("\n") == 0, said
    return said


TOKENS = ("--dataset=tokens", "--schema=uint16[%d]" % T)


def test_options_that_say_nothing_are_refused(tmp_path, rng):
    path = write(tmp_path / "a.bin", documents(rng, [20, 20]), "nanogpt")
    for options, why in {
        ("--documents=pack",): "a.bin has no .idx",
        ("--documents=pack", "--end-token=121"): "has no token 121",
        ("--documents=pack", "--begin-token=65536"): "65535 at most",
        ("--end-token=3",): "without --documents",
        ("--begin-token=3", "--documents=ignore"): "without --documents",
        (
            "--documents=mark",
            "--begin-token=3",
            "--end-token=3",
        ): "contradicts",
        ("--documents=some",): "ignore|mark|whole|pack",
        ("--documents=mark", "--end-token=3", "--keys"): "no names",
        (
            "--documents=mark",
            "--end-token=3",
            "--schema=uint16[40]",
        ): "samples shorter",
        (
            "--documents=mark",
            "--end-token=3",
            "--schema=float32[40]",
        ): "no integers",
        (
            "--documents=whole",
            "--end-token=3",
            "--schema=uint8[2147483647]",
        ): "2147483646 tokens are the most",
    }.items():
        assert why in refused(path, *TOKENS, *options)
    said = refused(path, *TOKENS, "--documents=whole")
    assert "--end-token 50256" in said and "--begin-token" in said
    np.save(tmp_path / "a.npy", np.arange(6))
    said = refused(tmp_path / "a.npy", "--dataset=npy", "--documents=whole")
    assert "means nothing to --dataset npy" in said


def test_a_damaged_index_is_refused(tmp_path, rng):
    parts = documents(rng, [9, 9, 9, 9])
    path = write(tmp_path / "a.bin", parts)
    idx = path.with_suffix(".idx")

    def says(data, why):
        idx.write_bytes(data)
        for way in ("mark", "whole", "pack"):
            said = refused(path, *TOKENS, "--documents=" + way)
            assert why in said and "a.idx" in said, said

    good = index(parts, [0, 1, 2, 3, 4], 8, 2)
    for n in (0, 17, 18, 33, 34, 49, 50, 81, 82, 121):
        words = {0: "head", 17: "head", 18: "head", 33: "head"}
        says(good[:n], words.get(n, "truncated"))

    def with_number(at, value, kind="<q"):
        data = bytearray(good)
        struct.pack_into(kind, data, at, value)
        return bytes(data)

    for at, value in ((18, 5), (18, 1 << 62), (26, 6), (26, 1 << 61)):
        says(with_number(at, value), "truncated")
    says(with_number(18, -1), "truncated")
    says(with_number(26, -1), "truncated")
    says(with_number(18, 0), "no sequences")
    says(with_number(26, 0), "no documents")
    says(with_number(34, -1, "<i"), "sequence 0 has -1 tokens")
    says(with_number(38, 8, "<i"), "sequence 2 begins at byte 36")
    says(with_number(34 + 12, 1 << 30, "<i"), "ends behind the 36 tokens")
    says(with_number(34 + 12, 8, "<i"), "sequences of 35 tokens")
    says(with_number(50, 2), "sequence 0 begins at byte 2")
    says(with_number(58, -18), "sequence 1 begins at byte -18")
    says(with_number(58, 1 << 62), "sequence 1 begins at byte 4611")
    says(with_number(82, 1), "document 0 begins with sequence 1")
    says(with_number(90, 5), "document 1 begins with sequence 5")
    says(with_number(98, 0), "document 2 begins with sequence 0")
    says(with_number(114, 9), "document 4 begins with sequence 9")
    says(with_number(90, -1), "document 1 begins with sequence -1")
    # What is behind the last bound is a document of its own.
    idx.write_bytes(with_number(114, 3))
    check_whole(load(path, "whole"), pieces(parts))
