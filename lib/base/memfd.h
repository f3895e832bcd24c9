/* SPDX-License-Identifier: MIT */
/*
 * memfd.h - shared memory that has no name and that nobody can cut short.
 *
 * The process that makes the memory reserves every page before it is used, so
 * that too little memory is an error here and not a SIGBUS or SIGKILL later.
 * Then the memory is sealed, so that no process with the descriptor can resize
 * it (a SIGBUS in all others) or, but for a page meant for that process, write
 * into it.
 */
#ifndef TSI_BASE_MEMFD_H
#define TSI_BASE_MEMFD_H

#include <stddef.h>
#include <stdint.h>

enum {
	/* A page that its consumer writes and its maker only reads. */
	TSI_MEM_PEER_WRITES = 1,
	/* Only the first half is reserved; the rest is when it is needed. */
	TSI_MEM_HALF = 2,
	/* Nothing is reserved before it is needed, but it counts as taken for
	 * all memory that is made meanwhile. */
	TSI_MEM_LATER = 4,
};

struct tsi_memfd {
	void *base; /* not in a forked child */
	size_t len;
	int fd;
};

/*
 * Make len bytes of zeroes, mapped shared: writable here and read-only for
 * all others, or with PEER_WRITES the reverse.  Fails with ENOMEM, naming
 * what is needed, what there is and what limits it; ENOTSUP where the kernel
 * or a container forbids memfds or seals; EARG; ESYS.
 */
int tsi_memfd_create(const char *label, size_t len, int flags,
		     struct tsi_memfd *out);

/*
 * Reserve n bytes from at on, within what TSI_MEM_HALF or TSI_MEM_LATER left
 * out, and for good.  Any thread.  Fails as tsi_memfd_create() does.
 */
int tsi_memfd_reserve(const struct tsi_memfd *m, const char *label, size_t at,
		      size_t n);

/* So many bytes made with TSI_MEM_LATER are there now, or won't be needed. */
void tsi_memfd_came(uint64_t n);

/* Where it is mapped, NULL: nowhere; and the descriptor. */
static inline void *tsi_memfd_base(const struct tsi_memfd *m)
{
	return m->base;
}

static inline int tsi_memfd_fd(const struct tsi_memfd *m)
{
	return m->fd;
}

/*
 * m may be NULL, all zero, or closed already.  Other processes that have the
 * memory mapped keep it.
 */
void tsi_memfd_close(struct tsi_memfd *m);

/*
 * Call this before trusting a descriptor of another process: EPROTO unless it
 * is len bytes of what tsi_memfd_create() makes with these flags.
 */
int tsi_memfd_check(int fd, size_t len, int flags, const char *what);

#endif
