/* SPDX-License-Identifier: MIT */
/*
 * reader_pread.c - files by open, pread and close in a few threads.
 *
 * The threads serve slots in the order of submission and touch only slots
 * that are QUEUED; everything else belongs to the reader's own thread.
 */
#include "io/backend.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
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

static void read_file(struct pread_backend *p, struct tsi_io_slot *s)
{
	int fd, err = tsi_io_slot_is_open(s);

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
	fd = tsi_io_slot_ended(s, err);
	if (fd >= 0)
		close(fd);
}

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

	pthread_mutex_lock(&p->lock);
	p->queue[(p->first + p->queued) % p->depth] = i;
	p->queued++;
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

static int pread_pump(void *backend, bool block)
{
	struct pread_backend *p = backend;

	pthread_mutex_lock(&p->lock);
	while (block && p->nfinished == 0)
		pthread_cond_wait(&p->done, &p->lock);
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
	sigset_t all;
	sigset_t old;
	int err = 0;

	/* Signals are for the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (p->nthreads < wanted && !err) {
		err = pthread_create(&p->thread[p->nthreads], NULL, serve, p);
		p->nthreads += !err;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
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
