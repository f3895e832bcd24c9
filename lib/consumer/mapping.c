/* SPDX-License-Identifier: MIT */
/*
 * mapping.c - the samples of a ring as this process sees them.
 *
 * Which of the three ways a batch is placed in; window.c has the windows, and
 * mapping_copy.c the copies.  Never writes to the ring.
 */
#include "consumer/mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "consumer/pages.h"
#include "consumer/shared_fd.h"
#include "consumer/window.h"

#define SPARES 4 /* copies of cleared batches that are kept for the next ones */

static void say_copying(int why)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	char reason[96];

	if (!atomic_flag_test_and_set(&said))
		tsi_log(TSOCK_LOG_WARN,
			"private mappings of the ring are refused (%s): "
			"batches are copied",
			strerror_r(why, reason, sizeof(reason)));
}

static size_t aligned(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

static void lay_out_mapping(struct tsi_mapping *m,
			    const struct tsi_geometry *ring, const int *fd)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		struct tsi_mapping_field *f = &m->field[i];
		size_t bytes = tsi_geometry_bytes(ring, i, m->batch);

		f->fd = tsi_shared_fd(fd[i]);
		f->sample_bytes = tsi_geometry_bytes(ring, i, 1);
		f->map_bytes = tsi_geometry_map_bytes(ring, i);
		f->twice = !tsi_geometry_margin(ring, i);
		f->span = f->map_bytes * (f->twice ? 2 : 1);
		f->small = m->mode != TSI_MAP_SHARED && bytes < TSI_SMALL_BATCH;
		f->at = f->small ? m->small_bytes : m->copy_bytes;
		if (f->small)
			m->small_bytes += aligned(bytes);
		else
			m->copy_bytes += aligned(bytes);
	}
}

/* What isn't mapped yet of a half; the second one may never be needed. */
static int map_plain(struct tsi_mapping *m, unsigned half)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		struct tsi_mapping_field *f = &m->field[i];

		if ((m->mode != TSI_MAP_SHARED && !f->small) || f->plain[half])
			continue;
		/* A copy goes round the ring's end by itself. */
		if (f->small) {
			f->twice = false;
			f->span = f->map_bytes;
		}
		if (tsi_window_map_field(f, half, PROT_READ, MAP_SHARED, -1, 0,
					 &f->plain[half]))
			return tsi_err_sys("map %zu bytes of the ring's field "
					   "%u (address space is limited by "
					   "ulimit -v)",
					   f->span, i);
	}
	return 0;
}

void tsi_mapping_init_none(struct tsi_mapping *m)
{
	*m = (struct tsi_mapping){ .pagemap = -1 };
}

int tsi_mapping_init(struct tsi_mapping *m, enum tsi_mapping_mode mode,
		     const struct tsi_geometry *ring, uint64_t batch,
		     const int *fd)
{
	int err;

	*m = (struct tsi_mapping){
		.mode = mode,
		.two_halves = ring->two_halves,
		.nfields = ring->nfields,
		.capacity = ring->capacity,
		.batch = batch,
		.page = (size_t)sysconf(_SC_PAGESIZE),
		.pagemap = -1,
	};
	lay_out_mapping(m, ring, fd);
	err = map_plain(m, 0);
	if (err) {
		tsi_mapping_fini(m);
		return err;
	}
	if (mode == TSI_MAP_PRIVATE && m->copy_bytes && tsi_window_init(m)) {
		say_copying(errno);
		m->mode = TSI_MAP_COPY;
	}
	return 0;
}

void tsi_mapping_turn(struct tsi_mapping *m, unsigned half, uint64_t since)
{
	if (!m->two_halves)
		return;
	m->half = half;
	m->since = since;
}

void tsi_mapping_close_fds(const struct tsi_geometry *ring, const int *fd)
{
	for (unsigned i = 0; i < ring->nfields; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

void tsi_mapping_seal(struct tsi_mapping *m)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		tsi_shared_fd_close(m->field[i].fd);
		m->field[i].fd = -1;
	}
	tsi_memfd_close(&m->mark);
}

void tsi_mapping_fini(struct tsi_mapping *m)
{
	tsi_window_fini(m);
	for (unsigned i = 0; i < m->nfields; i++)
		for (unsigned half = 0; half < 2; half++)
			if (m->field[i].plain[half])
				munmap(m->field[i].plain[half],
				       m->field[i].span);
	tsi_mapping_seal(m);
	tsi_pages_close(m->pagemap);
	tsi_mapping_init_none(m);
}

static void place_shared(const struct tsi_mapping *m, struct tsi_placement *s)
{
	for (unsigned i = 0; i < m->nfields; i++)
		s->data[i] = m->field[i].plain[s->half] +
			     s->slot * m->field[i].sample_bytes;
}

int tsi_mapping_prepare(const struct tsi_mapping *m, struct tsi_placement *s)
{
	/* Never 0 bytes; a whole number of alignments. */
	s->small = aligned_alloc(64, m->small_bytes + 64);
	return s->small ? 0 : tsi_err(TSOCK_ENOMEM, "no memory for batches");
}

void tsi_mapping_discard(struct tsi_placement *s)
{
	free(s->small);
	free(s->copy);
	s->small = s->copy = NULL;
}

/* What a copy was in is for the next one, if there aren't enough already. */
static void keep_spare(struct tsi_mapping *m, struct tsi_placement *s)
{
	/* A count of buffers; no memory hangs on it. */
	if (!s->copy || atomic_fetch_add_explicit(
				&m->spares, 1, memory_order_relaxed) < SPARES)
		return;
	atomic_fetch_sub_explicit(&m->spares, 1, memory_order_relaxed);
	free(s->copy);
	s->copy = NULL;
}

/* In memory that may be written into. */
static int place_writable(struct tsi_mapping *m, uint64_t first, uint64_t count,
			  struct tsi_placement *s)
{
	struct tsi_window *win;

	tsi_mapping_copy_small(m, first, s);
	if (!m->copy_bytes) {
		s->own = true;
		return 0;
	}
	if (m->mode == TSI_MAP_COPY)
		return tsi_mapping_copy_big(m, first, s);
	win = tsi_window_find(m, first, count);
	if (!win) {
		say_copying(errno);
		return tsi_mapping_copy_big(m, first, s);
	}
	return tsi_window_place(m, win, first, s);
}

/* Samples of both halves of the ring don't lie in a row. */
static int place_across(struct tsi_mapping *m, uint64_t first,
			struct tsi_placement *s)
{
	int err = map_plain(m, !s->half);

	if (err)
		return err;
	tsi_mapping_copy_small(m, first, s);
	s->own = !m->copy_bytes;
	return s->own ? 0 : tsi_mapping_copy_big(m, first, s);
}

static int place_batch(struct tsi_mapping *m, uint64_t first, uint64_t count,
		       struct tsi_placement *s)
{
	int err = s->half ? map_plain(m, s->half) : 0;

	if (err)
		return err;
	if (first < m->since && first + count > m->since)
		return place_across(m, first, s);
	if (m->mode != TSI_MAP_SHARED)
		return place_writable(m, first, count, s);
	place_shared(m, s);
	return 0;
}

int tsi_mapping_place(struct tsi_mapping *m, uint64_t first, uint64_t count,
		      struct tsi_placement *s)
{
	int err;

	s->window = NULL;
	s->slot = first % m->capacity;
	s->half = tsi_mapping_half(m, first);
	s->count = count;
	s->own = false;
	/* As in keep_spare(). */
	if (s->copy)
		atomic_fetch_sub_explicit(&m->spares, 1, memory_order_relaxed);
	err = place_batch(m, first, count, s);
	if (err)
		keep_spare(m, s);
	return err;
}

bool tsi_mapping_pages(const struct tsi_mapping *m,
		       const struct tsi_placement *s, unsigned i, void **addr,
		       size_t *len, bool *writable)
{
	const struct tsi_mapping_field *f = &m->field[i];
	uint8_t *base =
		s->window ? tsi_window_base(s->window, i) : f->plain[s->half];
	size_t lo, hi;

	if (s->own || f->small)
		return false;
	tsi_window_pages_of(m, i, s->slot, s->count, &lo, &hi);
	*addr = base + lo * m->page;
	*len = (hi - lo) * m->page;
	*writable = s->window;
	return true;
}

int tsi_mapping_make_private(struct tsi_mapping *m, struct tsi_placement *s)
{
	bool writable;
	void *addr;
	size_t len;

	if (s->own)
		return 0;
	if (!s->window)
		return tsi_err(TSOCK_EHELD, "a batch of read-only memory can't "
					    "be made private");
	for (unsigned i = 0; i < m->nfields; i++)
		if (tsi_mapping_pages(m, s, i, &addr, &len, &writable) &&
		    tsi_pages_take(addr, len))
			return tsi_err(TSOCK_ENOMEM,
				       "a batch that is still held can't be "
				       "copied (%zu bytes: %s); release it",
				       len, strerror(errno));
	return 0;
}

void tsi_mapping_clear(struct tsi_mapping *m, struct tsi_placement *s)
{
	keep_spare(m, s);
	if (s->window)
		tsi_window_clear(m, s);
}
