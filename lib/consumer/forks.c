/*
 * forks.c - batches in a forked child stay what they were at the fork.
 *
 * Before the fork every held batch is pinned, so that its place can't be used
 * again before the fork is over, and its pages are made private, or copied if
 * they are read-only.  a batch that is acquired meanwhile waits for the end of
 * the fork before anybody gets to see it.  The handlers allocate nothing by
 * malloc() and log only when the lock is given back.
 */
#include "consumer/forks.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "consumer/reader.h"
#include "consumer/pages.h"

/* Pages that the child will find at to; they follow the page it lies in. */
struct copy {
	struct copy *next;
	uint8_t *to;
	size_t len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
_Atomic bool tsi_forks_now;

/* All with the lock. */
static struct tsi_reader *readers;
static struct tsock_batch *pinned;
static struct copy *copies;
static size_t failed; /* bytes that the child won't find */
static int reason;

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static uint8_t *bytes_of(struct copy *c)
{
	return (uint8_t *)c + page_size();
}

/* ---- before ---- */

static int copy_pages(void *from, size_t len)
{
	size_t page = page_size();
	struct copy *c = mmap(NULL, page + len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (c == MAP_FAILED)
		return -1;
	c->to = from;
	c->len = len;
	c->next = copies;
	copies = c;
	memcpy(bytes_of(c), from, len);
	return mprotect(bytes_of(c), len, PROT_READ);
}

/* Better no bytes in the child than other ones. */
static void withhold(void *addr, size_t len)
{
	reason = errno;
	failed += len;
	madvise(addr, len, MADV_DONTFORK);
}

static void save(const struct tsock_batch *b)
{
	struct tsi_backend *k = b->reader->backend;

	for (unsigned i = 0; i < b->reader->nfields; i++) {
		bool writable;
		void *addr;
		size_t len;

		if (!k->ops->pages(k, &b->placement, i, &addr, &len, &writable))
			continue;
		if (writable ? tsi_pages_take(addr, len)
			     : copy_pages(addr, len))
			withhold(addr, len);
	}
}

static void before(void)
{
	int saved = errno;

	tsi_forks_lock();
	/* Pairs with tsi_reader_acquire(): a batch that isn't seen here sees it.
	 */
	atomic_store(&tsi_forks_now, true);
	for (struct tsi_reader *r = readers; r; r = r->watched) {
		/* A child can't use it whatever is done. */
		if (!r->backend->ops->pages)
			continue;
		/* Pairs with batch_new(). */
		for (struct tsock_batch *b = atomic_load_explicit(
			     &r->all, memory_order_acquire);
		     b; b = b->all) {
			if (!tsi_batch_pin(b))
				continue;
			b->forking = pinned;
			pinned = b;
			save(b);
		}
	}
	errno = saved;
}

/* ---- after ---- */

static void end(void)
{
	pinned = NULL;
	copies = NULL;
	failed = 0;
	atomic_store(&tsi_forks_now, false);
	tsi_forks_unlock();
}

static void drop_copies(void)
{
	for (struct copy *c = copies, *next; c; c = next) {
		next = c->next;
		munmap(c, page_size() + c->len);
	}
}

/* Those that were withheld are there for the next child. */
static void allow_forks(const struct tsock_batch *b)
{
	struct tsi_backend *k = b->reader->backend;

	for (unsigned i = 0; i < b->reader->nfields; i++) {
		bool writable;
		void *addr;
		size_t len;

		if (k->ops->pages(k, &b->placement, i, &addr, &len, &writable))
			madvise(addr, len, MADV_DOFORK);
	}
}

/* Those that were given back during the fork. */
static struct tsock_batch *unpin(void)
{
	struct tsock_batch *over = NULL;

	for (struct tsock_batch *b = pinned, *next; b; b = next) {
		next = b->forking;
		if (failed)
			allow_forks(b);
		if (tsi_batch_unpin(b, TSI_BATCH_HELD))
			continue;
		b->forking = over;
		over = b;
	}
	return over;
}

static void in_parent(void)
{
	size_t lost = failed;
	int saved = errno, why = reason;
	struct tsock_batch *over = unpin();

	drop_copies();
	end();
	for (struct tsock_batch *b = over, *next; b; b = next) {
		next = b->forking;
		tsi_batch_finish(b);
	}
	if (lost) {
		char text[96];

		tsi_log(TSOCK_LOG_ERROR,
			"a forked child can't read the batches in hand: %zu "
			"bytes of them couldn't be copied for it (%s); fork "
			"before they are taken, or after they are released",
			lost, strerror_r(why, text, sizeof(text)));
	}
	errno = saved;
}

static void in_child(void)
{
	for (struct copy *c = copies, *next; c; c = next) {
		next = c->next;
		if (mremap(bytes_of(c), c->len, c->len,
			   MREMAP_MAYMOVE | MREMAP_FIXED, c->to) == MAP_FAILED)
			munmap(c->to, c->len);
		munmap(c, page_size());
	}
	/* They, and all their batches, are the parent's. */
	readers = NULL;
	end();
}

/* ---- public ---- */

static void watch(void)
{
	pthread_atfork(before, in_parent, in_child);
}

void tsi_forks_watch(struct tsi_reader *r)
{
	pthread_once(&once, watch);
	tsi_forks_lock();
	r->watched = readers;
	readers = r;
	tsi_forks_unlock();
}

void tsi_forks_forget(struct tsi_reader *r)
{
	tsi_forks_lock();
	for (struct tsi_reader **at = &readers; *at; at = &(*at)->watched) {
		if (*at != r)
			continue;
		*at = r->watched;
		break;
	}
	tsi_forks_unlock();
}

void tsi_forks_lock(void)
{
	pthread_mutex_lock(&lock);
}

void tsi_forks_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void tsi_forks_await(void)
{
	tsi_forks_lock();
	tsi_forks_unlock();
}
