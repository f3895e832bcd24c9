/* SPDX-License-Identifier: MIT */
/*
 * test_address.c - the folder, its owner, and the lock of a stream's name.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tsock/tsock.h"
#include "wire/zmq.h"
#include "wire/fdpass.h"
#include "wire/address.h"

static char base[64], dir[80], users[80];

static int make_base(void **s)
{
	(void)s;
	strcpy(base, "/tmp/tsock-address-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	snprintf(dir, sizeof(dir), "%s/d", base);
	snprintf(users, sizeof(users), "%s/users", base);
	tsi_address_users = users;
	unsetenv("XDG_RUNTIME_DIR");
	return setenv("TSOCK_DIR", dir, 1);
}

static int remove_base(void **s)
{
	char command[100];

	(void)s;
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

static int exit_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

static void assert_path(const char *got, const char *folder, const char *rest)
{
	char want[200];

	snprintf(want, sizeof(want), "%s%s", folder, rest);
	assert_string_equal(got, want);
}

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static bool there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* ------------------------------------------------------------------------
 * Names and folders
 */

static void names_are_checked(void **s)
{
	static const char *const bad[] = {
		"",      ".",  "..",          ".hidden", "a b",  "a/..", "a\nb",
		"/tmp/", "a/", "caf\xc3\xa9", "a*b",     "x/.y", "a@b",  "%s",
	};
	char name[80];
	struct tsi_address p;

	(void)s;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int fd;

		assert_int_equal(tsi_address_find(bad[i], &p, 1), TSOCK_EARG);
		assert_int_equal(tsi_address_lock(bad[i], &p, &fd), TSOCK_EARG);
	}
	memset(name, 'n', sizeof(name));
	name[63] = 0;
	assert_int_equal(tsi_address_find(name, &p, 1), 1);
	assert_string_equal(p.name, name);
	name[63] = 'n';
	name[64] = 0;
	assert_int_equal(tsi_address_find(name, &p, 1), TSOCK_EARG);
	assert_int_equal(tsi_address_find("A.b_c-9", &p, 1), 1);
}

static void the_folder_comes_from_the_environment(void **s)
{
	struct tsi_address p[TSI_ADDRESSES + 1];
	char tmp[40], run[100], user[100];

	(void)s;
	assert_int_equal(tsi_address_find("abc", p, 3), 1);
	assert_path(p[0].folder, dir, "");
	assert_path(p[0].channel, dir, "/abc.bus");
	assert_path(p[0].fdpass, dir, "/abc.door");
	assert_path(p[0].lock, dir, "/abc.lock");

	/* Empty is unset. */
	setenv("TSOCK_DIR", "", 1);
	snprintf(tmp, sizeof(tmp), "/tmp/tsock-%u", (unsigned)geteuid());
	snprintf(user, sizeof(user), "%s/%u/tsock", users, (unsigned)geteuid());
	assert_int_equal(tsi_address_find("abc", p, 4), 2);
	assert_string_equal(p[0].folder, user);
	assert_string_equal(p[1].folder, tmp);

	unsetenv("TSOCK_DIR");
	setenv("XDG_RUNTIME_DIR", base, 1);
	snprintf(run, sizeof(run), "%s/tsock", base);
	assert_int_equal(tsi_address_find("abc", p, 4), 3);
	assert_string_equal(p[0].folder, run);
	assert_string_equal(p[1].folder, user);
	assert_string_equal(p[2].folder, tmp);
	assert_int_equal(tsi_address_find("abc", p, 1), 1);

	/* The specification says to ignore a relative one. */
	setenv("XDG_RUNTIME_DIR", "run", 1);
	assert_int_equal(tsi_address_find("abc", p, 4), 2);
	/* As a rule it is the system's. */
	snprintf(run, sizeof(run), "%s/%u//", users, (unsigned)geteuid());
	setenv("XDG_RUNTIME_DIR", run, 1);
	assert_int_equal(tsi_address_find("abc", p, 4), 2);
	assert_string_equal(p[0].folder, user);
	assert_string_equal(p[1].folder, tmp);

	/* A path beats all. */
	setenv("TSOCK_DIR", "/elsewhere", 1);
	assert_int_equal(tsi_address_find("/x/y//abc", p, 3), 1);
	assert_string_equal(p[0].fdpass, "/x/y/abc.door");
	assert_int_equal(tsi_address_find("/abc", p, 3), TSOCK_EREFUSED);
}

static void a_relative_folder_is_made_absolute(void **s)
{
	struct tsi_address p;
	char cwd[200];

	(void)s;
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(base), 0);
	assert_int_equal(tsi_address_find("rel/abc", &p, 1), 1);
	assert_path(p.folder, base, "/rel");
	setenv("TSOCK_DIR", "@d//", 1);
	assert_int_equal(tsi_address_find("abc", &p, 1), 1);
	assert_path(p.channel, base, "/@d/abc.bus");
	assert_int_equal(chdir(cwd), 0);
}

static void a_producer_makes_a_private_folder(void **s)
{
	struct tsi_address p, q;
	struct stat st;
	int fd;

	(void)s;
	unsetenv("TSOCK_DIR");
	setenv("XDG_RUNTIME_DIR", base, 1);
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	assert_path(p.folder, base, "/tsock");
	assert_int_equal(stat(p.folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(p.lock, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(tsi_address_find("abc", &q, 1), 1);
	assert_memory_equal(&p, &q, sizeof(p));
	tsi_address_unlock(&p, fd);
}

static void a_runtime_folder_that_isnt_there_is_passed_over(void **s)
{
	char none[100], tmp[40];
	struct tsi_address p;
	int fd;

	(void)s;
	unsetenv("TSOCK_DIR");
	snprintf(none, sizeof(none), "%s/none", base);
	snprintf(tmp, sizeof(tmp), "/tmp/tsock-%u", (unsigned)geteuid());
	setenv("XDG_RUNTIME_DIR", none, 1);
	assert_int_equal(tsi_address_lock("test-address-xdg", &p, &fd), 0);
	assert_string_equal(p.folder, tmp);
	tsi_address_unlock(&p, fd);
}

static void expect_refused(const char *word)
{
	struct tsi_address p;
	int fd;

	assert_int_equal(tsi_address_lock("abc", &p, &fd), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), word));
	assert_non_null(strstr(tsock_errmsg(), dir));
	assert_int_equal(tsi_address_find("abc", &p, 1), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), word));
}

static void an_open_or_foreign_folder_is_refused(void **s)
{
	(void)s;
	assert_int_equal(mkdir(dir, 0700), 0);
	for (unsigned bit = 1; bit < 0100; bit <<= 1) {
		assert_int_equal(chmod(dir, 0700 | bit), 0);
		expect_refused("chmod 700");
	}
	if (geteuid() == 0) {
		assert_int_equal(chmod(dir, 0700), 0);
		assert_int_equal(chown(dir, 65534, 65534), 0);
		expect_refused("belongs to uid 65534");
	} else {
		print_message("not root: no folder of another uid\n");
	}
	assert_int_equal(rmdir(dir), 0);
	touch(dir);
	expect_refused("isn't a folder");
}

static void a_link_is_followed_only_if_the_user_named_it(void **s)
{
	char real[100], run[100];
	struct tsi_address p;
	int fd;

	(void)s;
	snprintf(real, sizeof(real), "%s/real", base);
	snprintf(run, sizeof(run), "%s/tsock", base);
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink(real, dir), 0);
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	tsi_address_unlock(&p, fd);
	assert_int_equal(symlink(real, run), 0);
	unsetenv("TSOCK_DIR");
	setenv("XDG_RUNTIME_DIR", base, 1);
	assert_int_equal(tsi_address_lock("abc", &p, &fd), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "isn't a folder"));
}

static void a_folder_that_cant_be_made_is_named(void **s)
{
	struct tsi_address p;
	int fd;

	(void)s;
	setenv("TSOCK_DIR", "/nonexistent/x", 1);
	assert_int_equal(tsi_address_lock("abc", &p, &fd), TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "/nonexistent/x"));
	/* A consumer may be there first. */
	assert_int_equal(tsi_address_find("abc", &p, 1), 1);
}

static void a_path_too_long_is_refused_with_the_limit(void **s)
{
	char far[200], name[300];
	struct tsi_address p;
	int fd;

	(void)s;
	memset(far, 'f', sizeof(far));
	far[0] = '/';
	far[107 - 9] = 0; /* and "/abc.door" */
	setenv("TSOCK_DIR", far, 1);
	assert_int_equal(tsi_address_find("abc", &p, 1), 1);
	assert_int_equal(strlen(p.fdpass), 107);
	far[107 - 9] = 'f';
	far[107 - 8] = 0;
	setenv("TSOCK_DIR", far, 1);
	assert_int_equal(tsi_address_find("abc", &p, 1), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "107"));
	assert_non_null(strstr(tsock_errmsg(), "TSOCK_DIR"));
	assert_int_equal(tsi_address_lock("abc", &p, &fd), TSOCK_EARG);
	assert_false(there(far));
	memset(name, 'n', sizeof(name));
	name[0] = name[290] = '/';
	name[299] = 0;
	assert_int_equal(tsi_address_find(name, &p, 1), TSOCK_EARG);
}

/* ------------------------------------------------------------------------
 * The lock
 */

/* ... and with the same sentence, making nothing. */
static void a_check_fails_where_locking_does(void **s)
{
	static const char *const folder[] = {
		"%s/open", "%s/file", "%s/file/x", "%s/no/x", "%s/link",
	};
	char path[200], said[300];
	struct tsi_address p;
	int fd, err;

	(void)s;
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), folder[i < 2 ? i : 4], base);
		if (i == 0)
			assert_int_equal(mkdir(path, 0755), 0);
		else if (i == 1)
			touch(path);
		else
			assert_int_equal(symlink("nowhere", path), 0);
	}
	for (unsigned i = 0; i < sizeof(folder) / sizeof(folder[0]); i++) {
		snprintf(path, sizeof(path), folder[i], base);
		setenv("TSOCK_DIR", path, 1);
		assert_int_equal(tsi_address_choose("abc", &p), 0);
		err = tsi_address_check(&p);
		assert_true(err < 0);
		snprintf(said, sizeof(said), "%s", tsock_errmsg());
		assert_int_equal(tsi_address_lock("abc", &p, &fd), err);
		assert_string_equal(tsock_errmsg(), said);
	}
	setenv("TSOCK_DIR", dir, 1);
	assert_int_equal(tsi_address_choose("abc", &p), 0);
	assert_int_equal(tsi_address_check(&p), 0);
	assert_false(there(dir));
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	assert_int_equal(tsi_address_check(&p), 0);
	tsi_address_unlock(&p, fd);
}

static void a_name_is_locked_once_in_a_process(void **s)
{
	struct tsi_address p, q, r;
	char other[120], pid[16];
	int a, b, c;

	(void)s;
	assert_int_equal(tsi_address_lock("abc", &p, &a), 0);
	assert_int_equal(tsi_address_lock("abc", &q, &b), TSOCK_EEXIST);
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	assert_non_null(strstr(tsock_errmsg(), pid));
	assert_non_null(strstr(tsock_errmsg(), "abc"));
	/* The same folder by another path. */
	snprintf(other, sizeof(other), "%s/../d/./abc", dir);
	assert_int_equal(tsi_address_lock(other, &q, &b), TSOCK_EEXIST);
	/* Another name, another folder: no matter. */
	assert_int_equal(tsi_address_lock("abcd", &q, &b), 0);
	snprintf(other, sizeof(other), "%s/e/abc", base);
	assert_int_equal(tsi_address_lock(other, &r, &c), 0);
	tsi_address_unlock(&q, b);
	tsi_address_unlock(&r, c);
	assert_int_equal(tsi_address_lock("abc", &q, &b), TSOCK_EEXIST);
	tsi_address_unlock(&p, a);
	assert_false(there(p.lock));
	assert_int_equal(tsi_address_lock("abc", &p, &a), 0);
	tsi_address_unlock(&p, a);
}

/* What a process of its own gets for the name. */
static int lock_in_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		struct tsi_address p;
		char owner[32];
		int fd, err = tsi_address_lock("abc", &p, &fd);

		snprintf(owner, sizeof(owner), "process %ld", (long)getppid());
		if (err == TSOCK_EEXIST && !strstr(tsock_errmsg(), owner))
			_exit(99);
		_exit(-err);
	}
	return -exit_status(pid);
}

static void a_name_is_locked_once_on_the_machine(void **s)
{
	struct tsi_address p;
	int fd;

	(void)s;
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	assert_int_equal(lock_in_child(), TSOCK_EEXIST);
	/* Failing to lock it didn't unlock it. */
	assert_int_equal(lock_in_child(), TSOCK_EEXIST);
	tsi_address_unlock(&p, fd);
	assert_int_equal(lock_in_child(), 0);
}

static void a_killed_producer_leaves_nothing_that_matters(void **s)
{
	struct tsi_address p;
	int fd, ready[2];
	char c;
	pid_t pid;

	(void)s;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		struct tsi_channel *channel;
		int fdpass;

		if (tsi_address_lock("abc", &p, &fd) ||
		    tsi_zmq_bind(p.channel, &channel) ||
		    tsi_fdpass_listen(p.fdpass, &fdpass) ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(tsi_address_find("abc", &p, 1), 1);
	assert_true(tsi_fdpass_listening(p.fdpass));
	assert_int_equal(tsi_address_lock("abc", &p, &fd), TSOCK_EEXIST);
	kill(pid, SIGKILL);
	assert_int_equal(exit_status(pid), 1000 + SIGKILL);
	/* Its sockets are there, and stale. */
	assert_true(there(p.channel) && there(p.fdpass));
	assert_false(tsi_fdpass_listening(p.fdpass));
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	assert_int_equal(tsi_fdpass_listen(p.fdpass, &ready[0]), 0);
	assert_true(tsi_fdpass_listening(p.fdpass));
	close(ready[0]);
	close(ready[1]);
	tsi_address_unlock(&p, fd);
	assert_false(there(p.channel) || there(p.fdpass) || there(p.lock));
}

static void a_forked_child_neither_keeps_nor_gives_back_the_lock(void **s)
{
	struct tsi_address p, q;
	int fd, b, hold[2];
	pid_t pid;

	(void)s;
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	touch(p.fdpass);
	pid = fork();
	if (!pid) {
		tsi_address_unlock(&p, fd);
		_exit(0);
	}
	assert_int_equal(exit_status(pid), 0);
	assert_true(there(p.fdpass) && there(p.lock));
	assert_int_equal(lock_in_child(), TSOCK_EEXIST);

	/* A child that lives on with the descriptor open holds nothing. */
	assert_int_equal(pipe(hold), 0);
	pid = fork();
	if (!pid) {
		char c;

		close(hold[1]);
		_exit(read(hold[0], &c, 1) == 0 ? 0 : 1);
	}
	tsi_address_unlock(&p, fd);
	assert_int_equal(tsi_address_lock("abc", &q, &b), 0);
	tsi_address_unlock(&q, b);
	assert_int_equal(lock_in_child(), 0);
	close(hold[1]);
	assert_int_equal(exit_status(pid), 0);
	close(hold[0]);
}

/* Take and give back; a second owner at the same time is an error. */
static int race(const char *mark, int rounds)
{
	int locked = 0;

	while (locked < rounds) {
		struct tsi_address p;
		int fd, mine, err = tsi_address_lock("abc", &p, &fd);

		if (err == TSOCK_EEXIST)
			continue;
		if (err)
			return 1;
		mine = open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
		if (mine < 0)
			return 2;
		close(mine);
		if (unlink(mark))
			return 3;
		tsi_address_unlock(&p, fd);
		locked++;
	}
	return 0;
}

static void unlocking_and_locking_at_once_never_gives_two_owners(void **s)
{
	char mark[100];
	pid_t pid[4];

	(void)s;
	snprintf(mark, sizeof(mark), "%s/mark", base);
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(race(mark, 300));
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(exit_status(pid[i]), 0);
}

/* ------------------------------------------------------------------------
 * Lists and questions
 */

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
	assert_int_equal(mkdir(dir, 0700), 0);
	for (unsigned i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, file[i]);
		touch(path);
	}
	assert_int_equal(tsi_address_list(collect, got), 0);
	assert_int_equal(strlen(got), strlen("one two "));
	assert_non_null(strstr(got, "one "));
	assert_non_null(strstr(got, "two "));
	assert_int_equal(chmod(dir, 0755), 0);
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
	assert_int_equal(exit_status(pid), 1000 + SIGKILL);
}

static void collect_name(void *arg, const char *name, const char *folder)
{
	assert_string_equal(folder, dir);
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
	snprintf(path, sizeof(path), "%s/abc", dir);
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
	snprintf(ours, size, "%s/%u", users, (unsigned)geteuid());
	assert_int_equal(mkdir(users, 0755), 0);
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
	assert_int_equal(tsock_dtype_size(7), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_base, remove_base)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_are_checked),
		TEST(the_folder_comes_from_the_environment),
		TEST(a_relative_folder_is_made_absolute),
		TEST(a_producer_makes_a_private_folder),
		TEST(a_runtime_folder_that_isnt_there_is_passed_over),
		TEST(an_open_or_foreign_folder_is_refused),
		TEST(a_consumer_without_a_variable_looks_at_the_users_folder),
		TEST(a_link_is_followed_only_if_the_user_named_it),
		TEST(a_folder_that_cant_be_made_is_named),
		TEST(a_path_too_long_is_refused_with_the_limit),
		TEST(a_check_fails_where_locking_does),
		TEST(a_name_is_locked_once_in_a_process),
		TEST(a_name_is_locked_once_on_the_machine),
		TEST(a_killed_producer_leaves_nothing_that_matters),
		TEST(a_forked_child_neither_keeps_nor_gives_back_the_lock),
		TEST(unlocking_and_locking_at_once_never_gives_two_owners),
		TEST(a_list_has_the_sockets_of_good_names),
		TEST(statistics_are_asked_from_outside),
		TEST(streams_that_live_are_listed),
		cmocka_unit_test(versions_and_sizes_are_stated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
