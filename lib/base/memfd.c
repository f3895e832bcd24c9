/* SPDX-License-Identifier: MIT */
/*
 * memfd.c - shared memory that has no name and that nobody can cut short.
 *
 * Once the data flows, nothing here runs but tsi_memfd_reserve(), until all
 * memory has been written once.
 */
#include "base/memfd.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/numa.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Newer than the oldest C library that this builds on. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#ifndef TMPFS_MAGIC
#define TMPFS_MAGIC 0x01021994
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define MIB ((size_t)1 << 20)

/*
 * Bytes of this process's memory made with TSI_MEM_LATER that aren't reserved
 * yet.  The kernel counts them as free.
 */
static _Atomic uint64_t promised;

static int seals_for(int flags)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	return flags & TSI_MEM_PEER_WRITES ? seals
					   : seals | F_SEAL_FUTURE_WRITE;
}

static double in_mb(uint64_t bytes)
{
	return (double)bytes / 1e6;
}

/*
 * A memory cgroup answers a reservation beyond its limit with SIGKILL, so the
 * limit is read first.  A sixteenth is added for page tables, here and in the
 * consumers, and for what the process needs besides.  taken: bytes that are
 * spoken for, but not reserved yet.
 */
static int enough_memory(const char *label, size_t len, uint64_t taken)
{
	uint64_t need = len + len / 16, have;
	char limiter[4200];

	/* Too small to reach a limit by itself; made at every join. */
	if (len < MIB)
		return 0;
	if (tsi_limits_memory("", &have, limiter, sizeof(limiter)))
		return 0;
	have -= taken < have ? taken : have;
	if (need <= have)
		return 0;
	return tsi_err(TSOCK_ENOMEM,
		       "%s needs %.1f MB of memory but %.1f MB are available "
		       "(by %.256s); free some, raise that limit, or make the "
		       "rings smaller (--ring, --memory)",
		       label, in_mb(need), in_mb(have), limiter);
}

/* Beyond RLIMIT_FSIZE the kernel sends a signal that kills by default. */
static int within_file_size(const char *label, size_t len)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY ||
	    len <= r.rlim_cur)
		return 0;
	return tsi_err(TSOCK_ENOMEM,
		       "%s needs %.1f MB but the file size limit (ulimit -f) "
		       "is %.1f MB; raise it",
		       label, in_mb(len), in_mb(r.rlim_cur));
}

static int open_memfd(const char *label, int *out)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "tsock:%s", label);
	/* Some systems demand this flag, and before Linux 6.3 none knew it. */
	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd >= 0) {
		*out = fd;
		return 0;
	}
	if (errno == EMFILE || errno == ENFILE)
		return tsi_err_sys("no descriptor left for %s, raise the limit "
				   "(ulimit -n)",
				   label);
	if (errno != ENOSYS && errno != EPERM && errno != EACCES)
		return tsi_err_sys("memfd_create for %s", label);
	return tsi_err(TSOCK_ENOTSUP,
		       "memfd_create is forbidden here (%s); shared memory "
		       "needs it: allow it in the container's seccomp profile",
		       strerror(errno));
}

/*
 * Reserve every page.  A call that a signal interrupts gives back all that it
 * had reserved, so a process under a fast timer needs smaller steps.
 */
static int reserve(int fd, const char *label, size_t at, size_t len)
{
	size_t done = 0, step = 64 * MIB;
	int tries = 0;

	while (done < len) {
		size_t n = len - done < step ? len - done : step;

		if (!fallocate(fd, 0, (off_t)(at + done), (off_t)n)) {
			done += n;
			continue;
		}
		if (errno == EINTR && ++tries < 1000) {
			step = step > MIB ? step / 2 : MIB;
			continue;
		}
		if (errno != ENOSPC && errno != ENOMEM)
			return tsi_err_sys("reserve %.1f MB for %s", in_mb(len),
					   label);
		return tsi_err(TSOCK_ENOMEM,
			       "the kernel could not reserve %.1f MB for %s "
			       "(%s); free memory or make the rings smaller "
			       "(--ring, --memory)",
			       in_mb(len), label, strerror(errno));
	}
	return 0;
}

/* A hole has its length before it is sealed, and its pages later. */
static int reserve_first(int fd, const char *label, size_t len, int flags)
{
	if (!(flags & (TSI_MEM_HALF | TSI_MEM_LATER)))
		return reserve(fd, label, 0, len);
	if (ftruncate(fd, (off_t)len))
		return tsi_err_sys("make %.1f MB for %s", in_mb(len), label);
	return flags & TSI_MEM_LATER ? 0 : reserve(fd, label, 0, len / 2);
}

/* How pages will be found for large memory: hints, which a kernel may ignore. */
static void advise(void *base, size_t len)
{
	if (len < 16 * MIB)
		return;
	madvise(base, len, MADV_HUGEPAGE);
	tsi_numa_interleave(&tsi_numa_system, base, len);
}

static int seal(int fd, const char *label, int flags)
{
	if (!fcntl(fd, F_ADD_SEALS, seals_for(flags)))
		return 0;
	return tsi_err(TSOCK_ENOTSUP,
		       "the memory of %s can't be sealed against writers (%s); "
		       "this needs Linux 5.1 and a container that allows "
		       "F_ADD_SEALS",
		       label, strerror(errno));
}

int tsi_memfd_create(const char *label, size_t len, int flags,
		     struct tsi_memfd *out)
{
	int prot = flags & TSI_MEM_PEER_WRITES ? PROT_READ
					       : PROT_READ | PROT_WRITE;
	struct tsi_memfd m = { .len = len, .fd = -1 };
	int err;

	if (!len || len > INT64_MAX / 2)
		return tsi_err(TSOCK_EARG, "%s: can't make %zu bytes of memory",
			       label, len);
	err = within_file_size(label, len);
	if (!err)
		err = enough_memory(label, flags & TSI_MEM_HALF ? len / 2 : len,
				    atomic_load(&promised));
	if (!err)
		err = open_memfd(label, &m.fd);
	if (err)
		return err;
	/* Before the seal: later no new writable mapping can be made. */
	m.base = mmap(NULL, len, prot, MAP_SHARED, m.fd, 0);
	if (m.base == MAP_FAILED) {
		err = tsi_err_sys("map %.1f MB for %s", in_mb(len), label);
		goto err_close;
	}
	/* Before the pages are there, which doesn't move them. */
	advise(m.base, len);
	err = reserve_first(m.fd, label, len, flags);
	if (err)
		goto err_unmap;
	/* A forked child would still write through it, seal or no seal. */
	if (madvise(m.base, len, MADV_DONTFORK)) {
		err = tsi_err_sys("madvise %s", label);
		goto err_unmap;
	}
	err = seal(m.fd, label, flags);
	if (err)
		goto err_unmap;
	if (flags & TSI_MEM_LATER)
		atomic_fetch_add(&promised, len);
	*out = m;
	return 0;

err_unmap:
	munmap(m.base, len);
err_close:
	close(m.fd);
	return err;
}

int tsi_memfd_reserve(const struct tsi_memfd *m, const char *label, size_t at,
		      size_t n)
{
	int err = enough_memory(label, n, 0);

	if (err)
		return err;
	/* Only a write through the mapping makes huge pages where they have to
	 * be asked for.  What it doesn't do, reserve() does, or says why not. */
	if (m->base)
		madvise((char *)m->base + at, n, MADV_POPULATE_WRITE);
	return reserve(m->fd, label, at, n);
}

void tsi_memfd_came(uint64_t n)
{
	atomic_fetch_sub(&promised, n);
}

void tsi_memfd_close(struct tsi_memfd *m)
{
	if (!m || !m->base)
		return;
	munmap(m->base, m->len);
	close(m->fd);
	*m = (struct tsi_memfd){ .fd = -1 };
}

int tsi_memfd_check(int fd, size_t len, int flags, const char *what)
{
	int need = seals_for(flags);
	int seals = fcntl(fd, F_GET_SEALS);
	size_t there = flags & TSI_MEM_LATER  ? 0
		       : flags & TSI_MEM_HALF ? len / 2
					      : len;
	struct statfs fs;
	struct stat st;

	if (seals < 0 || (seals & need) != need)
		return tsi_err(TSOCK_EPROTO,
			       "the descriptor received for %s isn't sealed "
			       "shared memory",
			       what);
	if (fstat(fd, &st))
		return tsi_err_sys("fstat %s", what);
	if (st.st_size < 0 || (uint64_t)st.st_size != len)
		return tsi_err(TSOCK_EPROTO,
			       "the memory received for %s has %lld bytes, not "
			       "%zu",
			       what, (long long)st.st_size, len);
	/* A page that isn't there can be a SIGBUS: huge ones always. */
	if (fstatfs(fd, &fs))
		return tsi_err_sys("fstatfs %s", what);
	if (fs.f_type != TMPFS_MAGIC || (uint64_t)st.st_blocks * 512 < there)
		return tsi_err(TSOCK_EPROTO,
			       "the memory received for %s isn't all there",
			       what);
	return 0;
}
