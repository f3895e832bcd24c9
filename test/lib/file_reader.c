/* SPDX-License-Identifier: MIT */
/*
 * file_reader.c - files of known bytes in a scratch folder, and readers of the
 * backend that is under test.
 */
#include "test/lib/file_reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"

int files_dirfd;
enum tsi_io_reader_kind files_kind;
bool files_direct;

void files_put(const char *name, size_t len, unsigned seed)
{
	int fd = openat(files_dirfd, name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	uint8_t *buf = malloc(len + 1);

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 2654435761u >> 13 ^ seed);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, buf, len), len);
	close(fd);
	free(buf);
}

void files_check(const struct tsi_read *r, uint64_t offset, uint64_t length,
		 unsigned seed)
{
	assert_int_equal(r->err, 0);
	assert_int_equal(r->len, length);
	assert_non_null(r->data);
	for (uint64_t i = 0; i < length; i++) {
		uint8_t want =
			(uint8_t)((offset + i) * 2654435761u >> 13 ^ seed);

		if (r->data[i] != want)
			fail_msg("byte %zu of %zu at %zu", (size_t)i,
				 (size_t)length, (size_t)offset);
	}
}

struct tsi_io_reader *files_reader(unsigned depth)
{
	struct tsi_io_reader *r = NULL;

	if (tsi_io_reader_create(files_kind, depth, &r)) {
		if (files_kind != TSI_READER_URING)
			fail_msg("%s", tsock_errmsg());
		print_message("[  SKIP  ] %s\n", tsock_errmsg());
		skip();
	}
	return r;
}

int files_open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int files_setup(void **state)
{
	static char path[64];
	const char *tmp = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%.40s/tsock-files-XXXXXX",
		 tmp ? tmp : "/tmp");
	if (!mkdtemp(path))
		return -1;
	files_dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = path;
	return files_dirfd < 0 ? -1 : 0;
}

int files_teardown(void **state)
{
	char command[128];

	close(files_dirfd);
	snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
	return system(command);
}
