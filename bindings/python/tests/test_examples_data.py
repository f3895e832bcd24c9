# SPDX-License-Identifier: MIT
"""The programs in examples/ on data that isn't a folder of images."""

import io
import json
import os
import pickle
import re
import tarfile
import wave

import pytest

from conftest import CHECKOUT, finish

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("place", "warm")


@pytest.fixture
def example(script):
    """example(name, ...) is what that program printed.

    With a small vocabulary, where it has one: the time goes with its size.
    """

    def run(name, *arguments):
        with open(os.path.join(CHECKOUT, "examples", name)) as f:
            text = f.read().replace("VOCABULARY = 50304", "VOCABULARY = 128")
        process = script(
            text,
            *arguments,
            CUDA_VISIBLE_DEVICES="",
            OMP_NUM_THREADS="1"
        )
        return "".join(finish(process, timeout=150))

    return run


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def losses(said):
    return [float(text) for text in re.findall(r"loss ([0-9.]+)", said)]


def test_cifar_is_learned_from_its_pickles(example, tmp_path, rng):
    # Each class is a colour, so that a few steps tell them apart.
    for name in [*("data_batch_%d" % k for k in range(1, 6)), "test_batch"]:
        labels = rng.integers(0, 10, 100)
        colours = np.stack([labels * 25, 250 - labels * 25, labels * 9], 1)
        noise = rng.integers(0, 6, (100, 3, 1024))
        data = (colours[:, :, None] + noise).reshape(100, 3072)
        with open(tmp_path / name, "wb") as f:
            pickle.dump(
                {"data": data.astype("u1"), "labels": list(map(int, labels))},
                f,
            )
    with open(tmp_path / "batches.meta", "wb") as f:
        pickle.dump({"label_names": list("abcdefghij")}, f)
    said = example("cifar.py", tmp_path, 5)
    assert "RandomCrop(size=(32, 32), padding=4" in said
    right = [float(t) for t in re.findall(r"([0-9.]+) % of the test", said)]
    assert len(right) == 5 and right[-1] > 30, said


def test_a_dlrm_learns_from_criteos_records(example, tmp_path, rng):
    (tmp_path / "days").mkdir()
    for day in range(2):
        rows = rng.integers(0, 50, (2048, 40)).astype("i4")
        rows[:, 0] = rows[:, 14] % 2  # the label is in a category
        rows.tofile(tmp_path / "days" / ("day_%d" % day))
    said = losses(example("dlrm.py", tmp_path / "days", 8))
    assert len(said) == 8 and said[-1] < 0.8 * said[0], said


def test_a_language_model_learns_from_token_files(example, tmp_path, rng):
    # After each token comes the next one, in a circle of a hundred.
    for name, n in (("train", 6001), ("val", 401)):
        (np.arange(n) % 100).astype("u2").tofile(tmp_path / (name + ".bin"))
    said = example("gpt.py", tmp_path, 20, 3)
    assert "on 20 samples of val.bin" in said
    assert losses(said)[-1] < 1, said


def test_a_language_model_learns_from_packed_documents(
    example, tmp_path, rng
):
    # As before, in documents of four tokens and 100 behind them: without the
    # bounds 100 would be followed by any.
    for name, n in (("train", 2000), ("val", 80)):
        begin = 4 * rng.integers(0, 25, (n, 1))
        end = np.full((n, 1), 100)
        documents = np.hstack([begin + np.arange(4), end])
        documents.astype("u2").tofile(tmp_path / (name + ".bin"))
    said = example("gpt.py", tmp_path, 22, 4, 100)
    assert "on 20 samples of val.bin" in said
    assert losses(said)[-1] < 0.3, said


def test_a_language_model_is_fine_tuned_on_instructions(
    example, tmp_path, rng
):
    # Answers repeat one letter, so that a token tells the next one.
    lines = [
        json.dumps(
            {
                "instruction": "Say %s %d times" % (letter, n),
                "output": letter * n,
            }
        )
        for letter, n in zip(
            rng.choice(list("abcdef"), 64), rng.integers(20, 40, 64).tolist()
        )
    ]
    (tmp_path / "alpaca.jsonl").write_text("\n".join(lines) + "\n")
    said = losses(example("finetune.py", tmp_path / "alpaca.jsonl", 12))
    assert len(said) == 12 and said[-1] < 0.3 * said[0], said


def test_audio_is_told_apart_and_tagged(example, tmp_path, rng):
    # As MagnaTagATune: a column for each tag, and the path of an MP3 file
    # beside which a WAV file was made.
    (tmp_path / "set" / "f").mkdir(parents=True)
    lines = ['"clip_id"\t"low"\t"high"\t"mp3_path"']
    time = np.arange(22050) / 22050
    for i in range(48):
        low, high = i % 2, i // 2 % 2
        values = (
            low * np.sin(2 * np.pi * rng.uniform(150, 1000) * time)
            + high * np.sin(2 * np.pi * rng.uniform(2000, 8000) * time)
            + 0.05 * rng.standard_normal(len(time))
        )
        with wave.open(str(tmp_path / "set" / "f" / ("%d.wav" % i)), "wb") as f:
            f.setnchannels(1)
            f.setsampwidth(2)
            f.setframerate(22050)
            f.writeframes((values * 10000).astype("<i2").tobytes())
        lines.append('"%d"\t"%d"\t"%d"\t"f/%d.mp3"' % (i, low, high, i))
    (tmp_path / "annotations.csv").write_text("\n".join(lines) + "\n")
    labels = "%s:path=mp3_path,label=low+high,as=float"
    said = example(
        "audio.py", tmp_path / "set", labels % (tmp_path / "annotations.csv"), 12
    )
    learned = losses(said)
    assert len(learned) == 12 and learned[-1] < 0.9 * learned[0], said
    right = float(re.search(r"([0-9.]+) % of the tags", said).group(1))
    assert right > 80, said


def test_a_detector_learns_from_cocos_annotations(example, tmp_path, rng):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "images").mkdir()
    images, annotations = [], []
    for i in range(64):
        pixels = rng.integers(0, 40, (120, 140, 3), dtype=np.uint8)
        images.append({"id": i, "file_name": "%d.png" % i})
        for _ in range(1 + i % 3):
            left, top = (int(rng.integers(0, most)) for most in (110, 90))
            pixels[top : top + 24, left : left + 24] = 220
            annotations.append(
                {"image_id": i, "category_id": 1, "bbox": [left, top, 24, 24]}
            )
        image.fromarray(pixels).save(tmp_path / "images" / ("%d.png" % i))
    (tmp_path / "coco.json").write_text(
        json.dumps(
            {
                "images": images,
                "annotations": annotations,
                "categories": [{"id": 1, "name": "square"}],
            }
        )
    )
    said = example(
        "detection.py", tmp_path / "coco.json", tmp_path / "images", 8
    )
    loss = losses(said)
    assert len(loss) == 8 and loss[-1] < 0.7 * loss[0], said


def test_a_prior_learns_embeddings_from_captions(example, tmp_path, rng):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "img_emb").mkdir()
    (tmp_path / "metadata").mkdir()
    words = ["a red cat", "two dogs", "the sea at night", "bread"]
    means = rng.standard_normal((len(words), 512))
    # 10 comes behind 9, and not behind 1.
    for part in (0, 1, 9, 10):
        which = rng.integers(0, len(words), 40 + part)
        noise = 0.1 * rng.standard_normal((len(which), 512))
        np.save(
            tmp_path / "img_emb" / ("img_emb_%d.npy" % part),
            (means[which] + noise).astype("float32"),
        )
        parquet.write_table(
            arrow.table(
                {
                    "key": ["%d" % k for k in range(len(which))],
                    "caption": [words[k] for k in which],
                }
            ),
            tmp_path / "metadata" / ("metadata_%d.parquet" % part),
        )
    said = losses(example("prior.py", tmp_path, 20))
    # Embeddings of unit length have a loss of 1 for those who know nothing.
    assert len(said) == 20 and said[-1] < 0.25, said


def test_a_decoder_learns_images_from_embeddings_in_tar_files(
    example, tmp_path, rng
):
    image = pytest.importorskip("PIL.Image")
    for shard in range(2):
        with tarfile.open(tmp_path / ("%05d.tar" % shard), "w") as tar:
            for key in range(32):
                red, green, blue = colour = rng.integers(0, 2, 3) * 200
                picture, embedding = io.BytesIO(), io.BytesIO()
                image.new(
                    "RGB", (48, 40), (int(red), int(green), int(blue))
                ).save(picture, "JPEG")
                np.save(embedding, np.repeat(colour / 200, 8).astype("float32"))
                for ending, data in (("jpg", picture), ("npy", embedding)):
                    entry = tarfile.TarInfo(
                        "%09d.%s" % (32 * shard + key, ending)
                    )
                    entry.size = data.tell()
                    data.seek(0)
                    tar.addfile(entry, data)
    said = losses(example("decoder.py", tmp_path, 20))
    assert len(said) == 20 and said[-1] < 0.5 * said[0], said


def test_a_model_learns_at_each_trigger_what_was_chosen(example, tmp_path, rng):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "data").mkdir()
    for i in range(96):
        pixels = rng.integers(0, 60, (40, 40, 3), dtype=np.uint8)
        pixels[..., i % 3] += 150
        image.fromarray(pixels).save(tmp_path / "data" / ("%d.png" % i))
        (tmp_path / "data" / ("%d.label" % i)).write_text("%d" % (i % 3))
    chosen = []
    for trigger, numbers in enumerate((range(0, 60), range(40, 96))):
        chosen.append(tmp_path / ("trigger%d" % trigger))
        chosen[-1].write_text(
            "".join("%d.png\t%g\n" % (i, 0.5 + i % 2) for i in numbers)
        )
    said = example("continual.py", tmp_path / "data", *chosen)
    assert "trigger 0: 60 samples" in said and "trigger 1: 56 samples" in said
    assert losses(said)[1] < 0.5 * losses(said)[0], said


def test_portraits_are_told_apart_from_binary_records(example, tmp_path, rng):
    record = np.dtype([("label", "<i4"), ("pixels", "u1", (32, 32, 3))])
    data = np.zeros(512, record)
    data["label"] = rng.integers(0, 2, len(data))
    data["pixels"] = rng.integers(0, 100, data["pixels"].shape)
    data["pixels"][data["label"] == 1, :16] += 100
    (tmp_path / "years").mkdir()
    data.tofile(tmp_path / "years" / "1930.bin")
    said = losses(example("portraits.py", tmp_path / "years", 6))
    assert len(said) == 6 and said[-1] < 0.3, said


def test_headlines_are_told_apart_from_a_csv_file(example, tmp_path, rng):
    words = {"sport": "goal match team cup", "food": "bread soup spice oven"}
    with open(tmp_path / "news.csv", "w") as f:
        f.write("text,label\n")
        for i in range(192):
            label = ("sport", "food")[i % 2]
            said = rng.choice(words[label].split(), 3 + i % 4)
            f.write('"%s, %s",%s\n' % (said[0], " ".join(said[1:]), label))
    said = example("headlines.py", tmp_path / "news.csv", 6)
    assert re.search(r"epoch 5: .* (9[5-9]|100) % right", said), said
