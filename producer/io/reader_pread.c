/* SPDX-License-Identifier: MIT */
/*
 * reader_pread.c - files by open, pread and close in a few threads.
 *
 * What is in the page cache is read by the reader's own thread at once: to hand
 * it to another thread and back takes two locks and two task switches.  The
 * kernel is asked to say no where it would have to wait, and then a thread goes
 * on with the slot.  The threads serve slots in the order of submission and
 * touch only slots that they were handed; everything else belongs to the
 * reader's own thread.
 */
#include "io/backend.h"

#include <errno.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/thread.h"

#define THREADS 4
#define CHUNK ((size_t)16 << 20) /* between two looks at stop */

struct pread_backend {
	struct tsi_io_slot *slot;
	unsigned depth;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t done;
	/* Under the lock: a ring of slots to read, a list of those read. */
	unsigned *queue;
	unsigned first;
	unsigned queued;
	unsigned *finished;
	unsigned nfinished;
	_Atomic bool stop;
	/* The reader's own thread's: slots that threads have, and whether the
	 * kernel tells what is in the page cache. */
	unsigned handed;
	bool tells;
	pthread_t thread[THREADS];
	unsigned nthreads;
};

static ssize_t read_some(const struct tsi_io_slot *s)
{
	struct tsi_io_piece p = tsi_io_slot_piece(s);
	size_t len = p.len < CHUNK ? p.len : CHUNK;
	ssize_t n;

	do
		n = pread(p.fd, p.to, len, (off_t)p.at);
	while (n < 0 && errno == EINTR);
	return n;
}

static void end_read(struct tsi_io_slot *s, int err)
{
	int fd = tsi_io_slot_ended(s, err);

	if (fd >= 0)
		close(fd);
}

/* From the open on or, of a file that is open, from the next piece on. */
static void read_file(struct pread_backend *p, struct tsi_io_slot *s)
{
	bool begun = tsi_io_slot_fd(s) >= 0;
	int fd, err = begun ? TSI_IO_MORE : tsi_io_slot_is_open(s);

	if (err == TSI_IO_CLOSED) {
		fd = tsi_io_slot_open_file(tsi_io_slot_what(s));
		err = fd < 0 ? errno : tsi_io_slot_opened(s, fd);
	}
	while (err == TSI_IO_MORE) {
		ssize_t n = read_some(s);

		if (n < 0)
			err = tsi_io_slot_failed(s, errno);
		else
			err = tsi_io_slot_got(s, (size_t)n);
		if (err == TSI_IO_MORE && atomic_load(&p->stop))
			err = ECANCELED;
	}
	end_read(s, err);
}

/* ---- by the reader's own thread ---- */

/* This kernel, file system or container doesn't tell what is in the cache. */
static void note_refusal(struct pread_backend *p, int err)
{
	p->tells = err != ENOSYS && err != EOPNOTSUPP && err != EINVAL &&
		   err != EPERM;
}

/* A descriptor, if opening the file takes no disk; else -1. */
static int open_cached(struct pread_backend *p,
		       const struct tsi_read_request *q)
{
	struct open_how how = { .flags = TSI_IO_OFLAGS,
				.resolve = RESOLVE_CACHED };
	char text[TSI_PATH];
	int fd = (int)syscall(SYS_openat2, q->dirfd, tsi_io_slot_path(q, text),
			      &how, sizeof(how));

	if (fd < 0)
		note_refusal(p, errno);
	return fd;
}

/* The next piece, or as much of it as is in the page cache; -1: nothing is. */
static ssize_t read_cached_piece(struct pread_backend *p,
				 const struct tsi_io_slot *s)
{
	struct tsi_io_piece piece = tsi_io_slot_piece(s);
	struct iovec to = { .iov_base = piece.to, .iov_len = piece.len };
	ssize_t n = preadv2(piece.fd, &to, 1, (off_t)piece.at, RWF_NOWAIT);

	if (n < 0)
		note_refusal(p, errno);
	return n;
}

/*
 * Read what is in the page cache.  True: the slot is done.  Errors are the
 * threads' to find: they wait, and try again.
 */
static bool read_cached(struct pread_backend *p, struct tsi_io_slot *s)
{
	const struct tsi_read_request *q = tsi_io_slot_what(s);
	int fd, err;

	if (!p->tells || q->direct)
		return false;
	err = tsi_io_slot_is_open(s);
	if (err == TSI_IO_CLOSED) {
		fd = open_cached(p, q);
		if (fd < 0)
			return false;
		err = tsi_io_slot_opened(s, fd);
	}
	while (err == TSI_IO_MORE) {
		ssize_t n = read_cached_piece(p, s);

		if (n < 0)
			return false;
		err = tsi_io_slot_got(s, (size_t)n);
	}
	end_read(s, err);
	return true;
}

/* ---- threads ---- */

static void *serve(void *arg)
{
	struct pread_backend *p = arg;

	tsi_thread_name("tsock-read");
	pthread_mutex_lock(&p->lock);
	for (;;) {
		unsigned i;

		while (p->queued == 0 && !atomic_load(&p->stop))
			pthread_cond_wait(&p->work, &p->lock);
		if (atomic_load(&p->stop))
			break;
		i = p->queue[p->first];
		p->first = (p->first + 1) % p->depth;
		p->queued--;
		pthread_mutex_unlock(&p->lock);
		read_file(p, &p->slot[i]);
		pthread_mutex_lock(&p->lock);
		p->finished[p->nfinished++] = i;
		pthread_cond_signal(&p->done);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void pread_start(void *backend, unsigned i)
{
	struct pread_backend *p = backend;

	if (read_cached(p, &p->slot[i])) {
		tsi_io_slot_hand_over(&p->slot[i]);
		return;
	}
	p->handed++;
	pthread_mutex_lock(&p->lock);
	p->queue[(p->first + p->queued) % p->depth] = i;
	p->queued++;
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

static int pread_pump(void *backend, bool block)
{
	struct pread_backend *p = backend;

	if (p->handed == 0)
		return 0;
	pthread_mutex_lock(&p->lock);
	while (block && p->nfinished == 0)
		pthread_cond_wait(&p->done, &p->lock);
	p->handed -= p->nfinished;
	while (p->nfinished > 0)
		tsi_io_slot_hand_over(&p->slot[p->finished[--p->nfinished]]);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

static bool pread_destroy(void *backend)
{
	struct pread_backend *p = backend;

	pthread_mutex_lock(&p->lock);
	atomic_store(&p->stop, true);
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->nthreads; i++)
		pthread_join(p->thread[i], NULL);
	/* Files that were opened here, and that no thread has come to. */
	for (; p->queued > 0; p->queued--) {
		end_read(&p->slot[p->queue[p->first]], ECANCELED);
		p->first = (p->first + 1) % p->depth;
	}
	pthread_cond_destroy(&p->work);
	pthread_cond_destroy(&p->done);
	pthread_mutex_destroy(&p->lock);
	free(p->queue);
	free(p->finished);
	free(p);
	return true;
}

/* Start as many of the wanted threads as this machine lets us; one will do. */
static int start_threads(struct pread_backend *p, unsigned wanted)
{
	int err = 0;

	while (p->nthreads < wanted && !err) {
		err = tsi_thread_try(&p->thread[p->nthreads], serve, p);
		p->nthreads += !err;
	}
	if (p->nthreads > 0)
		return 0;
	errno = err;
	return tsi_err_sys("start a thread that reads files");
}

static int pread_create(struct tsi_io_slot *slot, unsigned depth, void **out)
{
	struct pread_backend *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a file reader");
	p->slot = slot;
	p->depth = depth;
	p->tells = true;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->done, NULL);
	p->queue = malloc(depth * sizeof(*p->queue));
	p->finished = malloc(depth * sizeof(*p->finished));
	if (!p->queue || !p->finished)
		err = tsi_err(TSOCK_ENOMEM, "no memory for a file reader");
	if (!err)
		err = start_threads(p, depth < THREADS ? depth : THREADS);
	if (err) {
		pread_destroy(p);
		return err;
	}
	*out = p;
	return 0;
}

const struct tsi_io_backend tsi_io_pread = {
	.name = "pread",
	.built_in = true,
	.create = pread_create,
	.start = pread_start,
	.pump = pread_pump,
	.destroy = pread_destroy,
};
