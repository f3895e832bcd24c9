# SPDX-License-Identifier: MIT
"""tsock.pack(SOURCE, DST): a data set, or samples that this program makes, in
the form that tsock-producer decodes fastest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any, Iterable, Optional, Union

from . import addresses, errors
from .packing.samples import Images, Spool
from .producer import find_program

Path = Union[str, "os.PathLike[str]"]

_USAGE = 2  # the program's exit status after a wrong option
_SUMMARY = re.compile(r"([\d,]+) samples in .*, ([\d,]+) bad; ", re.DOTALL)
_NAME = "tsock-pack: "


def find_pack_program() -> str:
    """tsock-pack, which lies beside tsock-producer."""
    return os.path.join(os.path.dirname(find_program()), "tsock-pack")


def _fail(status: int, said: str) -> Exception:
    if status == _USAGE:
        return ValueError("tsock.pack: %s" % said)
    return errors.Error(
        said or "tsock-pack ended with status %d, and said nothing" % status
    )


def _run(command: list[str], progress: bool) -> int:
    """Run tsock-pack; the samples of the pack."""
    last = ""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout and process.stderr
        for raw in process.stderr:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            last = line
            if progress and not line.startswith(_NAME):
                print(line, file=sys.stderr, flush=True)
        said = process.stdout.read().decode("utf-8", "replace")
    if process.returncode:
        raise _fail(process.returncode, last.partition(_NAME)[2] or last)
    found = _SUMMARY.match(said)
    if not found:
        raise errors.Error("tsock-pack said %r, which is no summary" % said)
    samples, bad = (int(one.replace(",", "")) for one in found.groups())
    if bad:
        errors.warn(
            "tsock.pack: %d of %d samples can't be read and are bad files of "
            "the pack: %s" % (bad, samples, last),
            errors.BadFilesWarning,
        )
    return samples


def _options(given: dict[str, Any]) -> list[str]:
    """The program's options, of those that were given."""
    words = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif isinstance(value, os.PathLike):
            words += [option, os.fsdecode(value)]
        elif value is not None and value is not False:
            words += [option, str(value)]
    return words


def pack(
    source: Union[Path, Iterable[Any]],
    dst: Path,
    *,
    dataset: Optional[str] = None,
    split: Optional[str] = None,
    labels: Optional[Path] = None,
    masks: Optional[Path] = None,
    schema: Optional[str] = None,
    documents: Optional[str] = None,
    end_token: Optional[int] = None,
    begin_token: Optional[int] = None,
    images: Optional[Iterable[str]] = None,
    classes: Optional[Iterable[str]] = None,
    allow_empty: bool = False,
    threads: Optional[int] = None,
    shard_size: Union[int, str, None] = None,
    progress: bool = False,
) -> int:
    """Write the pack dst, and return how many samples it has.

        tsock.pack("/data/train", "/fast/train")
        tsock.pack(((jpeg, {"label": y, "caption": text}) for ...), "/fast/mine")
        loader = tsock.DataLoader("mine", 256, root="/fast/mine")

    source      whatever tsock-producer reads, or an iterable of (image,
                label), (image, {field: value}) or {"image": image, field:
                value}.  An image is an image file's bytes, its path, an image
                of PIL, or a uint8 array [height, width, 3] or [height, width].
                Samples may have no image, but fields alone.  A field "key" is
                what the sample is called
    dataset     of a path, as for tsock-pack; so are split, labels, schema,
                documents, end_token, begin_token and allow_empty
    masks       of a path as for tsock-pack; of an iterable the field that has
                each sample's mask, a PNG file as its bytes or its path, or
                uint8 numbers [height, width]
    images      of an iterable whose samples have several images: the fields
                that are one, of which the first becomes the field image
    classes     of an iterable whose labels are classes: their names in the
                order of their numbers; labels of text are numbered in the
                order of the names without it
    threads     that pack; None: as many CPUs as there are
    shard_size  most bytes of a file of dst, such as "512M"
    progress    print how far it is

    Samples of an iterable are taken one at a time; bytes and pixels lie in the
    folder DST.samples until they are packed.  Images of PIL and arrays are kept
    as their pixels, 3 bytes each: give the files' bytes or paths where there
    are any.  dst appears when it is complete.  If it is broken off, the same
    call goes on where it was with a path, and starts anew with an iterable.

    ValueError and TypeError name the sample that can't be packed;
    tsock.BadFilesWarning says how many of the images can't be read.
    """
    own = {
        "dataset": dataset,
        "split": split,
        "labels": labels,
        "masks": masks,
        "schema": schema,
        "documents": documents,
        "end_token": end_token,
        "begin_token": begin_token,
        "allow_empty": allow_empty,
    }
    options = _options({"threads": threads, "shard_size": shard_size})
    command = [find_pack_program()] + options
    if isinstance(source, (str, os.PathLike)):
        addresses.refuse("tsock.pack:", os.fspath(source))
        for name, given in (("classes", classes), ("images", images)):
            if given is not None:
                raise ValueError(
                    "%s= is for the samples of an iterable; %s says what its "
                    "own are" % (name, os.fspath(source))
                )
        words = [os.fspath(source), os.fspath(dst)]
        return _run(command + _options(own) + ["--"] + words, progress)
    mask = None if masks is None else os.fspath(masks)
    del own["masks"]
    for name, value in own.items():
        if value is not None and value is not False:
            raise ValueError(
                "%s= means nothing for an iterable, whose samples say what "
                "they are" % name
            )
    with Spool(dst) as spool:
        spool.fill(source, Images(images, mask), classes, progress)
        if mask is not None:
            command += ["--masks", mask]
        words = ["--dataset", "table", "--no-cache", "--", spool.table]
        return _run(command + words + [os.fspath(dst)], progress)


if __name__ == "__main__":
    os.execv(find_pack_program(), [find_pack_program()] + sys.argv[1:])
