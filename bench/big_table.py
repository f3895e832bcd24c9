# SPDX-License-Identifier: MIT
"""A table of many rows, and what a producer takes that opens it.

All rows are one image; they differ in label and key.
"""

import os
import re
import signal
import struct
import subprocess
import zlib

import numpy as np

import tsock

MAGIC, VERSION, ENDIAN = b"tsocktbl", 1, 0x01020304
VALUES, RANGES, TEXT, INT64 = 1, 2, 3, 3
CLASSES = 1000


def texts(words):
    """A column of texts of one length: an array of bytes [count, length]."""
    n, length = words.shape
    at = np.arange(n + 1, dtype="<u8") * (length + 1)
    ended = np.zeros((n, length + 1), "u1")
    ended[:, :-1] = words
    return at.tobytes() + ended.tobytes()


def numbered(n, digits):
    """Numbers from 0 on, as text."""
    power = 10 ** np.arange(digits - 1, -1, -1)
    words = np.empty((n, digits), "u1")
    for k in range(digits):
        words[:, k] = np.arange(n) // power[k] % 10 + ord("0")
    return words


def write(path, image, rows):
    """A table of so many rows, each of which is the file image."""
    name = np.frombuffer(os.path.abspath(image).encode(), "u1")[None]
    ranges = np.zeros((rows, 2), "<u8")
    ranges[:, 1] = os.path.getsize(image)  # u32 length, u32 file 0
    columns = [
        (b"image", RANGES, 0, rows, ranges.tobytes()),
        (b"files", TEXT, 0, 1, texts(name)),
        (b"classes", TEXT, 0, CLASSES, texts(numbered(CLASSES, 4))),
        (
            b"label",
            VALUES,
            INT64,
            rows,
            (np.arange(rows, dtype="<i8") % CLASSES).tobytes(),
        ),
        (b"key", TEXT, 0, rows, texts(numbered(rows, 8))),
    ]
    at, entries = 64 + 128 * len(columns), b""
    for name, kind, dtype, count, raw in columns:
        entries += struct.pack(
            "<48s3I4IIQQQ24x",
            *(name, kind, dtype, 0, 0, 0, 0, 0, zlib.crc32(raw)),
            *(count, at, len(raw)),
        )
        at += len(raw) + -len(raw) % 64
    head = [MAGIC, VERSION, ENDIAN, rows, at, len(columns), 0]
    head[-1] = zlib.crc32(struct.pack("<8sIIQQII24x", *head) + entries)
    with open(path, "wb") as f:
        f.write(struct.pack("<8sIIQQII24x", *head) + entries)
        for column in columns:
            f.write(column[-1] + bytes(-len(column[-1]) % 64))
        f.flush()
        os.fsync(f.fileno())


def forget(path):
    """Have the file no longer in the page cache."""
    with open(path, "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def own_bytes(pid):
    """Memory of a process that is in no file."""
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"RssAnon:\s*(\d+) kB", f.read())[1]) << 10


def opened(producer, path):
    """Seconds to open the table; own bytes then, and once a batch is read."""
    name = "bench-%d-table" % os.getpid()
    with subprocess.Popen(
        [producer, "--name", name, "--root", path, "-j1"],
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        seconds = None
        for line in run.stderr:
            found = re.search(r"\((?:scan\w*[^,]*), ([\d.]+) s\)", line)
            seconds = float(found[1]) if found else seconds
            if "serving" in line:
                break
        before = own_bytes(run.pid)
        loader = tsock.DataLoader(name, 32, framework="numpy", wait=60)
        batches = iter(loader)
        next(batches)
        after = own_bytes(run.pid)
        batches.close()
        loader.close()
        run.send_signal(signal.SIGTERM)
    return seconds, before, after
