# SPDX-License-Identifier: MIT
"""Operations on crops of audio, beside what torchaudio-augmentations does.

Its arithmetic, with that of torchaudio and julius in it, is written anew in
torch and NumPy, and done with the draws of the samples.
"""

import math
import subprocess

import pytest

from conftest import PRODUCER
from test_audio import RATE, cut, philox, rows, start_of, stream, write_wav

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("place")

__all__ = ["stream"]  # a fixture

FRAMES = 4000
CHANNELS = 2
FILES = 12
CLMR = """
RandomResizedCrop(n_samples=%d)
RandomApply([PolarityInversion()], p=0.8)
RandomApply([Noise()], p=0.4)
RandomApply([Gain()], p=0.5)
RandomApply([HighLowPass(sample_rate=%d, lowpass_freq_high=3900)], p=0.8)
RandomApply([Delay(sample_rate=%d)], p=0.6)
""" % (
    FRAMES,
    RATE,
    RATE,
)


@pytest.fixture
def wholes(tmp_path):
    """Files of loud noise, whose numbers a gain limits; as float32."""
    rng = np.random.default_rng(3)
    values = rng.integers(-32768, 32768, (FILES, 6000, CHANNELS), dtype="<i2")
    for i, whole in enumerate(values):
        write_wav(tmp_path / ("%02d.wav" % i), whole, CHANNELS)
    return values.astype("f4") / 32768


# ---- the library's arithmetic ----------------------------------------------


def normals(key, n):
    """As producer/ops/wave.h says."""
    words = np.array(
        [philox(key, (block, 0, 0, 0)) for block in range((n + 3) // 4)], "f8"
    ).reshape(-1, 2, 2)
    r = np.sqrt(-2 * np.log((words[:, :, 0] + 0.5) / 2**32))
    angle = 2 * np.pi * words[:, :, 1] / 2**32
    pairs = np.stack([r * np.cos(angle), r * np.sin(angle)], -1)
    return pairs.reshape(-1)[:n]


def noise(audio, part, key):
    std = torch.std(audio).double().item() * part
    made = normals(int(key), audio.numel()) * std
    return audio + torch.from_numpy(made.astype("f4")).view_as(audio)


def gain(audio, db):
    return torch.clamp(audio * 10 ** (db / 20), -1, 1)


def lowpass(audio, frequency):
    cutoff = frequency / RATE
    half = int(8 / cutoff / 2)
    time = torch.arange(-half, half + 1, dtype=torch.float64)
    window = torch.hann_window(2 * half + 1, False, dtype=torch.float64)
    taps = window * torch.sinc(2 * cutoff * time)
    padded = torch.nn.functional.pad(
        audio[:, None].double(), (half, half), mode="replicate"
    )
    taps = (taps / taps.sum())[None, None]
    return torch.nn.functional.conv1d(padded, taps)[:, 0].float()


def highpass(audio, frequency):
    return audio - lowpass(audio, frequency)


def delay(audio, ms, volume=0.5):
    offset = int(ms * (RATE / 1000))
    late = torch.cat(
        (torch.zeros(audio.shape[0], offset), audio[:, :-offset]), dim=1
    )
    return (audio + late * volume) / 2


def clmr(audio, draws):
    """One view, by its eleven draws; and which operations were done."""
    polarity, noisy, part, key, gained, db = draws[:6]
    filtered, low, frequency, delayed, ms = draws[6:]
    if polarity:
        audio = torch.neg(audio)
    if noisy:
        audio = noise(audio, part, key)
    if gained:
        audio = gain(audio, db)
    if filtered:
        audio = (lowpass if low else highpass)(audio, frequency)
    if delayed:
        audio = delay(audio, ms)
    return audio, (polarity, noisy, gained, filtered, filtered * low, delayed)


def crop(whole, i, epoch, view):
    start = start_of(len(whole), i, epoch, view, length=FRAMES)
    return torch.from_numpy(np.ascontiguousarray(cut(whole, start, FRAMES)))


# ---- tests -----------------------------------------------------------------


def test_two_views_of_clmr_have_the_values_of_its_library(
    tmp_path, stream, wholes
):
    schema = "float32[%d,%d]" % (CHANNELS, FRAMES)
    loader = stream(
        tmp_path,
        schema,
        transform=CLMR,
        views=2,
        epochs=3,
        fields=("audio", "audio2", "draws", "index"),
    )
    done, unfiltered = [], 0
    for epoch in range(3):
        first, second, draws, index = rows(loader)
        assert draws.shape == (FILES, 22)
        for view, got in enumerate((first, second)):
            for k, i in enumerate(index):
                own = draws[k, 11 * view : 11 * view + 11]
                want, which = clmr(crop(wholes[i], int(i), epoch, view), own)
                done.append(which)
                exact = not which[1] and not which[3]
                unfiltered += exact
                # Noise and filters are sums, in whose order torch is free.
                worst = np.abs(got[k] - want.numpy()).max()
                assert worst <= (0 if exact else 2e-6), (own, worst)
    assert unfiltered > 3
    assert np.all(np.min(done, 0) == 0) and np.all(np.max(done, 0) == 1)


@pytest.mark.parametrize(
    "text, theirs",
    [
        ("Reverse()", lambda x, d: torch.flip(x, [-1])),
        ("RandomCrop(4000) Gain(6, 12)", lambda x, d: gain(x, d[0])),
        ("Gain(-3, -3)", lambda x, d: gain(x, -3)),
        ("Noise(0.5, 0.7)", lambda x, d: noise(x, d[0], d[1])),
        ("HighPassFilter(8000)", lambda x, d: highpass(x, d[0])),
        ("HighPassFilter(8000, 4, 9)", lambda x, d: highpass(x, d[0])),
        ("LowPassFilter(8000)", lambda x, d: lowpass(x, d[0])),
        ("LowPassFilter(8000, 4000, 4000)", lambda x, d: lowpass(x, 4000)),
        ("Delay(8000, 0.3, 20, 21)", lambda x, d: delay(x, 20, 0.3)),
        ("Delay(8000, 1, 90, 400, 31)", lambda x, d: delay(x, d[0], 1)),
        (
            "RandomChoice([PolarityInversion(), Reverse()])",
            lambda x, d: torch.flip(x, [-1]) if d[0] else -x,
        ),
    ],
)
def test_an_operation_has_the_values_of_the_library(
    tmp_path, stream, wholes, text, theirs
):
    schema = "float32[%d,%d]" % (CHANNELS, FRAMES)
    fields = ("audio", "index") if text == "Reverse()" else None
    loader = stream(
        tmp_path,
        schema,
        transform=text,
        fields=fields or ("audio", "draws", "index"),
    )
    got, *draws, index = rows(loader)
    # The third filter has 8,000 taps.
    summed = 5e-6 if "Noise" in text or "Filter" in text else 0
    for k, i in enumerate(index):
        own = draws[0][k] if draws else ()
        want = theirs(crop(wholes[i], int(i), 0, 0), own).numpy()
        worst = np.abs(got[k] - want).max()
        assert worst <= summed, (own, worst)


def test_draws_have_the_range_of_the_arguments(tmp_path, stream, wholes):
    text = (
        "Gain(-20, -1) Delay(8000) HighLowPass(8000, 2200, 3999) "
        "Noise(0.0001, 0.01)"
    )
    loader = stream(
        tmp_path, transform=text, epochs=40, fields=("draws", "index")
    )
    all_ = np.concatenate([rows(loader)[0] for _ in range(40)])
    db, ms, low, frequency, part, key = all_.T
    assert -20 <= db.min() < -19 and -2 < db.max() <= -1
    assert sorted(set(ms)) == [200, 250, 300, 350, 400, 450]
    assert 0.3 < low.mean() < 0.7
    for which, least, most in ((0, 200, 1200), (1, 2200, 3999)):
        some = frequency[low == which]
        assert least <= some.min() < some.max() <= most
    assert 0.0001 <= part.min() < 0.001 and 0.009 < part.max() <= 0.01
    assert len(set(key)) == len(key) and key.max() > 2**52
    # Each is made of the words of its place.
    words = philox(0, (0, 0, 0, 0xA001 << 16))
    unit = ((words[0] >> 5) * 2**26 + (words[1] >> 6)) / 2**53
    assert math.isclose(db[0], -20 + 19 * unit, rel_tol=1e-12)


@pytest.mark.parametrize(
    "text, said",
    [
        ("ColorJitter(0.4)", "ColorJitter is done to images, and samples are"),
        ("RandomHorizontalFlip()", "samples are audio"),
        ("Normalize(0.5, 0.5)", "Normalize is done to images"),
        ("PitchShift(4000, 8000)", "PitchShift isn't native: it is what SoX"),
        ("RandomApply([Reverb(8000)], p=0.6)", "Reverb isn't native"),
        ("Dely(8000)", "did you mean Delay?"),
        ("Delay()", "Delay needs sample_rate"),
        ("Delay(8000, 0.5, 300, 300)", "is above min_delay"),
        ("Gain(3, 1)", "min_gain is above max_gain"),
        ("HighLowPass(5000)", "a half of it"),
        ("LowPassFilter(8000, 0.5)", "freq_low is from 1"),
        ("RandomResizedCrop(59049)", "contradicts --schema, by which"),
        ("Gain() RandomResizedCrop(1000)", "put it first"),
    ],
)
def test_what_can_not_be_done_to_audio_is_said(tmp_path, wholes, text, said):
    done = subprocess.run(
        [PRODUCER, "--root", str(tmp_path), "--dry-run", "--no-cache"]
        + ["--dataset=audio", "--schema=float32[1,1000]"]
        + ["--transform=" + text],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert done.returncode and said in done.stdout, done.stdout


def test_an_operation_on_audio_is_refused_for_images(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.jpg").write_bytes(b"\xff\xd8")
    done = subprocess.run(
        [PRODUCER, "--root", str(tmp_path), "--dry-run", "--no-cache"]
        + ["--transform=Resize((9, 9)) PolarityInversion()"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    said = "PolarityInversion is done to audio, and samples are images"
    assert done.returncode and said in done.stdout, done.stdout
