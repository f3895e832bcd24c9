/* SPDX-License-Identifier: MIT */
/*
 * geometry.h - how many slots a ring has, and how its fields are mapped.
 *
 * Pure arithmetic; nothing is allocated.
 */
#ifndef TSI_RING_GEOMETRY_H
#define TSI_RING_GEOMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/layout.h"
#include "ring/pages.h"

struct tsi_geometry {
	uint64_t capacity, join_window, max_batch, bytes;
	uint64_t granularity;
	unsigned nfields;
	/* There is memory for two rings of these sizes, so that readers can be
	 * detached; bytes and map_bytes are those of one. */
	bool two_halves;
	struct tsi_ring_field field[TSOCK_MAX_FIELDS];
};

/* Bytes of one sample of a field; 0 if the field is impossible. */
size_t tsi_geometry_field_bytes(const struct tsock_field *f);

/* A field that another process describes is possible, and its name ends. */
bool tsi_geometry_field_is_good(const struct tsock_field *f);

/*
 * Bytes of a page of this machine, as its kernel has them, and so the
 * granularity of rings on the host: 4,096 on x86-64, up to 65,536 on aarch64.
 */
uint64_t tsi_geometry_page(void);

#define TSI_GEOMETRY_BATCH UINT32_C(512)       /* where no max_batch is said */
#define TSI_GEOMETRY_USUAL (UINT64_C(1) << 30) /* bytes, where none are said */

/* What a ring is to have room for; 0 leaves a number to us. */
struct tsi_geometry_wish {
	uint64_t ring; /* samples; 0: 2,048, or what a small epoch needs */
	uint64_t join_window; /* 0: half the ring */
	/* 0: 512, or fewer where a ring of bytes has no room for so many; a
	 * batch ends where its epoch does. */
	uint64_t max_batch;
	uint64_t epoch_len; /* 0: longer than any ring */
	/* Instead of ring: bytes that the ring may take where its images are
	 * float32, so that no ring of the stream takes more. */
	uint64_t bytes;
	uint64_t usual;       /* where none are said; 0: TSI_GEOMETRY_USUAL */
	uint64_t least_batch; /* max_batch isn't less, if it is 0 */
};

/*
 * Capacity and mapping of a ring of these fields: the wish's samples, but at
 * least join_window and two batches, and four batches, or an epoch and two;
 * and up to 25 % more where that lets fields be mapped twice instead of having
 * a margin.  The geometry's max_batch is an epoch at most.
 *
 * Where the wish says neither ring nor bytes, the ring takes the usual bytes at
 * most, unless join_window, max_batch or least_batch ask for more: then it has
 * room for two batches and an eighth of that.  Fails with EARG, and the numbers,
 * where bytes are said and have no room for the rest.
 */
int tsi_geometry_make(const struct tsock_field *field, unsigned nfields,
		      const struct tsi_geometry_wish *wish,
		      struct tsi_geometry *out);

/*
 * A ring for the same samples with other fields, whose memory has this
 * granularity: the page, 2 MiB for VMM on a GPU, 0 where nothing can be mapped
 * twice, so that every field has a margin.
 */
int tsi_geometry_like(const struct tsi_geometry *base,
		      const struct tsock_field *field, unsigned nfields,
		      uint64_t granularity, struct tsi_geometry *out);

/*
 * A geometry that another process states can be used: its numbers agree with
 * each other and stay in bounds.
 */
bool tsi_geometry_is_sound(const struct tsi_geometry *g);

/* What a sample of field i is; the bytes that n of them take. */
static inline const struct tsock_field *
tsi_geometry_field(const struct tsi_geometry *g, unsigned i)
{
	return &g->field[i].desc;
}

static inline uint64_t tsi_geometry_bytes(const struct tsi_geometry *g,
					  unsigned i, uint64_t n)
{
	return n * g->field[i].sample_bytes;
}

/* The length of the field's memory. */
static inline uint64_t tsi_geometry_map_bytes(const struct tsi_geometry *g,
					      unsigned i)
{
	return g->field[i].map_bytes;
}

/* Is its memory on the host reserved as it is first written? */
static inline bool tsi_geometry_comes_later(const struct tsi_geometry *g,
					    unsigned i)
{
	return !g->two_halves && tsi_pages_come_later(g->field[i].map_bytes);
}

/* Samples that its margin repeats; 0: its memory is mapped twice in a row. */
static inline uint64_t tsi_geometry_margin(const struct tsi_geometry *g,
					   unsigned i)
{
	return g->field[i].margin;
}

#endif
