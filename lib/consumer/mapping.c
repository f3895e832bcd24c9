/* SPDX-License-Identifier: MIT */
/*
 * mapping.c - the samples of a ring as this process sees them.
 *
 * A window's busy bits say which of its pages live batches touch (busy.h).
 * Never writes to the ring.
 */
#include "consumer/mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "consumer/busy.h"
#include "consumer/pages.h"

#define LASTING 2 /* windows that are never unmapped while the ring is read */
#define TRIES 3   /* to see the ring in a window */
#define SPARES 4 /* copies of cleared batches that are kept for the next ones */

struct tsi_window {
	struct tsi_window *next;
	uint64_t used; /* first sample of the batch placed last */
	_Atomic unsigned live;
	uint8_t *base[TSOCK_MAX_FIELDS];          /* behind the field's mark */
	_Atomic uint64_t *busy[TSOCK_MAX_FIELDS]; /* a bit for each page */
};

/* ---- mapping ---- */

/*
 * One mapping of a field, twice in a row where it has no margin; before it one
 * of the lead bytes of the file mark.
 */
static int map_field(const struct tsi_mapping_field *f, int prot, int flags,
		     int mark, size_t lead, uint8_t **out)
{
	uint8_t *p = mmap(NULL, lead + f->span, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool bad;

	if (p == MAP_FAILED)
		return -1;
	flags |= MAP_FIXED | MAP_NORESERVE;
	bad = lead && mmap(p, lead, prot, flags, mark, 0) == MAP_FAILED;
	for (unsigned i = 0; i < (f->twice ? 2u : 1u) && !bad; i++)
		bad = mmap(p + lead + i * f->map_bytes, f->map_bytes, prot,
			   flags, f->fd, 0) == MAP_FAILED;
	if (bad) {
		int saved = errno;

		munmap(p, lead + f->span);
		errno = saved;
		return -1;
	}
	*out = p + lead;
	return 0;
}

static void window_free(const struct tsi_mapping *m, struct tsi_window *win)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		if (win->base[i])
			munmap(win->base[i] - m->page,
			       m->page + m->field[i].span);
		free(win->busy[i]);
	}
	free(win);
}

static int window_map(const struct tsi_mapping *m, struct tsi_window *win,
		      unsigned i)
{
	const struct tsi_mapping_field *f = &m->field[i];
	size_t pages = (f->span + m->page - 1) / m->page;

	win->busy[i] = calloc(pages / 64 + 1, sizeof(*win->busy[i]));
	if (!win->busy[i] ||
	    map_field(f, PROT_READ | PROT_WRITE, MAP_PRIVATE,
		      tsi_memfd_fd(&m->mark), m->page, &win->base[i]))
		return -1;
	/*
	 * Under mlockall(MCL_FUTURE) the kernel has made every page private
	 * already, and locked pages can't be reset.
	 */
	munlock(win->base[i] - m->page, m->page + f->span);
	return madvise(win->base[i] - m->page, m->page + f->span,
		       MADV_DONTNEED);
}

static struct tsi_window *window_new(struct tsi_mapping *m)
{
	struct tsi_window **last = &m->first, *win;

	win = calloc(1, sizeof(*win));
	if (!win)
		return NULL;
	for (unsigned i = 0; i < m->nfields; i++) {
		if (!m->field[i].small && window_map(m, win, i)) {
			window_free(m, win);
			return NULL;
		}
	}
	while (*last)
		last = &(*last)->next;
	*last = win;
	m->count++;
	return win;
}

/* ---- pages that somebody else made private ---- */

/*
 * mlockall() makes every page of a private mapping a copy of its own, which
 * then hides what is published.  So each field of a window has a page in front
 * of it that shows a number of ours, changed for every batch: made private,
 * it stands still.  The kernel goes by ascending addresses, so the samples
 * behind it were copied later than the number: batches that were placed while
 * it still went on are whole.
 */
static bool shows_ring(struct tsi_mapping *m, const struct tsi_window *win)
{
	_Atomic uint64_t *mark = tsi_memfd_base(&m->mark);
	uint64_t now = ++m->placed;

	/* It comes back by another address: not to be moved below. */
	atomic_store(mark, now);
	for (unsigned i = 0; i < m->nfields; i++)
		if (!m->field[i].small &&
		    atomic_load((_Atomic uint64_t *)(win->base[i] - m->page)) !=
			    now)
			return false;
	return true;
}

/* Show the ring again in every page that no batch is in. */
static int show_ring(const struct tsi_mapping *m, const struct tsi_window *win,
		     unsigned i)
{
	uint8_t *base = win->base[i];
	size_t pages = m->field[i].span / m->page, at = 0;

	if (munlock(base - m->page, m->page + m->field[i].span) ||
	    madvise(base - m->page, m->page, MADV_DONTNEED))
		return -1;
	while (at < pages) {
		size_t end = at;

		while (end < pages && !busy_any(win->busy[i], end, end + 1))
			end++;
		if (end > at && madvise(base + at * m->page,
					(end - at) * m->page, MADV_DONTNEED))
			return -1;
		at = end + 1;
	}
	return 0;
}

static int unlock_window(struct tsi_mapping *m, struct tsi_window *win)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	for (unsigned try = 0; try < TRIES; try++) {
		for (unsigned i = 0; i < m->nfields; i++)
			if (!m->field[i].small && show_ring(m, win, i))
				return tsi_err_sys(
					"unlock the ring's pages, which were "
					"locked (mlockall) after the stream "
					"was joined and don't show new samples "
					"any more");
		if (!shows_ring(m, win))
			continue;
		if (!atomic_flag_test_and_set(&said))
			tsi_log(TSOCK_LOG_WARN,
				"this process locked its memory (mlockall): "
				"that of the stream's ring is unlocked again, "
				"since locked pages don't show new samples");
		return 0;
	}
	return tsi_err(TSOCK_ESYS,
		       "this process locks its memory again and again "
		       "(mlockall), so that the ring's pages don't show new "
		       "samples: open without TSOCK_WRITABLE");
}

/* ---- placing in a window ---- */

/* Pages lo..hi-1 of field i's mapping that a batch touches. */
static void pages_of(const struct tsi_mapping *m, unsigned i, uint64_t slot,
		     uint64_t count, size_t *lo, size_t *hi)
{
	uint64_t bytes = m->field[i].sample_bytes;

	*lo = slot * bytes / m->page;
	*hi = ((slot + count) * bytes + m->page - 1) / m->page;
}

static bool window_fits(const struct tsi_mapping *m,
			const struct tsi_window *win, uint64_t slot,
			uint64_t count)
{
	size_t lo, hi;

	for (unsigned i = 0; i < m->nfields; i++) {
		if (m->field[i].small)
			continue;
		pages_of(m, i, slot, count, &lo, &hi);
		if (busy_any(win->busy[i], lo, hi))
			return false;
	}
	return true;
}

/* A window more than are needed, unused while the ring went round twice. */
static void window_prune(struct tsi_mapping *m, uint64_t first)
{
	struct tsi_window **at = &m->first;

	for (unsigned i = 0; *at; i++, at = &(*at)->next) {
		struct tsi_window *win = *at;

		/* Pairs with the release in tsi_mapping_clear(). */
		if (i < LASTING || first - win->used <= 2 * m->capacity ||
		    atomic_load_explicit(&win->live, memory_order_acquire))
			continue;
		*at = win->next;
		m->count--;
		window_free(m, win);
		return;
	}
}

/* The first that fits: pages that are mapped already cost no fault. */
static struct tsi_window *window_find(struct tsi_mapping *m, uint64_t slot,
				      uint64_t count)
{
	for (struct tsi_window *win = m->first; win; win = win->next)
		if (window_fits(m, win, slot, count))
			return win;
	return window_new(m);
}

static void place_in(struct tsi_mapping *m, struct tsi_window *win,
		     uint64_t first, struct tsi_placement *s)
{
	size_t lo, hi;

	for (unsigned i = 0; i < m->nfields; i++) {
		const struct tsi_mapping_field *f = &m->field[i];

		if (f->small)
			continue;
		pages_of(m, i, s->slot, s->count, &lo, &hi);
		busy_set(win->busy[i], lo, hi);
		s->data[i] = win->base[i] + s->slot * f->sample_bytes;
	}
	win->used = first;
	/* Ordered by the fence of whoever makes the batch known to others. */
	atomic_fetch_add_explicit(&win->live, 1, memory_order_relaxed);
	s->window = win;
}

/* ---- public ---- */

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

static void lay_out(struct tsi_mapping *m, const struct tsi_geometry *ring,
		    const int *fd)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		struct tsi_mapping_field *f = &m->field[i];
		size_t bytes = tsi_geometry_bytes(ring, i, m->batch);

		f->fd = fd[i];
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

static int map_plain(struct tsi_mapping *m)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		struct tsi_mapping_field *f = &m->field[i];

		if (m->mode != TSI_MAP_SHARED && !f->small)
			continue;
		/* A copy goes round the ring's end by itself. */
		if (f->small) {
			f->twice = false;
			f->span = f->map_bytes;
		}
		if (map_field(f, PROT_READ, MAP_SHARED, -1, 0, &f->plain))
			return tsi_err_sys("map %zu bytes of the ring's field "
					   "%u (address space is limited by "
					   "ulimit -v)",
					   f->span, i);
	}
	return 0;
}

int tsi_mapping_init(struct tsi_mapping *m, enum tsi_mapping_mode mode,
		     const struct tsi_geometry *ring, uint64_t batch,
		     const int *fd)
{
	int err;

	*m = (struct tsi_mapping){
		.mode = mode,
		.nfields = ring->nfields,
		.capacity = ring->capacity,
		.batch = batch,
		.page = (size_t)sysconf(_SC_PAGESIZE),
		.pagemap = -1,
	};
	lay_out(m, ring, fd);
	err = map_plain(m);
	if (err) {
		tsi_mapping_fini(m);
		return err;
	}
	if (mode == TSI_MAP_PRIVATE && m->copy_bytes) {
		m->pagemap = tsi_pages_open();
		if (tsi_memfd_create("tsock-mark", m->page, 0, &m->mark) ||
		    !window_new(m)) {
			say_copying(errno);
			m->mode = TSI_MAP_COPY;
		}
	}
	return 0;
}

void tsi_mapping_seal(struct tsi_mapping *m)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		if (m->field[i].fd >= 0)
			close(m->field[i].fd);
		m->field[i].fd = -1;
	}
	tsi_memfd_close(&m->mark);
}

void tsi_mapping_fini(struct tsi_mapping *m)
{
	while (m->first) {
		struct tsi_window *win = m->first;

		m->first = win->next;
		window_free(m, win);
	}
	for (unsigned i = 0; i < m->nfields; i++)
		if (m->field[i].plain)
			munmap(m->field[i].plain, m->field[i].span);
	tsi_mapping_seal(m);
	if (m->pagemap >= 0)
		close(m->pagemap);
	*m = (struct tsi_mapping){ .pagemap = -1 };
}

static void place_shared(const struct tsi_mapping *m, struct tsi_placement *s)
{
	for (unsigned i = 0; i < m->nfields; i++)
		s->data[i] =
			m->field[i].plain + s->slot * m->field[i].sample_bytes;
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
	int err;

	tsi_mapping_copy_small(m, s);
	if (!m->copy_bytes) {
		s->own = true;
		return 0;
	}
	if (m->mode == TSI_MAP_COPY)
		return tsi_mapping_copy_big(m, s);
	if (m->count > LASTING)
		window_prune(m, first);
	win = window_find(m, s->slot, count);
	if (!win) {
		say_copying(errno);
		return tsi_mapping_copy_big(m, s);
	}
	err = shows_ring(m, win) ? 0 : unlock_window(m, win);
	if (!err)
		place_in(m, win, first, s);
	return err;
}

int tsi_mapping_place(struct tsi_mapping *m, uint64_t first, uint64_t count,
		      struct tsi_placement *s)
{
	int err;

	s->window = NULL;
	s->slot = first % m->capacity;
	s->count = count;
	s->own = false;
	if (m->mode == TSI_MAP_SHARED) {
		place_shared(m, s);
		return 0;
	}
	/* As in keep_spare(). */
	if (s->copy)
		atomic_fetch_sub_explicit(&m->spares, 1, memory_order_relaxed);
	err = place_writable(m, first, count, s);
	if (err)
		keep_spare(m, s);
	return err;
}

bool tsi_mapping_pages(const struct tsi_mapping *m,
		       const struct tsi_placement *s, unsigned i,
		       uint8_t **addr, size_t *len)
{
	const struct tsi_mapping_field *f = &m->field[i];
	uint8_t *base = s->window ? s->window->base[i] : f->plain;
	size_t lo, hi;

	if (s->own || f->small)
		return false;
	pages_of(m, i, s->slot, s->count, &lo, &hi);
	*addr = base + lo * m->page;
	*len = (hi - lo) * m->page;
	return true;
}

int tsi_mapping_make_private(struct tsi_mapping *m, struct tsi_placement *s)
{
	uint8_t *addr;
	size_t len;

	if (s->own)
		return 0;
	if (!s->window)
		return tsi_err(TSOCK_EHELD, "a batch of read-only memory can't "
					    "be made private");
	for (unsigned i = 0; i < m->nfields; i++)
		if (tsi_mapping_pages(m, s, i, &addr, &len) &&
		    tsi_pages_take(addr, len))
			return tsi_err(TSOCK_ENOMEM,
				       "a batch that is still held can't be "
				       "copied (%zu bytes: %s); release it",
				       len, strerror(errno));
	return 0;
}

/* Nobody looks at these pages of its window any more. */
static void clear_window(struct tsi_mapping *m, struct tsi_placement *s)
{
	struct tsi_window *win = s->window;
	size_t lo, hi;

	for (unsigned i = 0; i < m->nfields; i++) {
		if (m->field[i].small)
			continue;
		pages_of(m, i, s->slot, s->count, &lo, &hi);
		/* Otherwise nothing may ever be placed there again. */
		if (tsi_pages_reset(m->pagemap, win->base[i] + lo * m->page,
				    (hi - lo) * m->page))
			busy_clear(win->busy[i], lo, hi);
	}
	s->window = NULL;
	/* Pairs with window_prune(): the window's last use by us. */
	atomic_fetch_sub_explicit(&win->live, 1, memory_order_release);
}

void tsi_mapping_clear(struct tsi_mapping *m, struct tsi_placement *s)
{
	if (s->window)
		clear_window(m, s);
	keep_spare(m, s);
}
