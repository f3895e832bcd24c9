/* SPDX-License-Identifier: MIT */
/*
 * test_address.c - names of streams, and the folder of their sockets.
 */
#include <sys/stat.h>

#include "test/lib/address_fixture.h"
#include "tsock/tsock.h"

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
	address_assert_path(p[0].folder, address_dir, "");
	address_assert_path(p[0].channel, address_dir, "/abc.bus");
	address_assert_path(p[0].fdpass, address_dir, "/abc.door");
	address_assert_path(p[0].lock, address_dir, "/abc.lock");

	/* Empty is unset. */
	setenv("TSOCK_DIR", "", 1);
	snprintf(tmp, sizeof(tmp), "/tmp/tsock-%u", (unsigned)geteuid());
	snprintf(user, sizeof(user), "%s/%u/tsock", address_users,
		 (unsigned)geteuid());
	assert_int_equal(tsi_address_find("abc", p, 4), 2);
	assert_string_equal(p[0].folder, user);
	assert_string_equal(p[1].folder, tmp);

	unsetenv("TSOCK_DIR");
	setenv("XDG_RUNTIME_DIR", address_base, 1);
	snprintf(run, sizeof(run), "%s/tsock", address_base);
	assert_int_equal(tsi_address_find("abc", p, 4), 3);
	assert_string_equal(p[0].folder, run);
	assert_string_equal(p[1].folder, user);
	assert_string_equal(p[2].folder, tmp);
	assert_int_equal(tsi_address_find("abc", p, 1), 1);

	/* The specification says to ignore a relative one. */
	setenv("XDG_RUNTIME_DIR", "run", 1);
	assert_int_equal(tsi_address_find("abc", p, 4), 2);
	/* As a rule it is the system's. */
	snprintf(run, sizeof(run), "%s/%u//", address_users,
		 (unsigned)geteuid());
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
	assert_int_equal(chdir(address_base), 0);
	assert_int_equal(tsi_address_find("rel/abc", &p, 1), 1);
	address_assert_path(p.folder, address_base, "/rel");
	setenv("TSOCK_DIR", "@d//", 1);
	assert_int_equal(tsi_address_find("abc", &p, 1), 1);
	address_assert_path(p.channel, address_base, "/@d/abc.bus");
	assert_int_equal(chdir(cwd), 0);
}

static void a_producer_makes_a_private_folder(void **s)
{
	struct tsi_address p, q;
	struct stat st;
	int fd;

	(void)s;
	unsetenv("TSOCK_DIR");
	setenv("XDG_RUNTIME_DIR", address_base, 1);
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	address_assert_path(p.folder, address_base, "/tsock");
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
	snprintf(none, sizeof(none), "%s/none", address_base);
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
	assert_non_null(strstr(tsock_errmsg(), address_dir));
	assert_int_equal(tsi_address_find("abc", &p, 1), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), word));
}

static void an_open_or_foreign_folder_is_refused(void **s)
{
	(void)s;
	assert_int_equal(mkdir(address_dir, 0700), 0);
	for (unsigned bit = 1; bit < 0100; bit <<= 1) {
		assert_int_equal(chmod(address_dir, 0700 | bit), 0);
		expect_refused("chmod 700");
	}
	if (geteuid() == 0) {
		assert_int_equal(chmod(address_dir, 0700), 0);
		assert_int_equal(chown(address_dir, 65534, 65534), 0);
		expect_refused("belongs to uid 65534");
	} else {
		print_message("not root: no folder of another uid\n");
	}
	assert_int_equal(rmdir(address_dir), 0);
	address_touch(address_dir);
	expect_refused("isn't a folder");
}

/* A data set's path, whose folder nobody wants to change for this. */
static void a_path_without_a_stream_is_not_told_to_close_its_folder(void **s)
{
	char path[110], socket[120];
	struct tsi_address p;

	(void)s;
	snprintf(path, sizeof(path), "%s/train", address_dir);
	snprintf(socket, sizeof(socket), "%s.door", path);
	assert_int_equal(mkdir(address_dir, 0700), 0);
	assert_int_equal(chmod(address_dir, 0755), 0);
	assert_int_equal(tsi_address_find(path, &p, 1), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "/train is no stream"));
	assert_non_null(strstr(tsock_errmsg(), "--root"));
	assert_null(strstr(tsock_errmsg(), "chmod"));
	address_touch(socket);
	assert_int_equal(tsi_address_find(path, &p, 1), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "chmod 700"));
}

static void a_link_is_followed_only_if_the_user_named_it(void **s)
{
	char real[100], run[100];
	struct tsi_address p;
	int fd;

	(void)s;
	snprintf(real, sizeof(real), "%s/real", address_base);
	snprintf(run, sizeof(run), "%s/tsock", address_base);
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink(real, address_dir), 0);
	assert_int_equal(tsi_address_lock("abc", &p, &fd), 0);
	tsi_address_unlock(&p, fd);
	assert_int_equal(symlink(real, run), 0);
	unsetenv("TSOCK_DIR");
	setenv("XDG_RUNTIME_DIR", address_base, 1);
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
	assert_false(address_there(far));
	memset(name, 'n', sizeof(name));
	name[0] = name[290] = '/';
	name[299] = 0;
	assert_int_equal(tsi_address_find(name, &p, 1), TSOCK_EARG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_are_checked),
		TEST(the_folder_comes_from_the_environment),
		TEST(a_relative_folder_is_made_absolute),
		TEST(a_producer_makes_a_private_folder),
		TEST(a_runtime_folder_that_isnt_there_is_passed_over),
		TEST(an_open_or_foreign_folder_is_refused),
		TEST(a_path_without_a_stream_is_not_told_to_close_its_folder),
		TEST(a_link_is_followed_only_if_the_user_named_it),
		TEST(a_folder_that_cant_be_made_is_named),
		TEST(a_path_too_long_is_refused_with_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
