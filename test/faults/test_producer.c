/* SPDX-License-Identifier: MIT */
/*
 * test_producer.c - a data set that is scanned, read, decoded and served: each
 * system call and each allocation on the way fails in turn.
 *
 * A fault that has nothing to do with a file never makes the file bad: every
 * epoch that comes to its end has each of them once, with its own bytes, and
 * what was kept of the scan for the next start is right.
 */
#include "run/service.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/faults/inject.h"
#include "test/faults/walk.h"
#include "test/lib/image_gen.h"
#include "test/lib/proc.h"
#include "test/lib/recipes.h"

#define CLASSES 3
#define IMAGES 3 /* in each class */
#define N (CLASSES * IMAGES)
#define SIZE 16
#define BYTES (SIZE * SIZE * 3)

static char root[64], cache[96];
static enum tsi_io_reader_kind io;
static bool direct; /* past the page cache */

/* The bytes of each sample, as they come without any fault; shared, since a
 * child is the first to see them. */
static struct {
	bool known;
	uint8_t image[N][BYTES];
} * right;

static void put_image(const char *path, uint64_t seed)
{
	struct image_gen_jpeg g = {
		.width = 50, .height = 40, .components = 3, .seed = seed
	};
	struct image_gen_png p = { .width = 50,
				   .height = 40,
				   .type = PNG_COLOR_TYPE_RGB,
				   .depth = 8,
				   .seed = seed };
	struct image_gen_bytes b =
		seed % 3 ? image_gen_jpeg(&g) : image_gen_png(&p);
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
	fclose(f);
	free(b.data);
}

static int make_tree(void **state)
{
	char path[128];

	(void)state;
	inject_pause();
	right = mmap(NULL, sizeof(*right), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(right != MAP_FAILED);
	snprintf(root, sizeof(root), "/tmp/tsock-faults-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	for (unsigned i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "%s/%c", root, 'a' + i / IMAGES);
		if (i % IMAGES == 0)
			assert_int_equal(mkdir(path, 0700), 0);
		snprintf(path, sizeof(path), "%s/%c/%u.jpg", root,
			 'a' + i / IMAGES, i);
		put_image(path, i);
	}
	inject_resume();
	return 0;
}

static int remove_tree(void **state)
{
	char command[96];

	proc_end_children(state);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* What a case outside of walk.c, which removes its folders, keeps of a scan. */
static int remove_cache(void **state)
{
	char command[300];

	proc_end_children(state);
	snprintf(command, sizeof(command), "rm -rf '%s/cache'",
		 getenv("TSOCK_DIR"));
	return system(command);
}

static struct tsi_pipeline_opts options(void)
{
	snprintf(cache, sizeof(cache), "%s/cache", getenv("TSOCK_DIR"));
	return (struct tsi_pipeline_opts){
		.format = &tsi_format_imagefolder,
		.folder = root,
		.recipe = recipes_eval(SIZE, SIZE),
		.order = TSOCK_ORDER_SEQUENTIAL,
		.segments = 1,
		.io = io,
		.direct = direct,
		.image_memory = 1 << 20,
		.cache = cache,
		.threads = 2,
		.name = "producer",
		.epochs = 2,
		.ring = 64,
		.max_batch = 8,
	};
}

static void check_samples(const tsock_batch *b, uint8_t *seen)
{
	const uint8_t *image = tsock_batch_data(b, TSI_FIELD_IMAGE);
	const int64_t *label = tsock_batch_data(b, TSI_FIELD_LABEL);
	const int64_t *index = tsock_batch_data(b, TSI_FIELD_INDEX);

	for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
		int64_t x = index[i];

		need(x >= 0 && x < N && !seen[x]++);
		need(label[i] == x / IMAGES);
		if (!right->known)
			memcpy(right->image[x], image + i * BYTES, BYTES);
		if (memcmp(right->image[x], image + i * BYTES, BYTES))
			die("image %d is wrong", (int)x);
	}
}

/* An epoch; its last sample says that it is over. */
static int read_epoch(tsock *t, int patience_ms)
{
	uint8_t seen[N] = { 0 };
	tsock_batch *b;
	int err;

	while (!(err = tsock_next(t, patience_ms, &b))) {
		check_samples(b, seen);
		tsock_batch_release(b);
	}
	if (err != TSOCK_EEPOCH)
		return err;
	for (unsigned i = 0; i < N; i++)
		need(seen[i]);
	right->known = true;
	return 0;
}

static int consume(int patience_ms)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;
	int err;

	o.batch_size = 4;
	o.timeout_ms = (uint32_t)patience_ms;
	err = tsock_open("producer", &o, &t);
	if (err)
		return err;
	for (unsigned i = 0; i < 2 && !err; i++) {
		err = tsock_begin_timed(t, patience_ms);
		if (!err)
			err = read_epoch(t, patience_ms);
	}
	tsock_close(t);
	return err;
}

static int work(int patience_ms)
{
	struct tsi_pipeline_opts o = options();
	struct tsi_service *s;
	int err = tsi_service_open(&o, &s);

	if (err)
		return err;
	/* No file of this tree is bad. */
	need(tsi_index_bad_count(tsi_sampler_index(tsi_service_sampler(s))) ==
	     0);
	err = tsi_service_start(s);
	/* The consumer's own calls are test_stream.c's. */
	inject_pause();
	if (!err)
		err = consume(patience_ms);
	inject_resume();
	tsi_service_close(s);
	return err;
}

static struct walk of(const char *kinds)
{
	bool uring = io == TSI_READER_URING;

	return (struct walk){ .name = uring ? "io_uring" : "pread",
			      .work = work,
			      .kinds = kinds };
}

static bool can_use(enum tsi_io_reader_kind kind)
{
	io = kind;
	if (kind == TSI_READER_URING && !inject_uring_works()) {
		print_message("operations of io_uring can't be made to fail "
			      "here\n");
		return false;
	}
	return true;
}

static void faults_of_the_io_uring_reader(void **state)
{
	(void)state;
	if (can_use(TSI_READER_URING)) {
		struct walk w = of(NULL);

		walk_one_by_one(&w);
	} else {
		skip();
	}
}

/* Do this kernel, and the tree's file system, tell what is in the cache?  The
 * tree's files have just been written. */
static bool tells_what_is_cached(void)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC,
				.resolve = RESOLVE_CACHED };
	struct iovec to = { .iov_base = (char[1]){ 0 }, .iov_len = 1 };
	char path[128];
	ssize_t n = -1;
	int fd;

	inject_pause();
	snprintf(path, sizeof(path), "%s/a/0.jpg", root);
	fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd >= 0) {
		n = preadv2(fd, &to, 1, 0, RWF_NOWAIT);
		close(fd);
	}
	inject_resume();
	return n == 1;
}

/* What all readers need is walked through with io_uring. */
static void faults_of_the_pread_reader(void **state)
{
	struct walk w;

	(void)state;
	can_use(TSI_READER_PREAD);
	if (!tells_what_is_cached()) {
		print_message("what is in the page cache is not known here\n");
		skip();
	}
	w = of("malloc calloc preadv2 syscall close fcntl pthread_create ");
	walk_one_by_one(&w);
}

/* Past the page cache all is read by threads, on every kernel. */
static void faults_of_the_threads_that_read(void **state)
{
	struct walk w;

	(void)state;
	can_use(TSI_READER_PREAD);
	direct = true;
	w = of("openat pread fcntl ");
	walk_one_by_one(&w);
	direct = false;
}

/* The second start has what the first one kept of the scan. */
static int start_twice(int patience_ms)
{
	struct tsi_pipeline_opts o = options();
	struct tsi_service *s;
	int err = 0;

	(void)patience_ms;
	for (unsigned i = 0; i < 2 && !err; i++) {
		err = tsi_service_open(&o, &s);
		if (err)
			break;
		need(tsi_index_count(
			     tsi_sampler_index(tsi_service_sampler(s))) == N);
		tsi_service_close(s);
	}
	return err;
}

static void faults_of_a_scan_that_was_kept(void **state)
{
	static const struct walk w = { .name = "kept",
				       .work = start_twice,
				       .kinds = "read " };

	(void)state;
	can_use(TSI_READER_PREAD);
	walk_one_by_one(&w);
}

/* What is said of a folder that can't be listed to its end names the folder. */
static int scan_once(int patience_ms)
{
	struct tsi_pipeline_opts o = options();
	struct tsi_service *s;
	int err;

	(void)patience_ms;
	o.cache = "";
	err = tsi_service_open(&o, &s);
	if (err) {
		need(!strncmp(tsock_errmsg(), "read the folder ", 16));
		need(!strncmp(tsock_errmsg() + 16, root, strlen(root)));
		return err;
	}
	need(tsi_index_count(tsi_sampler_index(tsi_service_sampler(s))) == N);
	tsi_service_close(s);
	return 0;
}

/* The second look at a folder, after all of its entries, can fail, too. */
static void faults_of_listings(void **state)
{
	static const struct walk w = { .name = "listings",
				       .work = scan_once,
				       .kinds = "getdents64 " };

	(void)state;
	can_use(TSI_READER_PREAD);
	walk_one_by_one(&w);
}

static void faults_that_last(void **state)
{
	struct walk w;

	(void)state;
	can_use(inject_uring_works() ? TSI_READER_URING : TSI_READER_PREAD);
	w = of("malloc calloc realloc strdup open openat fstat pread read "
	       "write io_uring_submit io_uring_open io_uring_read "
	       "io_uring_queue_init ");
	walk_from_each_on(&w);
}

/* The time of day is asked for, of files and in reports; it decides nothing. */
static void a_clock_that_jumps_changes_nothing(void **state)
{
	pid_t pid;

	(void)state;
	can_use(TSI_READER_PREAD);
	proc_own_folder();
	for (unsigned i = 0; i < 2; i++) {
		pid = proc_spawn();
		if (pid == 0) {
			if (i)
				inject_jumping_clock();
			need(!work(30000));
			_exit(0);
		}
		assert_int_equal(proc_ended(pid), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_clock_that_jumps_changes_nothing,
					  remove_cache),
		cmocka_unit_test_teardown(faults_of_the_io_uring_reader,
					  proc_end_children),
		cmocka_unit_test_teardown(faults_of_the_pread_reader,
					  proc_end_children),
		cmocka_unit_test_teardown(faults_of_the_threads_that_read,
					  proc_end_children),
		cmocka_unit_test_teardown(faults_of_a_scan_that_was_kept,
					  proc_end_children),
		cmocka_unit_test_teardown(faults_of_listings,
					  proc_end_children),
		cmocka_unit_test_teardown(faults_that_last, proc_end_children),
	};

	/* Read here: none of the faults is to hit the test itself. */
	recipes_eval(SIZE, SIZE);
	return cmocka_run_group_tests_name("producer", tests, make_tree,
					   remove_tree);
}
