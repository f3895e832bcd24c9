/* SPDX-License-Identifier: MIT */
/*
 * record_file.c - a reader takes itself off the record that its producer left
 * behind.
 */
#include "wire/record_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fully.h"

#define ROW_AT(i) \
	(sizeof(struct tsi_record_head) + (i) * sizeof(struct tsi_record_row))

bool tsi_record_file_path(const char *folder, const char *name,
			  char path[TSI_RECORD_PATH])
{
	if (snprintf(path, TSI_RECORD_PATH, "%s/%s.readers", folder, name) <
	    TSI_RECORD_PATH)
		return true;
	path[0] = '\0';
	return false;
}

static uint32_t mark_of(const struct tsi_record_row *row)
{
	uint32_t mark;

	memcpy(&mark, row->reader.nonce, sizeof(mark));
	return mark;
}

bool tsi_record_file_has_left(const struct tsi_record_row *row)
{
	return row->left && row->left == mark_of(row);
}

static bool read_row(int fd, unsigned i, struct tsi_record_row *row)
{
	return tsi_fully_pread(fd, row, sizeof(*row), ROW_AT(i)) ==
		       (ssize_t)sizeof(*row) &&
	       row->used == 1;
}

static bool is_same(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, TSI_NONCE);
}

/* By what name the claim of that nonce was asked for; zeros: by none. */
static void find_was(int fd, const uint8_t *nonce, uint8_t *was)
{
	struct tsi_record_row row;

	memset(was, 0, TSI_NONCE);
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++)
		if (read_row(fd, i, &row) && is_same(row.reader.nonce, nonce))
			memcpy(was, row.reader.was, TSI_NONCE);
}

/* Claims that were asked for by the same name were never heard of. */
static bool leave_rows(int fd, const uint8_t *nonce)
{
	static const uint8_t nobody[TSI_NONCE];
	struct tsi_record_row row;
	uint8_t was[TSI_NONCE];
	bool any = false;

	find_was(fd, nonce, was);
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++) {
		uint32_t mark;

		if (!read_row(fd, i, &row) ||
		    (!is_same(row.reader.nonce, nonce) &&
		     !is_same(row.reader.was, nonce) &&
		     (is_same(was, nobody) || !is_same(row.reader.was, was))))
			continue;
		mark = mark_of(&row);
		any |= tsi_fully_pwrite(
			fd, &mark, sizeof(mark),
			ROW_AT(i) + offsetof(struct tsi_record_row, left));
	}
	return any;
}

static bool is_record(int fd)
{
	struct tsi_record_head h;
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       tsi_fully_pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
	       h.magic == TSI_RECORD_FILE_MAGIC &&
	       h.version == TSI_RECORD_FILE_VERSION &&
	       h.rows == TSI_RECORD_ROWS;
}

bool tsi_record_file_leave(const struct tsi_address *a, const uint8_t *nonce)
{
	char path[TSI_RECORD_PATH];
	bool any;
	int fd;

	if (!tsi_record_file_path(tsi_address_folder(a), tsi_address_name(a),
				  path))
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	any = is_record(fd) && leave_rows(fd, nonce);
	close(fd);
	return any;
}
