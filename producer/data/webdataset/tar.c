/* SPDX-License-Identifier: MIT */
/*
 * tar.c - the members of a tar file.
 *
 * A header is a block of 512 bytes (POSIX.1-2001, pax, "ustar Interchange
 * Format"; GNU tar's manual, "Basic Tar Format").  The bytes of a member follow
 * in whole blocks.
 */
#include "data/webdataset/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"

#define BLOCK 512u

/* Where a header has what, and how many bytes of it. */
enum {
	NAME = 0,
	NAME_LEN = 100,
	SIZE = 124,
	SIZE_LEN = 12,
	SUM = 148,
	SUM_LEN = 8,
	TYPE = 156,
	MAGIC = 257,
	PREFIX = 345,
	PREFIX_LEN = 155,
	SPARSE_MORE = 482,       /* of a GNU sparse header */
	SPARSE_BLOCK_MORE = 504, /* of the blocks that follow one */
};

/* What the headers before a member's own say of the member. */
struct extra {
	char *name; /* NULL: nothing */
	bool sized;
	uint64_t size;
	bool sparse;
};

void tsi_tar_init(struct tsi_tar *t, const char *path, int fd, uint64_t len)
{
	t->path = path;
	t->fd = fd;
	t->len = len;
	t->next = 0;
	t->any = false;
	t->offset = 0;
	t->have = 0;
}

static int damaged(const struct tsi_tar *t, uint64_t at, const char *what)
{
	return tsi_err(TSOCK_EDATA, "%.300s: %s at offset %" PRIu64, t->path,
		       what, at);
}

static int no_memory(const struct tsi_tar *t)
{
	return tsi_err(TSOCK_ENOMEM, "no memory to read %.300s", t->path);
}

/* Have the window begin at this offset, with as much as there is. */
static int move_window(struct tsi_tar *t, uint64_t at)
{
	ssize_t n = tsi_file_pread(t->fd, t->window, TSI_TAR_WINDOW, at);

	t->offset = at;
	t->have = n < 0 ? 0 : (size_t)n;
	return n < 0 ? tsi_err_sys("read %.300s", t->path) : 0;
}

int tsi_tar_read(struct tsi_tar *t, uint64_t at, void *to, size_t len)
{
	uint8_t *p = to;

	if (at > t->len || len > t->len - at)
		return 0;
	while (len > 0) {
		size_t from, n;

		if (at < t->offset || at - t->offset >= t->have) {
			int err = move_window(t, at);

			if (err)
				return err;
			if (t->have == 0)
				return 0;
		}
		from = (size_t)(at - t->offset);
		n = t->have - from < len ? t->have - from : len;
		memcpy(p, t->window + from, n);
		p += n;
		at += n;
		len -= n;
	}
	return 1;
}

/* An octal number, or by GNU one of base 256; false: neither, or too large. */
static bool number(const uint8_t *p, size_t len, uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;

	if (p[0] & 0x80) {
		v = p[0] & 0x7f;
		for (i = 1; i < len; i++) {
			if (v >> 55)
				return false;
			v = v << 8 | p[i];
		}
		*out = v;
		return true;
	}
	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++) {
		if (v >> 60)
			return false;
		v = v << 3 | (p[i] - '0');
	}
	if (i < len && p[i] != ' ' && p[i] != '\0')
		return false;
	*out = v;
	return true;
}

/* The sum of a header's bytes, as if the sum itself were spaces. */
static bool sum_is_right(const uint8_t *h)
{
	uint64_t sum = 0, said;
	int64_t with_sign = 0;

	if (!number(h + SUM, SUM_LEN, &said))
		return false;
	for (unsigned i = 0; i < BLOCK; i++) {
		uint8_t b = i >= SUM && i < SUM + SUM_LEN ? ' ' : h[i];

		sum += b;
		/* Some old programs took bytes for signed. */
		with_sign += (int8_t)b;
	}
	return said == sum || (int64_t)said == with_sign;
}

static bool is_empty(const uint8_t *h)
{
	for (unsigned i = 0; i < BLOCK; i++)
		if (h[i])
			return false;
	return true;
}

/* Types whose size says how many bytes follow; others we know have none. */
static bool has_bytes(char type)
{
	return !strchr("123456", type) || type == '\0';
}

static bool is_regular(char type)
{
	return type == '0' || type == '\0' || type == '7' || type == 'S';
}

/* Behind len bytes from at, in whole blocks. */
static bool behind(uint64_t at, uint64_t len, uint64_t *out)
{
	if (len > INT64_MAX - BLOCK || at > INT64_MAX - len - BLOCK)
		return false;
	*out = at + (len + BLOCK - 1) / BLOCK * BLOCK;
	return true;
}

/* The text that a GNU long name or a pax header is: free(). */
static int read_text(struct tsi_tar *t, uint64_t header, uint64_t size,
		     char **out)
{
	char *text;
	int got;

	if (size > TSI_TAR_EXTRA)
		return damaged(t, header, "a tar header of more than 1 MiB");
	text = malloc(size + 1);
	if (!text)
		return no_memory(t);
	got = tsi_tar_read(t, header + BLOCK, text, size);
	if (got <= 0) {
		free(text);
		return got ? got : damaged(t, header, "a tar header is cut");
	}
	text[size] = '\0';
	*out = text;
	return 0;
}

/* One "key=value" of a pax header: 0, EDATA if it is damaged, ENOMEM; without a
 * message. */
static int take_pax(struct extra *x, const char *key, size_t key_len,
		    const char *value, size_t value_len)
{
	if (key_len == 4 && !memcmp(key, "path", 4)) {
		free(x->name);
		x->name = strndup(value, value_len);
		return x->name ? 0 : TSOCK_ENOMEM;
	}
	if (key_len == 4 && !memcmp(key, "size", 4)) {
		char text[24] = "", *end;

		if (value_len == 0 || value_len >= sizeof(text) ||
		    *value < '0' || *value > '9')
			return TSOCK_EDATA;
		memcpy(text, value, value_len);
		errno = 0;
		x->size = strtoull(text, &end, 10);
		x->sized = true;
		return errno || *end ? TSOCK_EDATA : 0;
	}
	if (key_len > 11 && !memcmp(key, "GNU.sparse.", 11))
		x->sparse = true;
	return 0;
}

/* Records "LENGTH key=value\n", where LENGTH counts all of the record.  Fails as
 * take_pax() does. */
static int parse_pax(struct extra *x, const char *text, size_t len)
{
	while (len > 0) {
		const char *space, *equals;
		size_t n = 0, i = 0;
		int err;

		for (; i < len && text[i] >= '0' && text[i] <= '9'; i++)
			if ((n = n * 10 + (size_t)(text[i] - '0')) > len)
				return TSOCK_EDATA;
		space = text + i;
		if (i == 0 || i >= len || *space != ' ' || n < i + 3 ||
		    text[n - 1] != '\n')
			return TSOCK_EDATA;
		equals = memchr(space + 1, '=', n - i - 2);
		if (!equals)
			return TSOCK_EDATA;
		err = take_pax(x, space + 1, (size_t)(equals - space - 1),
			       equals + 1, (size_t)(text + n - 1 - equals - 1));
		if (err)
			return err;
		text += n;
		len -= n;
	}
	return 0;
}

/* A header that says something of the next member. */
static int take_extra(struct tsi_tar *t, char type, uint64_t at, uint64_t size,
		      struct extra *x)
{
	char *text = NULL;
	int err = read_text(t, at, size, &text);

	if (err)
		return err;
	if (type == 'L') {
		free(x->name);
		x->name = text;
		return 0;
	}
	if (type != 'K')
		err = parse_pax(x, text, (size_t)size);
	if (err)
		err = err == TSOCK_ENOMEM
			      ? no_memory(t)
			      : damaged(t, at, "a damaged pax header");
	free(text);
	return err;
}

/* The name in the header itself. */
static void own_name(const uint8_t *h, char *to)
{
	size_t n = 0;

	if (!memcmp(h + MAGIC, "ustar", 6) && h[PREFIX]) {
		n = strnlen((const char *)h + PREFIX, PREFIX_LEN);
		memcpy(to, h + PREFIX, n);
		to[n++] = '/';
	}
	memcpy(to + n, h + NAME, NAME_LEN);
	to[n + NAME_LEN] = '\0';
}

/* A GNU sparse header goes on in blocks of its own. */
static int skip_sparse(struct tsi_tar *t, const uint8_t *h, uint64_t *data)
{
	uint8_t more = h[SPARSE_MORE];

	while (more) {
		int got = tsi_tar_read(t, *data + SPARSE_BLOCK_MORE, &more, 1);

		if (got <= 0)
			return got ? got
				   : damaged(t, *data, "a tar header is cut");
		*data += BLOCK;
	}
	return 0;
}

static int fill_member(struct tsi_tar *t, const uint8_t *h, uint64_t at,
		       const struct extra *x, uint64_t size,
		       struct tsi_tar_member *m)
{
	char type = (char)h[TYPE];
	uint64_t data = at + BLOCK;
	int err = type == 'S' ? skip_sparse(t, h, &data) : 0;

	if (err)
		return err;
	if (x->sized && (is_regular(type) || !strchr("123456", type)))
		size = x->size;
	if (x->name && strlen(x->name) >= TSI_TAR_NAME)
		return damaged(t, at, "a name of more than 4095 bytes");
	if (x->name)
		strcpy(m->name, x->name);
	else
		own_name(h, m->name);
	m->offset = data;
	m->size = size;
	m->regular = is_regular(type);
	m->sparse = type == 'S' || x->sparse;
	/* As old programs marked a folder. */
	if (type == '\0' && *m->name && m->name[strlen(m->name) - 1] == '/')
		m->regular = false;
	if (!behind(data, has_bytes(type) ? size : 0, &t->next))
		return damaged(t, at, "an impossible size");
	return 0;
}

/* What begins like this? */
static int no_tar(const struct tsi_tar *t, const uint8_t *h)
{
	static const struct {
		const char *head, *by, *undo;
		size_t len;
	} packed[] = {
		{ "\x1f\x8b", "gzip", "gunzip", 2 },
		{ "\x28\xb5\x2f\xfd", "zstd", "unzstd", 4 },
		{ "\xfd\x37zXZ", "xz", "unxz", 5 },
		{ "BZh", "bzip2", "bunzip2", 3 },
	};

	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
		if (!memcmp(h, packed[i].head, packed[i].len))
			return tsi_err(TSOCK_EDATA,
				       "%.300s is compressed by %s, so its "
				       "samples can't be read at random: "
				       "unpack it by %s",
				       t->path, packed[i].by, packed[i].undo);
	return damaged(t, t->next, "no tar file: no header");
}

/* The next header; 1, 0 at the end, or an error. */
static int next_header(struct tsi_tar *t, uint8_t *h)
{
	int got;

	/* A file that ends here has no end mark: see tsi_tar_unended(). */
	if (t->next >= t->len)
		return 0;
	got = tsi_tar_read(t, t->next, h, BLOCK);
	if (got < 0)
		return got;
	if (!got && !t->any)
		return damaged(t, t->next, "no tar file: too short for one");
	if (!got)
		return damaged(t, t->next, "a tar header is cut");
	if (is_empty(h))
		return 0;
	if (!sum_is_right(h)) {
		if (t->any)
			return damaged(t, t->next, "a damaged tar header");
		return no_tar(t, h);
	}
	t->any = true;
	return 1;
}

int tsi_tar_next(struct tsi_tar *t, struct tsi_tar_member *m)
{
	struct extra x = { .name = NULL };
	uint8_t h[BLOCK];
	uint64_t size, first = t->next;
	int got;

	while ((got = next_header(t, h)) > 0) {
		uint64_t at = t->next;
		char type = (char)h[TYPE];

		if (!number(h + SIZE, SIZE_LEN, &size)) {
			got = damaged(t, at, "an impossible size");
			break;
		}
		if (!memchr("LKxXg", type, 5)) {
			m->header = first;
			got = fill_member(t, h, at, &x, size, m);
			got = got ? got : 1;
			break;
		}
		if (!behind(at + BLOCK, size, &t->next)) {
			got = damaged(t, at, "an impossible size");
			break;
		}
		if (type != 'g')
			got = take_extra(t, type, at, size, &x);
		if (got < 0)
			break;
	}
	free(x.name);
	return got;
}

bool tsi_tar_unended(const struct tsi_tar *t)
{
	return t->next >= t->len;
}

int tsi_tar_behind(struct tsi_tar *t, uint64_t *at)
{
	uint8_t block[BLOCK];

	*at = t->next;
	for (uint64_t next = t->next; next + BLOCK <= t->len; next += BLOCK) {
		int got = tsi_tar_read(t, next, block, BLOCK);

		if (got <= 0)
			return got;
		if (!is_empty(block))
			return 1;
	}
	return 0;
}
