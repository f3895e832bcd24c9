/* SPDX-License-Identifier: MIT */
/*
 * test_pool_steady.c - what a worker thread doesn't do for a sample once it has
 * been through the data set: it takes no lock, and allocates nothing.
 *
 * This program's own pthread_mutex_lock() and malloc() count what threads named
 * "tsock-worker" call.  The consumer takes no batch, so the ring is filled once,
 * over many epochs, and what is counted meanwhile is bounded by the epochs, by
 * the ticks of the control thread, and by the looks of this test.
 */
#include "run/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <time.h>

#include "test/lib/sanitized.h"
#include "test/lib/tar_gen.h"
#include "test/lib/worker_fixture.h"

#define EPOCH 240
#define RING 8192
#define WARM (4 * EPOCH) /* each buffer has held a file by then */
#define BATCH 64
#define BATCHES 40
#define FEW 64    /* samples for which one lock may be taken */
#define SEVERAL 8 /* ... with a view, which is told of 16 at once */

static _Atomic uint64_t locks, calls;
static enum tsi_io_reader_kind io = TSI_READER_URING;

#if !SANITIZED
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

/* Is this a worker?  Asked of the kernel, until the thread has its name. */
static bool counts(void)
{
	static _Thread_local int worker;
	char name[16];

	if (!worker && !prctl(PR_GET_NAME, name, 0, 0, 0)) {
		if (!strcmp(name, "tsock-worker"))
			worker = 1;
		else if (!strncmp(name, "tsock-", 6))
			worker = -1;
	}
	return worker > 0;
}

void *malloc(size_t n)
{
	calls += counts();
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	calls += counts();
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	calls += counts();
	return __libc_realloc(p, n);
}

#define COUNTED(name, type) \
	int name(type *lock) \
	{ \
		static _Atomic(void *) found; \
		void *fn = atomic_load(&found); \
		int (*real)(type *); \
\
		if (!fn) \
			atomic_store(&found, fn = dlsym(RTLD_NEXT, #name)); \
		memcpy(&real, &fn, sizeof(real)); \
		locks += counts(); \
		return real(lock); \
	}

COUNTED(pthread_mutex_lock, pthread_mutex_t)
COUNTED(pthread_mutex_trylock, pthread_mutex_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)
#endif

/* Does the file system of the test's tree tell what is in the page cache? */
static bool tells_what_is_cached(void)
{
	struct iovec to = { .iov_base = (char[1]){ 0 }, .iov_len = 1 };
	char path[4200];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/told", worker_root);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "", 1), 1);
	n = preadv2(fd, &to, 1, 0, RWF_NOWAIT);
	close(fd);
	unlink(path);
	return n == 1;
}

static bool has_uring(void)
{
	struct tsi_io_reader *r;

	if (tsi_io_reader_create(TSI_READER_URING, 1, &r)) {
		print_message("there is no io_uring here\n");
		return false;
	}
	tsi_io_reader_destroy(r);
	return true;
}

static void put_folder(void)
{
	char name[32];

	for (unsigned i = 0; i < EPOCH; i++) {
		snprintf(name, sizeof(name), "%c/%u.png", 'a' + i % 3, i);
		worker_put_image(name);
	}
}

static void put_shards(void)
{
	struct tar_gen t = { 0 };
	char name[32];

	for (unsigned i = 0; i < EPOCH; i++) {
		snprintf(name, sizeof(name), "%03u.png", i);
		tar_gen_file(&t, name, worker_png, sizeof(worker_png));
		snprintf(name, sizeof(name), "%03u.cls", i);
		tar_gen_text(&t, name, i % 2 ? "1" : "0");
		if (i % 60 != 59)
			continue;
		tar_gen_end(&t);
		snprintf(name, sizeof(name), "s%u.tar", i);
		worker_put(name, t.data, t.len);
		free(t.data);
		t = (struct tar_gen){ 0 };
	}
	worker_options.format = &tsi_format_webdataset;
}

static uint64_t produced(struct tsi_service *s)
{
	struct tsock_stats st;

	st.size = sizeof(st);
	assert_int_equal(tsock_serve_stats(tsi_service_server(s), &st), 0);
	return st.produced;
}

/* Looks ever less often. */
static void wait_produced(struct tsi_service *s, uint64_t n)
{
	struct timespec pause = { 0, 1000000 };

	for (unsigned i = 0; produced(s) < n; i++) {
		assert_true(i < 1200);
		nanosleep(&pause, NULL);
		pause.tv_nsec += pause.tv_nsec < 50000000 ? 1000000 : 0;
	}
}

/* A stream with a consumer. */
static struct tsi_service *start(unsigned threads, uint32_t ring,
				 enum tsock_dtype dtype, tsock **t)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsi_service *s;

	worker_options.name = "steady";
	worker_options.threads = threads;
	worker_options.image_memory = 1 << 20;
	worker_options.open_files = 8;
	worker_options.ring = ring;
	worker_options.max_batch = BATCH;
	worker_options.join_window = 1;
	worker_options.io = io;
	o.batch_size = BATCH;
	o.dtype = dtype;
	assert_int_equal(setenv("TSOCK_DIR", worker_root, 1), 0);
	if (tsi_service_open(&worker_options, &s) || tsi_service_start(s) ||
	    tsock_open("steady", &o, t) || tsock_begin(*t))
		fail_msg("%s", tsock_errmsg());
	return s;
}

/* Workers fill a ring; counts what they do after the first samples, and allows
 * a lock for so many of them. */
static void fill_ring(enum tsock_dtype dtype, unsigned samples)
{
	uint64_t locked, called;
	tsock *t = NULL;
	struct tsi_service *s = start(2, RING, dtype, &t);

	wait_produced(s, WARM);
	locked = atomic_load(&locks);
	called = atomic_load(&calls);
	/* They were counted. */
	assert_true(locked > 0);
	wait_produced(s, RING);
	locked = atomic_load(&locks) - locked;
	called = atomic_load(&calls) - called;
	tsock_close(t);
	tsi_service_close(s);
	assert_int_equal(called, 0);
	assert_in_range(locked, 0, (RING - WARM) / samples);
}

/*
 * The ring is full, and each batch that is given back is room for a batch.  A
 * worker with eight samples in progress finds no room with 7, 3, 1 and none
 * left.
 */
static void a_full_ring_is_asked_for_room_a_few_times(void **state)
{
	tsock *t = NULL;
	struct tsi_service *s;
	tsock_batch *b;
	uint64_t had, locked;
	int err;

	(void)state;
	if (SANITIZED || !has_uring())
		skip();
	put_folder();
	s = start(1, 4 * BATCH, TSOCK_U8, &t);
	had = 4 * BATCH;
	wait_produced(s, had);
	locked = atomic_load(&locks);
	for (unsigned i = 0; i < BATCHES; i++) {
		while ((err = tsock_next(t, 20000, &b)) == TSOCK_EEPOCH)
			assert_int_equal(tsock_begin(t), 0);
		assert_int_equal(err, 0);
		had += tsock_batch_count(b);
		tsock_batch_release(b);
		wait_produced(s, had);
	}
	locked = atomic_load(&locks) - locked;
	tsock_close(t);
	tsi_service_close(s);
	assert_in_range(locked, 1, 6 * BATCHES);
}

static void no_lock_is_taken_for_a_file(void **state)
{
	(void)state;
	if (SANITIZED || !has_uring())
		skip();
	put_folder();
	fill_ring(TSOCK_U8, FEW);
}

static void no_lock_is_taken_for_a_file_that_pread_finds_cached(void **state)
{
	(void)state;
	if (SANITIZED || !tells_what_is_cached())
		skip();
	put_folder();
	io = TSI_READER_PREAD;
	fill_ring(TSOCK_U8, FEW);
	io = TSI_READER_URING;
}

static void no_lock_is_taken_in_a_shuffled_order(void **state)
{
	(void)state;
	if (SANITIZED || !has_uring())
		skip();
	put_folder();
	worker_options.order = TSOCK_ORDER_PHILOX;
	fill_ring(TSOCK_U8, FEW);
}

static void no_lock_is_taken_for_a_part_of_a_file(void **state)
{
	(void)state;
	if (SANITIZED || !has_uring())
		skip();
	put_shards();
	worker_options.order = TSOCK_ORDER_TORCH;
	fill_ring(TSOCK_U8, FEW);
}

/* Its view's thread, which converts samples, sleeps until there are several. */
static void few_locks_are_taken_for_a_reader_of_float32(void **state)
{
	(void)state;
	if (SANITIZED || !has_uring())
		skip();
	put_folder();
	fill_ring(TSOCK_F32, SEVERAL);
}

/* The view that the first reader had is kept for a while. */
static void no_lock_is_taken_for_a_view_that_nobody_reads(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsi_service *s;
	tsock *t = NULL, *u;
	uint64_t locked;

	(void)state;
	if (SANITIZED || !has_uring())
		skip();
	put_folder();
	s = start(2, RING, TSOCK_F32, &t);
	o.batch_size = BATCH;
	if (tsock_open("steady", &o, &u) || tsock_begin(u))
		fail_msg("%s", tsock_errmsg());
	tsock_close(t);
	wait_produced(s, WARM);
	locked = atomic_load(&locks);
	wait_produced(s, RING);
	locked = atomic_load(&locks) - locked;
	tsock_close(u);
	tsi_service_close(s);
	assert_in_range(locked, 0, (RING - WARM) / FEW);
}

#define in_a_tree(test) \
	cmocka_unit_test_setup_teardown(test, worker_make_root, \
					worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_tree(a_full_ring_is_asked_for_room_a_few_times),
		in_a_tree(no_lock_is_taken_for_a_file),
		in_a_tree(no_lock_is_taken_for_a_file_that_pread_finds_cached),
		in_a_tree(no_lock_is_taken_in_a_shuffled_order),
		in_a_tree(no_lock_is_taken_for_a_part_of_a_file),
		in_a_tree(few_locks_are_taken_for_a_reader_of_float32),
		in_a_tree(no_lock_is_taken_for_a_view_that_nobody_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
