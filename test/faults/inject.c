/* SPDX-License-Identifier: MIT */
/*
 * inject.c - system calls and allocations that fail on demand.
 *
 * Every function called __wrap_X stands where our objects call X, and
 * __real_X is X itself.
 */
#include "test/faults/inject_kinds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ERRORS(name, ...) static const int errors_##name[8] = __VA_ARGS__;
#define ENTRY(name, ...) { #name, errors_##name },
KINDS(ERRORS)
static const struct inject_call table[] = { KINDS(ENTRY){ NULL, NULL } };

static struct {
	_Atomic int kind; /* -1: none */
	_Atomic int err;
	_Atomic unsigned first, last, calls, reached;
} armed = { .kind = -1 };

static _Thread_local unsigned paused;
static _Atomic bool all_paused;

const struct inject_call *inject_calls(void)
{
	return table;
}

void inject_arm(unsigned which, int err, unsigned n, unsigned times)
{
	inject_disarm();
	atomic_store(&armed.err, err);
	atomic_store(&armed.first, n);
	atomic_store(&armed.last,
		     times > UINT32_MAX - n ? UINT32_MAX : n + times - 1);
	atomic_store(&armed.calls, 0);
	atomic_store(&armed.reached, 0);
	atomic_store(&armed.kind, (int)which);
}

void inject_disarm(void)
{
	atomic_store(&armed.kind, -1);
}

unsigned inject_reached(void)
{
	return atomic_load(&armed.reached);
}

void inject_pause(void)
{
	paused++;
}

void inject_resume(void)
{
	paused--;
}

void inject_pause_all(void)
{
	atomic_store(&all_paused, true);
}

void inject_resume_all(void)
{
	atomic_store(&all_paused, false);
}

/* The errno that this call fails with; 0: it doesn't. */
int inject_hit(enum inject_kind kind)
{
	unsigned n;

	if (paused || atomic_load(&all_paused) ||
	    atomic_load(&armed.kind) != (int)kind)
		return 0;
	n = atomic_fetch_add(&armed.calls, 1) + 1;
	if (n < atomic_load(&armed.first) || n > atomic_load(&armed.last))
		return 0;
	atomic_fetch_add(&armed.reached, 1);
	return atomic_load(&armed.err);
}

/* For calls that may do less than was asked for: the length, or -1. */
static ssize_t allowed(enum inject_kind kind, size_t len)
{
	int err = inject_hit(kind);

	if (err == INJECT_SHORT)
		return (ssize_t)(len - len / 2);
	if (err) {
		errno = err;
		return -1;
	}
	return (ssize_t)len;
}

/* ------------------------------------------------------------------------
 * Allocations
 */

#define SLOTS (1u << 18) /* far more than a test has */

static struct {
	atomic_flag lock;
	void *p[SLOTS]; /* open addressing; FREED: was used */
	size_t live;
} heap = { .lock = ATOMIC_FLAG_INIT };
static char freed_mark;
#define FREED ((void *)&freed_mark)

static unsigned slot_of(const void *p)
{
	return (unsigned)(((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >>
			  40) %
	       SLOTS;
}

static void *keep(void *p)
{
	unsigned i = slot_of(p);

	if (!p)
		return NULL;
	while (atomic_flag_test_and_set(&heap.lock))
		;
	while (heap.p[i] && heap.p[i] != FREED)
		i = (i + 1) % SLOTS;
	heap.p[i] = p;
	heap.live++;
	atomic_flag_clear(&heap.lock);
	return p;
}

static void drop(const void *p)
{
	unsigned i = slot_of(p);

	if (!p)
		return;
	while (atomic_flag_test_and_set(&heap.lock))
		;
	while (heap.p[i] && heap.p[i] != p)
		i = (i + 1) % SLOTS;
	/* Those of libraries aren't there. */
	if (heap.p[i] == p) {
		heap.p[i] = FREED;
		heap.live--;
	}
	atomic_flag_clear(&heap.lock);
}

size_t inject_live(void)
{
	size_t n;

	while (atomic_flag_test_and_set(&heap.lock))
		;
	n = heap.live;
	atomic_flag_clear(&heap.lock);
	return n;
}

#define DECLARE(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

#define FAIL_WITH(kind, failure) \
	do { \
		int err_ = inject_hit(KIND_##kind); \
		if (err_) { \
			errno = err_; \
			return failure; \
		} \
	} while (0)

DECLARE(void *, malloc, size_t n);
void *__wrap_malloc(size_t n)
{
	FAIL_WITH(malloc, NULL);
	return keep(__real_malloc(n));
}

DECLARE(void *, calloc, size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	FAIL_WITH(calloc, NULL);
	return keep(__real_calloc(n, size));
}

DECLARE(void *, realloc, void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
	void *q;

	FAIL_WITH(realloc, NULL);
	drop(p);
	q = __real_realloc(p, n);
	return keep(q ? q : n ? p : NULL) == q ? q : NULL;
}

DECLARE(void *, aligned_alloc, size_t align, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n)
{
	FAIL_WITH(aligned_alloc, NULL);
	return keep(__real_aligned_alloc(align, n));
}

DECLARE(char *, strdup, const char *s);
char *__wrap_strdup(const char *s)
{
	FAIL_WITH(strdup, NULL);
	return keep(__real_strdup(s));
}

DECLARE(char *, strndup, const char *s, size_t n);
char *__wrap_strndup(const char *s, size_t n)
{
	FAIL_WITH(strndup, NULL);
	return keep(__real_strndup(s, n));
}

DECLARE(void, free, void *p);
void __wrap_free(void *p)
{
	drop(p);
	__real_free(p);
}

static int print_new(char **out, const char *fmt, va_list args)
{
	int n;

	FAIL_WITH(asprintf, -1);
	n = vasprintf(out, fmt, args);
	if (n >= 0)
		keep(*out);
	return n;
}

/* Hardened builds call asprintf() by this name. */
int __wrap___asprintf_chk(char **out, int flag, const char *fmt, ...);
int __wrap___asprintf_chk(char **out, int flag, const char *fmt, ...)
{
	va_list args;
	int n;

	(void)flag;
	va_start(args, fmt);
	n = print_new(out, fmt, args);
	va_end(args);
	return n;
}

int __wrap_asprintf(char **out, const char *fmt, ...);
int __wrap_asprintf(char **out, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = print_new(out, fmt, args);
	va_end(args);
	return n;
}

/* ------------------------------------------------------------------------
 * Calls whose last argument may be missing
 */

DECLARE(int, open, const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	FAIL_WITH(open, -1);
	va_start(args, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(args, mode_t);
	va_end(args);
	return __real_open(path, flags, mode);
}

DECLARE(int, openat, int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	FAIL_WITH(openat, -1);
	/* Nothing of ours makes a file by it. */
	return __real_openat(dir, path, flags);
}

DECLARE(int, __openat_2, int dir, const char *path, int flags);
int __wrap___openat_2(int dir, const char *path, int flags)
{
	FAIL_WITH(openat, -1);
	return __real___openat_2(dir, path, flags);
}

DECLARE(int, fcntl, int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	FAIL_WITH(fcntl, -1);
	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return __real_fcntl(fd, cmd, arg);
}

DECLARE(long, syscall, long number, ...);
long __wrap_syscall(long number, ...)
{
	va_list args;
	long a[6];

	/* Listings are a kind of their own: they fail as a disk does. */
	if (number == SYS_getdents64)
		FAIL_WITH(getdents64, -1);
	else
		FAIL_WITH(syscall, -1);
	va_start(args, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ------------------------------------------------------------------------
 * Calls that may do less than was asked for
 */

DECLARE(ssize_t, read, int fd, void *to, size_t len);
ssize_t __wrap_read(int fd, void *to, size_t len)
{
	ssize_t n = allowed(KIND_read, len);

	return n < 0 ? n : __real_read(fd, to, (size_t)n);
}

DECLARE(ssize_t, pread, int fd, void *to, size_t len, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at)
{
	ssize_t n = allowed(KIND_pread, len);

	return n < 0 ? n : __real_pread(fd, to, (size_t)n, at);
}

DECLARE(ssize_t, preadv2, int fd, const struct iovec *v, int n, off_t at,
	int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *v, int n, off_t at,
		       int flags)
{
	struct iovec one = v[0];
	ssize_t len = allowed(KIND_preadv2, one.iov_len);

	if (len < 0)
		return len;
	one.iov_len = (size_t)len;
	return (size_t)len < v[0].iov_len
		       ? __real_preadv2(fd, &one, 1, at, flags)
		       : __real_preadv2(fd, v, n, at, flags);
}

DECLARE(ssize_t, write, int fd, const void *from, size_t len);
ssize_t __wrap_write(int fd, const void *from, size_t len)
{
	ssize_t n = allowed(KIND_write, len);

	return n < 0 ? n : __real_write(fd, from, (size_t)n);
}

DECLARE(ssize_t, pwrite, int fd, const void *from, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t len, off_t at)
{
	ssize_t n = allowed(KIND_pwrite, len);

	return n < 0 ? n : __real_pwrite(fd, from, (size_t)n, at);
}

/* ------------------------------------------------------------------------
 * All others
 */

/* The descriptor is closed in any case, as Linux does it. */
DECLARE(int, close, int fd);
int __wrap_close(int fd)
{
	int rc = __real_close(fd);

	FAIL_WITH(close, -1);
	return rc;
}

/* In front of a call that otherwise is as it was. */
#define WRAP(type, name, kind, failure, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params \
	{ \
		FAIL_WITH(kind, failure); \
		return __real_##name args; \
	}

WRAP(FILE *, open_memstream, open_memstream, NULL, (char **p, size_t *n),
     (p, n))
WRAP(char *, realpath, realpath, NULL, (const char *path, char *to), (path, to))
WRAP(FILE *, fopen, fopen, NULL, (const char *path, const char *mode),
     (path, mode))
WRAP(DIR *, opendir, opendir, NULL, (const char *path), (path))
WRAP(DIR *, fdopendir, fdopendir, NULL, (int fd), (fd))
WRAP(struct dirent *, readdir, readdir, NULL, (DIR * d), (d))
WRAP(int, fstat, fstat, -1, (int fd, struct stat *st), (fd, st))
WRAP(int, stat, stat, -1, (const char *path, struct stat *st), (path, st))
WRAP(int, lstat, lstat, -1, (const char *path, struct stat *st), (path, st))
WRAP(int, fstatat, fstatat, -1,
     (int dir, const char *path, struct stat *st, int flags),
     (dir, path, st, flags))
WRAP(int, mkdir, mkdir, -1, (const char *path, mode_t mode), (path, mode))
WRAP(int, rename, rename, -1, (const char *from, const char *to), (from, to))
WRAP(int, mkostemp, mkostemp, -1, (char *path, int flags), (path, flags))
WRAP(int, unlink, unlink, -1, (const char *path), (path))
WRAP(int, ftruncate, ftruncate, -1, (int fd, off_t len), (fd, len))
WRAP(int, fallocate, fallocate, -1, (int fd, int mode, off_t at, off_t len),
     (fd, mode, at, len))
WRAP(int, memfd_create, memfd_create, -1, (const char *name, unsigned flags),
     (name, flags))
WRAP(int, eventfd, eventfd, -1, (unsigned value, int flags), (value, flags))
WRAP(void *, mmap, mmap, MAP_FAILED,
     (void *p, size_t len, int prot, int flags, int fd, off_t at),
     (p, len, prot, flags, fd, at))
WRAP(int, mprotect, mprotect, -1, (void *p, size_t len, int prot),
     (p, len, prot))
WRAP(int, madvise, madvise, -1, (void *p, size_t len, int advice),
     (p, len, advice))
WRAP(int, socket, socket, -1, (int domain, int type, int protocol),
     (domain, type, protocol))
WRAP(int, bind, bind, -1, (int fd, const struct sockaddr *a, socklen_t len),
     (fd, a, len))
WRAP(int, listen, listen, -1, (int fd, int backlog), (fd, backlog))
WRAP(int, connect, connect, -1,
     (int fd, const struct sockaddr *a, socklen_t len), (fd, a, len))
WRAP(int, accept4, accept4, -1,
     (int fd, struct sockaddr *a, socklen_t *len, int flags),
     (fd, a, len, flags))
WRAP(ssize_t, sendmsg, sendmsg, -1, (int fd, const struct msghdr *h, int flags),
     (fd, h, flags))
WRAP(ssize_t, recvmsg, recvmsg, -1, (int fd, struct msghdr *h, int flags),
     (fd, h, flags))
WRAP(ssize_t, recv, recv, -1, (int fd, void *to, size_t len, int flags),
     (fd, to, len, flags))
WRAP(int, getsockopt, getsockopt, -1,
     (int fd, int level, int name, void *value, socklen_t *len),
     (fd, level, name, value, len))
WRAP(int, setsockopt, setsockopt, -1,
     (int fd, int level, int name, const void *value, socklen_t len),
     (fd, level, name, value, len))
WRAP(int, poll, poll, -1, (struct pollfd * p, nfds_t n, int ms), (p, n, ms))
WRAP(ssize_t, getrandom, getrandom, -1, (void *to, size_t len, unsigned flags),
     (to, len, flags))
WRAP(int, pthread_create, pthread_create, err_,
     (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *arg),
     (t, a, fn, arg))

/* ------------------------------------------------------------------------
 * The time of day
 */

static _Atomic bool jumping;
static _Atomic unsigned looks;

void inject_jumping_clock(void)
{
	atomic_store(&looks, 0);
	atomic_store(&jumping, true);
}

unsigned inject_clock_looks(void)
{
	return atomic_load(&looks);
}

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	int rc = __real_clock_gettime(id, out);
	bool day = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;

	if (!rc && day && atomic_load(&jumping))
		out->tv_sec += atomic_fetch_add(&looks, 1) % 2 ? 86400 : -86400;
	return rc;
}

time_t __real_time(time_t *out);
time_t __wrap_time(time_t *out);
time_t __wrap_time(time_t *out)
{
	struct timespec ts;

	(void)out;
	__wrap_clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec;
}
