# SPDX-License-Identifier: MIT
"""The stages of webdataset's pipelines: which are known, and what they do."""

from __future__ import annotations

import inspect
from typing import Any, Callable, NamedTuple, Optional, Sequence

from .datasets import known
from .plan import NotNative

_CURRIED = "webdataset.filters:FilterFunction"
BY_NODE = "webdataset.shardlists:split_by_node"
_RAISE = (
    "webdataset.filters:reraise_exception",
    "webdataset.handlers:reraise_exception",
)
_PAIRS = "to_tuple('jpg;png;jpeg', 'cls')"
USUAL = "decode('pil').%s.map_tuple(transform)" % _PAIRS


def is_one(value: Any, *paths: str) -> bool:
    """Is it what one of these names stands for?"""
    return value is not None and any(value is known(path) for path in paths)


class Batches(NamedTuple):
    """What batched() does."""

    size: int
    collate: Any
    partial: bool

    def make(self, samples: list[Any]) -> Any:
        return self.collate(samples) if self.collate else samples


class Pipe:
    """What stages do.

    level       what comes out of them: names of tar files ("urls"), "streams",
                "files", "samples", "decoded" samples, "pairs", "batches"; of a
                loader batches that are "made", and again their "rows"
    count       of tar files
    buffers     sizes of the buffers that shuffle samples or batches
    splits      names of the functions that split the tar files
    reads       the stages that make samples of tar files
    makes       the stages that make pairs of samples, without the transform
    images      endings of images, of which a sample's first one is taken
    """

    def __init__(self, level: str, count: int = 0) -> None:
        self.level, self.count = level, count
        self.shuffled = self.splits_late = False
        self.splits: list[str] = []
        self.reads: list[Any] = []
        self.makes: list[Any] = []
        self.images: list[str] = []
        self.mapped: Any = None
        self.transform: Any = None
        self.batches: Optional[Batches] = None
        self.unbatched: Any = None

    def walk(self, stages: Sequence[Any]) -> None:
        for stage in stages:
            function = stage if inspect.isfunction(stage) else type(stage)
            if is_one(function, _CURRIED):
                function = stage.f
            self._take(stage, function)

    def _take(self, stage: Any, function: Any) -> None:
        name = getattr(function, "__name__", str(function)).lstrip("_")
        found = [one for one in _STAGES if is_one(function, one.path)]
        if not found:
            raise NotNative("has the stage %s" % name, "no such stage")
        if self.level not in found[0].levels.split():
            raise NotNative("has the stage %s at another place" % name, USUAL)
        try:
            given = _arguments(stage, function)
        except TypeError as e:
            raise NotNative("has the stage %s: %s" % (name, e)) from e
        handler = given.pop("handler", None)
        if handler is not None and not is_one(handler, *_RAISE):
            raise NotNative(
                "goes on after errors, by the handler %s"
                % getattr(handler, "__name__", handler),
                "reraise_exception",
            )
        found[0].take(self, stage, given)
        self.level = found[0].to or self.level


def _arguments(stage: Any, function: Any) -> dict[str, Any]:
    """What a stage was given, defaults included."""
    if not is_one(type(stage), _CURRIED):
        return {} if inspect.isfunction(stage) else dict(vars(stage))
    signature = inspect.signature(function)
    bound = signature.bind(None, *stage.args, **stage.kw)
    bound.apply_defaults()
    bound.arguments.pop(next(iter(signature.parameters)))
    return dict(bound.arguments)


def _check_defaults(stage: Any, given: dict[str, Any]) -> None:
    if not is_one(type(stage), _CURRIED):
        return
    wanted = inspect.signature(stage.f).parameters
    for name, value in given.items():
        if value != wanted[name].default:
            raise NotNative("is given %s" % name, "the default of %s" % name)


def _read(pipe: Pipe, stage: Any, given: dict[str, Any]) -> None:
    _check_defaults(stage, given)
    pipe.reads.append(stage)


def _pass(pipe: Pipe, stage: Any, given: dict[str, Any]) -> None:
    pass


def _split(pipe: Pipe, stage: Any, given: dict[str, Any]) -> None:
    if not inspect.isfunction(stage):
        raise NotNative("splits the tar files of a group", "all ranks")
    pipe.splits.append(stage.__name__)
    pipe.splits_late = pipe.splits_late or pipe.shuffled


def _shuffle(pipe: Pipe, stage: Any, given: dict[str, Any]) -> None:
    # A buffer of one, and a list of one, stay as they are.
    if given["bufsize"] > 1 and (pipe.level != "urls" or pipe.count > 1):
        pipe.shuffled = True


def _check_decoder(decoder: Any) -> None:
    handlers = list(decoder.handlers)
    image = handlers[1] if len(handlers) == 3 else None
    if not (
        image is not None
        and is_one(handlers[0], "webdataset.autodecode:gzfilter")
        and is_one(type(image), "webdataset.autodecode:ImageHandler")
        and is_one(handlers[2], "webdataset.autodecode:basichandlers")
        and decoder.only is None
        and image.imagespec in ("pil", "pilrgb")
        and image.extensions
        == set(known("webdataset.autodecode:IMAGE_EXTENSIONS"))
    ):
        raise NotNative("decodes otherwise than by 'pil'", "decode('pil')")


def _decode(pipe: Pipe, stage: Any, given: dict[str, Any]) -> None:
    if "f" in given:
        decoder = given["f"]
        if not is_one(type(decoder), "webdataset.autodecode:Decoder"):
            raise NotNative("has the stage map", USUAL)
    else:
        kind = known("webdataset.autodecode:ImageHandler")
        try:
            decoder = known("webdataset.autodecode:Decoder")(
                [kind(x) if isinstance(x, str) else x for x in given["args"]],
                **given["kw"],
            )
        except (AssertionError, TypeError, ValueError) as e:
            raise NotNative("has the stage decode: %s" % e) from e
    _check_decoder(decoder)
    pipe.makes.append(stage)


def _pair(pipe: Pipe, stage: Any, given: dict[str, Any]) -> None:
    keys = given.pop("args")
    if len(keys) == 1 and isinstance(keys[0], str):
        keys = tuple(keys[0].split())
    keys = [k.split(";") if isinstance(k, str) else list(k) for k in keys]
    if len(keys) != 2 or keys[1] != ["cls"]:
        raise NotNative("gives something else than image and label", _PAIRS)
    pipe.images = keys[0]
    _check_defaults(stage, given)
    pipe.makes.append(stage)


def _nothing(x: Any) -> Any:
    return x


def _does_nothing(function: Any) -> bool:
    """Is it none, or a function of one argument that returns it?"""
    if function is None:
        return True
    code = getattr(function, "__code__", None)
    return code is not None and (
        code.co_code == _nothing.__code__.co_code
        and (code.co_argcount, code.co_flags & 12) == (1, 0)
    )


def _map(pipe: Pipe, stage: Any, given: dict[str, Any]) -> None:
    functions = given["args"]
    if pipe.mapped is not None:
        raise NotNative("has map_tuple twice", USUAL)
    if not all(f is int or _does_nothing(f) for f in functions[1:]):
        raise NotNative("changes labels, by map_tuple", "labels as they are")
    pipe.mapped = stage
    if functions and not _does_nothing(functions[0]):
        pipe.transform = functions[0]


def _batch(pipe: Pipe, stage: Any, given: dict[str, Any]) -> None:
    pipe.batches = Batches(
        given["batchsize"], given["collation_fn"], bool(given["partial"])
    )


def _unbatch(pipe: Pipe, stage: Any, given: dict[str, Any]) -> None:
    pipe.unbatched = stage


class _Stage(NamedTuple):
    """A function that is a stage: at which levels, and what it gives."""

    path: str
    levels: str
    to: str
    take: Callable[[Pipe, Any, dict[str, Any]], None]


_ANY = "urls samples decoded pairs batches made rows"
_STAGES = (
    _Stage("webdataset.shardlists:single_node_only", "urls", "", _split),
    _Stage(BY_NODE, "urls", "", _split),
    _Stage("webdataset.shardlists:split_by_worker", "urls", "", _split),
    _Stage("webdataset.filters:_shuffle", _ANY, "", _shuffle),
    _Stage("webdataset.filters:detshuffle", _ANY, "", _shuffle),
    _Stage("webdataset.cache:StreamingOpen", "urls", "streams", _read),
    _Stage(
        "webdataset.tariterators:tar_file_expander", "streams", "files", _read
    ),
    _Stage("webdataset.tariterators:group_by_keys", "files", "samples", _read),
    _Stage(
        "webdataset.tariterators:tarfile_samples", "urls", "samples", _read
    ),
    _Stage("webdataset.compat:check_empty", "samples decoded", "", _pass),
    _Stage("webdataset.filters:_map", "samples", "decoded", _decode),
    _Stage("webdataset.filters:_decode", "samples", "decoded", _decode),
    _Stage("webdataset.filters:_to_tuple", "decoded", "pairs", _pair),
    _Stage("webdataset.filters:_map_tuple", "pairs", "", _map),
    _Stage("webdataset.filters:_batched", "pairs rows", "batches", _batch),
    _Stage("webdataset.filters:_unbatched", "made", "rows", _unbatch),
)
