# SPDX-License-Identifier: MIT
"""The data set behind a stream, looked up in its folder when it is asked for.

Nothing of this is needed for reading the stream: class weights, subsets and
the like want the files and their labels, as torchvision's ImageFolder has
them.  The producer knows them, and they are looked at in its memory (tables.py).
Where no producer can be asked, a folder of images is scanned.
"""

from __future__ import annotations

import importlib
import operator
import os
import warnings
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence
from typing import Union

from .options import IMAGE_FOLDERS
from .sampler import Asked, Made
from .tables import FILES, KEYS, LABELS, NoTable, Pairs, Table, Targets, Texts

EXTENSIONS = (
    ".jpg",
    ".jpeg",
    ".png",
    ".ppm",
    ".bmp",
    ".pgm",
    ".tif",
    ".tiff",
    ".webp",
)


def _files(folder: str, above: tuple[tuple[int, int], ...]) -> Iterator[str]:
    """The folders below a class's folder, and their images, unsorted.

    A link to a folder above it would be followed round and round: left out,
    as the producer does.
    """
    status = os.stat(folder)
    here = (status.st_dev, status.st_ino)
    if here in above:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files(entry.path, above + (here,))
            elif entry.name.lower().endswith(EXTENSIONS):
                yield entry.path


def scan_images(root: str) -> list[tuple[str, int]]:
    """(path, -1) of every image at any depth, of a data set of images alone."""
    return [(path, -1) for path in sorted(_files(root, ()), key=os.path.split)]


def scan(root: str, classes: list[str]) -> list[tuple[str, int]]:
    """(path, label) of every image, in ImageFolder's order."""
    status = os.stat(root)
    top = ((status.st_dev, status.st_ino),)
    samples = []
    for label, name in enumerate(classes):
        paths = _files(os.path.join(root, name), top)
        for path in sorted(paths, key=os.path.split):
            samples.append((path, label))
    return samples


def select(
    path: str, root: str, samples: list[tuple[str, int]]
) -> list[tuple[str, int]]:
    """The samples that a file of --select names, in its order."""
    by_name = {os.path.relpath(s[0], root): s for s in samples}
    chosen = []
    with open(
        path, encoding="utf-8-sig", errors="surrogateescape", newline="\n"
    ) as f:
        for line in f:
            name = line.rstrip(" \t\r\n").partition("\t")[0]
            while name.startswith("./"):
                name = name[2:]
            if name and name not in by_name:  # a blank before the weight
                name = name.rpartition(" ")[0].rstrip(" ")
            if name:
                chosen.append(by_name[name])
    return chosen


def load(path: str) -> Any:
    """A file as an RGB image of Pillow's."""
    try:
        image = importlib.import_module("PIL.Image")
    except ImportError as e:
        raise ImportError(
            "a data set's images are decoded with Pillow, which can't be "
            "imported: %s; batches of the loader need none" % e
        ) from e
    with open(path, "rb") as f:
        return image.open(f).convert("RGB")


class Dataset:
    """The data set behind the stream.

    Its length and classes come with the stream.  Labels (``targets``), the
    files of a folder of images (``samples``, ``imgs``) and names (``keys``) are
    the producer's, and stay in its memory, which all jobs map: each is a
    sequence that can be used as a list, but not written into.  Of a folder they
    are torchvision.datasets.ImageFolder's, and so is dataset[i], decoded with
    Pillow from ``root``, the folder that the producer reads.  dataset[i] is
    the whole image: the producer's crops and the loader's dtype aren't
    applied, but ``transform`` and ``target_transform`` are, if set.  They
    change no batch of a loader, and a warning says so.
    """

    loader = staticmethod(load)  # a file as an image, as there

    def __init__(
        self,
        length: int,
        classes: list[str],
        identity: Mapping[str, str],
        name: str,
        said: bytes = b"",
    ) -> None:
        self._length = length
        self._name = name
        self._said = said  # identity, as the producer says it
        self._kind = identity.get("dataset")
        self._root = identity.get("root")
        self._select = identity.get("select")
        self._forget()
        self.classes = classes
        self.class_to_idx = {name: i for i, name in enumerate(classes)}
        self._transform: Optional[Callable[[Any], Any]] = None
        self._target_transform: Optional[Callable[[int], Any]] = None

    def _forget(self) -> None:
        """What is looked up when it is asked for."""
        self._scanned: Optional[list[tuple[str, int]]] = None
        self._samples: Optional[Sequence[tuple[str, int]]] = None
        self._targets: Optional[Sequence[Any]] = None
        self._keys: Optional[Sequence[str]] = None

    def __getstate__(self) -> dict[str, Any]:
        # Another process maps the producer's memory itself.
        copy = Dataset.__new__(Dataset)
        copy.__dict__.update(self.__dict__)
        copy._forget()
        return copy.__dict__

    @property
    def transform(self) -> Optional[Callable[[Any], Any]]:
        """What dataset[i] makes of its image; None: nothing."""
        return self._transform

    @transform.setter
    def transform(self, value: Optional[Callable[[Any], Any]]) -> None:
        self._warn_of("transform", value)
        self._transform = value

    @property
    def target_transform(self) -> Optional[Callable[[int], Any]]:
        """What dataset[i] makes of its label; None: nothing."""
        return self._target_transform

    @target_transform.setter
    def target_transform(self, value: Optional[Callable[[int], Any]]) -> None:
        self._warn_of("target_transform", value)
        self._target_transform = value

    def _warn_of(self, what: str, value: Any) -> None:
        if value is not None:
            warnings.warn(
                "dataset.%s changes what dataset[i] gives, and no batch of "
                "stream %r, whose samples its producer makes: call it on the "
                "batches, or serve a loader that has it (tsock.serve)"
                % (what, self._name),
                stacklevel=3,
            )

    def _is_folder(self) -> bool:
        return self._kind in (*IMAGE_FOLDERS, "images")

    @property
    def root(self) -> str:
        """The folder with the images, or with the classes' folders."""
        if not self._is_folder() or not self._root:
            raise AttributeError(
                "stream %r doesn't serve a folder of images (its producer "
                "says %s): what it knows of its samples are dataset.targets "
                "and dataset.keys"
                % (
                    self._name,
                    "dataset=%s" % self._kind if self._kind else "nothing",
                )
            )
        return self._root

    def _table(self, kind: int) -> Table:
        """The producer's; NoTable where it can't be had."""
        if not self._said:
            raise NoTable("the stream doesn't say which one it is")
        table = Table(self._name, self._said, kind)
        if table.count != self._length:
            raise NoTable("it is of another data set")
        return table

    def _scan(self) -> list[tuple[str, int]]:
        """(path, label) of every file, found in the folder."""
        if self._scanned is None:
            self._scanned = self._find()
        return self._scanned

    def _find(self) -> list[tuple[str, int]]:
        try:
            if self._kind == "images":
                found = scan_images(self.root)
            else:
                found = scan(self.root, self.classes)
            if self._select is not None:
                found = select(self._select, self.root, found)
        except OSError as e:
            raise type(e)(
                e.errno,
                "the folder of stream %r can't be read from here: %s"
                % (self._name, e.strerror),
                e.filename,
            ) from e
        except KeyError as e:
            raise RuntimeError(
                "stream %r: %s names %s, which %s has not by now: start "
                "the producer again"
                % (self._name, self._select, e, self.root)
            ) from None
        if len(found) != self._length:
            raise RuntimeError(
                "stream %r has a data set of %d files, and %s has %d by "
                "now: start the producer again"
                % (self._name, self._length, self.root, len(found))
            )
        return found

    def _check_folder(self, what: str, field: str, why: NoTable) -> None:
        """Can it be scanned, where the producer has no table?"""
        if not self._is_folder():
            raise AttributeError(
                "stream %r hands out no %s (%s); if its batches have them, an "
                "epoch of a loader with fields=(%r, 'index') tells them"
                % (self._name, what, why, field)
            ) from None

    @property
    def samples(self) -> Sequence[tuple[str, int]]:
        """(path, label) of every file, by its index in the data set."""
        if self._samples is None:
            root = os.path.join(self.root, "")
            try:
                self._samples = Pairs(
                    Texts(self._table(FILES), root), self.targets
                )
            except NoTable:
                self._samples = self._scan()
        return self._samples

    @property
    def imgs(self) -> Sequence[tuple[str, int]]:
        """``samples`` by ImageFolder's other name."""
        return self.samples

    @property
    def targets(self) -> Sequence[Any]:
        """The label of every sample."""
        if self._targets is None:
            try:
                self._targets = Targets(self._table(LABELS))
            except NoTable as e:
                self._check_folder("labels", "label", e)
                self._targets = [label for _, label in self._scan()]
        return self._targets

    @property
    def keys(self) -> Sequence[str]:
        """What every sample is called: its file below ``root`` or, where a file
        holds many samples, the name in it, without its extension."""
        if self._keys is None:
            try:
                self._keys = Texts(self._table(KEYS))
            except NoTable as e:
                self._check_folder("names", "key", e)
                self._keys = [
                    os.path.relpath(path, self.root)
                    for path, _ in self._scan()
                ]
        return self._keys

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, label = self.samples[operator.index(index)]
        image, target = load(path), label
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(label)
        return image, target

    def __getitems__(self, indices: Union[Asked, Sequence[int]]) -> Any:
        """What torch's loader asks for: these samples, one by one, or the
        stream's batch, where they are one of the loader's batch_sampler."""
        if isinstance(indices, Asked):
            return Made(indices.read())
        return [self[i] for i in indices]

    def __repr__(self) -> str:
        return "<data set of %d samples, %d classes>" % (
            self._length,
            len(self.classes),
        )
