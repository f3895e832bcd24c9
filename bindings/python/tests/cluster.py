# SPDX-License-Identifier: MIT
"""Nodes for tests: folders of sockets on one machine, with threads as ranks."""

import json
import os
import threading

import tsock
from conftest import SIZE

LONG = 60  # seconds until a test that hangs fails


class Group:
    """The ranks of a job, which gather by a barrier."""

    def __init__(self, world):
        self.world = world
        self.gathered = 0  # times
        self._barrier = threading.Barrier(world)
        self._said = [None] * world

    def gather(self, rank):
        def gather(said):
            # A copy, as processes would get it.
            self._said[rank] = json.loads(json.dumps(said))
            if self._barrier.wait(LONG) == 0:
                self.gathered += 1
            found = list(self._said)
            self._barrier.wait(LONG)
            return found

        return gather

    def give_up(self):
        self._barrier.abort()


class Cluster:
    """Nodes in a folder; what runs there ends with close()."""

    def __init__(self, folder, root):
        self._folder, self._root = folder, root
        self.nodes = set()

    def node(self, number):
        folder = os.path.join(self._folder, "n%d" % number)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.nodes.add(folder)
        return folder

    def loader(self, node, name, batch_size, rank, world, gather, **more):
        keywords = dict(
            root=self._root,
            size=SIZE,
            threads=1,
            fields=("index",),
            dtype="uint8",
            layout="hwc",
            framework="numpy",
            timeout=LONG,
            exit_when_idle="10",
        )
        keywords.update(more)
        return tsock.DataLoader(
            os.path.join(self.node(node), name),
            batch_size,
            rank=rank,
            world_size=world,
            gather=gather if world > 1 else None,
            **keywords,
        )

    def run(self, places, work, name="toy", batch_size=8, **more):
        """What work(rank, loader) returns or raises in a thread for each rank;
        places is each rank's node, more is loaders' keywords, or a function
        that gives those of a rank."""
        world = len(places)
        self.group = group = Group(world)
        found = [None] * world

        def one(rank):
            try:
                with self.loader(
                    places[rank],
                    name,
                    batch_size,
                    rank,
                    world,
                    group.gather(rank),
                    **(more["of"](rank) if "of" in more else more),
                ) as loader:
                    found[rank] = work(rank, loader)
            except threading.BrokenBarrierError as e:
                found[rank] = e
            except Exception as e:
                found[rank] = e
                group.give_up()

        threads = [
            threading.Thread(target=one, args=(rank,)) for rank in range(world)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found


def checked(found):
    """The ranks' results, if none has failed."""
    failed = [e for e in found if isinstance(e, Exception)]
    failed.sort(key=lambda e: isinstance(e, threading.BrokenBarrierError))
    if failed:
        raise failed[0]
    return found


def batches(loader):
    """An epoch's indices, batch by batch."""
    return [index.tolist() for (index,) in loader]


def steps(ranks):
    """By step, what all ranks have in it together, sorted."""
    most = max(map(len, ranks))
    return [
        sorted(sum((rank[t] for rank in ranks if t < len(rank)), []))
        for t in range(most)
    ]
