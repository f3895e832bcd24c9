# SPDX-License-Identifier: MIT
"""Crops of audio files, beside the libraries that people read them with."""

import os
import struct
import subprocess
import wave

import pytest

import tsock
from conftest import PRODUCER

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.usefixtures("place")

FRAMES = 1000
RATE = 8000


def has(library):
    """Was the producer built with it?"""
    done = subprocess.run(["ldd", PRODUCER], stdout=subprocess.PIPE, text=True)
    return library in done.stdout


needs_sndfile = pytest.mark.skipif(
    not has("libsndfile"), reason="a build without libsndfile"
)
needs_soxr = pytest.mark.skipif(
    not has("libsoxr"), reason="a build without libsoxr"
)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def soundfile():
    return pytest.importorskip("soundfile")


@pytest.fixture
def stream(tmp_path):
    """stream(...) makes a loader, whose producer ends with the test."""
    names = []

    def make(root, schema="float32[1,%d]" % FRAMES, **more):
        names.append("audio-%d" % len(names))
        return tsock.DataLoader(
            name=names[-1],
            root=root,
            dataset="audio",
            schema=schema,
            **{
                **dict(batch_size=4, framework="numpy", wait=60, epochs=2),
                **dict(no_cache=True, fields=("audio", "label", "index")),
                **more,
            },
        )

    yield make
    for name in names:
        try:
            tsock.stop(name, force=True)
        except tsock.Error:
            pass  # there is none, since it refused


def rows(loader):
    """Each field's rows, in the order of the data set."""
    columns = [np.concatenate(parts) for parts in zip(*loader)]
    order = np.argsort(columns[-1], kind="stable")
    return [column[order] for column in columns]


def refused(root, *options):
    """What the producer says of a data set that it doesn't serve."""
    done = subprocess.run(
        [PRODUCER, "--root", str(root), "--dry-run", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert done.returncode, done.stdout
    return done.stdout


# ---- what a sample should be ----------------------------------------------


def philox(key, words):
    """Philox 4x32-10 of Random123, which every draw is made by."""
    c = list(words)
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            (b >> 32) ^ c[1] ^ k[0],
            b & 0xFFFFFFFF,
            (a >> 32) ^ c[3] ^ k[1],
            a & 0xFFFFFFFF,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def start_of(frames, index, epoch=0, view=0, seed=0, length=FRAMES):
    if frames <= length:
        return 0
    word = philox(seed, (index, 0, epoch, (0xC001 + view) << 16))[0]
    return word % (frames - length + 1)


def cut(whole, start, length=FRAMES):
    """The crop of [frames, channels], as [channels, frames]."""
    part = whole[start : start + length]
    return np.pad(part, ((0, length - len(part)), (0, 0))).T


def mono(whole):
    """As torch.mean(dim=0) and librosa.to_mono() do it."""
    total = whole[:, 0].copy()
    for c in range(1, whole.shape[1]):
        total += whole[:, c]
    return (total / np.float32(whole.shape[1]))[:, None]


def write_wav(path, values, channels=1, rate=RATE, width=2):
    with wave.open(str(path), "wb") as f:
        f.setnchannels(channels)
        f.setsampwidth(width)
        f.setframerate(rate)
        f.writeframes(values.tobytes())


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)


def riff(*chunks, kind=b"RIFF"):
    body = b"WAVE" + b"".join(chunks)
    return kind + struct.pack("<I", len(body)) + body


def fmt(tag, channels, bits, rate=RATE, more=b""):
    block = channels * bits // 8
    return chunk(
        b"fmt ",
        struct.pack("<HHIIHH", tag, channels, rate, rate * block, block, bits)
        + more,
    )


# ---- WAV ------------------------------------------------------------------


def test_crops_begin_where_the_documented_draw_says(tmp_path, stream, rng):
    for i in range(9):
        values = rng.integers(-32768, 32767, 3000 + 17 * i, dtype="<i2")
        write_wav(tmp_path / ("%d.wav" % i), values)
    loader = stream(tmp_path, seed=7)
    for epoch in range(2):
        got, label, index = rows(loader)
        assert got.dtype == np.float32 and got.shape == (9, 1, FRAMES)
        assert list(index) == list(range(9)) and set(label) == {-1}
        for i in range(9):
            with wave.open(str(tmp_path / ("%d.wav" % i))) as f:
                frames = f.getnframes()
                f.setpos(start_of(frames, i, epoch, seed=7))
                want = np.frombuffer(f.readframes(FRAMES), "<i2")
            assert np.array_equal(got[i, 0], want.astype("f4") / 32768)


@pytest.mark.parametrize(
    "subtype", "PCM_U8 PCM_16 PCM_24 PCM_32 FLOAT DOUBLE ULAW".split()
)
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("kind", ["WAV", "WAVEX", "RF64"])
def test_wav_files_have_the_values_of_soundfile(
    tmp_path, stream, rng, soundfile, subtype, channels, kind
):
    if subtype == "ULAW" and (not has("libsndfile") or kind == "RF64"):
        pytest.skip("libsndfile's alone")
    for i, frames in enumerate((4001, 1000, 999, 1, 1777)):
        values = rng.uniform(-1, 1, (frames, channels))
        path = str(tmp_path / ("%d.wav" % i))
        soundfile.write(path, values, RATE, subtype=subtype, format=kind)
    one, _, _ = rows(stream(tmp_path))
    all_, _, _ = rows(stream(tmp_path, "float32[%d,%d]" % (channels, FRAMES)))
    for i in range(5):
        whole, _ = soundfile.read(
            str(tmp_path / ("%d.wav" % i)), dtype="float32", always_2d=True
        )
        start = start_of(len(whole), i)
        assert np.array_equal(all_[i], cut(whole, start)), i
        assert np.array_equal(one[i], cut(mono(whole), start)), i


def test_odd_chunks_are_passed_over_and_lengths_may_be_unknown(
    tmp_path, stream, rng
):
    values = rng.integers(-9999, 9999, 1500, dtype="<i2")
    data, list_ = values.tobytes(), chunk(b"LIST", b"INFOx")
    head = fmt(1, 1, 16)
    unknown = b"data" + struct.pack("<I", 0xFFFFFFFF) + data
    closed_never = b"data" + struct.pack("<I", 0) + data
    ds64 = chunk(b"ds64", struct.pack("<QQQI", 0, len(data), 1500, 0))
    files = [
        riff(list_, head, chunk(b"fact", b"\0" * 4), chunk(b"data", data)),
        riff(head, chunk(b"odd ", b"123"), chunk(b"data", data), list_),
        riff(head, unknown),
        riff(head, closed_never),
        riff(ds64, head, unknown, list_, kind=b"RF64"),
        riff(head, chunk(b"data", data + b"!")),  # half a frame
    ]
    for i, content in enumerate(files):
        (tmp_path / ("%d.wav" % i)).write_bytes(content)
    got, _, _ = rows(stream(tmp_path, epochs=1))
    for i in range(len(files)):
        start = start_of(1500, i)
        want = values[start : start + FRAMES].astype("f4") / 32768
        assert np.array_equal(got[i, 0], want), i


def test_the_middle_is_evaluated_and_views_are_crops_of_their_own(
    tmp_path, stream, rng
):
    (tmp_path / "val" / "a").mkdir(parents=True)
    values = rng.integers(-9999, 9999, 3001, dtype="<i2")
    write_wav(tmp_path / "val" / "a" / "x.wav", values)
    whole = values.astype("f4") / 32768
    middle, label, _ = rows(stream(tmp_path, split="val"))
    assert np.array_equal(middle[0, 0], whole[1000:2000]) and label[0] == 0
    middle, _, _ = rows(stream(tmp_path / "val", preset="eval"))
    assert np.array_equal(middle[0, 0], whole[1000:2000])
    fields = ("audio", "audio2", "audio3", "index")
    views = rows(stream(tmp_path / "val", views=3, fields=fields))
    for k in range(3):
        start = start_of(3001, 0, view=k)
        assert np.array_equal(views[k][0, 0], whole[start : start + FRAMES])
    assert not np.array_equal(views[0], views[1])


# ---- folders --------------------------------------------------------------


def test_folders_are_classes_unless_files_lie_beside_them(
    tmp_path, stream, rng
):
    values = rng.integers(-9, 9, 50, dtype="<i2")
    for name in ("b/x/2", "b/1", "a/3"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_wav(tmp_path / (name + ".wav"), values)
    (tmp_path / "b" / "notes.txt").write_text("no audio")
    loader = stream(tmp_path)
    assert list(loader.classes) == ["a", "b"]
    assert list(rows(loader)[1]) == [0, 1, 1]
    write_wav(tmp_path / "0.WAV", values)
    loader = stream(tmp_path)
    assert not loader.classes and list(rows(loader)[1]) == [-1] * 4


def test_labels_may_come_from_a_file(tmp_path, stream, rng):
    (tmp_path / "set" / "a").mkdir(parents=True)
    for i in range(3):
        values = np.zeros(9, "<i2")
        write_wav(tmp_path / "set" / "a" / ("%d.wav" % i), values)
    lines = ["path,label"] + ["a/%d.wav,%d" % (i, 2 - i) for i in range(3)]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    loader = stream(tmp_path / "set", labels=str(tmp_path / "labels.csv"))
    assert list(rows(loader)[1]) == [2, 1, 0]


def test_labels_may_name_the_files_from_which_these_were_made(tmp_path, stream):
    (tmp_path / "set" / "f").mkdir(parents=True)
    for name in ("0.wav", "1.wav", "1.x.wav", "2.mp3.wav"):
        write_wav(tmp_path / "set" / "f" / name, np.zeros(9, "<i2"))
    lines = [
        '"clip_id"\t"guitar"\t"no piano"\t"mp3_path"',
        '"7"\t"1"\t"0"\t"f/0.mp3"',
        '"8"\t"0"\t"1"\t"f/1.mp3"',
        '"9"\t"1"\t"1"\t"f/1.x.ogg"',
        '"6"\t"0"\t"0"\t"f/2.mp3"',
    ]
    (tmp_path / "tags.csv").write_text("\n".join(lines) + "\n")
    labels = "%s:path=mp3_path,label=guitar+no piano,as=float"
    loader = stream(tmp_path / "set", labels=labels % (tmp_path / "tags.csv"))
    tags = rows(loader)[1]
    assert tags.dtype == np.float32
    assert tags.tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]
    # Other endings are other names.
    text = (tmp_path / "tags.csv").read_text().replace("0.mp3", "0.1")
    (tmp_path / "tags.csv").write_text(text)
    with pytest.raises(tsock.Error, match="0.wav"):
        stream(tmp_path / "set", labels=labels % (tmp_path / "tags.csv"))


def test_a_folder_of_audio_files_needs_no_dataset(tmp_path, rng):
    (tmp_path / "a").mkdir()
    write_wav(tmp_path / "a" / "x.wav", np.zeros(9, "<i2"))
    assert "say how many channels and frames" in refused(tmp_path)
    for schema, said in {
        "float32[9]": "one field of float32, [channels, frames]",
        "int16[1,9]": "one field of float32",
        "float32[1,9],b:int8": "--schema",
        "float32[1,9]@": "a sample rate of 1 to",
        "float32[1,9]@8k": "a sample rate of 1 to",
        "float32[0,9]": "a length, 1 or more",
    }.items():
        assert said in refused(tmp_path, "--schema", schema), schema
    right = ["--schema", "float32[1,9]"]
    assert "--size: samples of" in refused(tmp_path, "--size", "9", *right)
    assert "middle" in refused(tmp_path, "--preset", "simclr", *right)
    (tmp_path / "b" / "c").mkdir(parents=True)
    assert "no audio files in" in refused(
        tmp_path / "b", "--dataset", "audio", *right
    )


# ---- bad files ------------------------------------------------------------


def test_a_file_cut_short_is_bad_for_the_crops_that_need_what_is_lost(
    tmp_path, stream, rng
):
    values = rng.integers(-9999, 9999, (8, 4000), dtype="<i2")
    for i in range(8):
        write_wav(tmp_path / ("%d.wav" % i), values[i])
        if i < 5:
            os.truncate(tmp_path / ("%d.wav" % i), 44 + 2 * 2500)
    whole = values.astype("f4") / 32768
    loader = stream(tmp_path, epochs=6, allow_bad=1)
    seen = set()
    for epoch in range(6):
        got, _, index = rows(loader)
        assert len(got) == 8
        for i in range(8):
            start = start_of(4000, i, epoch)
            good = i >= 5 or start + FRAMES <= 2500
            seen.add((i < 5, good))
            # Where it isn't, another file stands in, with the same crop.
            assert good == (i in index)
            for k in np.flatnonzero(index == i):
                theirs = whole[:, start : start + FRAMES]
                if good and list(index).count(i) == 1:
                    assert np.array_equal(got[k, 0], theirs[i])
    assert seen == {(True, True), (True, False), (False, True)}


@pytest.mark.parametrize("io", ["auto", "pread"])
def test_of_long_files_the_crops_alone_are_read(tmp_path, stream, rng, io):
    # Whole, each of these would be read by one thread at a time.
    wholes = []
    for i, frames in enumerate((3000000, 90000, 2200000)):
        whole = rng.integers(-9999, 9999, frames, dtype="<i2")
        write_wav(tmp_path / ("%d.wav" % i), whole)
        wholes.append(whole.astype("f4")[:, None] / 32768)
    os.truncate(tmp_path / "2.wav", 44 + 2 * 1100000)
    fields = ("audio", "audio2", "index")
    loader = stream(tmp_path, views=2, fields=fields, io=io, epochs=8)
    lost = 0
    for epoch in range(8):
        first, second, index = rows(loader)
        for view, got in enumerate((first, second)):
            for k, i in enumerate(index):
                whole = wholes[i]
                start = start_of(len(whole), int(i), epoch, view)
                if list(index).count(i) == 1:
                    assert np.array_equal(got[k], cut(whole, start))
        lost += len(set(index)) < 3
    assert 0 < lost < 8


def test_what_is_wrong_with_a_file_is_said(tmp_path, rng):
    write_wav(tmp_path / "0.wav", np.zeros(2000, "<i2"))
    for content, said in (
        (b"RIFF\0\0\0\0WAVE", "it has no data"),
        (riff(chunk(b"data", b"12")), "its data come before their format"),
        (riff(fmt(1, 0, 16), chunk(b"data", b"")), "it has 0 channels"),
        (riff(fmt(1, 2, 16, 0), chunk(b"data", b"")), "its sample rate is 0"),
        (riff(fmt(1, 1, 40), chunk(b"data", b"")), "integers of 40 bits"),
        (riff(fmt(3, 1, 16), chunk(b"data", b"")), "floats of 16 bits"),
        (riff(fmt(1, 1, 16))[:30], "it ends within its head"),
        (b"what is this, then?", "it isn't WAV, FLAC, Ogg, MP3 or AIFF"),
    ):
        (tmp_path / "1.wav").write_bytes(content)
        out = refused(
            tmp_path, "--dataset=audio", "--schema=float32[1,9]", "--no-cache"
        )
        assert said in out and "1.wav" in out, out


def test_files_of_other_rates_or_channels_are_bad(tmp_path, stream, rng):
    values = rng.integers(-9, 9, 2000, dtype="<i2")
    write_wav(tmp_path / "0.wav", values)
    write_wav(tmp_path / "1.wav", values, rate=RATE * 2)
    loader = stream(tmp_path, allow_bad=1, epochs=1)
    assert [list(i) for _, _, i in loader] == [[0, 0]]
    with pytest.raises(tsock.Error, match=r"16000 Hz.*8000.*@8000"):
        list(stream(tmp_path, on_error="raise"))
    write_wav(tmp_path / "1.wav", values, channels=2)
    with pytest.raises(tsock.Error, match="2 channels, and samples have 3"):
        list(stream(tmp_path, "float32[3,9]", on_error="raise"))
    # One channel is every channel.
    os.unlink(tmp_path / "1.wav")
    got, _, _ = rows(stream(tmp_path, "float32[3,%d]" % FRAMES))
    start = start_of(2000, 0)
    want = values[start : start + FRAMES].astype("f4") / 32768
    assert np.array_equal(got[0], np.stack([want] * 3))


# ---- other formats, other rates -------------------------------------------


@needs_sndfile
@pytest.mark.parametrize(
    "kind",
    ["flac PCM_16", "flac PCM_24", "ogg VORBIS", "ogg OPUS", "mp3 MPEG_LAYER_III"],
)
@pytest.mark.parametrize("channels", [1, 2])
def test_compressed_files_have_the_values_of_soundfile(
    tmp_path, stream, rng, soundfile, kind, channels
):
    ending, subtype = kind.split()
    form = {"mp3": "MP3"}.get(ending, ending.upper())
    rate = 48000
    if subtype not in soundfile.available_subtypes(form):
        pytest.skip("soundfile can't write it")
    t = np.arange(9000)[:, None] / rate
    for i in range(4):
        values = 0.4 * np.sin(
            2 * np.pi * (300 + 170 * i) * t + np.arange(channels)
        ) + 0.05 * rng.standard_normal((9000, channels))
        path = str(tmp_path / ("%d.%s" % (i, ending)))
        soundfile.write(
            path, values[: 9000 - 100 * i], rate, format=form, subtype=subtype
        )
    got, _, _ = rows(stream(tmp_path, "float32[%d,%d]" % (channels, FRAMES)))
    for i in range(4):
        path = str(tmp_path / ("%d.%s" % (i, ending)))
        start = start_of(soundfile.info(path).frames, i)
        want, _ = soundfile.read(
            path, FRAMES, start, dtype="float32", always_2d=True
        )
        # Vorbis and the like are decoded in floats, by whichever build of
        # their libraries soundfile has.
        worst = np.abs(got[i] - want.T).max()
        assert worst <= (0 if ending == "flac" else 1e-6), (i, worst)


@needs_sndfile
def test_a_compressed_file_cut_short_is_bad_where_frames_are_lost(
    tmp_path, stream, rng, soundfile
):
    values = rng.uniform(-0.5, 0.5, (8, 40000))
    for i in range(8):
        path = tmp_path / ("%d.flac" % i)
        soundfile.write(str(path), values[i], RATE, subtype="PCM_16")
        if i < 4:
            os.truncate(path, os.path.getsize(path) * 5 // 8)
    whole = np.round(values * 32768) / 32768
    loader = stream(tmp_path, epochs=4, allow_bad=1)
    own = 0
    for epoch in range(4):
        got, _, index = rows(loader)
        assert len(got) == 8
        for k, i in enumerate(index):
            start = start_of(40000, int(i), epoch)
            # One that stands in has its own file, and the sample's draws.
            if list(index).count(i) == 1 and i < 4:
                assert start + FRAMES < 25000
                part = whole[i, start : start + FRAMES]
                assert np.abs(got[k, 0] - part).max() < 1e-4
                own += 1
    assert own


@needs_soxr
@pytest.mark.parametrize("rate", [16000, 11025, 4000])
@pytest.mark.parametrize("channels", [1, 2])
def test_resampled_files_have_the_values_of_soxr(
    tmp_path, stream, rng, rate, channels
):
    soxr = pytest.importorskip("soxr")
    lengths = [30000, 9001, 100, 17]
    wholes = []
    for i, frames in enumerate(lengths):
        values = rng.integers(-9999, 9999, (frames, channels), dtype="<i2")
        write_wav(tmp_path / ("%d.wav" % i), values, channels, rate)
        wholes.append(values.astype("f4") / 32768)
    write_wav(tmp_path / "4.wav", np.arange(2000, dtype="<i2"), 1, RATE)
    wholes.append(np.arange(2000, dtype="f4")[:, None] / 32768)
    one, _, _ = rows(stream(tmp_path, "float32[1,%d]@%d" % (FRAMES, RATE)))
    all_, _, _ = rows(
        stream(tmp_path, "float32[%d,%d]@%d" % (channels, FRAMES, RATE))
    )
    for i, whole in enumerate(wholes):
        single, several = mono(whole), whole
        if i < 4:
            single = soxr.resample(single, rate, RATE, "HQ")
            several = soxr.resample(several, rate, RATE, "HQ")
        start = start_of(len(single), i)
        assert len(single) == len(several)
        worst = np.abs(one[i] - cut(single, start)).max()
        assert worst <= 1e-6, (i, worst)
        worst = np.abs(all_[i] - cut(several, start)).max()
        assert worst <= 1e-6, (i, worst)


@needs_soxr
@pytest.mark.parametrize("rate", [44100, 16000, 11025, 4000, 8011])
def test_long_files_are_resampled_where_the_crops_are(
    tmp_path, stream, rng, rate
):
    soxr = pytest.importorskip("soxr")
    wholes = []
    for i in range(3):
        values = rng.integers(-9999, 9999, (20 + i) * rate, dtype="<i2")
        write_wav(tmp_path / ("%d.wav" % i), values, 1, rate)
        whole = values.astype("f4")[:, None] / 32768
        wholes.append(soxr.resample(whole, rate, RATE, "HQ"))
    fields = ("audio", "audio2", "index")
    schema = "float32[1,%d]@%d" % (FRAMES, RATE)
    loader = stream(tmp_path, schema, views=2, fields=fields, epochs=6)
    for epoch in range(6):
        first, second, index = rows(loader)
        for view, got in enumerate((first, second)):
            for k, i in enumerate(index):
                start = start_of(len(wholes[i]), int(i), epoch, view)
                want = cut(wholes[i], start)
                assert np.abs(got[k] - want).max() <= 1e-6


# ---- the stream -----------------------------------------------------------


def test_samples_do_not_depend_on_threads_or_restarts(tmp_path, stream, rng):
    for i in range(12):
        values = rng.integers(-9999, 9999, 2000 + 31 * i, dtype="<i2")
        write_wav(tmp_path / ("%d.wav" % i), values)
    fields = ("audio", "audio2", "index")
    more = dict(views=2, fields=fields, batch_size=5)
    first = list(stream(tmp_path, threads=1, **more))
    for again in (dict(threads=1), dict(threads=3, io="pread")):
        other = list(stream(tmp_path, **again, **more))
        assert len(other) == len(first) == 3
        for mine, theirs in zip(first, other):
            for a, b in zip(mine, theirs):
                assert np.array_equal(a, b)
