# SPDX-License-Identifier: MIT
"""A loader that is sent to another process, and what tells two of them apart.

torch's loader is sent as its parts, so that the other process makes a new one;
any other loader as it is.  Both by pickle, as multiprocessing's spawn does.
"""

from __future__ import annotations

import hashlib
import io
import multiprocessing.spawn
import os
import pickle
import site
import sys
import sysconfig
import types
from typing import Any, Callable, Iterator, NamedTuple

from . import collates, orders
from .datasets import known
from .look import is_torchs

_PROTOCOL = 4
_KEPT = (
    "num_workers",
    "worker_init_fn",
    "timeout",
    "prefetch_factor",
    "multiprocessing_context",
)


class Shuffled:
    """Another order of n samples in each epoch, by the seed and its number."""

    def __init__(self, n: int, seed: int) -> None:
        self._n, self._seed, self._epoch = n, seed, 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[int]:
        import torch

        generator = torch.Generator().manual_seed(
            (self._seed * 1000003 + self._epoch) & 0x7FFFFFFFFFFFFFFF
        )
        return iter(torch.randperm(self._n, generator=generator).tolist())


class Parcel(NamedTuple):
    """What is sent.

    spec        the loader, or its parts
    plain       a hash of them and of the script's code that they name
    digest      the same with the versions
    versions    of the packages whose code they name
    main        is code of the script itself among it?
    ragged      are batches served as they are made?
    """

    spec: dict[str, Any]
    plain: str
    digest: str
    versions: dict[str, str]
    main: bool
    ragged: bool

    def data(self) -> bytes:
        """What make() makes the loader of; only who starts the process needs
        it."""
        return _pickled(self.spec)[0]


def make(spec: dict[str, Any]) -> Any:
    """The loader of what was sent."""
    if "loader" in spec:
        return spec["loader"]
    import torch.utils.data

    return torch.utils.data.DataLoader(**spec)


# ---------------------------------------------------------------------------
# Parts


def _sampler(loader: Any, seed: int) -> Any:
    """One that the other process can use: shuffles are by the epoch's number."""
    sampler = loader.sampler
    if orders.is_plain_shuffle(sampler):
        return Shuffled(len(sampler), seed)
    if orders.is_all_ranks(sampler):
        n = len(sampler.dataset)
        if sampler.shuffle:
            return Shuffled(n, sampler.seed)
    elif orders.is_sequential(sampler):
        n = len(sampler)
    else:
        return sampler
    # One of another data set numbers more samples, or fewer.
    return None if n == len(loader.dataset) else range(n)


def spec_of(loader: Any, seed: int, ragged: bool) -> dict[str, Any]:
    """What makes the loader again."""
    if not is_torchs(loader):
        return {"loader": loader}
    spec: dict[str, Any] = {key: getattr(loader, key) for key in _KEPT}
    spec["dataset"] = loader.dataset
    spec["collate_fn"] = loader.collate_fn
    spec["persistent_workers"] = loader.num_workers > 0
    if not isinstance(spec["multiprocessing_context"], (str, type(None))):
        spec["multiprocessing_context"] = spec[
            "multiprocessing_context"
        ].get_start_method()
    if loader.batch_sampler is not None and loader.batch_size is None:
        spec["batch_sampler"] = loader.batch_sampler
        return spec
    spec["batch_size"] = loader.batch_size
    # A job drops its own last samples, where batches are cut anew.
    spec["drop_last"] = loader.drop_last and ragged
    if not _is_stream(loader.dataset):
        spec["sampler"] = _sampler(loader, seed)
    return spec


def _is_stream(data: Any) -> bool:
    kind = known("torch.utils.data.dataset:IterableDataset")
    return kind is not None and isinstance(data, kind)


# What can be the reason why a loader can't be pickled, in the order in which
# they are tried.
_SUSPECTS: tuple[tuple[str, Callable[[dict[str, Any]], Any]], ...] = (
    ("collate function", lambda s: s.get("collate_fn")),
    ("worker_init_fn", lambda s: s.get("worker_init_fn")),
    ("sampler", lambda s: s.get("sampler") or s.get("batch_sampler")),
    ("transform", lambda s: getattr(s.get("dataset"), "transform", None)),
    (
        "target_transform",
        lambda s: getattr(s.get("dataset"), "target_transform", None),
    ),
    ("data set", lambda s: s.get("dataset")),
    ("loader", lambda s: s),
)


# ---------------------------------------------------------------------------
# Pickling


def _is_plain(tensor: Any) -> bool:
    return (
        tensor.device.type == "cpu"
        and not tensor.requires_grad
        and str(tensor.layout) == "torch.strided"
        and "bfloat" not in str(tensor.dtype)
        and not tensor.is_quantized
    )


def _tensor(array: Any) -> Any:
    """The tensor that an array was made of."""
    import torch

    return torch.from_numpy(array)


class _Pickler(pickle.Pickler):
    """Notes the modules of all functions and classes that it names."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, _PROTOCOL)
        self.modules: set[str] = set()

    def reducer_override(self, found: Any) -> Any:
        if type(found) is known("torch:Tensor") and _is_plain(found):
            # torch's own way has the tensor's address in it.
            self.modules.add("torch")
            return _tensor, (found.detach().contiguous().numpy(),)
        module = getattr(
            found if hasattr(found, "__qualname__") else type(found),
            "__module__",
            None,
        )
        if module:
            self.modules.add(module)
        return NotImplemented


class _Ordered(_Pickler):
    """Writes sets in one order, whatever the hashes of a process are: equal
    values have equal bytes, which can't be read again."""

    def persistent_id(self, found: Any) -> Any:
        if type(found) not in (set, frozenset):
            return None
        made = [_pickled(one, _Ordered) for one in found]
        self.modules.update(*(modules for _, modules in made))
        return type(found).__name__, sorted(data for data, _ in made)


def _pickled(
    value: Any, kind: type[_Pickler] = _Pickler
) -> tuple[bytes, set[str]]:
    to = io.BytesIO()
    pickler = kind(to)
    pickler.dump(value)
    return to.getvalue(), pickler.modules


def _explained(spec: dict[str, Any], error: Exception) -> ValueError:
    what, why = "loader", error
    for name, get in _SUSPECTS:
        try:
            _pickled(get(spec))
        except Exception as e:  # noqa: BLE001 - of the script's own code
            what, why = name, e
            break
    text = (
        "tsock.share: the %s can't be sent to the process that serves the "
        "stream: %s" % (what, why)
    )
    if "lambda" in text or "local object" in text or "lookup" in text:
        text += (
            ".  Functions and classes have to be defined with def and class at "
            "the top level of a module: a lambda, or what a function defines, "
            "can't be found again there"
        )
    return ValueError(text)


# ---------------------------------------------------------------------------
# Code


def _is_installed(path: str) -> bool:
    """Is it of Python or of an installed package, which has a version?"""
    places = [sysconfig.get_path("stdlib"), sysconfig.get_path("platlib")]
    places += [sysconfig.get_path("purelib"), os.path.dirname(os.__file__)]
    places += site.getsitepackages() + [site.getusersitepackages()]
    real = os.path.realpath(path)
    # Those that a .pth file names are in the folder of another Python.
    if not {"site-packages", "dist-packages"}.isdisjoint(real.split(os.sep)):
        return True
    return any(real.startswith(os.path.realpath(p) + os.sep) for p in places)


def _named_by(module: types.ModuleType) -> set[str]:
    """The modules whose code a module's own names lead to."""
    found = set()
    for value in list(vars(module).values()):
        if isinstance(value, types.ModuleType):
            found.add(value.__name__)
        else:
            name = getattr(value, "__module__", None)
            if isinstance(name, str):
                found.add(name)
    return found


def _code(names: set[str]) -> tuple[list[str], dict[str, str]]:
    """Hashes of the script's own files that these modules lead to, and the
    versions of the packages."""
    hashes: list[str] = []
    versions = {"python": "%d.%d.%d" % sys.version_info[:3]}
    left, seen = sorted(names), set(names)
    while left:
        name = left.pop()
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        package = name.partition(".")[0]
        if module is None or not path or package == "tsock":
            continue
        if _is_installed(path):
            whole = sys.modules.get(package)
            version = getattr(whole, "__version__", None)
            if isinstance(version, str):
                versions[package] = version
            continue
        with open(path, "rb") as f:
            hashes.append(hashlib.sha256(f.read()).hexdigest())
        for other in _named_by(module) - seen:
            seen.add(other)
            left.append(other)
    return sorted(set(hashes)), versions


def packed(loader: Any, seed: int) -> Parcel:
    """The loader, ready to be sent; ValueError names what can't be."""
    fixed = (
        is_torchs(loader)
        and loader.batch_size is not None
        and collates.is_default(loader.collate_fn)
        # Its workers have a short batch each.
        and not _is_stream(loader.dataset)
    )
    spec = spec_of(loader, seed, not fixed)
    # Jobs with other batch sizes share the stream.
    alike = {**spec, "batch_size": 0} if fixed else spec
    try:
        same, modules = _pickled(alike, _Ordered)
    except Exception as e:  # noqa: BLE001 - of the script's own code
        raise _explained(spec, e) from e
    main = "__main__" in modules
    # That of a script that is read from a pipe is called "<stdin>".
    file = getattr(sys.modules["__main__"], "__file__", None)
    if main and not (file and os.path.exists(file)):
        raise ValueError(
            "tsock.share: the loader has functions or classes of a notebook or "
            "an interactive session, which the process that serves it can't "
            "find: put them into a module, a file NAME.py, and import it"
        )
    hashes, versions = _code(modules)
    plain = hashlib.sha256(same + repr(hashes).encode())
    digest = hashlib.sha256(plain.digest() + repr(versions).encode())
    return Parcel(
        spec,
        plain.hexdigest()[:10],
        digest.hexdigest()[:10],
        versions,
        main,
        not fixed,
    )


def told(sent: Parcel) -> str:
    """What the stream says of the loader that it has."""
    words = ["%s=%s" % pair for pair in sorted(sent.versions.items())]
    return " ".join([sent.digest, sent.plain] + words)


def versions_of(said: str) -> tuple[str, dict[str, str]]:
    """The plain hash and the versions of what told() made."""
    words = said.split()
    pairs = (word.partition("=") for word in words[2:])
    return "".join(words[1:2]), {key: value for key, _, value in pairs}


def preparation(main: bool) -> dict[str, Any]:
    """What a new process needs to find the script's modules."""
    data = multiprocessing.spawn.get_preparation_data("tsock-share")
    data.pop("authkey", None)
    data.pop("orig_dir", None)
    if not main:
        data.pop("init_main_from_path", None)
        data.pop("init_main_from_name", None)
    return dict(data)


def prepare(data: dict[str, Any]) -> None:
    multiprocessing.spawn.prepare(data)
