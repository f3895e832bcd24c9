/* SPDX-License-Identifier: MIT */
/*
 * test_removed.c - the folder or the sockets of a running producer are removed:
 * readers go on, new consumers can join, and the name stays locked.
 */
#include "test/lib/reader.h"

#include <dirent.h>
#include <fcntl.h>

#include "wire/fdpass.h"
#include "wire/address.h"

#define NAME "removed"

static struct source src = {
	.name = NAME, .n = 400, .ring = 256, .max_batch = 32, .payload = 64
};
static struct tsi_address address;

static void remove_folder(void)
{
	char command[TSI_SOCKET_PATH + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", address.folder);
	/* Under its feet a socket may be made again: then once more. */
	for (int i = 0; i < 1000 && !access(address.lock, F_OK); i++)
		need(system(command) >= 0);
}

static bool there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* All is made again: within a second or so, on a machine that isn't busy. */
static void wait_until_made(void)
{
	for (int i = 0; i < 6000; i++) {
		if (there(address.lock) && there(address.channel) &&
		    tsi_fdpass_listening(address.fdpass))
			return;
		proc_pause_us(10000);
	}
	fail_msg("the sockets were never made again");
}

static void count_ours(void *arg, const char *name, const char *folder)
{
	int *n = arg;

	if (!strcmp(name, NAME) && !strcmp(folder, address.folder))
		++*n;
}

/* Another process that would serve the name. */
static int serve_it_too(void)
{
	pid_t pid = proc_spawn();

	if (pid == 0) {
		struct tsi_address p;
		int fd, err = tsi_address_lock(NAME, &p, &fd);

		_exit(-err);
	}
	return -proc_ended(pid);
}

/* Reads on, an epoch per byte in, and tells of each. */
static pid_t start_long_reader(const int *go, const int *done)
{
	pid_t pid = proc_spawn();

	if (pid == 0) {
		struct reader r = { .src = &src, .batch = 16 };
		tsock *t = reader_connect(&r);
		char c;

		close(go[1]);
		while (read(go[0], &c, 1) == 1) {
			need(!tsock_begin(t));
			reader_read_epoch(&r, t);
			need(write(done[1], "d", 1) == 1);
		}
		tsock_close(t);
		_exit(0);
	}
	return pid;
}

static void read_an_epoch(int go, int done)
{
	char c;

	assert_int_equal(write(go, "g", 1), 1);
	assert_int_equal(read(done, &c, 1), 1);
}

static void removed_sockets_are_made_again(void **state)
{
	struct reader r = { .src = &src, .batch = 8, .epochs = 2 };
	char *const one[] = { address.lock, address.channel, address.fdpass };
	int go[2], done[2], n;
	pid_t producer, old, new;

	(void)state;
	producer = stream_start_producer(&src);
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(done), 0);
	stream_stats(NAME);
	assert_int_equal(tsi_address_find(NAME, &address, 1), 1);
	old = start_long_reader(go, done);
	close(go[0]);
	close(done[1]);
	read_an_epoch(go[1], done[0]);
	for (unsigned i = 0; i < 4; i++) {
		if (i < 3)
			assert_int_equal(unlink(one[i]), 0);
		else
			remove_folder();
		/* The job needs none of the removed files. */
		read_an_epoch(go[1], done[0]);
		wait_until_made();
		assert_int_equal(serve_it_too(), TSOCK_EEXIST);
		n = 0;
		assert_true(tsock_list(count_ours, &n) >= 1);
		assert_int_equal(n, 1);
		new = reader_start(&r);
		/* In step with the other one. */
		while (!proc_has_ended(new))
			read_an_epoch(go[1], done[0]);
		assert_int_equal(proc_ended(new), 0);
		read_an_epoch(go[1], done[0]);
	}
	close(go[1]);
	assert_int_equal(proc_ended(old), 0);
	assert_int_equal(waitpid(producer, NULL, WNOHANG), 0);
	proc_kill_and_reap(producer);
	close(done[0]);
}

static unsigned descriptors_of(pid_t pid)
{
	char path[64];
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void sockets_that_were_removed_are_closed(void **state)
{
	pid_t producer = stream_start_producer(&src);
	unsigned n, now = 0;

	(void)state;
	stream_stats(NAME);
	assert_int_equal(tsi_address_find(NAME, &address, 1), 1);
	n = descriptors_of(producer);
	for (unsigned i = 0; i < 3; i++) {
		remove_folder();
		wait_until_made();
		/* A consumer that asks can be answered. */
		stream_stats(NAME);
		for (unsigned k = 0; k < 6000; k++) {
			now = descriptors_of(producer);
			if (now <= n)
				break;
			proc_pause_us(10000);
		}
		assert_in_range(now, 1, n);
	}
	proc_kill_and_reap(producer);
}

/* Serves until the stream fails, and says whether it did as it should. */
static void serve_until_it_fails(const char *word)
{
	tsock_server *s = stream_serve(&src);
	uint64_t first;
	int n;

	while ((n = tsock_serve_claim(s, 4, -1, &first)) > 0)
		for (int i = 0; i < n; i++) {
			stream_write_sample(s, &src, first + (uint64_t)i);
			tsock_serve_commit(s, first + (uint64_t)i, 1);
		}
	need(n == TSOCK_ESTREAM);
	if (!strstr(tsock_errmsg(), "removed") || !strstr(tsock_errmsg(), word))
		die("it says: %s", tsock_errmsg());
	tsock_serve_close(s);
	_exit(0);
}

static void a_name_that_another_took_ends_the_stream(void **state)
{
	pid_t producer = proc_spawn();
	struct tsi_address p;
	int fd;

	(void)state;
	if (!producer)
		serve_until_it_fails("already served by process");
	stream_stats(NAME);
	assert_int_equal(tsi_address_find(NAME, &address, 1), 1);
	remove_folder();
	if (!tsi_address_lock(NAME, &p, &fd)) {
		assert_int_equal(proc_ended(producer), 0);
		/* The producer leaves our lock alone. */
		assert_true(there(p.lock));
		tsi_address_unlock(&p, fd);
		assert_false(there(p.lock));
	} else {
		/* The producer was quicker. */
		proc_kill_and_reap(producer);
	}
}

static void a_folder_that_cant_be_made_ends_the_stream(void **state)
{
	pid_t producer;
	int fd;

	(void)state;
	assert_int_equal(tsi_address_find(NAME, &address, 1), 1);
	producer = proc_spawn();
	if (!producer)
		serve_until_it_fails("isn't a folder");
	stream_stats(NAME);
	do {
		remove_folder();
		rmdir(address.folder);
		fd = open(address.folder, O_WRONLY | O_CREAT | O_EXCL, 0600);
	} while (fd < 0);
	close(fd);
	assert_int_equal(proc_ended(producer), 0);
	assert_int_equal(unlink(address.folder), 0);
	assert_int_equal(mkdir(address.folder, 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(removed_sockets_are_made_again,
					  proc_end_children),
		cmocka_unit_test_teardown(sockets_that_were_removed_are_closed,
					  proc_end_children),
		cmocka_unit_test_teardown(
			a_name_that_another_took_ends_the_stream,
			proc_end_children),
		cmocka_unit_test_teardown(
			a_folder_that_cant_be_made_ends_the_stream,
			proc_end_children),
	};
	static char folder[] = "/tmp/tsock-removed-XXXXXX";
	int failed;

	/* A folder of its own: it is removed, and others may be in the
	 * runner's. */
	if (!mkdtemp(folder) || setenv("TSOCK_DIR", folder, 1)) {
		perror(folder);
		return 1;
	}
	tsock_set_logger(proc_log_line, NULL);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
