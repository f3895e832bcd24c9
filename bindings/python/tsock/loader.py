# SPDX-License-Identifier: MIT
"""tsock.DataLoader: a stream in place of torch.utils.data.DataLoader.

The constructor connects; the first next() of an iterator joins and takes a
batch of the bytes that every other consumer sees; an iterator that is dropped
leaves.  Nothing here reads a file, decodes an image or copies a tensor.

DataLoader is deliberately not a subclass of torch's: frameworks take such
loaders apart and build them anew around another sampler.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Generic, Iterable, Mapping
from typing import Optional, Sequence, Union

from . import _ffi, arguments, attach, errors, gpu, growing, options
from . import launchers, nodes, ranks, tensors
from .agreement import Agreement
from .batches import Batches
from .connection import Pool, Stream
from .dataset import Dataset
from .frameworks import LIKE_TORCH, LikeTorch
from .iterator import Iterator
from .keywords import helpful
from .nodes import At
from .parts import NodeRanks, Start
from .progress import HasProgress, Progress
from .request import Request
from .sampler import Sampler
from .serving import consumer
from .source import Source
from .streams import is_running, query
from .subset import Gatherer, Part

if TYPE_CHECKING:
    from typing_extensions import TypeVar, Unpack

    from .option_table import ProducerOptions

    _Batch = TypeVar("_Batch", covariant=True, default=Any)
else:
    from typing import TypeVar

    _Batch = TypeVar("_Batch", covariant=True)

_lib = _ffi.lib


class DataLoader(LikeTorch, HasProgress, Generic[_Batch]):
    """Batches of a stream that a tsock-producer serves on this machine.

    for images, labels in tsock.DataLoader("imagenet", batch_size=256): ...

    name        of the stream, or its path (folder of the sockets, and name);
                with root the default is the folder's name
    root, dataset, split, ...
                every option of tsock-producer (help(tsock.ProducerOptions)),
                by which the stream is found or started: see below
    batch_size  samples, 1 to the stream's maximum; the last of an epoch is
                short, unless drop_last.  None is the size of the loader that
                tsock.serve() serves
    dtype       of images: "float32", "float16", "bfloat16", "uint8"; by default
                what the end of transform= says, or else "float32"
    layout      of images: "chw" or "hwc"
    memory_format
                of images, "channels_last": layout "chw" stored as torch's
                channels_last
    normalize   "imagenet", None for [0, 1], (mean, std); by default what the end
                of transform= says, or else, of floats, "imagenet"
    fields      what a batch holds: "image", "label", "index", "box", "draws"
                (all that was drawn at random), with select= "weight", with
                keys=True "key", which is a list of str, with masks= "mask",
                uint8 of height x width, the numbers of the classes; of a table
                its columns, images among them (tsock.index(images=));
                by default image and label, with masks= image and mask, or of
                a loader that tsock.serve() serves all, nested as there
    subset      the indices of the data set that this job wants, a list, array,
                range or tensor: see below
    as_dict     a batch is a dict by field; names for fields, such as
                {"image": "pixel_values", "label": "labels"}, are its keys
    join        "epoch", "segment" or "now": where the first epoch starts
    between     "hold" or "leave" the stream between two epochs; None is what
                suits it
    framework   "torch" or "numpy"; None is torch if it can be imported
    wait        seconds to wait for a producer, None for ever; by default 60,
                but none where streams with other names run
    timeout     seconds to wait for a batch, 0 for ever
    rejoin_timeout
                seconds to wait for the next producer of the same stream when
                this one is gone, and to go on there at the exact next sample;
                0 is ProducerLost at once, None for ever.  With root the
                producer is started again
    pin_memory  copy each batch to pinned memory, where there is a GPU
    device      a GPU, "cuda" or "cuda:0" or a torch.device; None is the host
    zero_copy   on a GPU: see below
    rank, world_size
                of this process among those that train one model together;
                None is what torch.distributed says.  Ranks begin an epoch at
                the same sample and read it together, each another part; the
                first batch waits for all of them.  rank=0, world_size=1 reads
                all of it
    gather      for ranks on several machines that have no process group of
                torch.distributed: a function that takes an object of each rank
                and returns the list of all ranks' objects, in the order of the
                ranks.  Each rank calls it when it makes a loader, and when it
                begins an epoch
    even        give ranks equally many samples in evaluation, too, some of
                them twice, as DistributedSampler does: for what gathers
                tensors of equal sizes; accelerate's gather_for_metrics()
                drops what came twice.  By default each sample is one rank's
                there; in training ranks are always even
    job         what the ranks have in common and other jobs haven't; None is
                where torch.distributed's ranks meet (MASTER_ADDR and _PORT),
                or else the process that started them
    unpack      of a loader that tsock.serve() serves with pack: a function
                that makes of each batch what it was before
    transport   on a GPU: "vmm", "legacy" or "staged"; None is the first of
                them that works, and the attribute says which one that is

    Tensors in host memory share the bytes that all jobs see, and yet may be
    written into and kept: pages that are written to become private to this job.
    In a forked child they stay as they were at the fork.  The loader may be
    used there if the parent isn't reading by it at the fork; it then connects
    anew.

    With subset the loader gives full batches of those samples alone, each once
    in an epoch, and they are copies: the samples are gathered, in the stream's
    order, into tensors of this loader's own.  (Without subset nothing is
    copied.)  The stream and its other jobs aren't affected.  The field "index"
    says which sample it is, so a replacement for a bad file counts under its
    own index; for bad files of the subset the epoch's first samples come again
    at its end, so that its length stays.  dataset stays whole; len(sampler) is
    how many samples the subset has.

    On a GPU each batch is in tensors of its own, written on the current stream
    of that GPU from the one copy that all jobs on it share.  With
    zero_copy=True the tensors are that copy itself, in a dtype and layout that
    is made once for all jobs that want it: they must not be written into, and a
    job that keeps too many of them can't go on.  The stream that is current at
    next() is known to use the batch; name others by use().

    A bare name is that of a running stream, and never starts anything. With
    root the stream of that name has to be the one that is described, or
    OtherStream says what differs; and if none runs, tsock-producer is started.
    The producer is detached from this process, ends exit_when_idle seconds (60)
    after the last loader, and writes its log to NAME.log, beside the sockets.

    Ranks on several machines divide an epoch as those of one machine do.  With
    root the loaders start on each machine one producer, which makes the samples
    of its ranks A to B alone; its stream is called NAME.AtoBofWORLD.  Ranks that
    disagree (batch_size, seed, other data) all get an error that says about
    what.

    transform= says what is done to each image: the text of a recipe, or
    transforms of torchvision and timm (Compose, nn.Sequential, a list), which
    are turned into such a text.  ToTensor, ToDtype and Normalize among them set
    the defaults of dtype and normalize, and are done for this job alone: others
    may read the same stream in another dtype.  A transform that tsock-producer
    doesn't have is a ValueError.  The attribute transform is the recipe's text
    in full; None if a program serves the stream.  From it and the field "draws"
    tsock.replay() makes a sample again with torchvision.

    The constructor only connects.  An iterator joins when it is asked for its
    first batch, and holds others up no longer than it lives; each iterator that
    reads has a connection of its own.  Iterating again after a loop was broken
    off begins the same epoch again, if its first sample is still held, unless
    set_epoch() has asked for another epoch; so a look at the first batch costs
    nothing.  An epoch of which a loop took more is begun again once: when the
    second loop in a row is broken off, without a set_epoch() before it, the
    next epoch follows.
    """

    # Fixed when the loader is made, or looked up by frameworks.
    name: str
    batch_size: int
    drop_last: bool
    even: bool
    join: str
    dtype: str
    layout: str
    normalize: Any
    fields: tuple[str, ...]
    as_dict: Any
    framework: str
    subset: Any
    zero_copy: bool
    rejoin_timeout: Optional[float]
    pin_memory: bool
    classes: list[str]
    transform: Optional[str]
    identity: Mapping[str, str]
    dataset: Dataset
    sampler: Sampler
    # The how many-th loader of its stream this is, on all ranks of a job.
    _number: Optional[int] = None
    # Of classes below: what makes others of a batch's tensors.
    _change: Optional[Callable[[list[Any]], list[Any]]] = None
    # Of a class: what has the producers.
    _keeper: Optional[attach.Keeper] = None

    @helpful("tsock.DataLoader", options.TYPES, like_torchs=True)
    def __init__(
        self,
        name: Union[str, os.PathLike[str], None] = None,
        batch_size: Optional[int] = 1,
        *,
        dtype: Any = arguments.DEFAULT,
        layout: str = "chw",
        memory_format: Any = None,
        normalize: Any = arguments.DEFAULT,
        fields: Union[str, Sequence[str], None] = None,
        as_dict: Union[bool, Mapping[str, str]] = False,
        subset: Optional[Iterable[int]] = None,
        drop_last: bool = False,
        join: str = "epoch",
        between: Optional[str] = None,
        framework: Optional[str] = None,
        wait: Optional[float] = attach.WAIT,
        timeout: float = 0,
        rejoin_timeout: Optional[float] = 60,
        pin_memory: bool = False,
        device: Any = None,
        zero_copy: bool = False,
        transport: Optional[str] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        job: Optional[str] = None,
        gather: Optional[Callable[[Any], Sequence[Any]]] = None,
        even: bool = False,
        unpack: Union[Callable[[Any], Any], None, bool] = None,
        **producer: Unpack[ProducerOptions],
    ) -> None:
        given = dict(locals())
        del given["self"], given["name"], given["producer"]
        self._request = request = Request(name, given, producer, self._keeper)
        self._tensors, self._cuda = request.tensors, request.cuda
        for key, value in request.told.items():
            setattr(self, key, value)
        self._keys = request.keys
        self._bad: int = 0
        at = request.ranks.now()
        self._choose(at)
        self._pool = self._attached()
        self.batch_size = request.opts.batch_size
        self._look_like_torchs()
        self._learn_or_close(at)
        self._own = frozenset((*self.__dict__, "_own"))

    def _learn_or_close(self, at: At) -> None:
        try:
            self._learn(at)
        except BaseException:
            self.close()
            raise

    def _choose(self, at: At, start: Optional[Start] = None) -> None:
        """Choose the stream, which is a part of it if ranks are elsewhere."""
        request = self._request  # since self would keep itself alive
        name, want = request.name, request.want
        self._start = start
        if at.is_spread and not request.has_part:
            assert at.layout is not None
            part = at.layout.part
            if want:
                want = want.part(part, start)
            named = part.name_of(name, start)
            name = named if want or is_running(named) else name
        self.name, self._want = name, want
        opts, size = request.opts, request.batch_size
        revival = attach.Revival(want, size or 1) if want else None
        self._revival = revival

        def connect(seconds: float) -> Pool:
            return consumer.connected(
                name, opts, size, lambda: Pool(name, opts, seconds, revival)
            )

        self._connect = connect

    def _attached(self) -> Pool:
        """The connections to the producer, which is started if need be."""
        request = self._request
        pool = attach.attached(
            self._want,
            self.name,
            request.opts.batch_size or request.batch_size or 1,
            request.wait,
            self._connect,
        )
        # Run when the loader is dropped, and before the interpreter goes.
        self._finalizers = [weakref.finalize(self, pool.close)]
        self._going_on = threading.Lock()
        return pool

    def _move(self, at: At, start: Optional[Start]) -> None:
        """Read another part of the stream from now on."""
        before, finalizers = self._progress, self._finalizers
        del self._made
        self._choose(at, start)
        self._pool = self._attached()
        for finalizer in finalizers:
            finalizer()
        self._learn_or_close(at)
        self._progress.take_over(before)

    def _attach_after_fork(self) -> None:
        """In a child: connect anew, unless the parent's iterators read."""
        if os.getpid() == self._pool.first.pid or self._pool.readers:
            return
        before = self._progress
        self._pool = self._attached()
        del self._made
        self._learn_or_close(self._request.ranks.now())
        self._progress.take_over(before)

    def _learn(self, at: At) -> None:
        """What the stream is, from its first connection."""
        request, about = self._request, self._pool.about
        self._about = about
        if self._want:
            self._want.compare(about.identity, about.pid)
        decode = self._decoder(consumer.describe(about))
        if request.subset:
            growing.refuse_subset(about)
            request.subset.check(about)
        self._progress = Progress(self._pool, self.join == "epoch")
        self._be_rank(at)
        self._batches = Batches(
            self._tensors,
            about.find(about.with_lengths(self.fields)),
            len(self.fields),
            self.dtype,
            request.channels_last,
            self._keys,
            decode,
            about.texts,
        )
        self._batches.change = self._change
        if self._cuda:
            self._batches.put_on(self._cuda, self.zero_copy)
        self.classes = about.classes
        self.identity = about.identity
        self.transform = about.identity.get("transform")
        self.dataset = Dataset(
            about.dataset_len,
            self.classes,
            about.identity,
            self.name,
            about.stream[2],
        )
        self.sampler = Sampler(self._progress)
        self._made = True

    def _go_on(self, pool: Pool, why: errors.Error) -> Optional[Source]:
        """The connections of that pool have failed: are there others now?

        Connections to the next stream, that is, where files were added to a
        growing data set, or removed.
        """
        with self._going_on:
            if pool is not self._pool:
                return self.lend()  # another iterator has found them
            if not growing.has_ended(self._about, why):
                return None
            pool.check_stopped()
            absence = growing.Absence(self.rejoin_timeout, self._revival)
            self._read_next(
                growing.next_pool(
                    self._about, self._connect, self._timeout, why, absence
                )
            )
            return self.lend()

    def _read_next(self, pool: Pool) -> None:
        """Learn anew what the stream is, and go on counting."""
        ended, before = self._pool, self._progress
        pool.go_on_after(ended)
        self._pool = pool
        if not ended.readers:
            self._finalizers.pop()()
        self._finalizers.append(weakref.finalize(self, pool.close))
        del self._made
        self._learn_or_close(self._at)
        self._progress.go_on_after(before)

    def _decoder(
        self, stream: Optional[consumer.Description]
    ) -> Optional[consumer.Decoder]:
        """What makes batches of tensors, of what tsock.serve() serves."""
        request = self._request
        if stream is None:
            if request.unpack:
                raise ValueError(
                    "unpack: stream %r isn't one of tsock.serve()" % self.name
                )
            if request.all_fields:
                self.fields = self._about.usual(self.fields)
                self._keys = arguments.dict_keys(self.as_dict, self.fields)
            return None
        stream.check_stored(
            self.dtype, self.layout, self.normalize, request.channels_last
        )
        chosen = None if request.all_fields else self.fields
        if chosen is None:
            self.fields = stream.names
            self._keys = arguments.dict_keys(self.as_dict, self.fields)
        self._about.find(self.fields)  # a ValueError where one isn't there
        return stream.decoder(
            self._tensors, chosen, self._keys is not None, request.unpack
        )

    def _be_rank(self, at: At) -> None:
        """Read that rank's part of each epoch."""
        about, request = self._about, self._request
        base = os.path.basename(request.name)
        here = nodes.ranks_here(at, about, self.name)
        if not about.shard[1]:
            launchers.check_here(at, base, request.job)
        once = about.sequential and not self.even
        size = self.batch_size, self.drop_last, once, self.even
        of = about.part
        if of and at.world > 1:
            last = at.layout.last_in_order if at.layout else 0
            part: ranks.Ranks = NodeRanks(of, here.rank, last, *size)
        else:
            padding = of.usual_padding(self.drop_last) if of else 0
            part = ranks.Ranks(here.rank, here.world, *size, padding)
        subset = request.subset
        if subset:
            subset.check_world(at.world)
            part = Part(subset, self.batch_size, self.drop_last, once)
        job = request.job
        if job is None and at.layout:
            job = at.layout.token
        self._pool.set_rank(*here, job)
        self._progress.part = part
        self._progress.agreement = self._agreement(at, base)
        self._at = at

    def _agreement(self, at: At, base: str) -> Optional[Agreement]:
        """What ranks that read different streams agree by."""
        gathering = self._request.ranks.gathering()
        if gathering is None or at.world != self._about.shard[1]:
            return None
        if self.join != "epoch" and at.is_spread:
            raise ValueError(
                "join=%r: the %d ranks of %r are on several nodes, and begin "
                "whole epochs together there: join='epoch'"
                % (self.join, at.world, base)
            )
        if self.join != "epoch":
            return None
        if self._number is None:
            self._number = gathering.number("loader/" + base)
        facts = {
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "even": self.even,
            "tsock's version": _lib.tsock_version_string().decode(),
        }
        return Agreement(
            gathering,
            "begin/%s/%d" % (base, self._number),
            repr(base),
            facts,
            self._about.identity,
        )

    def _check_rank(self) -> None:
        # torch.distributed may have come since the loader was made.
        now = self._request.ranks.now()
        if now == self._at:
            return
        if self._progress.began or self._pool.readers:
            raise ValueError(
                "this process is rank %d of %d now, and was rank %d of %d "
                "when its tsock.DataLoader began to read: make another "
                "loader" % (*now[:2], *self._at[:2])
            )
        if now.is_spread and not self._request.has_part:
            self._move(now, None)
        else:
            self._be_rank(now)

    def _check_start(self) -> None:
        # A state may go on where the parts of this job's ranks aren't cut.
        start = self._progress.start_for(self._start)
        if start != self._start and self._want and not self._pool.readers:
            self._move(self._at, start)

    def __len__(self) -> int:
        self._attach_after_fork()
        if not self._progress.began and not self._pool.readers:
            now = self._request.ranks.now(ask=False)
            length = self._length_at(now)
            if length is not None:
                return length
            self._check_rank()
        return self._progress.batches

    def _length_at(self, at: At) -> Optional[int]:
        """The rank's batches, if it isn't known yet where the ranks are: other
        ranks needn't be asked for the length, too."""
        about, subset = self._about, self._request.subset
        if at.layout or about.shard[1] or subset:
            return None
        if self._request.ranks.gathering() is None:
            return None
        once = about.sequential and not self.even
        part = ranks.Ranks(
            at.rank, at.world, self.batch_size, self.drop_last, once
        )
        return part.batches(about.epoch_len)

    def __iter__(self) -> Iterator:
        self._attach_after_fork()
        self._pool.check()
        self._check_rank()
        self._check_start()
        source = self.lend()
        return Gatherer(source) if self._request.subset else Iterator(source)

    def lend(self) -> Source:
        """The values that tsock's own iterators, buffers and samplers need."""
        return Source(
            about=self._about,
            pool=self._pool,
            progress=self._progress,
            batches=self._batches,
            tensors=self._tensors,
            fields=self.fields,
            batch_size=self.batch_size,
            drop_last=self.drop_last,
            even=self.even,
            timeout=lambda: self._timeout,
            pin_memory=lambda: self.pin_memory,
            join=self._join,
            go_on=self._go_on,
        )

    @property
    def missed(self) -> int:
        """How many samples this loader has missed since it was made, because
        the producer had detached it (--slow=detach): others waited for it."""
        return self._pool.missed()

    @property
    def bad(self) -> int:
        """How many files of the data set can't be read, as far as is known.

        This asks the producer; if it is gone, its last answer counts.  Files
        that a start finds to be bad, or presumes to be by their names or by
        others of their class, count from the start, others when they are found.
        """
        try:
            self._bad = query(self.name)["bad_files"]
        except errors.NoProducer:
            pass
        return self._bad

    # ---- what iterators ask for, by what they are lent ----

    def _join(self, stream: Stream) -> None:
        self._check_rank()
        said, base = self._request.said, os.path.basename(self._request.name)
        if said == (None, None) and not self._about.shard[1]:
            launchers.check_group(base, ranks.group())
        elif not self._about.shard[1]:
            launchers.warn_of_nodes(self._at.rank, self._at.world, base)
        self._progress.join(stream, self._timeout)

    # ---- on a GPU ----

    @property
    def transport(self) -> Optional[str]:
        """How batches come to the GPU: "vmm", "legacy" or "staged".

        None on the host, and before the first batch.
        """
        code = self._pool.ask(_lib.tsock_transport)
        if code < 0:
            raise _ffi.failure(code)
        return {v: k for k, v in _ffi.TRANSPORTS.items()}[code]

    def use(self, stream: Any) -> None:
        """Say that one more stream uses the batch that next() gave last.

        For zero_copy=True; stream is a torch.cuda.Stream, or a cudaStream_t as
        an integer.  The batch's memory isn't written to before all work has run
        that is queued in that stream by the time the batch is given back.
        Without zero_copy the tensors are this job's own and need only
        record_stream().
        """
        self._batches.use(stream)

    # ---- its end ----

    def close(self) -> None:
        """Leave the stream.  Batches that are kept stay valid."""
        for finalizer in self._finalizers:
            finalizer()

    @property
    def closed(self) -> bool:
        return self._pool.closed

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        # Another process, or a copy: it connects anew, and has what was set.
        kept = {
            key: value
            for key, value in self.__dict__.items()
            if key in LIKE_TORCH or key == "_timeout" or key not in self._own
        }
        given = self._request.given
        return _open_again, (type(self), self._request.asked, given), kept

    def __repr__(self) -> str:
        return (
            "<tsock.DataLoader %r: %d samples in %d batches of %d: "
            "%s, %s %s%s>"
            % (
                self.name,
                self._progress.part.total(self._about.epoch_len),
                len(self),
                self.batch_size,
                ", ".join(self.fields),
                self.dtype,
                self.layout,
                ", closed" if self.closed else "",
            )
        )


def _open_again(
    kind: type[DataLoader], name: str, keywords: dict[str, Any]
) -> DataLoader:
    # As pickle makes objects: a class derived from this one isn't asked.
    made = kind.__new__(kind)
    DataLoader.__init__(made, name, **keywords)
    return made
