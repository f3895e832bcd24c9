/* SPDX-License-Identifier: MIT */
/*
 * record.c - who reads the stream, in a file that a producer's death leaves
 * behind.
 *
 * What was written before a SIGKILL is in the page cache, and there for the
 * next process to read.  A row's words about its reader are written in one
 * piece; a machine that loses power loses the readers, too.
 */
#include "serve/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

static const uint8_t nobody[TSI_NONCE];

void tsi_record_init(struct tsi_record *r)
{
	*r = (struct tsi_record){ .fd = -1 };
}

/* The pid namespace of this process; 0: not known. */
static uint64_t processes(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

static struct tsi_record_head head_of(const struct tsi_record *r)
{
	return (struct tsi_record_head){ .magic = TSI_RECORD_FILE_MAGIC,
					 .version = TSI_RECORD_FILE_VERSION,
					 .rows = TSI_RECORD_ROWS,
					 .stream = r->stream,
					 .processes = processes(),
					 .lineage = r->lineage };
}

/* Why it can't be kept; nothing is written any more, and what was written will
 * be wrong as soon as a reader comes or goes. */
static void give_up(struct tsi_record *r)
{
	tsi_log(TSOCK_LOG_WARN,
		"%s can't be written (%s): if this producer dies, the next one "
		"won't know who read it",
		r->path, strerror(errno));
	unlink(r->path);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* False: there is no record any more. */
static bool write_at(struct tsi_record *r, const void *p, size_t len,
		     uint64_t at)
{
	if (tsi_file_pwrite(r->fd, p, len, at))
		return true;
	give_up(r);
	return false;
}

/*
 * Where the row has the reader that it had, all but the word that is the
 * reader's to write: it may have left, and keep its claim for a while.
 */
static bool write_row(struct tsi_record *r, unsigned i)
{
	const struct tsi_record_row *row = &r->due[i];
	uint64_t at = sizeof(struct tsi_record_head) + i * sizeof(*row);

	if (r->is_due[i] == TSI_RECORD_ROW)
		return write_at(r, row, sizeof(*row), at);
	return write_at(r, &row->reader, sizeof(row->reader),
			at + offsetof(struct tsi_record_row, reader));
}

/* The head last: it says that the rows are there. */
static bool write_all(struct tsi_record *r)
{
	struct tsi_record_head h = head_of(r);

	return write_at(r, r->due, sizeof(r->due), sizeof(h)) &&
	       write_at(r, &h, sizeof(h), 0);
}

/* The rows of the producer before; false: the file is of no such stream.  Those
 * that are to be different then are due. */
static bool read_record_rows(struct tsi_record *r)
{
	static const struct tsi_record_row none;
	struct tsi_record_head h, want = head_of(r);

	if (pread(r->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    h.magic != want.magic || h.version != want.version ||
	    h.rows != want.rows || h.stream != want.stream ||
	    pread(r->fd, r->row, sizeof(r->row), (off_t)sizeof(h)) !=
		    (ssize_t)sizeof(r->row)) {
		memset(r->row, 0, sizeof(r->row));
		return false;
	}
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++) {
		struct tsi_record_row *row = &r->row[i];

		if (!memcmp(row, &none, sizeof(none)))
			continue;
		if (row->used != 1 || tsi_record_file_has_left(row) ||
		    !memcmp(row->reader.nonce, nobody, TSI_NONCE)) {
			*row = none;
			r->is_due[i] = TSI_RECORD_ROW;
			continue;
		}
		r->lineage = h.lineage;
		if (h.processes != want.processes) {
			/* The number is somebody else's. */
			row->reader.pid = 0;
			r->is_due[i] = TSI_RECORD_READER;
		}
	}
	return true;
}

static bool open_file(struct tsi_record *r)
{
	struct stat st;

	r->fd = open(r->path,
		     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		     0600);
	if (r->fd < 0)
		return false;
	if (!fstat(r->fd, &st) && S_ISREG(st.st_mode))
		return true;
	errno = EINVAL;
	return false;
}

void tsi_record_open(struct tsi_record *r, const char *folder, const char *name,
		     uint64_t stream, uint64_t lineage)
{
	struct tsi_record_head head;
	bool ours;

	r->stream = stream;
	r->lineage = lineage;
	tsi_record_file_path(folder, name, r->path);
	if (!open_file(r)) {
		give_up(r);
		return;
	}
	r->kept = true;
	ours = r->found = read_record_rows(r);
	memcpy(r->due, r->row, sizeof(r->due));
	if (!ours) {
		write_all(r);
		return;
	}
	/* A reader may take itself off at this moment: its word stays. */
	tsi_record_write(r);
	head = head_of(r);
	if (r->fd >= 0)
		write_at(r, &head, sizeof(head), 0);
}

bool tsi_record_found(const struct tsi_record *r)
{
	return r->found;
}

uint64_t tsi_record_lineage(const struct tsi_record *r)
{
	return r->lineage;
}

void tsi_record_again(struct tsi_record *r, const char *folder,
		      const char *name)
{
	tsi_record_file_path(folder, name, r->path);
	r->anew = r->any = true;
}

bool tsi_record_next(const struct tsi_record *r, unsigned *i,
		     struct tsi_reader_row *out)
{
	while (*i < TSI_RECORD_ROWS && !r->row[*i].used)
		++*i;
	if (*i >= TSI_RECORD_ROWS)
		return false;
	*out = r->row[*i].reader;
	return true;
}

/* The row of a nonce; of nobody's, a free one.  TSI_RECORD_ROWS: none. */
static unsigned find_row(const struct tsi_record *r, const uint8_t *nonce)
{
	unsigned i = 0;

	while (i < TSI_RECORD_ROWS &&
	       memcmp(r->row[i].reader.nonce, nonce, TSI_NONCE) != 0)
		i++;
	return i;
}

static void note_change(struct tsi_record *r, unsigned i,
			enum tsi_record_change change)
{
	if (r->changed[i] < change)
		r->changed[i] = change;
	r->any = true;
}

void tsi_record_put(struct tsi_record *r, const struct tsi_reader_row *row)
{
	unsigned i = r->kept ? find_row(r, nobody) : TSI_RECORD_ROWS;

	if (i >= TSI_RECORD_ROWS)
		return;
	r->row[i] = (struct tsi_record_row){ .used = 1, .reader = *row };
	note_change(r, i, TSI_RECORD_ROW);
}

bool tsi_record_has_left(const struct tsi_record *r, const uint8_t *nonce)
{
	unsigned i = r->fd >= 0 ? find_row(r, nonce) : TSI_RECORD_ROWS;
	struct tsi_record_row row;
	off_t at = (off_t)(sizeof(struct tsi_record_head) + i * sizeof(row));

	return i < TSI_RECORD_ROWS &&
	       pread(r->fd, &row, sizeof(row), at) == (ssize_t)sizeof(row) &&
	       !memcmp(row.reader.nonce, nonce, TSI_NONCE) &&
	       tsi_record_file_has_left(&row);
}

void tsi_record_mark(struct tsi_record *r, const uint8_t *nonce, uint64_t mark,
		     bool together)
{
	unsigned i = r->kept ? find_row(r, nonce) : TSI_RECORD_ROWS;
	struct tsi_reader_row *row;

	if (i >= TSI_RECORD_ROWS)
		return;
	row = &r->row[i].reader;
	if (row->mark == mark && row->together == together)
		return;
	row->mark = mark;
	row->together = together;
	note_change(r, i, TSI_RECORD_READER);
}

void tsi_record_settle(struct tsi_record *r, const uint8_t *nonce)
{
	unsigned i = r->kept ? find_row(r, nonce) : TSI_RECORD_ROWS;

	if (i >= TSI_RECORD_ROWS ||
	    !memcmp(r->row[i].reader.was, nobody, TSI_NONCE))
		return;
	memset(r->row[i].reader.was, 0, TSI_NONCE);
	note_change(r, i, TSI_RECORD_READER);
}

void tsi_record_drop(struct tsi_record *r, const uint8_t *nonce)
{
	unsigned i = r->kept ? find_row(r, nonce) : TSI_RECORD_ROWS;

	if (i >= TSI_RECORD_ROWS)
		return;
	memset(&r->row[i], 0, sizeof(r->row[i]));
	note_change(r, i, TSI_RECORD_ROW);
}

bool tsi_record_collect(struct tsi_record *r)
{
	if (!r->any)
		return false;
	r->any = false;
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++) {
		if (!r->changed[i])
			continue;
		r->due[i] = r->row[i];
		if (r->is_due[i] < r->changed[i])
			r->is_due[i] = r->changed[i];
		r->changed[i] = TSI_RECORD_SAME;
	}
	return true;
}

/* All of it, into a file that is there again. */
static void write_anew(struct tsi_record *r)
{
	close(r->fd);
	if (open_file(r))
		write_all(r);
	else
		give_up(r);
}

void tsi_record_write(struct tsi_record *r)
{
	bool anew = r->anew;

	r->anew = false;
	if (anew && r->fd >= 0)
		write_anew(r);
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++) {
		if (r->is_due[i] && r->fd >= 0 && !anew)
			write_row(r, i);
		r->is_due[i] = TSI_RECORD_SAME;
	}
}

void tsi_record_close(struct tsi_record *r, bool keep)
{
	struct tsi_reader_row row;
	unsigned i = 0;

	keep = keep && tsi_record_next(r, &i, &row);
	if (keep && tsi_record_collect(r))
		tsi_record_write(r);
	if (r->fd < 0)
		return;
	if (!keep)
		unlink(r->path);
	close(r->fd);
	r->fd = -1;
}
