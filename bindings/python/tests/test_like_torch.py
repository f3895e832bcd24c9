# SPDX-License-Identifier: MIT
"""What torch's own tests check of a DataLoader, of torch's and of ours alike.

Each test runs twice: with torch.utils.data.DataLoader, which says what is
right, and with tsock.DataLoader.  What only ours or only torch's has (workers,
shuffling by the loader, collate_fn) is not in here.
"""

import collections.abc
import copy
import gc
import itertools
import pickle
import threading
import typing
import warnings

import pytest

import tsock
from conftest import N

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")


class Samples(torch.utils.data.Dataset):
    """(image, label, index), as the stream's samples are."""

    classes = ["class0", "class1", "class2"]

    def __len__(self):
        return N

    def __getitem__(self, i):
        return torch.zeros(3, 32, 32), i // 68, i


@pytest.fixture(params=["torch", "tsock"])
def make(request, serve):
    """make(batch_size, ...) gives a loader of the same samples.

    kinds: what to make, in place of torch's DataLoader and of ours.
    """
    usual = torch.utils.data.DataLoader, tsock.DataLoader
    if request.param == "torch":
        return lambda *a, kinds=usual, **k: kinds[0](Samples(), *a, **k)
    serve("--order", "sequential")

    def ours(*arguments, kinds=usual, **keywords):
        return kinds[1](
            "toy",
            *arguments,
            fields=("image", "label", "index"),
            rank=0,
            world_size=1,
            **keywords
        )

    return ours


def index(batches):
    return [batch[2].tolist() for batch in batches]


def flat(batches):
    return sum(index(batches), [])


def in_order():
    return list(range(N))


SIZES = [(n, drop) for n in (1, 7, 29, 100, N) for drop in (False, True)]


# Ours refuses to drop an epoch's only batch, where torch's gives nothing.
@pytest.mark.parametrize("size, drop_last", SIZES + [(N + 1, False)])
def test_length_and_sizes(make, size, drop_last):
    loader = make(size, drop_last=drop_last)
    sizes = [len(batch[0]) for batch in loader]
    assert len(sizes) == len(loader) == len(iter(loader))
    assert len(sizes) == (N // size if drop_last else -(-N // size))
    assert all(n == size for n in sizes[:-1])
    assert sizes[-1] == (size if drop_last or N % size == 0 else N % size)


def test_the_default_batch_size_is_one(make):
    assert make().batch_size == 1 and len(make()) == N
    assert next(iter(make()))[0].shape == (1, 3, 32, 32)


def test_every_sample_comes_once_in_every_epoch(make):
    loader = make(48)
    for _ in range(3):
        assert flat(loader) == in_order()


def test_a_batch_is_a_list_of_tensors_of_torchs_types(make):
    batch = next(iter(make(16)))
    assert type(batch) is list
    images, labels, indices = batch
    assert images.dtype == torch.float32 and images.shape == (16, 3, 32, 32)
    assert labels.dtype == indices.dtype == torch.int64
    assert images.is_contiguous() and not images.is_pinned()
    assert images.device.type == "cpu" and not images.requires_grad


def test_an_iterator_is_its_own_iterator(make):
    iterator = iter(make(64))
    assert iter(iterator) is iterator
    assert isinstance(iterator, collections.abc.Iterator)


def test_a_loader_is_iterable_and_sized(make):
    loader = make(64)
    assert isinstance(loader, collections.abc.Iterable)
    assert isinstance(loader, collections.abc.Sized)
    assert not isinstance(loader, collections.abc.Iterator)
    assert bool(loader)
    with pytest.raises(TypeError):
        loader[0]


def test_exhausted_iterators_stay_exhausted(make):
    iterator = iter(make(64))
    assert len(list(iterator)) == 4
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)
    assert next(iterator, None) is None


def test_batches_can_be_kept(make):
    kept = list(make(10))
    copies = [[t.clone() for t in batch] for batch in kept]
    for _ in make(64):
        pass
    for batch, right in zip(kept, copies):
        assert all(torch.equal(a, b) for a, b in zip(batch, right))


def test_batches_can_be_written_into(make):
    loader = make(10)
    for batch in loader:
        batch[0].sub_(1).clamp_(0)
        batch[2][:] = -1
        batch[0] = None
    assert flat(loader) == in_order()


def test_a_batch_outlives_its_loader(make):
    loader = make(10)
    iterator = iter(loader)
    batch = next(iterator)
    right = [t.clone() for t in batch]
    del iterator, loader
    gc.collect()
    assert all(torch.equal(a, b) for a, b in zip(batch, right))


def test_breaking_off_and_iterating_again_begins_at_the_beginning(make):
    loader = make(10)
    for batches in (1, 5, 20, 21):
        seen = index(itertools.islice(loader, batches))
        assert sum(seen, []) == in_order()[: 10 * batches]
    assert flat(loader) == in_order()


def test_an_iterator_that_was_not_used_costs_nothing(make):
    loader = make(10)
    for _ in range(50):
        iter(loader)
    assert flat(loader) == in_order()


def test_iterators_are_independent(make):
    loader = make(10)
    one, two = iter(loader), iter(loader)
    assert one is not two
    first = index([next(one), next(one)])
    assert index([next(two), next(two)]) == first
    assert flat(two) == flat(one) == in_order()[20:]


def test_a_loader_zipped_with_itself(make):
    loader = make(10)
    pairs = list(zip(loader, loader))
    assert len(pairs) == len(loader)
    assert flat(a for a, _ in pairs) == flat(b for _, b in pairs)


def test_nested_loops(make):
    loader = make(100)
    seen = [
        (a[2].tolist(), b[2].tolist()) for a in loader for b in loader
    ]
    assert len(seen) == 9
    assert {a[0] for a, _ in seen} == {b[0] for _, b in seen} == {0, 100, 200}


def test_two_loaders_side_by_side(make):
    a, b = make(10), make(50)
    pairs = list(zip(a, b))
    assert len(pairs) == 5
    assert flat(x for x, _ in pairs) == in_order()[:50]
    assert flat(y for _, y in pairs) == in_order()


def test_cycling_and_slicing(make):
    loader = make(100)
    cycle = itertools.chain.from_iterable(itertools.repeat(loader))
    sizes = [len(b[0]) for b in itertools.islice(cycle, 7)]
    assert sizes == [100, 100, 3, 100, 100, 3, 100]
    assert index(itertools.islice(itertools.cycle(loader), 4))[3][0] == 0


def test_an_exception_in_the_loop_leaves_the_loader_usable(make):
    loader = make(10)
    with pytest.raises(ZeroDivisionError):
        for i, _ in enumerate(loader):
            1 // (3 - i)
    assert flat(loader) == in_order()


def test_a_generator_over_a_loader_can_be_closed(make):
    loader = make(10)

    def batches():
        for batch in loader:
            yield batch

    generator = batches()
    next(generator)
    generator.close()
    assert flat(loader) == in_order()


def test_loaders_are_read_in_threads(make):
    results = [None] * 3

    def read(i):
        results[i] = flat(make(10 + i))

    threads = [
        threading.Thread(target=read, args=(i,)) for i in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [in_order()] * 3


FIXED = (
    "batch_size",
    "batch_sampler",
    "sampler",
    "drop_last",
    "dataset",
    "persistent_workers",
)
FREE = {
    "num_workers": 3,
    "timeout": 5,
    "collate_fn": len,
    "pin_memory": False,
    "pin_memory_device": "",
    "worker_init_fn": len,
    "generator": torch.Generator(),
    "prefetch_factor": 2,
    "in_order": True,
    "anything_else": 1,
}


@pytest.mark.parametrize("name", FIXED)
def test_what_can_not_be_set_once_there_is_a_loader(make, name):
    loader = make(10)
    before = getattr(loader, name)
    for value in (before, None, 3):
        with pytest.raises(ValueError, match="DataLoader is initialized"):
            setattr(loader, name, value)
    assert getattr(loader, name) is before


@pytest.mark.parametrize("name", sorted(FREE))
def test_what_can_be_set(make, name):
    loader = make(10)
    setattr(loader, name, FREE[name])
    assert getattr(loader, name) == FREE[name]


def test_attributes_that_frameworks_read(make):
    loader = make(10)
    assert loader.num_workers == 0 and loader.timeout == 0
    assert loader.pin_memory is False and loader.drop_last is False
    assert loader.persistent_workers is False
    assert loader.prefetch_factor is None and loader.generator is None
    assert loader.worker_init_fn is None and loader.in_order is True
    assert loader.multiprocessing_context is None
    assert hasattr(loader, "collate_fn") and hasattr(loader, "dataset")
    assert len(loader.dataset) == N
    assert loader.dataset.classes == Samples.classes


def test_samplers_can_be_iterated(make):
    loader = make(48)
    assert list(loader.sampler) == in_order()
    assert list(loader.batch_sampler) == index(loader)
    assert len(loader.sampler) == N
    assert len(loader.batch_sampler) == len(loader)
    assert loader.batch_sampler.sampler is loader.sampler
    assert loader.batch_sampler.batch_size == 48
    assert loader.batch_sampler.drop_last is False


def test_a_batch_samplers_last_batch_can_be_dropped(make):
    loader = make(48, drop_last=True)
    assert list(loader.batch_sampler) == index(loader)
    assert loader.batch_sampler.drop_last is True


@pytest.mark.parametrize("size", [0, -1, 1.5, "8", True])
def test_impossible_batch_sizes(make, size):
    with pytest.raises((ValueError, TypeError)):
        make(size)


def test_a_negative_timeout(make):
    with pytest.raises(ValueError, match="timeout"):
        make(10, timeout=-1)


def test_an_unknown_argument(make):
    with pytest.raises(TypeError, match="batchsize"):
        make(batchsize=3)


def test_loaders_can_be_pickled_and_copied(make):
    loader = make(48, drop_last=True)
    for again in (
        pickle.loads(pickle.dumps(loader)),
        copy.copy(loader),
        copy.deepcopy(loader),
    ):
        assert type(again) is type(loader) and again is not loader
        assert again.batch_size == 48 and again.drop_last is True
        assert flat(again) == in_order()[: 48 * 4]


class Doubling:
    """What somebody makes of either loader."""

    def __iter__(self):
        for images, labels, indices in super().__iter__():
            yield images, labels, indices * self.factor


class DoublingTorch(Doubling, torch.utils.data.DataLoader):
    pass


class DoublingOurs(Doubling, tsock.DataLoader):
    pass


def test_what_is_derived_stays_so_and_keeps_what_was_set(make):
    loader = make(48, kinds=(DoublingTorch, DoublingOurs))
    loader.factor, loader.timeout, loader.worker_init_fn = 2, 100, len
    doubled = [2 * i for i in in_order()]
    for again in (
        loader,
        pickle.loads(pickle.dumps(loader)),
        copy.copy(loader),
        copy.deepcopy(loader),
    ):
        assert type(again) is type(loader)
        assert again.timeout == 100 and again.worker_init_fn is len
        again.timeout = 0  # torch's needs workers for that
        assert flat(again) == doubled
        again.timeout = 100


def test_a_loader_class_can_be_subscripted_in_annotations(make):
    kind = type(make(48))

    def train(loader: kind[torch.Tensor], each: kind[list[int]]) -> None:
        pass

    hints = typing.get_type_hints(train, None, {"kind": kind})
    assert typing.get_origin(hints["loader"]) is kind

    class Mine(kind[torch.Tensor]):
        pass

    assert issubclass(Mine, kind)


def test_iterators_can_not_be_pickled(make):
    iterator = iter(make(48))
    for _ in range(2):
        with pytest.raises(NotImplementedError):
            pickle.dumps(iterator)
        next(iterator)


def test_batches_can_be_pickled(make):
    batch = next(iter(make(10)))
    again = pickle.loads(pickle.dumps(batch))
    assert all(torch.equal(a, b) for a, b in zip(batch, again))


def test_pinning_without_an_accelerator_is_a_warning(make):
    if torch.accelerator.is_available():
        pytest.skip("there is an accelerator")
    with pytest.warns(UserWarning, match="pin_memory"):
        loader = make(10, pin_memory=True)
        batches = list(loader)
    assert not batches[0][0].is_pinned()
    assert flat(batches) == in_order()


def test_ordinary_use_warns_of_nothing(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = make(48, drop_last=True, timeout=0)
        for _ in range(2):
            for _ in loader:
                pass
        gc.collect()


def test_a_loader_has_no_set_epoch_of_its_own_in_the_way(make):
    loader = make(48)
    for epoch in range(2):
        for part in (loader, loader.sampler, loader.batch_sampler):
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)
        assert flat(loader) == in_order()


def test_a_dataset_can_be_split(make):
    parts = torch.utils.data.random_split(make(10).dataset, [100, N - 100])
    assert [len(part) for part in parts] == [100, N - 100]
    assert sorted(list(parts[0].indices) + list(parts[1].indices)) == in_order()


def test_two_loaders_are_two(make):
    one, two = make(10), make(10)
    assert one != two and len({one, two}) == 2
    assert isinstance(repr(one), str)
