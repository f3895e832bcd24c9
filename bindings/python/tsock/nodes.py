# SPDX-License-Identifier: MIT
"""The machines that the ranks of a job are on, and the part of each.

Ranks share a producer if they have the same folder of sockets on the same
machine, so that is what they tell each other; no variable of a launcher says
it.  A machine, or a container with a folder of its own, is a node.  The ranks
are numbered anew, node by node, and position p of an epoch's order belongs to
the rank whose new number is p mod world: the producer of a node makes the
positions of that node's ranks.
"""

from __future__ import annotations

import os
import platform
from typing import Any, Callable, NamedTuple, Optional, Sequence, Union

from . import errors, launch
from .about import About
from .gathering import ByFunction, Gathering, of_group
from .parts import Part
from .ranks import current, group

_BOOT = "/proc/sys/kernel/random/boot_id"
_MOUNTS = "/proc/self/mountinfo"
# File systems that several machines may share: a socket in them is for one.
_SHARED = frozenset(
    "afs beegfs ceph cifs glusterfs gpfs lustre ncpfs nfs nfs4 orangefs panfs "
    "pvfs2 smb3 smbfs wekafs".split()
)
_LOCAL_FUSE = frozenset(("fuse.fuse-overlayfs", "fuse.lxcfs"))


class Layout(NamedTuple):
    """Where the ranks of a job are, as one of them sees it."""

    rank: int
    world: int
    nodes: int
    local_rank: int
    part: Part  # of this rank's node
    # Ranks of the last node; 0 where ranks have other numbers than before.
    last_in_order: int
    token: str  # that this job's ranks have in common, and no other job's

    @property
    def slot(self) -> int:
        """The rank's new number."""
        return self.part.first + self.local_rank


def _kind_of(folder: str) -> str:
    """The type of the file system, as the kernel names it; "" if unknown."""
    dev = os.stat(folder).st_dev
    number = "%d:%d" % (os.major(dev), os.minor(dev))
    found = ""
    try:
        with open(_MOUNTS) as f:
            for line in f:
                words = line.split()
                if words[2] == number:
                    found = words[words.index("-") + 1]
    except (OSError, ValueError, IndexError):
        pass
    return found


def refuse_shared(folder: str) -> None:
    """Raise an error if other machines may see that folder, too."""
    kind = _kind_of(folder)
    if kind in _SHARED or (
        kind.startswith("fuse.") and kind not in _LOCAL_FUSE
    ):
        raise errors.Error(
            "%s, where streams have their sockets, is on a file system that "
            "several machines may share (%s), and a socket works on one "
            "machine alone: let TSOCK_DIR name a folder of each machine's "
            "own, such as /dev/shm/tsock-%d" % (folder, kind, os.geteuid())
        )


def _boot() -> str:
    try:
        with open(_BOOT) as f:
            return f.read().strip()
    except OSError:
        return platform.node()


def place_of(stream: str) -> str:
    """The machine and the folder where a stream of that name, or at that path,
    has its sockets: equal for processes that would find each other there."""
    folder = stream.rpartition("/")[0]
    given = bool(folder or os.environ.get("TSOCK_DIR"))
    folder = folder or launch.folder_of_sockets()
    launch.make_folder(folder, given)
    status = os.stat(folder)
    return "%s %d %d" % (_boot(), status.st_dev, status.st_ino)


def laid_out(rank: int, places: Sequence[str], token: str) -> Layout:
    """The layout of ranks that are at these places.

    The nodes are in the order of their first ranks, whichever ranks they have.
    """
    nodes: dict[str, list[int]] = {}
    for r, place in enumerate(places):
        nodes.setdefault(place, []).append(r)
    numbered = [r for ranks in nodes.values() for r in ranks]
    mine, world = nodes[places[rank]], len(places)
    first = numbered.index(mine[0])
    return Layout(
        rank,
        world,
        len(nodes),
        mine.index(rank),
        Part(first, first + len(mine) - 1, world),
        len(nodes[places[-1]]) if numbered == sorted(numbered) else 0,
        token,
    )


def _ask(gathering: Gathering, stream: str) -> Layout:
    """Where the ranks of the job are; all of them ask."""
    folder, _, base = stream.rpartition("/")
    found = gathering.gather(
        "places/" + base if folder else "places",
        {"place": place_of(stream), "token": os.urandom(16).hex()},
        "make their first loader, and say which machine they are on",
    )
    layout = laid_out(
        gathering.rank,
        [said["place"] for said in found],
        found[0]["token"],
    )
    if layout.nodes > 1:
        refuse_shared(folder or launch.folder_of_sockets())
    return layout


class At(NamedTuple):
    """What a loader's job is at the moment, as this process sees it."""

    rank: int
    world: int
    layout: Optional[Layout]  # None: nobody can be asked, or nobody was

    @property
    def is_spread(self) -> bool:
        """Are ranks of the job on other nodes?"""
        return self.layout is not None and self.layout.nodes > 1


class Here(NamedTuple):
    """A rank among those that read its node's stream."""

    rank: int
    world: int


def ranks_here(at: At, about: About, stream: str) -> Here:
    """The ranks that share the stream.

    Raises an error if the stream isn't the one for them.
    """
    first, shards = about.shard
    part = Part(first, first + max(about.shard_ranks, 1) - 1, shards)
    if at.world == 1:
        return Here(0, 1)
    if not shards:
        if at.is_spread:
            raise ValueError(_whole(at, stream, "root" in about.identity))
        return Here(at.rank, at.world)
    if at.world == shards and part.ranks == 1 and at.rank == first:
        return Here(0, 1)
    if at.layout and part == at.layout.part:
        return Here(at.layout.local_rank, part.ranks)
    inside = part.first <= at.rank <= part.last
    if at.world == shards and inside and not at.layout:
        return Here(at.rank - part.first, part.ranks)
    wanted = at.layout.part.option if at.layout else None
    raise ValueError(
        "rank %d of %d reads %r, a stream of shard %s: that is another rank's "
        "part; read a stream of all of the data set, which the ranks of one "
        "machine share, or the one of --shard %s, or pass rank=0, "
        "world_size=1 if this is what you want"
        % (
            at.rank,
            at.world,
            stream,
            about.identity.get("shard", "%d/%d" % (first, shards)),
            wanted or "%d/%d" % at[:2],
        )
    )


def _whole(at: At, stream: str, is_native: bool) -> str:
    assert at.layout is not None
    if not is_native:
        return (
            "the %d ranks of %r are on %d nodes, and the stream is one that a "
            "program serves, with all samples of its epochs: the ranks of "
            "several nodes divide what tsock-producer makes; pass rank=0, "
            "world_size=1 for a rank that reads everything alone"
            % (at.world, stream, at.layout.nodes)
        )
    return (
        "the %d ranks of %r are on %d nodes, and the stream that runs here has "
        "all samples: give the loader root=, so that it starts a producer of "
        "this node's part, or start one with --shard %s; or pass rank=0, "
        "world_size=1 for a rank that reads everything alone"
        % (at.world, stream, at.layout.nodes, at.layout.part.option)
    )


class Job:
    """The ranks that a loader reads with.

    said    rank= and world_size=, or None for both
    gather  gather=, or None
    stream  the name that all of them give to the stream, or a path
    """

    def __init__(
        self,
        said: tuple[Optional[int], Optional[int]],
        gather: Union[Callable[[Any], Any], Gathering, None],
        stream: str,
    ) -> None:
        self._said, self._stream = said, stream
        self._given: Optional[Gathering] = None
        if isinstance(gather, Gathering):
            self._given = gather
        elif gather is not None:
            rank, world = said
            if rank is None or world is None:
                raise ValueError(
                    "gather= needs rank= and world_size=, too: it says what "
                    "all ranks of these have given to it"
                )
            if not callable(gather):
                raise TypeError(
                    "gather %r: it is a function of one object that returns "
                    "the list of all ranks' objects" % (gather,)
                )
            self._given = ByFunction(rank, world, gather)

    def gathering(self) -> Optional[Gathering]:
        """What the ranks can ask each other by; None where they can't."""
        if self._given:
            return self._given if self._given.world > 1 else None
        rank, world = current(*self._said)
        distributed = group()
        if world < 2 or distributed is None:
            return None
        of = distributed.get_rank(), distributed.get_world_size()
        return of_group(distributed) if (rank, world) == of else None

    def now(self, ask: bool = True) -> At:
        """ask: where the ranks are, if that isn't known; all ranks ask then."""
        rank, world = current(*self._said)
        gathering = self.gathering()
        if gathering is None:
            return At(rank, world, None)
        folder = os.path.dirname(self._stream) or launch.folder_of_sockets()
        layout = gathering.layouts.get(folder)
        if layout is None and ask:
            _refuse_child(gathering)
            layout = gathering.layouts[folder] = _ask(gathering, self._stream)
        return At(rank, world, layout)


def _refuse_child(gathering: Gathering) -> None:
    if os.getpid() != gathering.pid:
        raise errors.Error(
            "rank %d of %d: a forked child can't ask the other ranks where "
            "they are by what its parent has asked: make a loader before the "
            "fork, or pass rank=0, world_size=1"
            % (gathering.rank, gathering.world)
        )
