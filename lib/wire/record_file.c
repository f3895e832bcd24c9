/* SPDX-License-Identifier: MIT */
/*
 * record_file.c - a reader takes itself off the record of its producer.
 */
#include "wire/record_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "wire/peer.h"

#define ROW_AT(i) \
	(sizeof(struct tsi_record_head) + (i) * sizeof(struct tsi_record_row))

static const uint8_t nobody[TSI_NONCE];

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

static bool is_same(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, TSI_NONCE);
}

/* By what name the claim of that nonce was asked for; zeros: by none. */
static const uint8_t *find_was(const struct tsi_record_row *row,
			       const uint8_t *nonce)
{
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++)
		if (row[i].used == 1 && is_same(row[i].reader.nonce, nonce))
			return row[i].reader.was;
	return nobody;
}

/* The reader's own claim, one that was asked for as by it, or, where it was
 * asked for as by another: that one, and those that were, too.  Of the last
 * ones it never heard. */
static bool is_leavers(const struct tsi_reader_row *r, const uint8_t *nonce,
		       const uint8_t *was)
{
	return is_same(r->nonce, nonce) || is_same(r->was, nonce) ||
	       (!is_same(was, nobody) &&
		(is_same(r->nonce, was) || is_same(r->was, was)));
}

static bool write_left(int fd, const struct tsi_record_row *row, unsigned i)
{
	uint32_t mark = mark_of(row);

	return tsi_file_pwrite(fd, &mark, sizeof(mark),
			       ROW_AT(i) +
				       offsetof(struct tsi_record_row, left));
}

static bool leave_rows(int fd, const uint8_t *nonce)
{
	size_t len = TSI_RECORD_ROWS * sizeof(struct tsi_record_row);
	struct tsi_record_row *row = malloc(len);
	const uint8_t *was;
	bool any = false;

	if (!row || tsi_file_pread(fd, row, len, ROW_AT(0)) != (ssize_t)len) {
		free(row);
		return false;
	}
	was = find_was(row, nonce);
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++)
		if (row[i].used == 1 && is_leavers(&row[i].reader, nonce, was))
			any |= write_left(fd, &row[i], i);
	free(row);
	return any;
}

static bool is_record(int fd)
{
	struct tsi_record_head h;
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       tsi_file_pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
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

/* Was a row of that process there before? */
static bool is_known(const struct tsi_record_row *row, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (row[k].used == 1 && row[k].reader.pid == row[i].reader.pid)
			return true;
	return false;
}

static bool waits(const struct tsi_record_row *row, unsigned i)
{
	const struct tsi_reader_row *r = &row[i].reader;

	return row[i].used == 1 && !tsi_record_file_has_left(&row[i]) &&
	       r->pid && r->born && !tsi_peer_ended(r->pid, r->born) &&
	       !is_known(row, i);
}

static int name_rows(int fd, char *buf, size_t size)
{
	size_t len = TSI_RECORD_ROWS * sizeof(struct tsi_record_row), at = 0;
	struct tsi_record_row *row = malloc(len);
	int n = 0, told = 0;

	if (!row || tsi_file_pread(fd, row, len, ROW_AT(0)) != (ssize_t)len) {
		free(row);
		return 0;
	}
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++) {
		if (!waits(row, i))
			continue;
		/* Room is kept to say how many more there are. */
		if (n++ == told && at + 32 < size) {
			at += (size_t)snprintf(buf + at, size - at, "%s%u",
					       told ? ", " : "",
					       row[i].reader.pid);
			told++;
		}
	}
	if (told < n)
		snprintf(buf + at, size - at, " and %d more", n - told);
	free(row);
	return n;
}

int tsi_record_file_readers(const struct tsi_address *a, char *buf, size_t size)
{
	char path[TSI_RECORD_PATH];
	int fd, n;

	buf[0] = '\0';
	if (!tsi_record_file_path(tsi_address_folder(a), tsi_address_name(a),
				  path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -1;
	n = is_record(fd) ? name_rows(fd, buf, size) : -1;
	close(fd);
	return n;
}

void tsi_record_file_remove(const struct tsi_address *a)
{
	char path[TSI_RECORD_PATH];

	if (tsi_record_file_path(tsi_address_folder(a), tsi_address_name(a),
				 path))
		unlink(path);
}
