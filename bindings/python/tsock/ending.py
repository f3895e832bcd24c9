# SPDX-License-Identifier: MIT
"""The last batch of an epoch, for frameworks, and which samples come twice.

accelerate's own loaders say in its GradientState that a batch is the last: by
that gather_for_metrics() drops what ranks have read twice, and accumulate()
steps.  Where there is an Accelerator, an iterator says so in the same way.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Optional

from .progress import Position
from .source import Source

_log = logging.getLogger("tsock")
_warned = False


class Ending:
    """An iterator's epoch, with what a GradientState asks a loader for.

    With even=True ranks have some of the last samples twice, see Ranks.twice().
    """

    end_of_dataloader = False
    remainder = -1  # samples of the last batches that come once; -1: unknown

    def __init__(
        self, source: Source, position: Position, state: Any, world: int
    ) -> None:
        self._part = part = source.progress.part
        self._position = position
        self._total = part.total(source.about.epoch_len)
        self._drops = source.drop_last
        self._counts = world == part.world and (world == 1 or source.even)
        self._state = state
        if state is not None:
            state.dataloader_references += [self]

    def look(self) -> int:
        """Called before each batch is made: how many of its first samples are
        another rank's, too."""
        part = self._part
        left = self._total - self._position.samples(self._total)
        if self._drops:
            self.end_of_dataloader = left < 2 * part.block
            return 0
        if left > part.block:
            return 0
        self.end_of_dataloader = True
        if self._counts and part.ends_with_twice(left):
            self.remainder = left % part.block
        elif self._counts:
            self._warn(-left % part.world)
        return part.twice(left)

    def _warn(self, twice: int) -> None:
        global _warned
        if not _warned:
            _warned = True
            _log.warning(
                "gather_for_metrics() drops nothing, since the %d samples that "
                "ranks of several nodes have twice aren't the last ones of what "
                "it gathers: the field 'index' says which they are (said once)",
                twice,
            )

    def over(self) -> None:
        """No more batches are asked for."""
        state, self._state = self._state, None
        if state is not None:
            state.dataloader_references = [
                other
                for other in state.dataloader_references
                if other is not self
            ]


def of(
    source: Source, position: Position, tells: bool = True
) -> Optional[Ending]:
    """How an epoch that has begun ends; None where nobody wants to know.

    tells: an Accelerator, if there is one.
    """
    if not source.progress.whole:
        return None  # its end isn't the stream's epoch's
    module: Any = sys.modules.get("accelerate.state")
    if tells and module is not None and module.is_initialized():
        world = module.PartialState().num_processes
        return Ending(source, position, module.GradientState(), world)
    if source.even and source.progress.part.world > 1:
        return Ending(source, position, None, 0)
    return None
