/* SPDX-License-Identifier: MIT */
/*
 * test_address_lock.c - a stream's name has one owner, however it came and
 * went.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "test/lib/address_fixture.h"
#include "tsock/tsock.h"
#include "wire/fdpass.h"
#include "wire/zmq.h"

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
		snprintf(path, sizeof(path), folder[i < 2 ? i : 4],
			 address_base);
		if (i == 0)
			assert_int_equal(mkdir(path, 0755), 0);
		else if (i == 1)
			address_touch(path);
		else
			assert_int_equal(symlink("nowhere", path), 0);
	}
	for (unsigned i = 0; i < sizeof(folder) / sizeof(folder[0]); i++) {
		snprintf(path, sizeof(path), folder[i], address_base);
		setenv("TSOCK_DIR", path, 1);
		assert_int_equal(tsi_address_choose("abc", &p), 0);
		err = tsi_address_check(&p);
		assert_true(err < 0);
		snprintf(said, sizeof(said), "%s", tsock_errmsg());
		assert_int_equal(tsi_address_lock("abc", &p, &fd), err);
		assert_string_equal(tsock_errmsg(), said);
	}
	setenv("TSOCK_DIR", address_dir, 1);
	assert_int_equal(tsi_address_choose("abc", &p), 0);
	assert_int_equal(tsi_address_check(&p), 0);
	assert_false(address_there(address_dir));
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
	/* That folder by another path. */
	snprintf(other, sizeof(other), "%s/../d/./abc", address_dir);
	assert_int_equal(tsi_address_lock(other, &q, &b), TSOCK_EEXIST);
	/* Another name, another folder: no matter. */
	assert_int_equal(tsi_address_lock("abcd", &q, &b), 0);
	snprintf(other, sizeof(other), "%s/e/abc", address_base);
	assert_int_equal(tsi_address_lock(other, &r, &c), 0);
	tsi_address_unlock(&q, b);
	tsi_address_unlock(&r, c);
	assert_int_equal(tsi_address_lock("abc", &q, &b), TSOCK_EEXIST);
	tsi_address_unlock(&p, a);
	assert_false(address_there(p.lock));
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
	return -address_exit_status(pid);
}

/* The process that holds the name's lock, asked by a child; 99: none. */
static int owner_in_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		struct tsi_address p;
		long owner = -1;

		if (tsi_address_choose("abc", &p))
			_exit(98);
		if (!tsi_address_is_locked(&p, &owner))
			_exit(owner == -1 ? 99 : 97);
		_exit(owner == (long)getppid() ? 0 : 1);
	}
	return address_exit_status(pid);
}

static void who_has_locked_a_name_can_be_seen(void **s)
{
	struct tsi_address p;
	long owner = -1;
	int fd;

	(void)s;
	assert_int_equal(owner_in_child(), 99);
	assert_int_equal(tsi_address_choose("abc", &p), 0);
	assert_false(tsi_address_is_locked(&p, &owner));
	assert_false(address_there(address_dir));
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	assert_int_equal(owner_in_child(), 0);
	assert_true(tsi_address_is_locked(&p, &owner));
	assert_int_equal(owner, getpid());
	/* To look at a lock of its own doesn't lose it. */
	assert_int_equal(owner_in_child(), 0);
	tsi_address_unlock(&p, fd);
	assert_int_equal(owner_in_child(), 99);
	assert_int_equal(tsi_address_reserve("abc"), 0);
	assert_int_equal(owner_in_child(), 0);
	tsi_address_unreserve("abc");
	/* A file that a killed producer left is locked by nobody. */
	address_touch(p.lock);
	assert_int_equal(owner_in_child(), 99);
	assert_int_equal(unlink(p.lock), 0);
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

/* In children: what they reserve is of no matter to this process. */
static void a_process_that_ends_at_once_gives_up_what_it_reserved(void **s)
{
	struct tsi_address p;
	int fd, status;

	(void)s;
	assert_int_equal(tsi_address_choose("abc", &p), 0);
	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (!pid) {
			if (tsi_address_reserve("abc"))
				_exit(1);
			if (i == 1 && tsi_address_lock("abc", &p, &fd))
				_exit(2);
			if (i == 2)
				tsi_address_unreserve("abc");
			address_touch(p.channel);
			tsi_address_abandon();
			_exit(address_there(p.lock) ||
			      address_there(p.channel) != (i == 2));
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	unlink(p.channel);
	assert_int_equal(tsi_address_reserve("abc"), 0);
	/* A child has reserved nothing. */
	if (!fork()) {
		tsi_address_abandon();
		_exit(0);
	}
	assert_true(wait(&status) > 0);
	assert_true(address_there(p.lock));
	tsi_address_unreserve("abc");
}

/* Nobody else can have it meanwhile, and the one who reserved it serves it. */
static void a_reserved_name_is_taken_over_by_who_reserved_it(void **s)
{
	struct tsi_address p;
	int fd;

	(void)s;
	assert_int_equal(tsi_address_reserve("abc"), 0);
	assert_int_equal(lock_in_child(), TSOCK_EEXIST);
	tsi_address_unreserve("other");
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	assert_true(tsi_address_holds_lock(&p, fd));
	tsi_address_unreserve("abc"); /* it is none any more */
	assert_int_equal(lock_in_child(), TSOCK_EEXIST);
	assert_int_equal(tsi_address_reserve("abc"), TSOCK_EEXIST);
	tsi_address_unlock(&p, fd);
	assert_false(address_there(p.lock));
	assert_int_equal(tsi_address_reserve("abc"), 0);
	assert_true(address_there(p.lock));
	tsi_address_unreserve("abc");
	assert_false(address_there(p.lock));
	assert_int_equal(lock_in_child(), 0);
}

/* From one stream of a name to the next nobody else gets the name. */
static void a_name_that_is_kept_is_reserved_again(void **s)
{
	struct tsi_address p;
	int fd;

	(void)s;
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	address_touch(p.channel);
	tsi_address_keep("other");
	tsi_address_keep("abc");
	tsi_address_unlock(&p, fd);
	assert_false(address_there(p.channel));
	assert_true(address_there(p.lock));
	assert_int_equal(lock_in_child(), TSOCK_EEXIST);
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	/* The lock file was kept for one stream. */
	tsi_address_unlock(&p, fd);
	assert_false(address_there(p.lock));
	assert_int_equal(lock_in_child(), 0);
}

static void a_reservation_outlives_the_file(void **s)
{
	struct tsi_address p;
	int fd;

	(void)s;
	assert_int_equal(tsi_address_reserve("abc"), 0);
	assert_int_equal(tsi_address_choose("abc", &p), 0);
	assert_int_equal(unlink(p.lock), 0);
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	assert_true(tsi_address_holds_lock(&p, fd));
	assert_int_equal(lock_in_child(), TSOCK_EEXIST);
	tsi_address_unlock(&p, fd);
}

static void a_killed_producer_leaves_nothing_that_matters(void **s)
{
	struct tsi_address p;
	int fd, sock, ready[2];
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
	assert_int_equal(address_exit_status(pid), 1000 + SIGKILL);
	/* Its sockets are there, and stale. */
	assert_true(address_there(p.channel) && address_there(p.fdpass));
	assert_false(tsi_fdpass_listening(p.fdpass));
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	assert_int_equal(tsi_fdpass_listen(p.fdpass, &sock), 0);
	assert_true(tsi_fdpass_listening(p.fdpass));
	close(sock);
	tsi_address_unlock(&p, fd);
	assert_false(address_there(p.channel) || address_there(p.fdpass) ||
		     address_there(p.lock));
}

static void a_forked_child_neither_keeps_nor_gives_back_the_lock(void **s)
{
	struct tsi_address p, q;
	int fd, b, hold[2];
	pid_t pid;

	(void)s;
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	address_touch(p.fdpass);
	pid = fork();
	if (!pid) {
		tsi_address_unlock(&p, fd);
		_exit(0);
	}
	assert_int_equal(address_exit_status(pid), 0);
	assert_true(address_there(p.fdpass) && address_there(p.lock));
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
	assert_int_equal(address_exit_status(pid), 0);
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
	snprintf(mark, sizeof(mark), "%s/mark", address_base);
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(race(mark, 300));
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(address_exit_status(pid[i]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_check_fails_where_locking_does),
		TEST(a_name_is_locked_once_in_a_process),
		TEST(who_has_locked_a_name_can_be_seen),
		TEST(a_name_is_locked_once_on_the_machine),
		TEST(a_killed_producer_leaves_nothing_that_matters),
		TEST(a_process_that_ends_at_once_gives_up_what_it_reserved),
		TEST(a_reserved_name_is_taken_over_by_who_reserved_it),
		TEST(a_name_that_is_kept_is_reserved_again),
		TEST(a_reservation_outlives_the_file),
		TEST(a_forked_child_neither_keeps_nor_gives_back_the_lock),
		TEST(unlocking_and_locking_at_once_never_gives_two_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
