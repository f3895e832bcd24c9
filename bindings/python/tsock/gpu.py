# SPDX-License-Identifier: MIT
"""A loader's GPU as torch knows it: the one file that calls torch.cuda.

Never synchronises anything.  A test without a GPU puts another class in the
place of Cuda.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

from . import _ffi, arguments, errors

# The names of torch.dtypes by enum tsock_dtype.
DTYPES = {
    1: "uint8",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "bfloat16",
    6: "float32",
    7: "float64",
    8: "int8",
    9: "int16",
    10: "uint16",
    11: "uint32",
    12: "uint64",
    13: "bool",
}


class Cuda:
    """Tensors and streams of one GPU.

    device is "cuda", "cuda:1", a torch.device, or an integer; importer is
    what tensors.framework() gave.
    """

    def __init__(self, device: Any, importer: Any) -> None:
        if importer.name != "torch":
            raise ValueError(
                "device %r with framework %r: tensors on a GPU are torch's"
                % (device, importer.name)
            )
        torch = importer.torch
        said = device
        try:
            device = torch.device(said)
        except (RuntimeError, TypeError):
            device = None
        if device is None or device.type != "cuda":
            raise ValueError(
                "device %r: it is None for host memory, or a GPU such as "
                "'cuda' or 'cuda:0'"
                % (said if isinstance(said, (str, int)) else str(said),)
            )
        if not torch.cuda.is_available():
            raise ValueError(
                "device %r: %s"
                % (
                    str(device),
                    "torch finds no GPU that it can use"
                    if torch.version.cuda
                    else "this torch is a build without CUDA",
                )
            )
        index = device.index
        if index is None:
            index = torch.cuda.current_device()
        self._torch = torch
        self._importer = importer
        self.ordinal = index
        self.device = torch.device("cuda", index)

    def stream(self, which: Any = None) -> Any:
        """The cudaStream_t of a stream of torch's; None: the current one."""
        if which is None:
            which = self._torch.cuda.current_stream(self.device)
        return getattr(which, "cuda_stream", which)

    def empty(self, shape: tuple[int, ...], dtype: str) -> tuple[Any, int]:
        """A tensor of its own, and its address."""
        made = self._torch.empty(
            shape, dtype=getattr(self._torch, dtype), device=self.device
        )
        return made, made.data_ptr()

    def lend(self, batch: Any, i: int) -> Any:
        """Field i as a tensor that shares the batch's bytes."""
        return self._importer.tensor(batch, i)


def choose(
    opts: _ffi.Opts,
    device: Any,
    transport: Optional[str],
    importer: Any,
    zero_copy: bool,
) -> Optional[Cuda]:
    """Say in opts where batches are wanted; None: in host memory."""
    opts.transport = arguments.choice(
        "transport", transport, _ffi.TRANSPORTS
    )
    if is_host(device):
        if transport is not None:
            raise ValueError(
                "transport %r without a device: it is a way to a GPU"
                % transport
            )
        opts.flags |= _ffi.WRITABLE
        return None
    cuda = Cuda(device, importer)
    opts.device = cuda.ordinal
    if not zero_copy:
        opts.flags |= _ffi.GPU_STORED
    return cuda


def may_pin(importer: Any, device: Any) -> bool:
    """Can batches be copied to pinned memory, as somebody wants?"""
    if device is not None:
        errors.warn(
            "pin_memory=True is for host memory: batches go to %s" % device,
        )
        return False
    if importer.name != "torch":
        raise ValueError(
            "pin_memory with framework 'numpy': only torch tensors can be "
            "pinned"
        )
    if not importer.torch.cuda.is_available():
        errors.warn(
            "pin_memory=True, but no GPU is there: batches aren't pinned",
        )
        return False
    return True


def is_host(device: Any) -> bool:
    """Is that host memory?"""
    return device is None or str(device) == "cpu"


class Own:
    """Each batch in tensors of its own, written on the current stream."""

    def __init__(
        self, cuda: Cuda, fields: Sequence[tuple[int, _ffi.Field]]
    ) -> None:
        self._cuda = cuda
        self._fields = [
            (i, tuple(f.shape[: f.ndim]), DTYPES[f.dtype]) for i, f in fields
        ]

    def make(self, batch: Any) -> list[Any]:
        lib = _ffi.lib
        count = lib.tsock_batch_count(batch)
        stream = self._cuda.stream()
        made = []
        for i, shape, dtype in self._fields:
            tensor, address = self._cuda.empty((count,) + shape, dtype)
            code = lib.tsock_batch_convert(batch, i, address, stream)
            if code:
                raise _ffi.failure(code)
            made.append(tensor)
        return made


class Shared:
    """Each batch as tensors that show what all see."""

    def __init__(
        self, cuda: Cuda, fields: Sequence[tuple[int, _ffi.Field]]
    ) -> None:
        self._cuda = cuda
        self._fields = [i for i, _ in fields]

    def make(self, batch: Any) -> list[Any]:
        self.use(batch, None)
        return [self._cuda.lend(batch, i) for i in self._fields]

    def use(self, batch: Any, stream: Any) -> None:
        code = _ffi.lib.tsock_batch_use(batch, self._cuda.stream(stream))
        if code:
            raise _ffi.failure(code)
