# SPDX-License-Identifier: MIT
"""tsock.DataLoader: a stream in place of torch.utils.data.DataLoader.

The constructor connects, iter() joins, next() takes a batch of the bytes that
every other consumer sees, and the iterator that is dropped leaves.  Nothing
here reads a file, decodes an image or copies a tensor.

It is no subclass of torch's DataLoader on purpose: frameworks take those
apart and make them anew around another sampler.
"""

import os
import warnings
import weakref
from ctypes import byref, c_void_p

from . import _ffi, arguments, errors, gpu, tensors
from .connection import Stream
from .frameworks import BatchSampler, Dataset, Epochs, Sampler

_lib = _ffi.lib

_NOT_BEGUN = 2**64 - 1

# What frameworks read from a loader that has no workers.
_LIKE_TORCH = {
    "num_workers": 0,
    "collate_fn": None,
    "generator": None,
    "prefetch_factor": None,
    "persistent_workers": False,
    "pin_memory_device": "",
    "worker_init_fn": None,
    "multiprocessing_context": None,
    "in_order": True,
}

_FIXED = frozenset(_LIKE_TORCH) | {
    "name",
    "batch_size",
    "drop_last",
    "dataset",
    "sampler",
    "batch_sampler",
    "classes",
    "fields",
    "dtype",
    "layout",
    "normalize",
    "join",
    "between",
    "framework",
    "timeout",
    "pin_memory",
    "device",
    "zero_copy",
}


class DataLoader:
    """Batches of a stream that a tsock-producer serves on this machine.

    for images, labels in tsock.DataLoader("imagenet", batch_size=256): ...

    name        of the stream, or its path (folder of the sockets, and name)
    batch_size  samples, 1 to the stream's maximum; the last of an epoch is
                short, unless drop_last
    dtype       of images: "float32", "float16", "bfloat16", "uint8"
    layout      of images: "chw" or "hwc"
    normalize   "imagenet" (floats' default), None for [0, 1], (mean, std)
    fields      what a batch holds: "image", "label", "index", "box", ...
    join        "epoch", "segment" or "now": where the first epoch starts
    between     "hold" or "leave" the stream between two epochs; None is what
                suits it
    framework   "torch" or "numpy"; None is torch if it can be imported
    wait        seconds to wait for a producer, None for ever
    timeout     seconds to wait for a batch, 0 for ever
    pin_memory  copy each batch to pinned memory, where there is a GPU
    device      a GPU, "cuda" or "cuda:0" or a torch.device; None is the host
    zero_copy   on a GPU: see below
    rank, world_size
                of this process among those that train one model together;
                None is what torch.distributed says.  With more than one, the
                stream has to be this rank's part (the producer's --shard);
                rank=0, world_size=1 reads any stream
    transport   on a GPU: "vmm", "legacy" or "staged"; None is the first of
                them that works, and the attribute says which one that is

    Tensors in host memory share the bytes that all see, and yet may be
    written into and kept: what nobody else sees is made private.
    In a forked child they stay what they were at the fork.

    On a GPU each batch is in tensors of its own, written on the current stream
    of that GPU from the one copy that all jobs on it share.  With
    zero_copy=True they are that copy itself, in a view that is made once for
    all who want the same: not to be written into, and who keeps too many of
    them can't go on.  The stream that is current at next() is known to use the
    batch; name others by use().

    The constructor only connects; iter() joins, and holds others up no longer
    than its iterator lives.  A loader has one iterator at a time.
    """

    def __init__(
        self,
        name,
        batch_size=1,
        *,
        dtype="float32",
        layout="chw",
        normalize=arguments.DEFAULT,
        fields=("image", "label"),
        drop_last=False,
        join="epoch",
        between=None,
        framework=None,
        wait=60.0,
        timeout=0,
        pin_memory=False,
        device=None,
        zero_copy=False,
        transport=None,
        rank=None,
        world_size=None,
        **unknown
    ):
        for key in unknown:
            why = arguments.ELSEWHERE.get(key)
            raise TypeError(
                "tsock.DataLoader has no argument %r%s"
                % (key, ": " + why if why else "")
            )
        if not isinstance(name, (str, os.PathLike)):
            raise TypeError(
                "tsock.DataLoader's name is %r: it takes the name of a "
                "stream, such as 'imagenet', not a data set" % (name,)
            )
        arguments.stream_name(name)
        self.name = os.fspath(name)
        opts = _ffi.Opts(device=-1)
        self.batch_size = opts.batch_size = arguments.batch_size(batch_size)
        self.dtype = arguments.dtype_name(dtype)
        opts.dtype = arguments.choice("dtype", self.dtype, _ffi.DTYPES)
        self.layout = layout
        opts.layout = arguments.choice("layout", layout, _ffi.LAYOUTS)
        self.normalize = arguments.set_normalize(opts, self.dtype, normalize)
        self.join = join
        opts.join = arguments.choice("join", join, _ffi.JOINS)
        self.between = between
        opts.between = arguments.choice("between", between, _ffi.BETWEENS)
        self.drop_last = bool(drop_last)
        if self.drop_last:
            opts.flags |= _ffi.DROP_LAST
        self.fields = arguments.field_names(fields)
        self.timeout = arguments.seconds("timeout", timeout, 0)
        self._ranks = rank, world_size
        arguments.ranks(rank, world_size)
        forever = wait is None
        self._wait = 2**32 if forever else arguments.seconds("wait", wait, 0)
        self._tensors = tensors.framework(framework)
        self.framework = self._tensors.name
        if self.dtype == "bfloat16" and self.framework == "numpy":
            raise ValueError(
                "dtype 'bfloat16' with framework 'numpy': numpy has no "
                "bfloat16; use torch, or 'float16' or 'float32'"
            )
        self.zero_copy = bool(zero_copy)
        self._cuda = self._set_device(opts, device, transport)
        self.device = self._cuda.device if self._cuda else None
        self.pin_memory = self._may_pin(pin_memory)
        self._again = dict(
            batch_size=self.batch_size,
            dtype=self.dtype,
            layout=layout,
            normalize=self.normalize,
            fields=self.fields,
            drop_last=self.drop_last,
            join=join,
            between=between,
            framework=framework,
            wait=wait,
            timeout=timeout,
            pin_memory=pin_memory,
            device=device,
            zero_copy=zero_copy,
            transport=transport,
            rank=rank,
            world_size=world_size,
        )
        self._connect(opts)

    def _set_device(self, opts, device, transport):
        opts.transport = arguments.choice(
            "transport", transport, _ffi.TRANSPORTS
        )
        if gpu.is_host(device):
            if transport is not None:
                raise ValueError(
                    "transport %r without a device: it is a way to a GPU"
                    % transport
                )
            opts.flags |= _ffi.WRITABLE
            return None
        cuda = gpu.Cuda(device, self._tensors)
        opts.device = cuda.ordinal
        if not self.zero_copy:
            opts.flags |= _ffi.GPU_STORED
        return cuda

    def _may_pin(self, pin_memory):
        if not pin_memory:
            return False
        if self._cuda:
            warnings.warn(
                "pin_memory=True is for host memory: batches go to %s"
                % self.device,
                stacklevel=3,
            )
            return False
        if self.framework != "torch":
            raise ValueError(
                "pin_memory with framework 'numpy': only torch tensors can "
                "be pinned"
            )
        if not self._tensors.torch.cuda.is_available():
            warnings.warn(
                "pin_memory=True, but no GPU is there: batches aren't pinned",
                stacklevel=3,
            )
            return False
        return True

    def _connect(self, opts):
        self._stream = Stream(self.name, opts, self._wait)
        # Runs when the loader is dropped, and before the interpreter goes.
        self._finalizer = weakref.finalize(self, self._stream.close)
        handle = self._stream.handle
        info = _ffi.Info()
        self._call(_lib.tsock_get_info(handle, byref(info)))
        self._shard = info.shard, info.shards
        try:
            self._check_rank()
        except ValueError:
            self.close()
            raise
        self._indices = self._find_fields(handle, info.nfields)
        self._maker = self._make_maker(handle)
        self._last = None  # the batch that use() is about
        self._length = _lib.tsock_epoch_batches(handle)
        self.classes = [
            os.fsdecode(_lib.tsock_class_name(handle, i) or b"")
            for i in range(info.nclasses)
        ]
        self.dataset = Dataset(info.dataset_len, self.classes)
        self._epochs = Epochs()
        self.sampler = Sampler(info.epoch_len, self._epochs)
        self.batch_sampler = BatchSampler(
            self.sampler, self._length, self.batch_size, self.drop_last
        )
        self._epoch = None
        for key, value in _LIKE_TORCH.items():
            setattr(self, key, value)
        self._made = True

    def _check_rank(self):
        ranks = arguments.ranks(*self._ranks)
        arguments.check_shard(self.name, *ranks, *self._shard)

    @staticmethod
    def _call(code):
        if code:
            raise _ffi.failure(code)

    def _find_fields(self, handle, count):
        places = {}
        for i in range(count):
            field = _ffi.Field()
            self._call(_lib.tsock_get_field(handle, i, byref(field)))
            places[field.name.decode("utf-8", "replace")] = i
        for name in self.fields:
            if name not in places:
                self.close()
                raise ValueError(
                    "field %r: stream %r has %s"
                    % (name, self.name, ", ".join(places))
                )
        return [places[name] for name in self.fields]

    def _make_maker(self, handle):
        if not self._cuda:
            return None
        fields = []
        for i in self._indices:
            field = _ffi.Field()
            self._call(_lib.tsock_get_field(handle, i, byref(field)))
            fields.append((i, field))
        kind = gpu.Shared if self.zero_copy else gpu.Own
        return kind(self._cuda, fields)

    def __setattr__(self, key, value):
        if key in _FIXED and "_made" in self.__dict__:
            raise ValueError(
                "%s can't be set after tsock.DataLoader is initialized; make "
                "another loader" % key
            )
        super().__setattr__(key, value)

    def __len__(self):
        return self._length

    def __iter__(self):
        return _Iterator(self)

    def _begin(self):
        self._check_rank()  # torch.distributed may have come since
        stream = self._stream
        serial = stream.begin(self.timeout)
        with stream.lock:
            stream._check(serial)
            epoch = _lib.tsock_epoch(stream.handle)
        self._epoch = None if epoch == _NOT_BEGUN else epoch
        return serial

    @property
    def epoch(self):
        """The stream's epoch that iter() began last; None before."""
        return self._epoch

    def set_epoch(self, epoch):
        """Say which epoch you expect: iter() warns once if another comes.

        A shared stream is never moved by this.
        """
        self._epochs.set_epoch(epoch)

    @property
    def transport(self):
        """How batches come to the GPU: "vmm", "legacy" or "staged".

        None on the host, and before iter().
        """
        stream = self._stream
        if os.getpid() != stream.pid:
            raise errors.from_code(errors.EFORK, "")
        with stream.lock:
            stream._check()
            code = _lib.tsock_transport(stream.handle)
        if code < 0:
            raise _ffi.failure(code)
        return {v: k for k, v in _ffi.TRANSPORTS.items()}[code]

    def use(self, stream):
        """Say that one more stream uses the batch that next() gave last.

        For zero_copy=True; stream is a torch.cuda.Stream, or a cudaStream_t as
        an integer.  The batch's memory isn't written to before all has run
        that is queued there by the time the batch is given back.  Other
        tensors are nobody else's and need no more than record_stream().
        """
        if not self._cuda or not self.zero_copy:
            return
        if self._last is None or not self._last.value:
            raise errors.Error(
                "use() is about the batch that next() gave last, and there "
                "is none"
            )
        self._maker.use(self._last, stream)

    def _make(self, batch):
        if self._maker:
            return self._maker.make(batch)
        tensor = self._tensors.tensor
        made = [tensor(batch, i) for i in self._indices]
        if self.pin_memory:
            made = [t.pin_memory() for t in made]
        return made

    def close(self):
        """Leave the stream.  Batches that are kept stay valid."""
        self._finalizer()

    @property
    def closed(self):
        return self._stream.handle is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        # Another process, or a copy: it connects anew.
        return _open_again, (self.name, self._again)

    def __repr__(self):
        return (
            "<tsock.DataLoader %r: %d samples in %d batches of %d: "
            "%s, %s %s%s>"
            % (
                self.name,
                len(self.sampler),
                self._length,
                self.batch_size,
                ", ".join(self.fields),
                self.dtype,
                self.layout,
                ", closed" if self.closed else "",
            )
        )


def _open_again(name, arguments):
    return DataLoader(name, **arguments)


class _Iterator:
    """One epoch of a loader."""

    def __init__(self, loader):
        self._serial = 0  # close() may come before the next lines did
        self._loader = loader
        self._stream = stream = loader._stream
        self._out = c_void_p()  # a batch that is taken and not handed out
        self._kept = c_void_p()  # one that is handed out, for use()
        self._done = False
        self._serial = loader._begin()
        ref = byref(self._out)
        self._next = lambda ms: _lib.tsock_next(stream.handle, ms, ref)
        loader._epochs.compare(loader.name, loader.epoch)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader)

    def __next__(self):
        if self._done:
            raise StopIteration
        self._let_go()
        out = self._out
        # One is left there when Ctrl-C came between taking and giving.
        if not out.value:
            code = self._stream.wait(
                self._serial, self._loader.timeout, self._next
            )
            if code == errors.EEPOCH:
                self._done = True
                self._stream.ended = self._serial
                raise StopIteration
        made = self._loader._make(out)
        batch, out.value = out.value, None
        if self._loader._cuda and self._loader.zero_copy:
            # Until the next one: streams may be named for it.
            self._kept.value = batch
            self._loader._last = self._kept
            return made
        # The tensors keep it until the last of them dies.
        _lib.tsock_batch_release(batch)
        return made

    def _let_go(self):
        batch, self._kept.value = self._kept.value, None
        if batch:
            _lib.tsock_batch_release(batch)

    def close(self):
        """Leave the epoch; the batches that it gave stay valid."""
        self._done = True
        batch, self._out.value = self._out.value, None
        if batch:
            _lib.tsock_batch_release(batch)
        self._let_go()
        if self._serial:
            self._stream.leave(self._serial)

    def __del__(self):
        try:
            self.close()
        except Exception:  # noqa: BLE001 - the interpreter may be going
            pass

    def __reduce__(self):
        raise NotImplementedError(
            "an iterator of a tsock.DataLoader can't be pickled; pickle the "
            "loader, which connects anew"
        )
