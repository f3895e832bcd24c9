# SPDX-License-Identifier: MIT
"""What frameworks look for in a loader: its samplers and its data set."""

import warnings


class Epochs:
    """What set_epoch() was told, shared by a loader and its samplers."""

    def __init__(self):
        self.wanted = None
        self.warned = False

    def set_epoch(self, epoch):
        self.wanted = int(epoch)

    def compare(self, name, epoch):
        if self.wanted in (None, epoch) or self.warned:
            return
        self.warned = True
        warnings.warn(
            "set_epoch(%d): stream %r is shared and isn't moved; epoch %d "
            "begins (said once)" % (self.wanted, name, epoch),
            stacklevel=4,
        )


class Sampler:
    """Says how many samples an epoch has; their order is the producer's."""

    def __init__(self, length, epochs):
        self._length = length
        self._epochs = epochs

    def __len__(self):
        return self._length

    def set_epoch(self, epoch):
        self._epochs.set_epoch(epoch)


class BatchSampler(Sampler):
    """The same, in batches."""

    def __init__(self, sampler, length, batch_size, drop_last):
        super().__init__(length, sampler._epochs)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last


class Dataset:
    """The data set behind the stream: its length and its classes."""

    def __init__(self, length, classes):
        self._length = length
        self.classes = classes
        self.class_to_idx = {name: i for i, name in enumerate(classes)}

    def __len__(self):
        return self._length

    def __repr__(self):
        return "<data set of %d samples, %d classes>" % (
            self._length,
            len(self.classes),
        )
