/* SPDX-License-Identifier: MIT */
/*
 * test_query.c - what is asked of streams from outside: their list, their
 * state; and what the library states of itself.
 */
#include <signal.h>
#include <sys/stat.h>

#include "test/lib/address_fixture.h"
#include "tsock/tsock.h"
#include "wire/fdpass.h"
#include "wire/zmq.h"

static void collect(void *arg, const struct tsi_address *p)
{
	strcat(arg, p->name);
	strcat(arg, " ");
}

static void a_list_has_the_sockets_of_good_names(void **s)
{
	static const char *const file[] = {
		"one.door", "one.bus",  "two.lock", ".door",   ".x.door",
		"a b.door", "two.door", "three",    "x.doors",
	};
	char got[400] = "", path[200];

	(void)s;
	assert_int_equal(tsi_address_list(collect, got), 0);
	assert_string_equal(got, "");
	assert_int_equal(mkdir(address_dir, 0700), 0);
	for (unsigned i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", address_dir, file[i]);
		address_touch(path);
	}
	assert_int_equal(tsi_address_list(collect, got), 0);
	assert_int_equal(strlen(got), strlen("one two "));
	assert_non_null(strstr(got, "one "));
	assert_non_null(strstr(got, "two "));
	assert_int_equal(chmod(address_dir, 0755), 0);
	assert_int_equal(tsi_address_list(collect, got), TSOCK_EREFUSED);
}

/* A producer that answers two kinds of questions, until it is killed. */
static int answer_questions(const char *name, bool silent, int ready)
{
	struct tsi_msg m, a = { 0 };
	struct tsi_address p;
	struct tsi_routing_id peer;
	struct tsi_channel *channel;
	int fd, fdpass;
	bool there_is;

	if (tsi_address_lock(name, &p, &fd) ||
	    tsi_zmq_bind(p.channel, &channel) ||
	    tsi_fdpass_listen(p.fdpass, &fdpass) || write(ready, "x", 1) != 1)
		return 1;
	while (!tsi_zmq_poll(channel, NULL, 0, -1, &there_is)) {
		if (tsi_zmq_recv(channel, &peer, &m) || silent)
			continue;
		a.serial = m.serial;
		a.type = m.type == TSI_STATS ? TSI_STATS_DATA : TSI_STREAM;
		memset(&a.u, 0, sizeof(a.u));
		if (a.type == TSI_STATS_DATA) {
			a.u.stats.head = 42;
			a.u.stats.nrows = 1;
			a.u.stats.row[0].tail = 41;
		} else {
			a.u.stream.epoch_len = a.u.stream.segments = 1;
			a.u.stream.capacity = a.u.stream.max_batch = 1;
			a.u.stream.nfields = 1;
			a.u.stream.field[0].dtype = TSOCK_U8;
		}
		tsi_zmq_send(channel, &peer, &a);
	}
	return 2;
}

static pid_t start_producer(const char *name, bool silent)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid)
		_exit(answer_questions(name, silent, ready[1]));
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void stop_producer(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(address_exit_status(pid), 1000 + SIGKILL);
}

static void collect_name(void *arg, const char *name, const char *folder)
{
	assert_string_equal(folder, address_dir);
	strcat(arg, name);
	strcat(arg, " ");
}

static void statistics_are_asked_from_outside(void **s)
{
	struct tsock_stats st = { .size = sizeof(st) };
	char path[100];
	pid_t pid;

	(void)s;
	assert_int_equal(tsock_query("abc", 100, &st), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), "abc"));
	pid = start_producer("abc", false);
	assert_int_equal(tsock_query("abc", 10000, &st), 0);
	assert_int_equal(st.size, sizeof(st));
	assert_int_equal(st.head, 42);
	assert_int_equal(st.nrows, 1);
	assert_int_equal(st.row[0].tail, 41);
	snprintf(path, sizeof(path), "%s/abc", address_dir);
	assert_int_equal(tsock_query(path, -1, &st), 0);
	st.size = 8;
	assert_int_equal(tsock_query("abc", 100, &st), TSOCK_EARG);
	st.size = sizeof(st);
	assert_int_equal(tsock_query("a b", 100, &st), TSOCK_EARG);
	assert_int_equal(tsock_query(NULL, 100, &st), TSOCK_EARG);
	assert_int_equal(tsock_query("abc", 100, NULL), TSOCK_EARG);
	stop_producer(pid);
	assert_int_equal(tsock_query("abc", 100, &st), TSOCK_ENOPROD);
	pid = start_producer("abc", true);
	assert_int_equal(tsock_query("abc", 150, &st), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), "150 ms"));
	stop_producer(pid);
}

static void streams_that_live_are_listed(void **s)
{
	char got[200] = "";
	pid_t one, two, dead;

	(void)s;
	assert_int_equal(tsock_list(NULL, NULL), TSOCK_EARG);
	assert_int_equal(tsock_list(collect_name, got), 0);
	one = start_producer("one", false);
	two = start_producer("two", false);
	dead = start_producer("dead", false);
	stop_producer(dead);
	dead = start_producer("silent", true);
	kill(two, SIGSTOP);
	assert_int_equal(tsock_list(collect_name, got), 3);
	assert_non_null(strstr(got, "one "));
	assert_non_null(strstr(got, "two "));
	assert_non_null(strstr(got, "silent "));
	stop_producer(one);
	stop_producer(two);
	stop_producer(dead);
	assert_int_equal(tsock_list(collect_name, got), 0);
}

static void collect_any(void *arg, const char *name, const char *folder)
{
	(void)folder;
	if (strlen(arg) + strlen(name) > 180)
		return;
	strcat(arg, name);
	strcat(arg, " ");
}

/* A folder of users like the system's, with ours in it. */
static void make_users(char *ours, size_t size)
{
	snprintf(ours, size, "%s/%u", address_users, (unsigned)geteuid());
	assert_int_equal(mkdir(address_users, 0755), 0);
	assert_int_equal(mkdir(ours, 0700), 0);
}

static void a_consumer_without_a_variable_looks_at_the_users_folder(void **s)
{
	struct tsock_stats st = { .size = sizeof(st) };
	char ours[100], sub[120], tmp[40], got[200] = "";
	struct tsi_address p[TSI_ADDRESSES];
	pid_t pid;

	(void)s;
	unsetenv("TSOCK_DIR");
	make_users(ours, sizeof(ours));
	snprintf(sub, sizeof(sub), "%s/tsock", ours);
	snprintf(tmp, sizeof(tmp), "/tmp/tsock-%u", (unsigned)geteuid());
	/* A producer as a login starts it ... */
	setenv("XDG_RUNTIME_DIR", ours, 1);
	pid = start_producer("test-address-users", false);
	/* ... and a job as cron starts it. */
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(tsock_query("test-address-users", 10000, &st), 0);
	assert_true(tsock_list(collect_any, got) >= 1);
	assert_non_null(strstr(got, "test-address-users "));
	stop_producer(pid);

	assert_int_equal(tsock_query("test-address-users", 100, &st),
			 TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), sub));
	assert_non_null(strstr(tsock_errmsg(), tmp));
	/* What isn't ours is passed over. */
	assert_int_equal(chmod(sub, 0755), 0);
	assert_int_equal(tsi_address_find("abc", p, TSI_ADDRESSES), 1);
	assert_string_equal(p[0].folder, tmp);
}

static void versions_and_sizes_are_stated(void **s)
{
	char want[40];

	(void)s;
	snprintf(want, sizeof(want), "%d.%d.%d", TSOCK_VERSION_MAJOR,
		 TSOCK_VERSION_MINOR, TSOCK_VERSION_PATCH);
	assert_string_equal(tsock_version_string(), want);
	assert_int_equal(tsock_abi_version() >> 16, TSOCK_VERSION_MAJOR);
	assert_int_equal(tsock_dtype_size(TSOCK_U8), 1);
	assert_int_equal(tsock_dtype_size(TSOCK_F16), 2);
	assert_int_equal(tsock_dtype_size(TSOCK_BF16), 2);
	assert_int_equal(tsock_dtype_size(TSOCK_I32), 4);
	assert_int_equal(tsock_dtype_size(TSOCK_F32), 4);
	assert_int_equal(tsock_dtype_size(TSOCK_I64), 8);
	assert_int_equal(tsock_dtype_size(0), 0);
	assert_int_equal(tsock_dtype_size(TSOCK_F64), 8);
	assert_int_equal(tsock_dtype_size(TSOCK_I8), 1);
	assert_int_equal(tsock_dtype_size(TSOCK_BOOL), 1);
	assert_int_equal(tsock_dtype_size(TSOCK_I16), 2);
	assert_int_equal(tsock_dtype_size(TSOCK_U16), 2);
	assert_int_equal(tsock_dtype_size(TSOCK_U32), 4);
	assert_int_equal(tsock_dtype_size(TSOCK_U64), 8);
	assert_int_equal(tsock_dtype_size(TSOCK_BOOL + 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_consumer_without_a_variable_looks_at_the_users_folder),
		TEST(a_list_has_the_sockets_of_good_names),
		TEST(statistics_are_asked_from_outside),
		TEST(streams_that_live_are_listed),
		cmocka_unit_test(versions_and_sizes_are_stated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
