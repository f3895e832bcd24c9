# SPDX-License-Identifier: MIT
"""Loaders on one core, side by side: JPEG files to batches of 64.

Every loader makes random resized crops of 224x224 (scale 0.08 to 1, ratio 3/4
to 4/3) and flips half of them; form u8 is bytes, form f32 normalised floats,
channels first.  Each is a process, pinned with all that it starts to the same
CPU.  They take turns, in another order each round, and are stopped in
between, so that what else the machine does disturbs all alike; a turn goes on
where the last one ended, the first epoch before them isn't counted.

images/s is by the clock.  "per CPU s" divides by the CPU seconds of the loader
and all its processes instead, which a busy machine disturbs less.  The ratio is
tsock's figure divided by this loader's, in the same round: its median, and the
distance between its quartiles.  Where "tsock, packed" has run, a second row has
that one's ratio to this loader.

usage: run.py PRODUCER DIR [PEER...]     DIR has a folder of images per class
"""

import os
import re
import signal
import statistics
import sys

import sides
import rows

QUICK = os.environ.get("QUICK") == "1"
ROUNDS = int(os.environ.get("ROUNDS", 3 if QUICK else 9))
TURN = 192 if QUICK else 384
LEAST = 300 if QUICK else 1200
# FFCV compiles its pipeline first.
PATIENCE = 600

# A script and its variants.  The first is what others are compared with.
PEERS = (
    ("peer_tsock.py", "tsock"),
    ("peer_tsock.py", "tsock, packed"),
    ("peer_tsock.py", "tsock before"),
    ("peer_dali.py", "DALI, antialias"),
    ("peer_dali.py", "DALI, no antialias"),
    ("peer_pil.py", "torchvision on Pillow"),
    ("peer_tensors.py", "torchvision on tensors"),
    ("peer_torchcodec.py", "torchcodec"),
    ("peer_tfdata.py", "tf.data"),
    ("peer_spdl.py", "SPDL"),
    ("peer_opencv.py", "OpenCV, area"),
    ("peer_opencv.py", "OpenCV, no antialias"),
    ("peer_simplejpeg.py", "simplejpeg, area"),
    ("peer_turbojpeg.py", "PyTurboJPEG, area"),
    ("peer_ffcv.py", "FFCV, JPEG"),
    ("peer_ffcv.py", "FFCV, half raw"),
    ("peer_ffcv.py", "FFCV, emulated, JPEG"),
    ("peer_ffcv.py", "FFCV, emulated, half raw"),
    ("peer_webdataset.py", "WebDataset"),
    ("peer_streaming.py", "Streaming"),
)


class Peer:
    def __init__(self, scratch, script, variant, form, cpu):
        self.variant = variant
        self.meter = sides.Meter()
        self.turns = []  # (images/s, images per CPU s)
        command = scratch.command(script, variant, form, 0)
        self.log = open(command[command.index("--scratch") + 1] + ".log", "w")
        self.process = sides.Process(command, {cpu}, self.log)
        self.sessions = [self.process.session]

    def hear(self):
        signal.alarm(PATIENCE)
        try:
            return self.process.hear()
        finally:
            signal.alarm(0)

    def ready(self, epoch):
        """Start, and read the first epoch; what versions these are."""
        version = self.hear()["ready"]
        self.process.tell(epoch)
        self.hear()
        self.stop()
        return version

    def stop(self):
        sides.signal_all(self.sessions, signal.SIGSTOP)

    def turn(self):
        before = self.meter.seconds(self.sessions)
        sides.signal_all(self.sessions, signal.SIGCONT)
        self.process.tell(TURN)
        answer = self.hear()
        self.stop()
        cpu = self.meter.seconds(self.sessions) - before
        images = answer["images"]
        self.turns.append((images / answer["seconds"], images / cpu))

    def end(self):
        self.process.end()
        self.log.close()


def begin(peers, scratch, wanted, form, cpu):
    """Add the peers that can run; a line for each, also for others."""
    for script, variant in wanted:
        peers.append(Peer(scratch, script, variant, form, cpu))
        try:
            said = peers[-1].ready(scratch.images)
        except (sides.Missing, sides.Failed) as why:
            peers.pop().end()
            said = "not run: %s" % why
        print("  %-26s %s" % (variant, said), flush=True)


PACKED = "tsock, packed"


def show_packed(form, peers, peer, column, unit):
    """Beside what reads a packed set, as some of the others do."""
    base = [p for p in peers if p.variant == PACKED and p is not peer]
    if base and peer is not peers[0]:
        packed = [turn[column] for turn in base[0].turns]
        theirs = [turn[column] for turn in peer.turns]
        rows.show(
            "compare",
            "%s, beside packed, %s" % (peer.variant, form),
            theirs,
            unit,
            PACKED + " to this",
            pairs=[a / b for a, b in zip(packed, theirs)],
        )


def report(form, peers):
    rows.head("compare: %s, one core, later epochs" % form)
    for column, unit in ((0, "images/s"), (1, "per CPU s")):
        ours = [turn[column] for turn in peers[0].turns]
        order = sorted(
            peers[1:],
            key=lambda p: -statistics.median([t[column] for t in p.turns]),
        )
        rows.show("compare", "tsock, " + form, ours, unit)
        for peer in order:
            theirs = [turn[column] for turn in peer.turns]
            rows.show(
                "compare",
                "%s, %s" % (peer.variant, form),
                theirs,
                unit,
                "tsock to this",
                pairs=[a / b for a, b in zip(ours, theirs)],
            )
            show_packed(form, peers, peer, column, unit)


def one_form(scratch, wanted, form, cpu):
    peers = []
    try:
        begin(peers, scratch, wanted, form, cpu)
        if not peers or peers[0].variant != "tsock":
            raise sides.Failed("tsock itself didn't run")
        for i in range(ROUNDS):
            at = i * 5 % len(peers)
            for peer in peers[at:] + peers[:at]:
                peer.turn()
        report(form, peers)
    finally:
        for peer in peers:
            peer.end()


def main(program, root, *chosen):
    os.environ["TSOCK_PRODUCER"] = os.path.abspath(program)
    sides.handle_signals()
    wanted = [
        peer
        for peer in PEERS
        if not chosen
        or peer is PEERS[0]
        or any(re.search(c, " ".join(peer), re.I) for c in chosen)
    ]
    if not os.environ.get("TSOCK_BEFORE"):
        wanted = [peer for peer in wanted if peer[1] != "tsock before"]
    scratch = sides.Scratch(root, LEAST)
    cpu = max(os.sched_getaffinity(0))
    try:
        print("%d images, batches of 64, on CPU %d" % (scratch.images, cpu))
        for form in os.environ.get("FORMS", "u8 f32").split():
            one_form(scratch, wanted, form, cpu)
    finally:
        scratch.remove()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.rpartition("\n\n")[2].strip())
    try:
        main(*sys.argv[1:])
    except sides.Failed as failure:
        sys.exit("failed: %s" % failure)
