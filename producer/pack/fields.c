/* SPDX-License-Identifier: MIT */
/*
 * fields.c - the file of a pack's fields.
 *
 * A row is written as it lies in the source, whichever that is, so that the
 * file is a function of the rows alone.
 */
#include "pack/fields.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "base/err.h"
#include "base/file.h"
#include "data/columnar/layout.h"
#include "data/columns.h"
#include "data/format.h"
#include "data/packed/pack.h"

#define ALIGN 64u
/* With label, classes, masks, pixels, recipes, names and other images. */
#define COLUMNS (TSI_COLUMNS + 6 + TSI_OTHERS)
#define TOLD 65536 /* rows between two calls of progress */

struct writing {
	const struct tsi_index *x;
	const struct tsi_shards *shards;
	const struct tsi_columns *c; /* NULL: classes are all that there is */
	const struct tsi_pack_planes *planes;
	const struct tsi_pack_whole *whole; /* NULL: images have files */
	uint64_t rows, all;                 /* for its progress */
	int fd;
	struct tsi_columnar_entry entry[COLUMNS];
	uint32_t n;
	uint64_t at; /* in the file, of what is in the buffer */
	uint32_t crc;
	size_t filled;
	uint8_t *row; /* with room for so many bytes */
	size_t room;
	int err; /* of the source, with its message */
	bool failed;
	uint8_t buffer[1 << 16];
};

/* ---- bytes of a column ---- */

static void flush(struct writing *w)
{
	w->crc = (uint32_t)crc32(w->crc, w->buffer, (uInt)w->filled);
	if (!w->failed)
		w->failed =
			!tsi_file_pwrite(w->fd, w->buffer, w->filled, w->at);
	w->at += w->filled;
	w->filled = 0;
}

static void put(struct writing *w, const void *data, uint64_t len)
{
	const uint8_t *from = data;

	while (len) {
		size_t room = sizeof(w->buffer) - w->filled;
		size_t n = len < room ? (size_t)len : room;

		memcpy(w->buffer + w->filled, from, n);
		w->filled += n;
		from += n;
		len -= n;
		if (w->filled == sizeof(w->buffer))
			flush(w);
	}
}

static struct tsi_columnar_entry *begin(struct writing *w, const char *name,
					enum tsi_columnar_kind kind,
					uint64_t count)
{
	struct tsi_columnar_entry *e = &w->entry[w->n++];

	w->at = (w->at + ALIGN - 1) / ALIGN * ALIGN;
	w->crc = 0;
	memcpy(e->name, name, strlen(name));
	e->kind = (uint32_t)kind;
	e->count = count;
	e->offset = w->at;
	return e;
}

static void end(struct writing *w, struct tsi_columnar_entry *e)
{
	flush(w);
	e->bytes = w->at - e->offset;
	e->crc = w->crc;
}

/* ---- columns ---- */

static int make_room(struct writing *w, size_t len)
{
	uint8_t *more;

	if (len <= w->room)
		return 0;
	more = realloc(w->row, len);
	if (!more)
		return tsi_err(TSOCK_ENOMEM, "no memory for a pack's fields");
	w->row = more;
	w->room = len;
	return 0;
}

static void put_row(struct writing *w, const struct tsi_column *k, uint64_t i)
{
	size_t len;

	do {
		w->err = tsi_columns_take(w->c, k, i, w->row, w->room, &len);
	} while (!w->err && len > w->room && !(w->err = make_room(w, len)));
	if (!w->err)
		put(w, w->row, len);
}

/* Where rows of several lengths begin, in items of so many bytes. */
static void put_starts(struct writing *w, const struct tsi_column *k,
		       size_t item)
{
	uint64_t n = tsi_index_count(w->x), at = 0;
	size_t len = 0;

	put(w, &at, sizeof(at));
	for (uint64_t i = 0; i < n && !w->err; i++) {
		w->err = tsi_columns_take(w->c, k, i, NULL, 0, &len);
		at += len / item;
		put(w, &at, sizeof(at));
	}
}

static int tell(struct writing *w)
{
	if (!w->whole || ++w->rows % TOLD ||
	    w->whole->progress(w->whole->arg, w->rows, w->all))
		return 0;
	return tsi_err(TSOCK_EENDED,
		       "stopped before the pack was whole; the same command "
		       "begins anew");
}

static void put_rows(struct writing *w, const struct tsi_column *k)
{
	for (uint64_t i = 0; i < tsi_index_count(w->x) && !w->err; i++) {
		put_row(w, k, i);
		if (!w->err)
			w->err = tell(w);
	}
}

/* What a reader makes of the dimensions from the first one on. */
static void describe(struct tsi_columnar_entry *e, const struct tsock_field *f,
		     uint32_t first)
{
	e->dtype = f->dtype;
	e->ndim = f->ndim - first;
	for (uint32_t d = 0; d < e->ndim; d++)
		e->shape[d] = (uint32_t)f->shape[first + d];
}

/* It comes with the field whose lengths it has. */
static bool is_length(const struct tsi_column *k)
{
	return k->length || k->run == TSI_COLUMNS_LENGTH;
}

/* In a table some names say where samples are. */
static const char *escaped(const struct writing *w, const char *name, char *to)
{
	static const char *const own[] = { "files", "classes", "files.stamp" };

	for (unsigned i = 0; w->whole && i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(name, own[i])) {
			to[0] = TSI_COLUMNAR_ESCAPE;
			strcpy(to + 1, name);
			return to;
		}
	return name;
}

static void put_column(struct writing *w, const struct tsi_column *k)
{
	const struct tsock_field *f = &k->field;
	uint64_t n = tsi_index_count(w->x);
	char name[sizeof(f->name) + 1];
	struct tsi_columnar_entry *e;

	if (is_length(k))
		return;
	if (!k->start && !(f->flags & TSOCK_FIELD_RAGGED)) {
		e = begin(w, escaped(w, f->name, name), TSI_COLUMNAR_VALUES, n);
		describe(e, f, 0);
		put_rows(w, k);
	} else if (f->flags & TSOCK_FIELD_TEXT) {
		e = begin(w, f->name, TSI_COLUMNAR_TEXT, n);
		put_starts(w, k, 1);
		put_rows(w, k);
	} else if (k->hot) {
		/* The numbers of a sample's classes. */
		e = begin(w, TSI_PACK_CLASSES, TSI_COLUMNAR_RAGGED, n);
		e->dtype = TSOCK_U32;
		put_starts(w, k, sizeof(uint32_t));
		put_rows(w, k);
	} else {
		e = begin(w, f->name, TSI_COLUMNAR_RAGGED, n);
		describe(e, f, 1);
		memcpy(e->pad, k->pad, sizeof(e->pad));
		put_starts(w, k,
			   k->item ? k->item : tsock_dtype_size(f->dtype));
		put_rows(w, k);
	}
	end(w, e);
}

/* That labels are numbers of classes: their names. */
static void put_classes(struct writing *w)
{
	uint32_t n = tsi_index_classes(w->x);
	struct tsi_columnar_entry *e =
		begin(w, TSI_PACK_CLASSES, TSI_COLUMNAR_TEXT, n);
	uint64_t at = 0;

	put(w, &at, sizeof(at));
	for (uint32_t i = 0; i < n; i++) {
		at += strlen(tsi_index_class(w->x, i)) + 1;
		put(w, &at, sizeof(at));
	}
	for (uint32_t i = 0; i < n; i++)
		put(w, tsi_index_class(w->x, i),
		    strlen(tsi_index_class(w->x, i)) + 1);
	end(w, e);
}

/* Of a source without columns. */
static void put_labels(struct writing *w)
{
	uint64_t n = tsi_index_count(w->x);
	struct tsi_columnar_entry *e =
		begin(w, "label", TSI_COLUMNAR_VALUES, n);

	e->dtype = TSOCK_I64;
	for (uint64_t i = 0; i < n; i++) {
		int64_t label = tsi_index_label(w->x, i);

		put(w, &label, sizeof(label));
	}
	end(w, e);
}

/* Where the records of a plane lie. */
static void put_ranges(struct writing *w, const char *name, unsigned plane)
{
	uint64_t n = tsi_index_count(w->x);
	bool masks = !strcmp(name, TSI_PACK_MASKS);
	struct tsi_columnar_entry *e = begin(w, name, TSI_COLUMNAR_RANGES, n);

	for (uint64_t i = 0; i < n; i++) {
		const struct tsi_shards_entry *m =
			tsi_shards_at(w->shards, plane * n + i);
		struct tsi_columnar_range at = { .offset = 0 };

		/* A bad image's record says why. */
		if (!m->bad || !masks) {
			at.offset = m->offset;
			at.length = (uint32_t)m->length;
			at.file = m->shard;
		}
		put(w, &at, sizeof(at));
	}
	end(w, e);
}

static void put_planes(struct writing *w)
{
	const struct tsi_pack_planes *p = w->planes;

	for (unsigned k = 0; p && k < p->others; k++)
		put_ranges(w, tsi_columns_other(w->c, p->other[k]), 1 + k);
	if (p && p->masks)
		put_ranges(w, TSI_PACK_MASKS, 1 + p->others);
}

/* Texts that fn has, each with its zero. */
static void put_texts(struct writing *w, const char *name, uint64_t n,
		      const char *(*fn)(const struct writing *w, uint64_t i))
{
	struct tsi_columnar_entry *e = begin(w, name, TSI_COLUMNAR_TEXT, n);
	uint64_t at = 0;

	put(w, &at, sizeof(at));
	for (uint64_t i = 0; i < n; i++) {
		at += strlen(fn(w, i)) + 1;
		put(w, &at, sizeof(at));
	}
	for (uint64_t i = 0; i < n; i++)
		put(w, fn(w, i), strlen(fn(w, i)) + 1);
	end(w, e);
}

static const char *recipe_at(const struct writing *w, uint64_t i)
{
	return i ? w->whole->eval : w->whole->train;
}

static const char *key_at(const struct writing *w, uint64_t i)
{
	struct tsi_location at;

	tsi_index_locate(w->x, i, &at);
	return at.member ? at.member : "";
}

/* ---- the file ---- */

static bool has_classes(const struct writing *w)
{
	return w->c ? w->c->classes : !tsi_index_unlabelled(w->x);
}

static bool has_pixels(const struct writing *w)
{
	return w->c && w->c->pixels.bytes;
}

static bool has_recipes(const struct writing *w)
{
	return w->whole->train && *w->whole->train && *w->whole->eval;
}

static bool has_keys(const struct writing *w)
{
	struct tsi_location at;

	if (tsi_format_nameless(tsi_index_format(w->x)))
		return false;
	tsi_index_locate(w->x, 0, &at);
	return at.member;
}

/* The head comes last: where columns are is known by then. */
static void put_head(struct writing *w, uint32_t columns, struct tsi_stamp *sum)
{
	struct tsi_columnar_head h = {
		.version = TSI_COLUMNAR_VERSION,
		.endian = TSI_COLUMNAR_ENDIAN,
		.rows = tsi_index_count(w->x),
		.bytes = (w->at + ALIGN - 1) / ALIGN * ALIGN,
		.columns = columns,
	};

	memcpy(h.magic, TSI_COLUMNAR_MAGIC, sizeof(h.magic));
	h.crc = (uint32_t)crc32(0, (const Bytef *)&h, sizeof(h));
	h.crc = (uint32_t)crc32(h.crc, (const Bytef *)w->entry,
				(uInt)(columns * sizeof(w->entry[0])));
	if (!w->failed)
		w->failed = ftruncate(w->fd, (off_t)h.bytes) ||
			    !tsi_file_pwrite(w->fd, &h, sizeof(h), 0) ||
			    !tsi_file_pwrite(w->fd, w->entry,
					     columns * sizeof(w->entry[0]),
					     sizeof(h)) ||
			    fsync(w->fd);
	*sum = tsi_pack_columns_sum(&h);
}

static uint32_t count_columns(const struct writing *w)
{
	const struct tsi_pack_planes *p = w->planes;
	const struct tsi_columns *c = w->c;
	uint32_t n = has_classes(w);

	if (p)
		n += p->others + p->masks;
	if (w->whole)
		n += has_pixels(w) + has_recipes(w) + has_keys(w);
	if (!c)
		return n + has_classes(w);
	n += c->label.bytes != 0;
	for (unsigned k = 0; k < c->n; k++)
		n += !is_length(&c->column[k]);
	return n;
}

static void put_pixels(struct writing *w)
{
	const struct tsi_column *k = &w->c->pixels;
	bool planar = w->c->planar;
	struct tsi_columnar_entry *e =
		begin(w, planar ? TSI_COLUMNAR_PLANES : TSI_COLUMNAR_PIXELS,
		      TSI_COLUMNAR_VALUES, tsi_index_count(w->x));

	e->dtype = TSOCK_U8;
	e->ndim = 3;
	for (unsigned d = 0; d < 3; d++)
		e->shape[planar ? (d + 1) % 3 : d] =
			(uint32_t)k->field.shape[d];
	put_rows(w, k);
	end(w, e);
}

static void put_whole(struct writing *w)
{
	if (has_pixels(w))
		put_pixels(w);
	if (has_recipes(w))
		put_texts(w, TSI_COLUMNAR_RECIPES, 2, recipe_at);
	if (has_keys(w))
		put_texts(w, "key", tsi_index_count(w->x), key_at);
}

static void write_all(struct writing *w, struct tsi_stamp *sum)
{
	uint32_t columns = count_columns(w);

	w->at = sizeof(struct tsi_columnar_head) +
		columns * sizeof(struct tsi_columnar_entry);
	if (w->c && w->c->label.bytes)
		put_column(w, &w->c->label);
	else if (!w->c && has_classes(w))
		put_labels(w);
	for (unsigned k = 0; w->c && k < w->c->n; k++)
		put_column(w, &w->c->column[k]);
	if (has_classes(w))
		put_classes(w);
	if (w->whole)
		put_whole(w);
	put_planes(w);
	put_head(w, columns, sum);
}

bool tsi_pack_fields_any(const struct tsi_index *x,
			 const struct tsi_pack_planes *p)
{
	const struct tsi_columns *c = tsi_index_columns(x);

	return tsi_pack_planes_count(p) > 1 || (c && !tsi_columns_plain(c));
}

bool tsi_pack_fields_whole(const struct tsi_index *x)
{
	const struct tsi_columns *c = tsi_index_columns(x);

	return c && (tsi_columns_imageless(c) || tsi_columns_pixels(c));
}

static int write_file(struct writing *w, const struct tsi_index *x,
		      const struct tsi_shards *s, const char *name,
		      struct tsi_stamp *sum)
{
	bool good;

	w->x = x;
	w->shards = s;
	w->c = tsi_index_columns(x);
	w->fd = openat(tsi_shards_dirfd(s), name,
		       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	good = w->fd >= 0;
	if (good) {
		write_all(w, sum);
		good = !close(w->fd) && !w->failed;
	}
	free(w->row);
	if (w->err)
		return w->err;
	return good ? 0
		    : tsi_err_sys("write %s in %.300s", name,
				  tsi_shards_folder(s));
}

int tsi_pack_fields_write(const struct tsi_index *x, const struct tsi_shards *s,
			  const struct tsi_pack_planes *p,
			  struct tsi_stamp *sum)
{
	struct writing *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return tsi_err(TSOCK_ENOMEM, "no memory for a pack's fields");
	w->planes = p;
	err = write_file(w, x, s, TSI_PACK_COLUMNS, sum);
	free(w);
	return err;
}

int tsi_pack_fields_table(const struct tsi_index *x, const struct tsi_shards *s,
			  const struct tsi_pack_whole *whole)
{
	struct writing *w = calloc(1, sizeof(*w));
	const struct tsi_columns *c = tsi_index_columns(x);
	struct tsi_stamp sum;
	int err;

	if (!w)
		return tsi_err(TSOCK_ENOMEM, "no memory for a pack's table");
	w->whole = whole;
	w->all = tsi_index_count(x) *
		 (c->n + (c->label.bytes != 0) + (c->pixels.bytes != 0));
	err = write_file(w, x, s, TSI_PACK_TABLE, &sum);
	free(w);
	return err;
}
