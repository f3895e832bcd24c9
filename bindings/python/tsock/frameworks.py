# SPDX-License-Identifier: MIT
"""What frameworks look for: torch's attributes."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable, Optional, cast

from . import arguments, callers, gpu
from .sampler import BatchSampler, Lender, collate

# What is read from a loader that has no workers.
LIKE_TORCH = {
    "num_workers": 0,
    "collate_fn": collate,
    "generator": None,
    "prefetch_factor": None,
    "persistent_workers": False,
    "pin_memory_device": "",
    "worker_init_fn": None,
    "multiprocessing_context": None,
    "in_order": True,
}

# What torch's loader doesn't let be set, and what only the constructor uses.
FIXED = frozenset(
    (
        "batch_size batch_sampler sampler drop_last dataset "
        "persistent_workers "
        "name classes fields dtype layout memory_format normalize join "
        "between framework device zero_copy as_dict subset "
        "even"
    ).split()
)


class LikeTorch:
    """A loader's attributes as those of torch's loader, for frameworks."""

    timeout: float
    _timeout: float  # what was set
    _tensors: Any
    device: Any

    # accelerate's prepare_data_loader() leaves such a loader as it is, and its
    # save_state() saves where that is.
    _is_accelerate_prepared = True
    use_stateful_dataloader = True

    def _look_like_torchs(self) -> None:
        self._batch_sampler: Callable[[], Optional[BatchSampler]] = _no_sampler
        for key, value in LIKE_TORCH.items():
            setattr(self, key, value)

    def __setattr__(self, key: str, value: Any) -> None:
        if key in FIXED and "_made" in self.__dict__:
            raise ValueError(
                "%s can't be set after tsock.DataLoader is initialized; make "
                "another loader" % key
            )
        if key == "timeout":
            key, value = "_timeout", arguments.seconds("timeout", value, 0)
        if key == "pin_memory":
            value = bool(value) and gpu.may_pin(self._tensors, self.device)
        super().__setattr__(key, value)

    if not TYPE_CHECKING:

        @property
        def timeout(self) -> float:
            # accelerate hands it on to a loader of torch's, which takes one
            # for workers alone, and has this loader read, with its own.
            return 0.0 if callers.is_accelerate() else self._timeout

    @property
    def batch_sampler(self) -> BatchSampler:
        # A batch sampler keeps this loader, so the loader doesn't keep it.
        made = self._batch_sampler()
        if made is None:
            made = BatchSampler(cast(Lender, self))
            self._batch_sampler = weakref.ref(made)
        return made


def _no_sampler() -> None:
    """None was made so far."""
