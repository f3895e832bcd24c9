# SPDX-License-Identifier: MIT
"""Whole audio files, each of its own length, beside what a Dataset of
soundfile with torch's pad_sequence makes of them."""

import os
import subprocess

import pytest

import tsock
from conftest import PRODUCER
from test_audio import (
    RATE,
    cut,
    mono,
    needs_sndfile,
    needs_soxr,
    refused,
    soundfile,
    start_of,
    stream,
    write_wav,
)

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("place")

__all__ = ["soundfile", "stream"]  # fixtures

MOST = 3000
LENGTHS = [700, 3000, 1, 1499, 2, 2999, 64, 1500, 900, 31, 2048]
FIELDS = ("audio", "audio_length", "label", "index")


def schema(channels=1, most=MOST, rate=None):
    return "float32[%d,%d]%s" % (channels, most, "@%d" % rate if rate else "")


@pytest.fixture
def wholes(tmp_path):
    """Files of two channels; as float32 [frames, channels]."""
    rng = np.random.default_rng(5)
    made = []
    for i, frames in enumerate(LENGTHS):
        values = rng.integers(-32768, 32767, (frames, 2), dtype="<i2")
        write_wav(tmp_path / ("%02d.wav" % i), values, 2)
        made.append(values.astype("f4") / 32768)
    return made


def padded(samples):
    """What pad_sequence() makes of them, as [batch, channels, frames]."""
    pad = torch.nn.utils.rnn.pad_sequence
    parts = [torch.from_numpy(np.ascontiguousarray(s)) for s in samples]
    return pad(parts, batch_first=True).transpose(1, 2)


def check(loader, wholes, equal=torch.equal):
    """All samples of an epoch, in batches as long as their longest."""
    seen = []
    for audio, length, label, index in loader:
        assert audio.dtype == torch.float32 and length.dtype == torch.int32
        want = [wholes[i] for i in index.tolist()]
        assert length.tolist() == [len(w) for w in want]
        assert audio.shape[2] == max(length.tolist())
        assert equal(audio, padded(want))
        seen += index.tolist()
    assert sorted(seen) == list(range(len(wholes)))


def close(a, b):
    return a.shape == b.shape and float((a - b).abs().max()) <= 1e-6


def clips(stream, root, way="whole", text=None, **more):
    return stream(
        root, text or schema(), clips=way, framework="torch",
        **{"fields": FIELDS, **more},
    )


# ---- samples ----------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("way", ["whole", "cut"])
def test_a_batch_is_what_pad_sequence_makes(
    tmp_path, stream, wholes, channels, way
):
    loader = clips(stream, tmp_path, way, schema(channels))
    want = [mono(w) for w in wholes] if channels == 1 else wholes
    for _ in range(2):
        check(loader, want)


def test_lengths_need_not_be_asked_for(tmp_path, stream, wholes):
    loader = clips(stream, tmp_path, fields=("audio", "index"))
    for audio, index in loader:
        longest = max(LENGTHS[i] for i in index.tolist())
        assert audio.shape == (len(index), 1, longest)
    loader = clips(stream, tmp_path, fields=None, as_dict=True)
    batch = next(iter(loader))
    assert list(batch) == ["audio", "audio_length", "label"]
    mask = torch.arange(batch["audio"].shape[2]) < batch["audio_length"][:, None]
    assert not batch["audio"][:, 0][~mask].any()
    loader = clips(stream, tmp_path, fields=("audio", "index"), subset=[2, 4])
    assert [a.shape[2] for a, _ in loader] == [2]


def test_of_a_longer_file_a_crop_is_taken_if_that_is_asked_for(
    tmp_path, stream, wholes
):
    text = schema(2, 1000)
    for middle in (False, True):
        more = dict(preset="eval") if middle else {}
        seen = 0
        for audio, length, _, index in clips(
            stream, tmp_path, "cut", text, **more
        ):
            for k, i in enumerate(index.tolist()):
                frames = LENGTHS[i]
                start = start_of(frames, i, length=1000)
                if middle:
                    start = max(0, frames - 1000) // 2
                want = cut(wholes[i], start, min(1000, frames))
                assert length[k] == want.shape[1]
                assert np.array_equal(audio[k, :, : length[k]], want)
                assert not audio[k, :, length[k] :].any()
                seen += 1
        assert seen == len(LENGTHS)


@needs_sndfile
@pytest.mark.parametrize(
    "kind", ["flac PCM_16", "ogg VORBIS", "mp3 MPEG_LAYER_III", "wav PCM_24"]
)
def test_files_have_the_values_of_soundfile(tmp_path, stream, soundfile, kind):
    ending, subtype = kind.split()
    if subtype not in soundfile.available_subtypes(ending.upper()):
        pytest.skip("soundfile can't write it")
    rng = np.random.default_rng(6)
    want = []
    for i, frames in enumerate((9000, 7000, 100)):
        values = 0.3 * rng.standard_normal((frames, 2)).cumsum(0) / 50
        path = str(tmp_path / ("%d.%s" % (i, ending)))
        soundfile.write(path, values, 16000, subtype=subtype)
        want.append(soundfile.read(path, dtype="float32", always_2d=True)[0])
    most = max(len(w) for w in want)
    loader = clips(stream, tmp_path, "whole", schema(2, most))
    check(loader, want, close)


@needs_soxr
@pytest.mark.parametrize("rate", [16000, 11025, 4000])
def test_files_are_resampled_as_a_whole(tmp_path, stream, wholes, rate):
    soxr = pytest.importorskip("soxr")
    want = [soxr.resample(mono(w), RATE, rate, "HQ") for w in wholes]
    text = schema(1, max(len(w) for w in want), rate)
    check(clips(stream, tmp_path, "whole", text), want, close)


def test_operations_are_done_to_the_frames_of_the_file(
    tmp_path, stream, wholes
):
    transform = "Reverse() PolarityInversion()"
    text = schema(2)
    loader = clips(stream, tmp_path, "whole", text, transform=transform)
    check(loader, [-w[::-1] for w in wholes])
    fields = ("audio", "audio_length", "draws", "index")
    loader = clips(
        stream, tmp_path, "whole", text,
        transform="Gain(min_gain=-20, max_gain=-1)", fields=fields,
    )
    for audio, length, draws, index in loader:
        for k, i in enumerate(index.tolist()):
            whole = torch.from_numpy(wholes[i].T.copy())
            gain = 10 ** (float(draws[k]) / 20)
            assert close(audio[k, :, : length[k]], (whole * gain).clip(-1, 1))
            assert not audio[k, :, length[k] :].any()
        assert len(draws.unique()) == len(index)


# ---- files that aren't good -------------------------------------------------


def test_a_file_that_is_too_long_is_a_bad_file(tmp_path, stream, wholes):
    text = schema(2, MOST - 1)
    with pytest.raises(tsock.Error, match=r"01\.wav.*3000 frames.*2999 at most"):
        list(clips(stream, tmp_path, "whole", text, on_error="raise"))
    indices = []
    for audio, length, _, index in clips(
        stream, tmp_path, "whole", text, allow_bad=1
    ):
        indices += index.tolist()
        assert audio.shape[2] <= MOST - 1
        assert length.tolist() == [LENGTHS[i] for i in index.tolist()]
    assert len(indices) == len(LENGTHS) and 1 not in indices


def test_a_start_says_that_files_are_too_long(tmp_path, wholes):
    # By their heads, before any sample is made; of another schema all are good.
    place = ["--dataset=audio", "--cache-dir=%s" % tmp_path, "--clips=whole"]
    for _ in range(2):
        said = refused(tmp_path, *place, "--schema=" + schema(1, 2000))
        assert "02.wav" not in said and "at most" in said
        assert "3000 frames, and samples have 2000 at most" in said
    more = ["--schema=" + schema(), "--dry-run", *place]
    subprocess.run(
        [PRODUCER, "--root", str(tmp_path), *more], check=True, timeout=60
    )


def test_files_that_are_cut_short_or_empty_are_bad_files(
    tmp_path, stream, wholes
):
    os.truncate(tmp_path / "01.wav", 44 + 4 * 2000)
    write_wav(tmp_path / "03.wav", np.zeros((0, 2), "<i2"), 2)
    (tmp_path / "05.wav").write_bytes(b"no audio")
    bad = {1, 3, 5}
    loader = clips(stream, tmp_path, "whole", schema(2), allow_bad=1)
    for _ in range(2):
        indices = []
        for audio, length, _, index in loader:
            assert torch.equal(audio, padded([wholes[i] for i in index]))
            indices += index.tolist()
        assert len(indices) == len(LENGTHS)
        assert set(range(len(LENGTHS))) - bad == set(indices)
    with pytest.raises(tsock.Error, match="truncated|no frames|isn't WAV"):
        list(clips(stream, tmp_path, "whole", schema(2), on_error="raise"))


def test_what_makes_no_sense_is_refused(tmp_path, wholes):
    text = ["--dataset=audio", "--schema=" + schema()]
    for options, said in {
        ("--clips=some",): "crop|whole|cut",
        ("--clips=whole", "--views=2"): "leave out --views",
        ("--clips=cut", "--transform=Views(2 * [Reverse()])"): "leave out Views",
        (
            "--clips=whole",
            "--transform=RandomCrop(%d)" % MOST,
        ): "leave out RandomCrop",
    }.items():
        assert said in refused(tmp_path, *text, *options), options
    said = refused(tmp_path, "--dataset=images", "--clips=whole")
    assert "--clips means nothing to --dataset images" in said


# ---- the stream -------------------------------------------------------------


def test_samples_do_not_depend_on_threads_or_where_one_begins(
    tmp_path, stream, wholes
):
    more = dict(text=schema(2), epochs=1)
    first = list(clips(stream, tmp_path, threads=1, **more))
    for again in (dict(threads=3, io="pread"), dict(threads=2)):
        loader = clips(stream, tmp_path, **again, **more)
        other = [[t.clone() for t in next(iter(loader))]]
        state = loader.state_dict()
        loader.close()
        rest = clips(stream, tmp_path, threads=2, **more)
        rest.load_state_dict(state)
        other += list(rest)
        assert len(other) == len(first) == 3
        for mine, theirs in zip(first, other):
            assert all(map(torch.equal, mine, theirs))
