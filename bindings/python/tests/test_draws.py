# SPDX-License-Identifier: MIT
"""The field draws: what was drawn at random for each sample."""
import itertools

import pytest

import tsock

np = pytest.importorskip("numpy")


def test_draws_of_the_train_preset_are_its_box_and_flip(serve):
    serve("--preset", "train", "--seed", 3)
    with tsock.DataLoader(
        "toy", 16, fields=("box", "draws"), framework="numpy"
    ) as loader:
        batches = [(box.copy(), draws.copy()) for box, draws in loader]
    assert batches
    for box, draws in batches:
        assert draws.dtype == np.float64
        assert (draws == box).all()


def test_draws_are_by_operation_and_differ_by_epoch(serve):
    serve(
        "--transform",
        "RandomVerticalFlip(0.5) RandomChoice([RandomHorizontalFlip(1), "
        "RandomVerticalFlip(0)]) Resize((24, 40))",
    )
    with tsock.DataLoader(
        "toy", 16, fields=("index", "image", "draws"), framework="numpy"
    ) as loader:
        seen = []
        for _ in range(2):
            epoch = {}
            for index, image, draws in loader:
                assert image.shape[1:] == (3, 24, 40)
                epoch.update(zip(index.tolist(), draws.tolist()))
            seen.append(epoch)
    for flip, choice, mirrored, turned in seen[0].values():
        assert flip in (0, 1)
        # What wasn't chosen has drawn nothing.
        assert (choice, mirrored, turned) in ((0, 1, 0), (1, 0, 0))
    assert seen[0].keys() == seen[1].keys() and seen[0] != seen[1]


def test_a_recipe_that_draws_nothing_has_no_draws(serve):
    serve("--preset", "eval")
    with pytest.raises(ValueError, match="field 'draws': stream 'toy' has "):
        tsock.DataLoader("toy", 16, fields=("draws",))


def test_a_sample_is_replayed_by_torchvision(serve, images):
    pytest.importorskip("torchvision")
    image = pytest.importorskip("PIL.Image")
    serve("--transform", "RandomResizedCrop(24) RandAugment() ColorJitter(0.4)")
    with tsock.DataLoader(
        "toy", 16, fields=("index", "image", "draws"), dtype="uint8",
        layout="hwc", framework="numpy",
    ) as loader:
        paths = loader.dataset.samples
        # 64 samples have each of RandAugment's operations several times.
        for indices, samples, draws in itertools.islice(loader, 4):
            for index, sample, own in zip(indices, samples, draws):
                file = image.open(paths[index][0]).convert("RGB")
                again = tsock.replay(file, own, loader.transform)
                assert (np.asarray(again) == sample).all()
    with pytest.raises(ValueError, match="draws 16 numbers .* 3 were given"):
        tsock.replay(file, own[:3], loader.transform)
