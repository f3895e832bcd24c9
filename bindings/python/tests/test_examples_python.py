# SPDX-License-Identifier: MIT
"""The Python programs in examples/ that start their producers themselves."""

import os
import re
import shutil

import pytest

from conftest import CHECKOUT, finish

pytest.importorskip("torch")

pytestmark = [pytest.mark.minutes(10), pytest.mark.usefixtures("warm")]

EACH = 23  # images of each of the three classes


@pytest.fixture
def folder(place, images, tmp_path):
    """A folder with train and val; place ends the producers."""
    for split in ("train", "val"):
        for kind in sorted(images.iterdir()):
            to = tmp_path / "photos" / split / kind.name
            to.mkdir(parents=True)
            for file in sorted(kind.iterdir())[:EACH]:
                shutil.copy(file, to)
    return tmp_path / "photos"


@pytest.fixture
def example(script, tmp_path, folder):
    """example(name, ...) is what that program printed, without colours."""

    def run(name, *arguments):
        with open(os.path.join(CHECKOUT, "examples", name)) as f:
            process = script(
                f.read(),
                folder,
                *arguments,
                OUTPUT=str(tmp_path / "trained"),
                CUDA_VISIBLE_DEVICES="",
                GLOO_SOCKET_IFNAME="lo"
            )
        return "".join(finish(process, timeout=550))

    return run


def test_hugging_faces_trainer(example, tmp_path):
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    said = example("hf_trainer.py", 2)
    accuracies = re.findall(r"'eval_accuracy': '?([0-9.]+)", said)
    assert len(accuracies) == 2, said
    # Each is a whole number of the images.
    right = [float(a) * 3 * EACH for a in accuracies]
    assert all(abs(n - round(n)) < 0.02 for n in right), said
    assert (tmp_path / "trained" / "config.json").exists()


@pytest.mark.parametrize("devices", [1, 2])
def test_lightning(example, monkeypatch, tmp_path, devices):
    pytest.importorskip("lightning")
    monkeypatch.chdir(tmp_path)
    said = example("lightning_fit.py", 1, devices)
    found = re.search(r"after 1 epochs: accuracy ([0-9.]+)", said)
    assert found and 0 <= float(found.group(1)) <= 1, said


def test_segmentation(script, place, tmp_path):
    image = pytest.importorskip("PIL.Image")
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(1)
    for k in range(16):
        # A bright square, of class 1, on a dark ground.
        numbers = np.zeros((70 + k, 110 - k), np.uint8)
        top, left = rng.integers(0, 40, 2)
        numbers[top : top + 30, left : left + 40] = 1
        colours = 40 + 150 * numbers[..., None] + rng.integers(0, 40, 3)
        for name, a in (("images", colours.astype(np.uint8)), ("masks", numbers)):
            (tmp_path / name).mkdir(exist_ok=True)
            image.fromarray(a).save(tmp_path / name / ("%02d.png" % k))
    with open(os.path.join(CHECKOUT, "examples", "segmentation.py")) as f:
        process = script(
            f.read(), tmp_path / "images", tmp_path / "masks", 2, 6
        )
    said = "".join(finish(process, timeout=300))
    rights = [float(n) for n in re.findall(r"([0-9.]+) % of the pixels", said)]
    assert len(rights) == 6 and rights[-1] > 90, said
