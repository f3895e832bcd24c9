/* SPDX-License-Identifier: MIT */
/*
 * ring.c - sample slots in shared memory: one writer, many readers.
 *
 * After a ring's creation the only system calls here are the one that wakes a
 * sleeping reader, and those of the first writes, which reserve the pages; no
 * function locks, allocates or logs.  The caller lets one thread at a time
 * publish.
 */
#include "ring/ring.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/sequence.h"
#include "ring/futex.h"
#include "ring/header.h"
#include "ring/tail_page.h"

/* Marks a slot that is in the second half. */
#define OTHER (UINT64_C(1) << 63)
#define RESERVED_AT_ONCE (UINT64_C(16) << 20) /* bytes */

static void fill_header(struct tsi_ring *r, const struct tsi_geometry *g,
			const struct tsi_ring_ident *id)
{
	struct tsi_ring_shared *s = r->shared;

	r->geometry = *g;
	r->ident = *id;
	s->abi = TSI_RING_ABI;
	s->header_bytes = sizeof(*s);
	s->incarnation = id->incarnation;
	s->capacity = g->capacity;
	s->epoch_len = id->epoch_len;
	s->halves = g->two_halves ? 2 : 1;
	s->join_window = g->join_window;
	s->max_batch = g->max_batch;
	atomic_init(&s->end, id->end);
	s->granularity = g->granularity;
	s->nfields = g->nfields;
	s->nrows = TSI_MAX_ROWS;
	memcpy(s->field, g->field, sizeof(s->field));
	atomic_init(&s->head, 0);
	atomic_init(&s->generation, 1);
	atomic_init(&s->warnings, 0);
	atomic_init(&s->gate_want, TSI_NEVER);
	atomic_init(&s->front_want, TSI_NEVER);
	atomic_init(&s->start_want, TSI_NEVER);
	atomic_init(&s->held, TSI_NEVER);
	atomic_init(&s->state, TSI_RING_OPEN);
	s->magic = TSI_RING_MAGIC;
}

static int create_field(struct tsi_ring *r, const struct tsi_geometry *g,
			unsigned i, unsigned device,
			enum tsock_transport transport)
{
	size_t len = tsi_geometry_map_bytes(g, i);
	bool two = g->two_halves, later = tsi_geometry_comes_later(g, i);
	int flags = (two ? TSI_MEM_HALF : 0) | (later ? TSI_MEM_LATER : 0);
	char label[48];
	int err;

	if (r->on_gpu)
		return tsi_gpu_mem_create(device, transport,
					  tsi_geometry_map_bytes(g, i),
					  &r->gpu[i]);
	snprintf(label, sizeof(label), "tsock-%s",
		 tsi_geometry_field(g, i)->name);
	err = tsi_memfd_create(label, two ? 2 * len : len, flags, &r->data[i]);
	if (err || !later)
		return err;
	err = tsi_pages_init(&r->pages[i], len);
	if (err) {
		tsi_memfd_came(len);
		tsi_memfd_close(&r->data[i]);
	}
	return err;
}

static void close_field(struct tsi_ring *r, unsigned i)
{
	if (r->on_gpu)
		tsi_gpu_mem_close(&r->gpu[i]);
	else
		tsi_memfd_close(&r->data[i]);
	tsi_pages_fini(&r->pages[i]);
}

/* In host memory device and transport say nothing. */
static int create(const struct tsi_geometry *g, const struct tsi_ring_ident *id,
		  bool on_gpu, unsigned device, enum tsock_transport transport,
		  struct tsi_ring *out)
{
	struct tsi_ring r = { .on_gpu = on_gpu };
	unsigned made = 0;
	int err;

	err = tsi_memfd_create("tsock-header", sizeof(*r.shared), 0, &r.header);
	if (err)
		return err;
	r.shared = tsi_memfd_base(&r.header);
	for (; made < g->nfields; made++) {
		err = create_field(&r, g, made, device, transport);
		if (err)
			goto err_close;
	}
	fill_header(&r, g, id);
	*out = r;
	return 0;

err_close:
	while (made--)
		close_field(&r, made);
	tsi_memfd_close(&r.header);
	return err;
}

int tsi_ring_create(const struct tsi_geometry *g,
		    const struct tsi_ring_ident *id, struct tsi_ring *out)
{
	return create(g, id, false, 0, TSOCK_TRANSPORT_AUTO, out);
}

int tsi_ring_create_gpu(const struct tsi_geometry *g,
			const struct tsi_ring_ident *id, unsigned device,
			enum tsock_transport transport, struct tsi_ring *out)
{
	return create(g, id, true, device, transport, out);
}

void tsi_ring_destroy(struct tsi_ring *r)
{
	if (!r->shared)
		return;
	for (unsigned i = 0; i < r->geometry.nfields; i++)
		close_field(r, i);
	tsi_memfd_close(&r->header);
	r->shared = NULL;
}

int tsi_ring_grant(const struct tsi_ring *r, unsigned device)
{
	int err = 0;

	for (unsigned i = 0; i < r->geometry.nfields && !err; i++)
		err = tsi_gpu_mem_grant(&r->gpu[i], device);
	return err;
}

unsigned tsi_ring_data_fds(const struct tsi_ring *r, int *fd)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->geometry.nfields; i++) {
		fd[n] = r->on_gpu ? tsi_gpu_mem_fd(&r->gpu[i])
				  : tsi_memfd_fd(&r->data[i]);
		n += fd[n] >= 0;
	}
	return n;
}

unsigned tsi_ring_handles(const struct tsi_ring *r,
			  uint8_t (*handle)[TSI_GPU_HANDLE])
{
	unsigned n = 0;

	if (tsi_ring_transport(r) != TSOCK_TRANSPORT_LEGACY)
		return 0;
	for (; n < r->geometry.nfields; n++)
		memcpy(handle[n], tsi_gpu_mem_handle(&r->gpu[n]),
		       TSI_GPU_HANDLE);
	return n;
}

void *tsi_ring_at(const struct tsi_ring *r, unsigned f, uint64_t slot)
{
	uint8_t *base = r->on_gpu ? tsi_gpu_mem_base(&r->gpu[f])
				  : tsi_memfd_base(&r->data[f]);

	if (slot & OTHER)
		base += tsi_ring_map_bytes(r, f);
	return base + tsi_ring_bytes(r, f, slot & ~OTHER);
}

static uint64_t place_of(const struct tsi_ring *r)
{
	/* A thread that may look at a sample sees its generation by the lock
	 * under which it was claimed, or the grant that its holder opened. */
	return atomic_load_explicit(&((struct tsi_ring *)(uintptr_t)r)->place,
				    memory_order_relaxed);
}

uint64_t tsi_ring_place(const struct tsi_ring *r, uint64_t s)
{
	uint64_t place = place_of(r);
	bool other = (place & 1) ^ (s < place >> 1);

	return s % r->geometry.capacity + (other ? OTHER : 0);
}

uint64_t tsi_ring_in_half(const struct tsi_ring *r, uint64_t s, uint64_t n)
{
	uint64_t since = place_of(r) >> 1;

	return s < since && since - s < n ? since - s : n;
}

void *tsi_ring_slot(const struct tsi_ring *r, unsigned f, uint64_t s)
{
	return tsi_ring_at(r, f, tsi_ring_place(r, s));
}

void tsi_ring_mirror(struct tsi_ring *r, uint64_t first, unsigned count)
{
	uint64_t capacity = r->geometry.capacity;

	for (unsigned i = 0; i < r->geometry.nfields; i++) {
		uint64_t margin = tsi_geometry_margin(&r->geometry, i);

		if (!margin)
			continue;
		for (uint64_t s = first; s < first + count; s++) {
			uint64_t slot = tsi_ring_place(r, s);

			if ((slot & ~OTHER) < margin)
				memcpy(tsi_ring_at(r, i, capacity + slot),
				       tsi_ring_at(r, i, slot),
				       tsi_ring_bytes(r, i, 1));
		}
	}
}

/* Slots from ... on of a field, and the margin's copies of them. */
static int make_room(struct tsi_ring *r, unsigned f, uint64_t slot, uint64_t n)
{
	const struct tsock_field *field = tsi_ring_field(r, f);
	uint64_t bytes = tsi_ring_bytes(r, f, 1);
	uint64_t margin = tsi_ring_margin(r, f);
	int err = tsi_pages_need(&r->pages[f], &r->data[f], field->name,
				 slot * bytes, n * bytes);

	if (err || slot >= margin)
		return err;
	return tsi_pages_need(&r->pages[f], &r->data[f], field->name,
			      (tsi_ring_capacity(r) + slot) * bytes,
			      min64(n, margin - slot) * bytes);
}

int tsi_ring_make_room(struct tsi_ring *r, uint64_t first, uint64_t count)
{
	uint64_t capacity = tsi_ring_capacity(r);
	uint64_t slot = first % capacity, n = min64(count, capacity);
	uint64_t before_end = min64(n, capacity - slot);
	int err = 0;

	for (unsigned f = 0; f < r->geometry.nfields && !err; f++) {
		if (tsi_pages_are_there(&r->pages[f]))
			continue;
		err = make_room(r, f, slot, before_end);
		if (!err && n > before_end)
			err = make_room(r, f, 0, n - before_end);
	}
	return err;
}

static void wake(struct tsi_ring *r, unsigned word, uint32_t bits)
{
	_Atomic uint32_t *wakes = &r->shared->wake[word];

	atomic_fetch_add(wakes, 1);
	tsi_futex_wake_bits(wakes, bits);
}

static void wake_row(struct tsi_ring *r, unsigned row)
{
	wake(r, row / TSI_ROWS_A_WORD, tsi_row_bit(row));
}

void tsi_ring_set_end(struct tsi_ring *r, uint64_t end)
{
	atomic_store(&r->shared->end, end);
}

/* Those of the word's rows, from first on, whose readers sleep for the head. */
static uint32_t rows_to_wake(struct tsi_ring *r, unsigned first, uint64_t head)
{
	uint64_t end = min64(first + TSI_ROWS_A_WORD, r->rows_used);
	uint32_t bits = 0;

	for (unsigned i = first; i < end; i++) {
		uint64_t want;

		if (!r->tail[i])
			continue;
		want = tsi_tail_page_sleeps_for(r->tail[i]);
		/* One wake-up for each want: a reader that was woken for a
		 * head doesn't sleep for it again. */
		if (want && want <= head && want != r->woken[i]) {
			r->woken[i] = want;
			bits |= tsi_row_bit(i);
		}
	}
	return bits;
}

void tsi_ring_publish(struct tsi_ring *r, uint64_t head)
{
	/* Pairs with the reader's acquire of head: a reader that sees the
	 * head sees the samples below it. */
	atomic_store_explicit(&r->shared->head, head, memory_order_release);
	/* Pairs with the reader's fence between storing want and reading head:
	 * either the reader sees this head, or the want is seen below. */
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; i < r->rows_used; i += TSI_ROWS_A_WORD) {
		uint32_t bits = rows_to_wake(r, i, head);

		if (bits)
			wake(r, i / TSI_ROWS_A_WORD, bits);
	}
}

uint64_t tsi_ring_head(const struct tsi_ring *r)
{
	/* Relaxed: only the thread that publishes calls this. */
	return atomic_load_explicit(&r->shared->head, memory_order_relaxed);
}

uint64_t tsi_ring_waited_for(const struct tsi_ring *r, uint64_t head)
{
	uint64_t least = TSI_NEVER;

	for (unsigned i = 0; i < r->rows_used; i++) {
		uint64_t want =
			r->tail[i] ? tsi_tail_page_waits_for(r->tail[i]) : 0;

		if (want > head && want < least)
			least = want;
	}
	return least;
}

void tsi_ring_want_gate(struct tsi_ring *r, uint64_t gate)
{
	atomic_store(&r->shared->gate_want, gate);
}

void tsi_ring_want_front(struct tsi_ring *r, uint64_t front)
{
	atomic_store(&r->shared->front_want, front);
}

void tsi_ring_want_start(struct tsi_ring *r, uint64_t start)
{
	atomic_store(&r->shared->start_want, start);
}

void tsi_ring_set_held(struct tsi_ring *r, uint64_t from)
{
	atomic_store(&r->shared->held, from);
}

void tsi_ring_set_warnings(struct tsi_ring *r, uint32_t n)
{
	atomic_store(&r->shared->warnings, n);
}

void tsi_ring_finish(struct tsi_ring *r, enum tsi_ring_state state,
		     const char *error)
{
	if (atomic_load(&r->shared->state) != TSI_RING_OPEN)
		return;
	if (error)
		snprintf(r->shared->error, sizeof(r->shared->error), "%s",
			 error);
	atomic_store(&r->shared->state, state);
	for (unsigned i = 0; i < r->rows_used; i++)
		if (r->tail[i])
			wake_row(r, i);
}

uint32_t tsi_ring_attach(struct tsi_ring *r, unsigned row,
			 const struct tsi_tail_page *tail)
{
	/* Not 0, and not the number of the reader that had this row before. */
	r->readers = (r->readers + 1) & ~TSI_ROW_DETACHED;
	if (!r->readers)
		r->readers = 1;
	atomic_store(&r->shared->reader[row], r->readers);
	r->woken[row] = 0;
	r->tail[row] = tail;
	if (r->rows_used <= row)
		r->rows_used = row + 1;
	return r->readers;
}

void tsi_ring_detach(struct tsi_ring *r, unsigned row)
{
	_Atomic uint32_t *reader = &r->shared->reader[row];

	/* A reader that was detached may still have to be told so, and one that
	 * was a reader when the last slot was written may read on. */
	if (!(atomic_load(reader) & TSI_ROW_DETACHED) &&
	    atomic_load(&r->shared->state) == TSI_RING_OPEN)
		atomic_store(reader, 0);
	wake_row(r, row);
	r->tail[row] = NULL;
	while (r->rows_used && !r->tail[r->rows_used - 1])
		r->rows_used--;
}

void tsi_ring_set_aside(struct tsi_ring *r, unsigned row)
{
	atomic_fetch_or(&r->shared->reader[row], TSI_ROW_DETACHED);
	/* Pairs with tsi_tail_page_enter(). */
	atomic_thread_fence(memory_order_seq_cst);
	wake_row(r, row);
	r->tail[row] = NULL;
	while (r->rows_used && !r->tail[r->rows_used - 1])
		r->rows_used--;
}

void tsi_ring_undo_set_aside(struct tsi_ring *r, unsigned row,
			     const struct tsi_tail_page *tail)
{
	atomic_fetch_and(&r->shared->reader[row], ~TSI_ROW_DETACHED);
	r->woken[row] = 0;
	r->tail[row] = tail;
	if (r->rows_used <= row)
		r->rows_used = row + 1;
}

void tsi_ring_set_generation(struct tsi_ring *r, uint32_t generation,
			     uint64_t since)
{
	struct tsi_ring_shared *s = r->shared;

	if (atomic_load(&s->generation) == generation)
		return;
	/* Ordered by the lock, for callers of tsi_ring_place(). */
	atomic_store_explicit(&r->place,
			      since << 1 | tsi_generation_half(generation),
			      memory_order_relaxed);
	/* Before the number, and both before any head beyond it. */
	atomic_store(&s->since[generation & 1], since);
	atomic_store(&s->generation, generation);
}

/* The fields' second halves one after the other, each a bit at a time. */
int tsi_ring_reserve(struct tsi_ring *r)
{
	uint64_t done = r->spare;

	for (unsigned i = 0; i < r->geometry.nfields; i++) {
		uint64_t len = tsi_ring_map_bytes(r, i), n = len - done;
		int err;

		if (done >= len) {
			done -= len;
			continue;
		}
		if (n > RESERVED_AT_ONCE)
			n = RESERVED_AT_ONCE;
		err = tsi_memfd_reserve(&r->data[i], "a detached reader's ring",
					len + done, n);
		if (!err)
			r->spare += n;
		return err ? err : TSOCK_EAGAIN;
	}
	return 0;
}

bool tsi_ring_has_spare(const struct tsi_ring *r)
{
	return r->geometry.two_halves && r->spare == r->geometry.bytes;
}

/* What is checked and used is a copy, which can't change in between. */
static void copy_header(const struct tsi_ring_shared *s, struct tsi_geometry *g,
			struct tsi_ring_ident *id)
{
	id->incarnation = s->incarnation;
	id->epoch_len = s->epoch_len;
	id->end = atomic_load(&s->end);
	g->capacity = s->capacity;
	g->join_window = s->join_window;
	g->max_batch = s->max_batch;
	g->granularity = s->granularity;
	g->nfields = s->nfields;
	g->two_halves = s->halves == 2;
	memcpy(g->field, s->field, sizeof(g->field));
}

int tsi_ring_read(const struct tsi_ring_shared *s, size_t len,
		  struct tsi_geometry *g, struct tsi_ring_ident *id)
{
	if (len < sizeof(*s))
		return tsi_err(TSOCK_EPROTO,
			       "the ring's header has %zu bytes, not %zu", len,
			       sizeof(*s));
	if (s->magic != TSI_RING_MAGIC)
		return tsi_err(TSOCK_EPROTO,
			       "the ring's header has bad magic 0x%016llx: not "
			       "a tsock ring, or of another byte order",
			       (unsigned long long)s->magic);
	if (s->abi != TSI_RING_ABI)
		return tsi_err(TSOCK_EPROTO,
			       "the producer's ring has layout %u, this "
			       "library reads %u: use one version for both",
			       s->abi, TSI_RING_ABI);
	copy_header(s, g, id);
	if (s->header_bytes != sizeof(*s) || s->nrows != TSI_MAX_ROWS ||
	    s->halves < 1 || s->halves > 2 || !id->epoch_len ||
	    !tsi_geometry_is_sound(g))
		return tsi_err(TSOCK_EPROTO,
			       "the sizes in the ring's header contradict each "
			       "other");
	g->bytes = 0;
	for (unsigned i = 0; i < g->nfields; i++)
		g->bytes += tsi_geometry_map_bytes(g, i);
	return 0;
}
