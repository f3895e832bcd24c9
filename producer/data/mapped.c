/* SPDX-License-Identifier: MIT */
/*
 * mapped.c - copies of parts of mapped files, and SIGBUS while one is made.
 */
#include "data/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/err.h"

/* Where the copy of this thread goes on if its source is gone. */
static _Thread_local sigjmp_buf *volatile copying;
static struct sigaction before;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	sigjmp_buf *to = copying;

	if (to) {
		copying = NULL;
		/* As a return would: this thread's, on Linux. */
		sigprocmask(SIG_SETMASK,
			    &((const ucontext_t *)context)->uc_sigmask, NULL);
		siglongjmp(*to, 1);
	}
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(sig, info, context);
	} else if (before.sa_handler != SIG_DFL &&
		   before.sa_handler != SIG_IGN) {
		before.sa_handler(sig);
	} else {
		/* The instruction is run again, and ends the process. */
		signal(sig, SIG_DFL);
		/* One that another process sent isn't raised again. */
		if (info->si_code <= 0)
			raise(sig);
	}
}

static void set_handler(void)
{
	struct sigaction a = { .sa_sigaction = on_bus_error };

	a.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigemptyset(&a.sa_mask);
	sigaction(SIGBUS, &a, &before);
}

static int map_file(const char *path, int fd, struct tsi_mapped *m,
		    struct tsi_stamp *stamp)
{
	struct stat st;
	void *mem;

	if (tsi_stamp_take(fd, &st, stamp))
		return tsi_err_sys("look at %.300s", path);
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return tsi_err(TSOCK_EDATA, "%.300s is %s", path,
			       S_ISREG(st.st_mode) ? "empty"
						   : "not a regular file");
	mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED && errno == ENOMEM)
		return tsi_err(TSOCK_ENOMEM,
			       "%.300s has %.1f GB, more than this process "
			       "has address space for (ulimit -v; a process "
			       "has 140737 GB at most)",
			       path, (double)st.st_size / 1e9);
	if (mem == MAP_FAILED)
		return tsi_err_sys("map %.300s", path);
	m->mem = mem;
	m->len = (uint64_t)st.st_size;
	return 0;
}

int tsi_mapped_open(const struct tsi_root *root, const char *path,
		    struct tsi_mapped *m, struct tsi_stamp *stamp)
{
	int fd = tsi_root_openat(root, path,
				 O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int err;

	*m = (struct tsi_mapped){ .mem = NULL };
	if (fd < 0)
		return tsi_err(TSOCK_EDATA, "can't open %.300s: %s", path,
			       strerror(errno));
	pthread_once(&once, set_handler);
	err = map_file(path, fd, m, stamp);
	close(fd);
	if (err)
		return err;
	m->path = strdup(path);
	if (m->path)
		return 0;
	tsi_mapped_close(m);
	return tsi_err(TSOCK_ENOMEM, "no memory for a file's name");
}

struct tsi_mapped tsi_mapped_memory(const void *mem, uint64_t len)
{
	return (struct tsi_mapped){ .mem = mem, .len = len };
}

const uint8_t *tsi_mapped_at(const struct tsi_mapped *m, uint64_t offset)
{
	return m->mem + offset;
}

uint64_t tsi_mapped_len(const struct tsi_mapped *m)
{
	return m->len;
}

const char *tsi_mapped_path(const struct tsi_mapped *m)
{
	return m->path;
}

void tsi_mapped_close(struct tsi_mapped *m)
{
	if (m->mem)
		munmap((void *)(uintptr_t)m->mem, (size_t)m->len);
	free(m->path);
	*m = (struct tsi_mapped){ .mem = NULL };
}

/* So far ahead a record's first bytes are fetched; the processor goes on. */
#define AHEAD 16
#define LINE 64
#define LINES 4

/*
 * The first lines of what lies from byte at to byte end of a record.  GCC 12
 * leaves out calls of a function that only fetches: this is none.
 */
static inline __attribute__((always_inline)) void fetch(const uint8_t *from,
							size_t at, size_t end)
{
	const uint8_t *line = from + at - (uintptr_t)(from + at) % LINE;
	unsigned n = 0;

	for (; line < from + end && n < LINES; line += LINE, n++)
		__builtin_prefetch(line);
}

static void copy_pieces(const uint8_t *from, unsigned i,
			const struct tsi_mapped_piece *piece, unsigned pieces)
{
	for (unsigned k = 0; k < pieces; k++)
		memcpy(piece[k].to + i * piece[k].len, from + piece[k].at,
		       piece[k].len);
}

/* From where to where a record is read. */
static void find_extent(const struct tsi_mapped_piece *piece, unsigned pieces,
			size_t *at, size_t *end)
{
	*at = SIZE_MAX;
	*end = 0;
	for (unsigned k = 0; k < pieces; k++) {
		if (piece[k].at < *at)
			*at = piece[k].at;
		if (piece[k].at + piece[k].len > *end)
			*end = piece[k].at + piece[k].len;
	}
}

bool tsi_mapped_gather(const uint8_t *const *from, unsigned n,
		       const struct tsi_mapped_piece *piece, unsigned pieces,
		       unsigned *bad)
{
	volatile unsigned now = 0;
	sigjmp_buf here;
	size_t at, end;

	if (sigsetjmp(here, 0)) {
		*bad = now;
		return false;
	}
	find_extent(piece, pieces, &at, &end);
	for (unsigned i = 0; i < n && i < AHEAD; i++)
		fetch(from[i], at, end);
	copying = &here;
	for (unsigned i = 0; i < n; i++) {
		now = i;
		if (i + AHEAD < n)
			fetch(from[i + AHEAD], at, end);
		/* Each copy stays behind what says which it is. */
		atomic_signal_fence(memory_order_seq_cst);
		copy_pieces(from[i], i, piece, pieces);
	}
	atomic_signal_fence(memory_order_seq_cst);
	copying = NULL;
	return true;
}

bool tsi_mapped_copy(void *to, const void *from, size_t len)
{
	const struct tsi_mapped_piece all = { to, 0, len };
	const uint8_t *record = from;
	unsigned bad;

	return tsi_mapped_gather(&record, 1, &all, 1, &bad);
}

bool tsi_mapped_look(void (*look)(void *arg), void *arg)
{
	sigjmp_buf here;

	if (sigsetjmp(here, 0))
		return false;
	copying = &here;
	atomic_signal_fence(memory_order_seq_cst);
	look(arg);
	atomic_signal_fence(memory_order_seq_cst);
	copying = NULL;
	return true;
}
