/* SPDX-License-Identifier: MIT */
/*
 * ragged.h - batches with shapes of their own, such as padded text.  tsock.h
 * includes this header and states the rules that hold for all functions.
 *
 * A ragged stream is a ring of batches: a sample of the stream is a whole
 * batch, packed into bytes.  It is served and read with the functions of
 * serve.h and consumer.h; the functions here write a packed batch into a slot
 * and read it in place. tsock.serve(ragged=True) of the Python package serves
 * such streams, and tsock.DataLoader(name, batch_size=None) reads them, whoever
 * serves them.
 *
 * Serving    One field, "batch", TSOCK_U8, of one dimension: the bytes of the
 *            largest batch (tsock_ragged_bytes()), rounded up to a multiple of
 *            4096.  max_batch is 1, and ring, epoch_len and dataset_len count
 *            batches.  TSOCK_RAGGED_IDENTITY has to be a part of identity: it
 *            tells Python's loader to unpack.
 *
 *                struct tsock_ragged_array a[2] = {
 *                        { TSOCK_RAGGED_I32, 2, { 8, width }, 0, NULL },
 *                        { TSOCK_RAGGED_I64, 1, { 8 }, 0, NULL },
 *                };
 *                const char *nest = "[\"t\",[[\"f\",0],[\"f\",1]]]";
 *
 *                tsock_serve_claim(s, 1, -1, &seq);
 *                tsock_ragged_write(tsock_serve_slot(s, 0, seq), room, nest,
 *                                   a, 2);
 *                fill(a[0].data, a[1].data);
 *                tsock_serve_commit(s, seq, 1);
 *
 * Reading    batch_size is 1, and room is shape[0] of field 0:
 *
 *                tsock_next(t, -1, &b);
 *                tsock_ragged_read(tsock_batch_data(b, 0), room, nest, a, 2);
 *                train(a[0].data, a[0].shape[1], a[1].data);
 *                tsock_batch_release(b);
 *
 * Nest       How the arrays lie in tuples, lists and dicts, as JSON without
 *            spaces.  ["f",3] is array number 3, ["f",-1] array number 0 as
 *            Python's bytes (-2: number 1), ["c",x] a constant (a string, a
 *            number, true, false, null), ["l",[...]] a list of such parts,
 *            ["t",[...]] a tuple, ["d",[[key,part],...]] a dict, and
 *            ["n",name,[field,...],[...]] a named tuple.
 *            ["d",[["ids",["f",0]],["mask",["f",1]]]] is {"ids": array 0,
 *            "mask": array 1}.  Python numbers arrays in the order in which
 *            they stand in the nest.
 *
 * Layout of a slot, little-endian:
 *
 *     0   8 bytes  "tsockpk1"
 *     8   u32      arrays
 *     12  u32      bytes of the nest
 *     16  u64      bytes of all of it
 *     24           88 bytes for each array: u32 dtype, u32 dimensions,
 *                  u64 offset in the slot, u64 bytes, u64 shape[8]
 *                  the nest, without a 0 at its end
 *
 * and then the elements of each array, row-major, at a multiple of 64.  Bytes
 * between them mean nothing.
 *
 * All functions here may be called by any thread; slots are in host memory.
 */
#ifndef TSOCK_RAGGED_H
#define TSOCK_RAGGED_H

#include <stdint.h>

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TSOCK_RAGGED_IDENTITY "batch=1\nstructure={\"ragged\": 1}\n"
#define TSOCK_RAGGED_DIMS 8
#define TSOCK_RAGGED_ALIGN 64 /* of a slot and of each array in it */

/* More types than a field can have.  Part of the layout: append, never
 * renumber. */
enum tsock_ragged_dtype {
	TSOCK_RAGGED_BOOL = 0, /* a byte, 0 or 1 */
	TSOCK_RAGGED_U8 = 1,
	TSOCK_RAGGED_I8 = 2,
	TSOCK_RAGGED_I16 = 3,
	TSOCK_RAGGED_U16 = 4,
	TSOCK_RAGGED_I32 = 5,
	TSOCK_RAGGED_U32 = 6,
	TSOCK_RAGGED_I64 = 7,
	TSOCK_RAGGED_U64 = 8,
	TSOCK_RAGGED_F16 = 9,
	TSOCK_RAGGED_BF16 = 10,
	TSOCK_RAGGED_F32 = 11,
	TSOCK_RAGGED_F64 = 12,
	TSOCK_RAGGED_C64 = 13,  /* two float32 */
	TSOCK_RAGGED_C128 = 14, /* two float64 */
};

struct tsock_ragged_array {
	uint32_t dtype; /* enum tsock_ragged_dtype */
	uint32_t ndim;  /* 0 to TSOCK_RAGGED_DIMS */
	uint64_t shape[TSOCK_RAGGED_DIMS];
	uint64_t bytes; /* of its elements: set by _write and _read */
	void *data;     /* the first element, in the slot: likewise */
};

/*
 * The bytes that a batch takes in a slot, from dtype, ndim and shape of arrays.
 * 0, and a message, where tsock_ragged_write() would fail in a slot of any
 * size.
 */
TSOCK_API uint64_t tsock_ragged_bytes(const char *nest,
				      const struct tsock_ragged_array *arrays,
				      uint32_t count);

/*
 * Begin a batch in a slot of room bytes: write all but the arrays' elements,
 * and set bytes and data of each array.  The caller writes the elements to
 * data, and then commits the slot.  The nest isn't checked: consumers find out
 * if it can't be read.
 * Fails with EARG (a batch that is larger than room, an unknown dtype, too many
 * dimensions, a slot that isn't at a multiple of 64); then slot and arrays are
 * unchanged.
 */
TSOCK_API int tsock_ragged_write(void *slot, uint64_t room, const char *nest,
				 struct tsock_ragged_array *arrays,
				 uint32_t count);

/*
 * Find the arrays of the batch in a slot of room bytes: fill in arrays, whose
 * data pointers point into the slot.  Nothing is copied; the elements live as
 * long as the batch (tsock_batch_release()) and are read-only without
 * TSOCK_WRITABLE. nest is how the caller expects the arrays to be nested, byte
 * for byte; NULL accepts any nest.  Callers have to look at dtype, ndim and
 * shape of each array before its elements.
 * All elements lie in the slot, whatever the slot holds: fails with EPROTO
 * where it holds no such batch, one that would reach beyond the slot, one with
 * another nest, or with more or fewer than count arrays; and with EARG.  Then
 * arrays are unchanged.
 */
TSOCK_API int tsock_ragged_read(const void *slot, uint64_t room,
				const char *nest,
				struct tsock_ragged_array *arrays,
				uint32_t count);

/*
 * The nest of the batch in a slot, its length in bytes, and the number of
 * arrays.  The nest lies in the slot and has no 0 at its end.  Fails as
 * tsock_ragged_read() does.
 */
TSOCK_API int tsock_ragged_nest(const void *slot, uint64_t room,
				const char **nest, uint32_t *nest_bytes,
				uint32_t *count);

#ifdef __cplusplus
}
#endif

#endif
