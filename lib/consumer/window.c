/* SPDX-License-Identifier: MIT */
/*
 * window.c - windows: private mappings of a ring, in which batches lie.
 *
 * A window's busy bits say which of its pages live batches touch (busy.h).
 * Never writes to the ring.
 */
#include "consumer/window.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/log.h"
#include "consumer/busy.h"
#include "consumer/pages.h"

#define LASTING 2 /* windows that are never unmapped while the ring is read */
#define TRIES 3   /* to see the ring in a window */

struct tsi_window {
	struct tsi_window *next;
	unsigned half; /* of the ring: which it shows */
	uint64_t used; /* first sample of the batch placed last */
	_Atomic unsigned live;
	uint8_t *base[TSOCK_MAX_FIELDS];          /* behind the field's mark */
	_Atomic uint64_t *busy[TSOCK_MAX_FIELDS]; /* a bit for each page */
};

/* ---- mapping ---- */

int tsi_window_map_field(const struct tsi_mapping_field *f, unsigned half,
			 int prot, int flags, int mark, size_t lead,
			 uint8_t **out)
{
	off_t at = (off_t)(half * f->map_bytes);
	uint8_t *p = mmap(NULL, lead + f->span, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool bad;

	if (p == MAP_FAILED)
		return -1;
	flags |= MAP_FIXED | MAP_NORESERVE;
	bad = lead && mmap(p, lead, prot, flags, mark, 0) == MAP_FAILED;
	for (unsigned i = 0; i < (f->twice ? 2u : 1u) && !bad; i++)
		bad = mmap(p + lead + i * f->map_bytes, f->map_bytes, prot,
			   flags, f->fd, at) == MAP_FAILED;
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
	    tsi_window_map_field(f, win->half, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE, tsi_memfd_fd(&m->mark), m->page,
				 &win->base[i]))
		return -1;
	/*
	 * Under mlockall(MCL_FUTURE) the kernel has made every page private
	 * already, and locked pages can't be reset.
	 */
	munlock(win->base[i] - m->page, m->page + f->span);
	return madvise(win->base[i] - m->page, m->page + f->span,
		       MADV_DONTNEED);
}

static struct tsi_window *window_new(struct tsi_mapping *m, unsigned half)
{
	struct tsi_window **last = &m->first, *win;

	win = calloc(1, sizeof(*win));
	if (!win)
		return NULL;
	win->half = half;
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

int tsi_window_init(struct tsi_mapping *m)
{
	m->pagemap = tsi_pages_open();
	return tsi_memfd_create("tsock-mark", m->page, 0, &m->mark) ||
			       !window_new(m, 0)
		       ? -1
		       : 0;
}

void tsi_window_fini(struct tsi_mapping *m)
{
	while (m->first) {
		struct tsi_window *win = m->first;

		m->first = win->next;
		window_free(m, win);
	}
}

uint8_t *tsi_window_base(const struct tsi_window *win, unsigned i)
{
	return win->base[i];
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

		while (end < pages && !tsi_busy_any(win->busy[i], end, end + 1))
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

void tsi_window_pages_of(const struct tsi_mapping *m, unsigned i, uint64_t slot,
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
		tsi_window_pages_of(m, i, slot, count, &lo, &hi);
		if (tsi_busy_any(win->busy[i], lo, hi))
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

		/* Pairs with the release in tsi_window_clear(). */
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
struct tsi_window *tsi_window_find(struct tsi_mapping *m, uint64_t first,
				   uint64_t count)
{
	unsigned half = tsi_mapping_half(m, first);
	uint64_t slot = first % m->capacity;

	if (m->count > LASTING)
		window_prune(m, first);
	for (struct tsi_window *win = m->first; win; win = win->next)
		if (win->half == half && window_fits(m, win, slot, count))
			return win;
	return window_new(m, half);
}

static void place_in(struct tsi_mapping *m, struct tsi_window *win,
		     uint64_t first, struct tsi_placement *s)
{
	size_t lo, hi;

	for (unsigned i = 0; i < m->nfields; i++) {
		const struct tsi_mapping_field *f = &m->field[i];

		if (f->small)
			continue;
		tsi_window_pages_of(m, i, s->slot, s->count, &lo, &hi);
		tsi_busy_set(win->busy[i], lo, hi);
		s->data[i] = win->base[i] + s->slot * f->sample_bytes;
	}
	win->used = first;
	/* Ordered by the fence of the code that makes the batch known to
	 * others. */
	atomic_fetch_add_explicit(&win->live, 1, memory_order_relaxed);
	s->window = win;
}

int tsi_window_place(struct tsi_mapping *m, struct tsi_window *win,
		     uint64_t first, struct tsi_placement *s)
{
	int err = shows_ring(m, win) ? 0 : unlock_window(m, win);

	if (!err)
		place_in(m, win, first, s);
	return err;
}

void tsi_window_clear(struct tsi_mapping *m, struct tsi_placement *s)
{
	struct tsi_window *win = s->window;
	size_t lo, hi;

	for (unsigned i = 0; i < m->nfields; i++) {
		if (m->field[i].small)
			continue;
		tsi_window_pages_of(m, i, s->slot, s->count, &lo, &hi);
		/* Otherwise nothing may ever be placed there again. */
		if (tsi_pages_reset(m->pagemap, win->base[i] + lo * m->page,
				    (hi - lo) * m->page))
			tsi_busy_clear(win->busy[i], lo, hi);
	}
	s->window = NULL;
	/* Pairs with window_prune(): the window's last use by us. */
	atomic_fetch_sub_explicit(&win->live, 1, memory_order_release);
}
