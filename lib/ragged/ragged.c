/* SPDX-License-Identifier: MIT */
/*
 * ragged.c - a batch of arrays of any shapes in the bytes of one slot.
 *
 * A slot that is read was written by another process, which may still write to
 * it: every number is copied before it is looked at, and what is handed out is
 * what was looked at.
 */
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "tsock/tsock.h"

#define MAGIC "tsockpk1"
#define SHOWN 200 /* bytes of a nest in a message */

/* At the first byte of a slot; little-endian, as the machine is. */
struct head {
	char magic[8];
	uint32_t arrays;
	uint32_t nest_bytes;
	uint64_t bytes;
};
_Static_assert(sizeof(struct head) == 24, "the layout of ragged.h");

/* One for each array, behind the head. */
struct entry {
	uint32_t dtype;
	uint32_t ndim;
	uint64_t offset;
	uint64_t bytes;
	uint64_t shape[TSOCK_RAGGED_DIMS];
};
_Static_assert(sizeof(struct entry) == 88, "the layout of ragged.h");

static const uint8_t element_bytes[] = {
	[TSOCK_RAGGED_BOOL] = 1,  [TSOCK_RAGGED_U8] = 1,
	[TSOCK_RAGGED_I8] = 1,    [TSOCK_RAGGED_I16] = 2,
	[TSOCK_RAGGED_U16] = 2,   [TSOCK_RAGGED_I32] = 4,
	[TSOCK_RAGGED_U32] = 4,   [TSOCK_RAGGED_I64] = 8,
	[TSOCK_RAGGED_U64] = 8,   [TSOCK_RAGGED_F16] = 2,
	[TSOCK_RAGGED_BF16] = 2,  [TSOCK_RAGGED_F32] = 4,
	[TSOCK_RAGGED_F64] = 8,   [TSOCK_RAGGED_C64] = 8,
	[TSOCK_RAGGED_C128] = 16,
};
#define DTYPES (sizeof(element_bytes) / sizeof(element_bytes[0]))

static unsigned long long show(uint64_t n)
{
	return n;
}

/* Bytes of that many elements; false: 64 bits can't hold their number. */
static bool array_bytes(uint32_t dtype, uint32_t ndim, const uint64_t *shape,
			uint64_t *out)
{
	uint64_t n = element_bytes[dtype];

	for (uint32_t d = 0; d < ndim; d++) {
		if (!shape[d]) {
			*out = 0;
			return true;
		}
	}
	for (uint32_t d = 0; d < ndim; d++)
		if (__builtin_mul_overflow(n, shape[d], &n))
			return false;
	*out = n;
	return true;
}

/* The next multiple of 64, from *at on; false beyond 64 bits. */
static bool align_up(uint64_t *at)
{
	uint64_t up;

	if (__builtin_add_overflow(*at, TSOCK_RAGGED_ALIGN - 1, &up))
		return false;
	*at = up - up % TSOCK_RAGGED_ALIGN;
	return true;
}

/* Bytes before the arrays' elements; can't overflow. */
static uint64_t head_bytes(uint32_t count, uint32_t nest_bytes)
{
	return sizeof(struct head) + count * (uint64_t)sizeof(struct entry) +
	       nest_bytes;
}

/* ---- writing ---- */

static int check_arguments(const char *call, const char *nest,
			   const struct tsock_ragged_array *arrays,
			   uint32_t count)
{
	size_t len;

	if (!nest)
		return tsi_err(TSOCK_EARG, "%s: nest is NULL", call);
	if (!arrays && count)
		return tsi_err(TSOCK_EARG, "%s: arrays is NULL", call);
	len = strlen(nest);
	if (!len || len > UINT32_MAX)
		return tsi_err(TSOCK_EARG,
			       "%s: nest has %zu bytes: it is JSON that says "
			       "how the arrays are nested, such as [\"f\",0]",
			       call, len);
	return 0;
}

static int check_array(const char *call, const struct tsock_ragged_array *a,
		       uint32_t number, uint64_t *bytes)
{
	if (a->dtype >= DTYPES)
		return tsi_err(TSOCK_EARG,
			       "%s: array %u has the dtype %u, which isn't one "
			       "of enum tsock_ragged_dtype",
			       call, number, a->dtype);
	if (a->ndim > TSOCK_RAGGED_DIMS)
		return tsi_err(TSOCK_EARG,
			       "%s: array %u has %u dimensions, and at most %d "
			       "are possible",
			       call, number, a->ndim, TSOCK_RAGGED_DIMS);
	if (!array_bytes(a->dtype, a->ndim, a->shape, bytes))
		return tsi_err(TSOCK_EARG,
			       "%s: array %u has more than 2^64 bytes", call,
			       number);
	return 0;
}

/* Where array number i goes, and *at behind it. */
static int place_rows(const char *call, const struct tsock_ragged_array *a,
		      uint32_t number, uint64_t *at, struct entry *out)
{
	int err = check_array(call, a, number, &out->bytes);

	if (err)
		return err;
	out->dtype = a->dtype;
	out->ndim = a->ndim;
	out->offset = *at;
	memset(out->shape, 0, sizeof(out->shape));
	memcpy(out->shape, a->shape, a->ndim * sizeof(a->shape[0]));
	if (__builtin_add_overflow(*at, out->bytes, at) || !align_up(at))
		return tsi_err(TSOCK_EARG,
			       "%s: the batch has more than 2^64 bytes", call);
	return 0;
}

/* The first array's offset. */
static uint64_t first_offset(uint32_t count, uint32_t nest_bytes)
{
	uint64_t at = head_bytes(count, nest_bytes);

	align_up(&at);
	return at;
}

static int batch_bytes(const char *call, const char *nest,
		       const struct tsock_ragged_array *arrays, uint32_t count,
		       uint64_t *out)
{
	int err = check_arguments(call, nest, arrays, count);
	struct entry e;

	if (err)
		return err;
	*out = first_offset(count, (uint32_t)strlen(nest));
	for (uint32_t i = 0; i < count && !err; i++)
		err = place_rows(call, &arrays[i], i, out, &e);
	return err;
}

uint64_t tsock_ragged_bytes(const char *nest,
			    const struct tsock_ragged_array *arrays,
			    uint32_t count)
{
	uint64_t bytes;

	if (batch_bytes("tsock_ragged_bytes", nest, arrays, count, &bytes))
		return 0;
	return bytes;
}

static int check_slot(const char *call, const void *slot)
{
	if (!slot)
		return tsi_err(TSOCK_EARG, "%s: slot is NULL", call);
	if ((uintptr_t)slot % TSOCK_RAGGED_ALIGN)
		return tsi_err(
			TSOCK_EARG,
			"%s: the slot is at %p, which is no multiple of "
			"%d: shape[0] of the stream's field has to be one",
			call, slot, TSOCK_RAGGED_ALIGN);
	return 0;
}

int tsock_ragged_write(void *slot, uint64_t room, const char *nest,
		       struct tsock_ragged_array *arrays, uint32_t count)
{
	static const char call[] = "tsock_ragged_write";
	struct head head = { .arrays = count };
	uint8_t *bytes = slot;
	struct entry e;
	uint64_t at;
	int err = check_slot(call, slot);

	if (!err)
		err = batch_bytes(call, nest, arrays, count, &head.bytes);
	if (err)
		return err;
	if (head.bytes > room)
		return tsi_err(TSOCK_EARG,
			       "%s: the batch takes %llu bytes, and the slot "
			       "has %llu: give the stream's field a larger "
			       "shape[0]",
			       call, show(head.bytes), show(room));
	memcpy(head.magic, MAGIC, sizeof(head.magic));
	head.nest_bytes = (uint32_t)strlen(nest);
	memcpy(bytes, &head, sizeof(head));
	at = first_offset(count, head.nest_bytes);
	for (uint32_t i = 0; i < count; i++) {
		/* As it did above, so this can't fail. */
		err = place_rows(call, &arrays[i], i, &at, &e);
		if (err)
			return err;
		memcpy(bytes + head_bytes(i, 0), &e, sizeof(e));
		arrays[i].bytes = e.bytes;
		arrays[i].data = bytes + e.offset;
	}
	memcpy(bytes + head_bytes(count, 0), nest, head.nest_bytes);
	return 0;
}

/* ---- reading ---- */

/* The head of a slot; all that it counts lies in the slot. */
static int read_head(const char *call, const void *slot, uint64_t room,
		     struct head *out)
{
	int err = check_slot(call, slot);

	if (err)
		return err;
	if (room < sizeof(*out))
		return tsi_err(TSOCK_EPROTO,
			       "%s: a slot of %llu bytes has no room for a "
			       "ragged batch: is the stream a ragged one?",
			       call, show(room));
	memcpy(out, slot, sizeof(*out));
	if (memcmp(out->magic, MAGIC, sizeof(out->magic)) != 0)
		return tsi_err(TSOCK_EPROTO,
			       "%s: the slot doesn't begin with " MAGIC
			       ": it holds no ragged batch, or one of another "
			       "version",
			       call);
	if (out->bytes > room)
		return tsi_err(TSOCK_EPROTO,
			       "%s: the batch says that it has %llu bytes, in "
			       "a slot of %llu",
			       call, show(out->bytes), show(room));
	if (head_bytes(out->arrays, out->nest_bytes) > out->bytes)
		return tsi_err(TSOCK_EPROTO,
			       "%s: %u arrays and %u bytes of nest don't fit "
			       "into the batch's %llu bytes",
			       call, out->arrays, out->nest_bytes,
			       show(out->bytes));
	return 0;
}

/* Array number i, whose elements lie behind the head and in the batch. */
static int read_array(const char *call, const void *slot,
		      const struct head *head, uint32_t i,
		      struct tsock_ragged_array *out)
{
	const uint8_t *bytes = slot;
	struct entry e;
	uint64_t size;

	memcpy(&e, bytes + head_bytes(i, 0), sizeof(e));
	if (e.dtype >= DTYPES || e.ndim > TSOCK_RAGGED_DIMS)
		return tsi_err(
			TSOCK_EPROTO,
			"%s: array %u has the dtype %u and %u dimensions, "
			"which this version doesn't know",
			call, i, e.dtype, e.ndim);
	if (!array_bytes(e.dtype, e.ndim, e.shape, &size) || size != e.bytes)
		return tsi_err(
			TSOCK_EPROTO,
			"%s: array %u says that it has %llu bytes, which "
			"isn't what its shape takes",
			call, i, show(e.bytes));
	if (e.offset % TSOCK_RAGGED_ALIGN ||
	    e.offset < head_bytes(head->arrays, head->nest_bytes) ||
	    e.offset > head->bytes || e.bytes > head->bytes - e.offset)
		return tsi_err(TSOCK_EPROTO,
			       "%s: array %u, of %llu bytes, can't be at byte "
			       "%llu of a batch of %llu",
			       call, i, show(e.bytes), show(e.offset),
			       show(head->bytes));
	out->dtype = e.dtype;
	out->ndim = e.ndim;
	memset(out->shape, 0, sizeof(out->shape));
	memcpy(out->shape, e.shape, e.ndim * sizeof(e.shape[0]));
	out->bytes = e.bytes;
	/* Whether it may be written to is the batch's affair. */
	out->data = (void *)(uintptr_t)(bytes + e.offset);
	return 0;
}

static int check_nest(const char *call, const void *slot,
		      const struct head *head, const char *nest)
{
	const char *found = (const char *)slot + head_bytes(head->arrays, 0);
	size_t len = strlen(nest);
	uint32_t shown = head->nest_bytes < SHOWN ? head->nest_bytes : SHOWN;

	if (len == head->nest_bytes && memcmp(found, nest, len) == 0)
		return 0;
	return tsi_err(TSOCK_EPROTO,
		       "%s: the batch's arrays are nested as %.*s%s, and not "
		       "as %.*s%s",
		       call, (int)shown, found,
		       shown < head->nest_bytes ? "..." : "", SHOWN, nest,
		       len > SHOWN ? "..." : "");
}

int tsock_ragged_read(const void *slot, uint64_t room, const char *nest,
		      struct tsock_ragged_array *arrays, uint32_t count)
{
	static const char call[] = "tsock_ragged_read";
	struct tsock_ragged_array array;
	struct head head;
	int err = read_head(call, slot, room, &head);

	if (!err && !arrays && count)
		err = tsi_err(TSOCK_EARG, "%s: arrays is NULL", call);
	if (!err && nest)
		err = check_nest(call, slot, &head, nest);
	if (!err && head.arrays != count)
		err = tsi_err(TSOCK_EPROTO,
			      "%s: the batch has %u arrays, and the caller "
			      "expects %u",
			      call, head.arrays, count);
	/* All of them are looked at before the first is handed out. */
	for (uint32_t i = 0; i < count && !err; i++)
		err = read_array(call, slot, &head, i, &array);
	for (uint32_t i = 0; i < count && !err; i++) {
		err = read_array(call, slot, &head, i, &array);
		if (!err)
			arrays[i] = array;
	}
	return err;
}

int tsock_ragged_nest(const void *slot, uint64_t room, const char **nest,
		      uint32_t *nest_bytes, uint32_t *count)
{
	static const char call[] = "tsock_ragged_nest";
	struct head head;
	int err;

	if (!nest || !nest_bytes || !count)
		return tsi_err(TSOCK_EARG, "%s: %s is NULL", call,
			       !nest         ? "nest"
			       : !nest_bytes ? "nest_bytes"
					     : "count");
	err = read_head(call, slot, room, &head);
	if (err)
		return err;
	*nest = (const char *)slot + head_bytes(head.arrays, 0);
	*nest_bytes = head.nest_bytes;
	*count = head.arrays;
	return 0;
}
