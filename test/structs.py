#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""structs.py - fails where an object is used in more than three files.

    structs.py              all of lib/ and producer/
    structs.py --all        the values too, with their files
    structs.py --self-test  plants a fourth file; it must be found

An object has state that changes, owns something, or lies in shared memory; its
files are its header, if code in there uses a field, and its sources.  What is
only filled in, handed on and read is a value: the public structs, messages,
tables of operations, and those of VALUES.

Needs libclang, for Python (pip install libclang).
"""

import functools
import glob
import os
import subprocess
import sys
import tempfile
from collections import defaultdict

from clang import cindex

MOST = 3
VALUES = {
    "tsi_arg": "what an operation's argument may be",
    "tsi_arg_value": "what it is",
    "tsi_audio_opts": "how samples are made of audio files",
    "tsi_axis": "what to make of the pixels of an edge",
    "tsi_box": "what was cut out",
    "tsi_canvas": "a picture",
    "tsi_column": "a field of all samples, and where its values lie",
    "tsi_positions": "positions of an epoch, evenly apart",
    "tsi_part": "the ranks whose positions of an order a stream has",
    "tsi_columnar": "the file of a table, in memory",
    "tsi_columnar_entry": "a column, as it lies in the file",
    "tsi_columnar_head": "the head of that file",
    "tsi_columns": "the fields that a format, or a file of labels, fills in",
    "tsi_columnar_entry": "a column of a table, as the file says it",
    "tsi_contents": "what lies in a folder",
    "tsi_dataset": "what --dataset, --root and --split mean",
    "tsi_bounds": "where the documents of a file begin",
    "tsi_bounds_file": "where the tokens of a file lie",
    "tsi_documents_opts": "what --documents says",
    "tsi_documents_run": "the tokens of a sample",
    "tsi_decoder": "a decoder's operations, and what it is told of a file",
    "tsi_finished": "how far a stream was read",
    "tsi_format_opts": "what the options say of a data set",
    "tsi_boxes": "the boxes of a picture, as far as they are moved",
    "tsi_tolerance": "how many bad files are passed over",
    "tsi_warp_affinity": "the arguments of an affine map",
    "tsi_framing": "which part of a picture is shown, and how",
    "tsi_geometry": "the sizes of a ring",
    "tsi_gpu_info": "what is known of a GPU",
    "tsi_image_extent": "how much of an image there is",
    "tsi_op_sample": "which sample it is, and its picture's size",
    "tsi_outcome": "what came of a sample's file",
    "tsi_image_opts": "how samples are made",
    "tsi_image_drawn": "what was drawn for an image, and its size",
    "tsi_io_backend": "a table of operations",
    "tsi_jpeg_area": "a rectangle of MCUs",
    "tsi_jpeg_blocks": "coefficients of a JPEG",
    "tsi_jpeg_codes": "a Huffman table, as it lies in the file",
    "tsi_jpeg_comp": "sampling and quantisers of a component",
    "tsi_jpeg_frame": "how a JPEG is divided",
    "tsi_jpeg_piece": "MCUs of a row, and where reading them begins",
    "tsi_jpeg_scan": "what a JPEG's markers say",
    "tsi_jpeg_unit": "a block of an MCU, and whose it is",
    "tsi_labels_classes": "what labels' classes are called, and their numbers",
    "tsi_labels_item": "a part of a cell, and where the next one is",
    "tsi_labels_list": "a file of labels, as rows",
    "tsi_labels_spec": "what --labels says",
    "tsi_location": "where the bytes of a sample are",
    "tsi_mask": "the mask of a picture, as far as it is made",
    "tsi_npy": "what the head of an array says",
    "tsi_op": "an operation of a recipe: its type and arguments",
    "tsi_op_size": "a picture's size, as far as it is known",
    "tsi_op_type": "a table of operations",
    "tsi_options": "the command line",
    "tsi_order_opts": "what an order is made of",
    "tsi_piece": "samples of a field, and where they go",
    "tsi_philox_ctr": "random words, and the counter that gives them",
    "tsi_pipeline_opts": "what the data path is told",
    "tsi_placement": "where the bytes of a batch are",
    "tsi_ranks": "a rank, and the size of its batches",
    "tsi_read_request": "which bytes to read",
    "tsi_reader_row": "what a record says of a reader",
    "tsi_recipe": "how samples are made",
    "tsi_recipe_view": "how an image of a sample is made",
    "tsi_rect": "a rectangle",
    "tsi_reply": "a message of the descriptor socket",
    "tsi_resident": "where samples are on a GPU",
    "tsi_ring_ident": "whose ring that is",
    "tsi_sample_id": "which sample of which epoch",
    "tsi_sampling": "which samples an epoch has",
    "tsi_scratch": "memory that grows: its address and size",
    "tsi_stamp": "size and time of a file",
    "tsi_strip": "rows of an image",
    "tsi_table_lengths": "how long a table's columns are",
    "tsi_taps": "the weights of an axis",
    "tsi_text": "strings that are being collected",
    "tsi_textfile": "a file, read whole",
    "tsi_unstuffed": "how far a copy of a scan has come",
    "tsi_view_spec": "dtype, layout and device of a view",
    "tsi_warp_box": "the weights of a box blur",
    "tsi_warp_source": "a picture that pixels are taken from",
    "tsi_rows_files": "the names of files",
    "tsi_rows_schema": "what --schema says",
    "tsi_samples": "what samples of a data set are",
    "tsi_slots": "where the fields of a sample go",
    "tsi_wav": "what the head of a WAV file says",
}


def is_value(struct, home):
    return (
        struct in VALUES
        or struct.endswith(("_ops", "_kernel"))
        or struct.startswith("tsi_msg")
        or home.startswith("include/")
    )


def named(record):
    """The struct with a name that an anonymous one is in."""
    kinds = cindex.CursorKind.STRUCT_DECL, cindex.CursorKind.UNION_DECL
    while (not record.spelling or "(" in record.spelling) and (
        record.semantic_parent is not None
        and record.semantic_parent.kind in kinds
    ):
        record = record.semantic_parent
    return record


def inside(location, root):
    """The file, relative to root; None: it is none of ours."""
    return location.file and relative(location.file.name, root)


@functools.lru_cache(maxsize=None)
def relative(path, root):
    path = os.path.relpath(path, root)
    return None if path.startswith("..") else path


def uses(cursor, root, found):
    """Add (struct, its home, the file that uses a field) for each use."""
    for child in cursor.walk_preorder():
        if child.kind != cindex.CursorKind.MEMBER_REF_EXPR:
            continue
        field = child.referenced
        if field is None or field.kind != cindex.CursorKind.FIELD_DECL:
            continue
        record = named(field.semantic_parent)
        home = inside(record.location, root)
        user = inside(child.location, root)
        if home and user:
            found[record.spelling, home].add(user)


def declarations(unit, root, seen):
    """Those of our files in which fields may be used; of a header once."""
    for child in unit.cursor.get_children():
        if child.kind == cindex.CursorKind.TYPEDEF_DECL or (
            child.kind == cindex.CursorKind.FUNCTION_DECL
            and not child.is_definition()
        ):
            continue
        where = child.location
        if inside(where, root):
            place = where.file.name, where.offset
            if place not in seen:
                seen.add(place)
                yield child


def look(root):
    """The files that use each struct's fields."""
    headers = subprocess.run(
        ["cc", "-print-file-name=include"], capture_output=True, text=True
    ).stdout.strip()
    folders = ["include", "lib", "producer", ".", "test/simcuda/include"]
    options = ["-std=gnu11", "-D_GNU_SOURCE", "-isystem", headers]
    options += ["-I" + os.path.join(root, folder) for folder in folders]
    found = defaultdict(set)
    seen = set()
    index = cindex.Index.create()
    for part in "lib", "producer":
        pattern = "%s/%s/**/*.c" % (root, part)
        for path in sorted(glob.glob(pattern, recursive=True)):
            unit = index.parse(path, args=options)
            for declaration in declarations(unit, root, seen):
                uses(declaration, root, found)
    return found


def self_test():
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(root + "/lib")
        with open(root + "/lib/box.h", "w") as f:
            f.write("struct tsi_box { struct { int n; }; };\n")
        for name in "abcd":
            with open(root + "/lib/%s.c" % name, "w") as f:
                f.write('#include "box.h"\nint %s(struct tsi_box *b);\n' % name)
                f.write("int %s(struct tsi_box *b) { return b->n; }\n" % name)
        found = look(root)
        assert len(found["tsi_box", "lib/box.h"]) == 4, dict(found)
    print("structs.py finds what is planted")


def main():
    if "--self-test" in sys.argv:
        return self_test()
    every = "--all" in sys.argv
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = look(root)
    if not found:
        sys.exit("structs.py: no struct was found at all")
    wrong = 0
    for (struct, home), users in sorted(found.items()):
        value = is_value(struct, home)
        if len(users) <= MOST or (value and not every):
            continue
        wrong += not value
        print("struct %s (%s): its fields are used in %d files: %s" % (
            struct, home, len(users), " ".join(sorted(users))))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
