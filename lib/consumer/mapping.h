/* SPDX-License-Identifier: MIT */
/*
 * mapping.h - the samples of a ring as this process sees them.
 *
 * Three ways, chosen when the ring is mapped:
 *
 *   SHARED   one read-only mapping of each field; every batch lies in it.
 *   PRIVATE  windows: private copy-on-write mappings of each field.  What is
 *            written into a batch stays in this process, and a batch can be
 *            made private in place, at the same address.  A batch lies in a
 *            window where no other live batch touches any of its pages: a page
 *            made private for one batch would hide what is published later.
 *   COPY     where private mappings are refused, and where one more window
 *            is: each batch is copied.
 *
 * A field whose batch is small is copied in PRIVATE and COPY, and so is a whole
 * batch that lies in both halves of a ring, in any of the three ways.  Knows
 * nothing of heads, tails, claims and forks, and nothing of GPUs.  place,
 * make_private, seal and fini belong to the thread of the handle; clear may be
 * called by any thread at the same time.
 */
#ifndef TSI_CONSUMER_MAPPING_H
#define TSI_CONSUMER_MAPPING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memfd.h"
#include "ring/geometry.h"

#define TSI_SMALL_BATCH 65536 /* bytes of a field's batch: copied below it */

enum tsi_mapping_mode {
	TSI_MAP_SHARED,
	TSI_MAP_PRIVATE,
	TSI_MAP_COPY,
};

struct tsi_window;

struct tsi_mapping_field {
	uint64_t sample_bytes, map_bytes;
	size_t span; /* address space of one mapping */
	size_t at;   /* of its bytes in a copy; in small, if small */
	bool twice, small;
	int fd;
	uint8_t *plain[2]; /* of each half: read-only, shared; or NULL */
};

struct tsi_mapping {
	enum tsi_mapping_mode mode;
	bool two_halves; /* else all samples are in the first */
	unsigned nfields;
	uint64_t capacity, batch;
	/* Samples from since on are in this half, those before in the other. */
	unsigned half;
	uint64_t since;
	size_t page;
	size_t small_bytes; /* of a batch's small fields */
	size_t copy_bytes;  /* of a batch's other fields */
	int pagemap;        /* -1: always reset */
	struct tsi_memfd mark;
	uint64_t placed;
	struct tsi_mapping_field field[TSOCK_MAX_FIELDS];
	struct tsi_window *first;
	unsigned count;
	_Atomic unsigned spares; /* copies of batches that are cleared */
};

struct tsi_gpu_batch;

/* Where a batch lies. */
struct tsi_placement {
	struct tsi_window *window; /* NULL: in none */
	uint64_t slot, count;
	unsigned half;  /* of the ring, in which they all are unless own */
	uint8_t *small; /* memory for the small fields */
	uint8_t *copy;  /* for the others, or NULL; kept for the next batch */
	bool own;       /* no byte of it is the ring's */
	struct tsi_gpu_batch *gpu; /* what a GPU's backend has besides */
	void *data[TSOCK_MAX_FIELDS];
};

/*
 * Map the fields of a ring that tsi_ring_read() has found good, for batches
 * of up to batch samples.  The nfields descriptors become its own, also when
 * it fails.  PRIVATE becomes COPY where the system refuses it.
 */
int tsi_mapping_init(struct tsi_mapping *m, enum tsi_mapping_mode mode,
		     const struct tsi_geometry *ring, uint64_t batch,
		     const int *fd);

/*
 * For a ring of two halves: from now on batches are placed with samples from
 * since on in this half, and those before it in the other half.
 */
void tsi_mapping_turn(struct tsi_mapping *m, unsigned half, uint64_t since);

/* Nothing is mapped: seal and fini do nothing. */
void tsi_mapping_init_none(struct tsi_mapping *m);

/* Close the descriptors of a ring's fields (-1: none) that nothing maps. */
void tsi_mapping_close_fds(const struct tsi_geometry *ring, const int *fd);

/* No more batches will be placed: close the descriptors. */
void tsi_mapping_seal(struct tsi_mapping *m);

/* Unmap everything, batches that are still placed included. */
void tsi_mapping_fini(struct tsi_mapping *m);

/*
 * A placement that is all 0 gets memory for the small fields, TSOCK_ENOMEM, and
 * gives back all that it has.
 */
int tsi_mapping_prepare(const struct tsi_mapping *m, struct tsi_placement *s);
void tsi_mapping_discard(struct tsi_placement *s);

/*
 * Find a place for the published samples first..first+count-1, in a placement
 * that was prepared.  A copy's memory may stay with it for the next batch.
 */
int tsi_mapping_place(struct tsi_mapping *m, uint64_t first, uint64_t count,
		      struct tsi_placement *s);

/*
 * The whole pages of field i that it touches, and that show the ring or did;
 * false where there are none, or only copies.  *writable: in a window.
 */
bool tsi_mapping_pages(const struct tsi_mapping *m,
		       const struct tsi_placement *s, unsigned i, void **addr,
		       size_t *len, bool *writable);

/* Make every page of it private: then the ring's slots may be reused. */
int tsi_mapping_make_private(struct tsi_mapping *m, struct tsi_placement *s);

/* Nobody looks at it any more.  Any thread. */
void tsi_mapping_clear(struct tsi_mapping *m, struct tsi_placement *s);

/*
 * Place the samples from first on by copying: the small fields; the others
 * (mapping_copy.c).
 */
void tsi_mapping_copy_small(const struct tsi_mapping *m, uint64_t first,
			    struct tsi_placement *s);
int tsi_mapping_copy_big(const struct tsi_mapping *m, uint64_t first,
			 struct tsi_placement *s);

/* The half in which a sample is. */
unsigned tsi_mapping_half(const struct tsi_mapping *m, uint64_t s);

#endif
