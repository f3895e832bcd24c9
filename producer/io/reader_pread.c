/*
 * reader_pread.c - whole files by open, pread and close in a few threads.
 *
 * The threads serve slots in the order of submission and touch only slots
 * that are QUEUED; everything else is the reader's own thread's.
 */
#include "io/reader_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"

#define THREADS 4
#define CHUNK ((size_t)16 << 20) /* so that a large file can be given up */

struct pread_reader {
	struct tsi_file_reader base;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t done;
	/* Under the lock: slots to read, a ring; and slots that were read. */
	unsigned *queue;
	unsigned first;
	unsigned queued;
	unsigned *finished;
	unsigned nfinished;
	_Atomic bool stop;
	pthread_t thread[THREADS];
	unsigned nthreads;
};

static int open_file(const struct tsi_rslot *s)
{
	int fd;

	do
		fd = openat(s->dirfd, s->path, TSI_READER_OFLAGS);
	while (fd < 0 && errno == EINTR);
	return fd;
}

static ssize_t read_some(const struct tsi_rslot *s)
{
	size_t len = s->asked < CHUNK ? s->asked : CHUNK;
	ssize_t n;

	do
		n = pread(s->fd, s->buf + s->len, len, (off_t)s->len);
	while (n < 0 && errno == EINTR);
	return n;
}

static void read_file(struct pread_reader *p, struct tsi_rslot *s)
{
	int fd = open_file(s);
	int err = fd < 0 ? errno : tsi_rslot_opened(s, fd);

	while (err == TSI_RMORE) {
		ssize_t n = read_some(s);

		if (n < 0)
			err = errno;
		else if (atomic_load(&p->stop))
			err = ECANCELED;
		else
			err = tsi_rslot_got(s, (size_t)n);
	}
	s->err = err;
	if (fd >= 0)
		close(fd);
	s->fd = -1;
}

static void *serve(void *arg)
{
	struct pread_reader *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		unsigned i;

		while (p->queued == 0 && !atomic_load(&p->stop))
			pthread_cond_wait(&p->work, &p->lock);
		if (atomic_load(&p->stop))
			break;
		i = p->queue[p->first];
		p->first = (p->first + 1) % p->base.depth;
		p->queued--;
		pthread_mutex_unlock(&p->lock);
		read_file(p, &p->base.slot[i]);
		pthread_mutex_lock(&p->lock);
		p->finished[p->nfinished++] = i;
		pthread_cond_signal(&p->done);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void pread_start(struct tsi_file_reader *r, unsigned i)
{
	struct pread_reader *p = (struct pread_reader *)r;

	pthread_mutex_lock(&p->lock);
	p->queue[(p->first + p->queued) % r->depth] = i;
	p->queued++;
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

static int pread_pump(struct tsi_file_reader *r, bool block)
{
	struct pread_reader *p = (struct pread_reader *)r;

	pthread_mutex_lock(&p->lock);
	while (block && p->nfinished == 0)
		pthread_cond_wait(&p->done, &p->lock);
	while (p->nfinished > 0)
		r->slot[p->finished[--p->nfinished]].state = TSI_RDONE;
	pthread_mutex_unlock(&p->lock);
	return 0;
}

static void pread_destroy(struct tsi_file_reader *r)
{
	struct pread_reader *p = (struct pread_reader *)r;

	pthread_mutex_lock(&p->lock);
	atomic_store(&p->stop, true);
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->nthreads; i++)
		pthread_join(p->thread[i], NULL);
	pthread_cond_destroy(&p->work);
	pthread_cond_destroy(&p->done);
	pthread_mutex_destroy(&p->lock);
	tsi_file_reader_free_slots(r);
	free(p->queue);
	free(p->finished);
	free(p);
}

/* As many of the wanted threads as there can be, at least one. */
static int start_threads(struct pread_reader *p, unsigned wanted)
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

static const struct tsi_file_reader_ops pread_ops = {
	.name = "pread",
	.start = pread_start,
	.pump = pread_pump,
	.destroy = pread_destroy,
};

int tsi_file_reader_pread_create(unsigned depth, struct tsi_file_reader **out)
{
	struct pread_reader *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a file reader");
	p->base.ops = &pread_ops;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->done, NULL);
	p->queue = malloc(depth * sizeof(*p->queue));
	p->finished = malloc(depth * sizeof(*p->finished));
	err = tsi_file_reader_make_slots(&p->base, depth);
	if (!err && (!p->queue || !p->finished))
		err = tsi_err(TSOCK_ENOMEM, "no memory for a file reader");
	if (!err)
		err = start_threads(p, depth < THREADS ? depth : THREADS);
	if (err) {
		pread_destroy(&p->base);
		return err;
	}
	*out = &p->base;
	return 0;
}
