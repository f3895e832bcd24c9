# SPDX-License-Identifier: MIT
"""python -m tsock.index SOURCE DST: tsock.index() from a shell."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Optional, Union

from . import index
from ..indexing import automatic
from ..indexing.sources import KINDS


def _pad(text: str) -> dict[str, Union[int, float]]:
    """labels=-100,tokens=0"""
    said: dict[str, Union[int, float]] = {}
    for pair in text.split(","):
        name, _, value = pair.partition("=")
        try:
            said[name] = int(value)
        except ValueError:
            said[name] = float(value)
    return said


def _check_unasked(
    parser: argparse.ArgumentParser, said: argparse.Namespace
) -> None:
    """The table that loaders make has what they choose."""
    kept = ("source", "dst", "kind", "split")
    for name, value in vars(said).items():
        if name not in kept and value != parser.get_default(name):
            parser.error(
                "--%s needs the name of a table" % name.replace("_", "-")
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tsock.index",
        description="Write a table of a data set's samples, which "
        "tsock-producer --root TABLE serves as they are.",
    )
    parser.add_argument("source")
    parser.add_argument(
        "dst",
        metavar="table",
        nargs="?",
        help="where to; without it: of Arrow and Parquet files the table that "
        "loaders make in the folder of caches, unless it is there and as new "
        "as the files; its path is printed",
    )
    parser.add_argument(
        "--split",
        choices=("train", "val"),
        help="of Arrow and Parquet files those whose names say this",
    )
    parser.add_argument("--kind", choices=KINDS[1:])
    parser.add_argument("--image", help="the column of the images")
    parser.add_argument(
        "--no-image", action="store_true", help="samples have no image"
    )
    parser.add_argument(
        "--images",
        type=lambda s: s.split(","),
        default=(),
        help="the columns of several images a sample, separated by commas",
    )
    parser.add_argument("--label", help="the column of the labels")
    parser.add_argument(
        "--fields",
        type=lambda s: s.split(","),
        default=(),
        help="further columns, separated by commas",
    )
    parser.add_argument("--root", help="the folder that paths are relative to")
    parser.add_argument(
        "--boxes", action="store_true", help="COCO's boxes, as fields"
    )
    parser.add_argument(
        "--pad",
        type=_pad,
        default={},
        metavar="COLUMN=VALUE,...",
        help="what follows shorter lists, by columns",
    )
    parser.add_argument(
        "--pack-to",
        type=int,
        metavar="N",
        help="pack lists one behind the other into samples of this length",
    )
    parser.add_argument(
        "--split-rows",
        action="store_true",
        help="of --pack-to: a list goes on in the next sample",
    )
    return parser


def _index(said: argparse.Namespace) -> int:
    return index(
        said.source,
        said.dst,
        kind=said.kind,
        image=False if said.no_image else said.image,
        images=said.images,
        label=said.label,
        fields=said.fields,
        root=said.root,
        boxes=said.boxes,
        pad=said.pad,
        pack_to=said.pack_to,
        split_rows=said.split_rows,
        split=said.split,
        progress=True,
    )


def main(argv: Optional[list[str]] = None) -> int:
    parser = _parser()
    said = parser.parse_args(argv)
    try:
        if said.dst is None:
            _check_unasked(parser, said)
            print(automatic.keep(said.source, said.kind, said.split))
            return 0
        n = _index(said)
    except (ValueError, OSError, ImportError) as e:
        print("tsock.index: %s" % e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        again = os.path.exists("%s.partial" % said.dst)
        print(
            "tsock.index: interrupted%s"
            % (
                "; the same command goes on with the files that aren't done"
                if again
                else ""
            ),
            file=sys.stderr,
        )
        return 130
    print("%s: %d samples" % (said.dst, n))
    return 0


if __name__ == "__main__":
    sys.exit(main())
