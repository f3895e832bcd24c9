/* SPDX-License-Identifier: MIT */
/*
 * table.c - the rows of a data set and their strings.
 */
#include "data/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"

uint64_t tsi_table_block_len(const struct tsi_table_lengths *n)
{
	const struct tsi_table *t;
	uint64_t range =
		(n->ranged ? sizeof(*t->offset) + sizeof(*t->length) : 0) +
		(n->named ? sizeof(*t->member) : 0);

	return (n->bare ? 0 : n->count) *
		       (sizeof(*t->path) + range + sizeof(*t->size) +
			sizeof(*t->label)) +
	       n->folders * sizeof(*t->folder) +
	       n->classes * sizeof(*t->class_name) +
	       n->stamps * sizeof(*t->stamp) + n->paths_len + n->names_len;
}

void tsi_table_set_block(struct tsi_table *t, const struct tsi_table_lengths *n,
			 void *block)
{
	uint64_t rows = n->bare ? 0 : n->count;
	uint64_t ranges = n->ranged ? rows : 0;

	t->n = *n;
	t->block = block;
	t->path = block;
	t->class_name = t->path + rows;
	t->stamp = (struct tsi_stamp *)(t->class_name + n->classes);
	t->offset = (uint64_t *)(t->stamp + n->stamps);
	t->length = t->offset + ranges;
	t->member = t->length + ranges;
	t->folder = t->member + (n->named ? rows : 0);
	t->size = (uint32_t *)(t->folder + n->folders);
	t->label = t->size + rows;
	t->paths = (char *)(t->label + rows);
	t->names = t->paths + n->paths_len;
}

void tsi_table_forget_bad(struct tsi_table *t)
{
	for (uint64_t k = 0; k < t->nbad; k++)
		free(t->bad[k].reason);
	t->nbad = 0;
}

void tsi_table_clear(struct tsi_table *t)
{
	tsi_table_forget_bad(t);
	tsi_columns_destroy(t->columns);
	free(t->bad);
	tsi_block_free(t->block, &t->made);
	*t = (struct tsi_table){ .block = NULL };
}

uint64_t tsi_table_count(const struct tsi_table *t)
{
	return t->n.count;
}

uint32_t tsi_table_classes(const struct tsi_table *t)
{
	return t->n.classes;
}

const char *tsi_table_class(const struct tsi_table *t, uint32_t i)
{
	return t->names + t->class_name[i];
}

bool tsi_table_named(const struct tsi_table *t)
{
	return t->n.named;
}

bool tsi_table_foldered(const struct tsi_table *t)
{
	return t->n.folders > 0;
}

const struct tsi_stamp *tsi_table_stamp(const struct tsi_table *t,
					const char *path)
{
	for (uint32_t k = 0; k < t->n.stamps; k++)
		if (!strcmp(t->names + t->stamp[k].path, path))
			return &t->stamp[k];
	return NULL;
}

void tsi_table_set_size(struct tsi_table *t, uint64_t i, uint64_t size)
{
	if (t->n.bare)
		return;
	t->size[i] = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

void tsi_table_set_columns(struct tsi_table *t, struct tsi_columns *c)
{
	t->columns = c;
}

const struct tsi_columns *tsi_table_columns(const struct tsi_table *t)
{
	return t->columns;
}

int tsi_table_add_bad(struct tsi_table *t, uint64_t i, const char *reason)
{
	char *copy = strdup(reason);

	if (copy && t->nbad == t->bad_cap) {
		uint64_t more = t->bad_cap * 2 + 16;
		void *p = realloc(t->bad, more * sizeof(*t->bad));

		if (p) {
			t->bad = p;
			t->bad_cap = more;
		}
	}
	if (!copy || t->nbad == t->bad_cap) {
		free(copy);
		return tsi_err(TSOCK_ENOMEM, "no memory for an index");
	}
	t->bad[t->nbad++] = (struct tsi_table_bad){ i, copy };
	return 0;
}

static int by_index(const void *a, const void *b)
{
	uint64_t i = ((const struct tsi_table_bad *)a)->index;
	uint64_t j = ((const struct tsi_table_bad *)b)->index;

	return (i > j) - (i < j);
}

void tsi_table_sort_bad(struct tsi_table *t)
{
	if (t->nbad > 1)
		qsort(t->bad, t->nbad, sizeof(*t->bad), by_index);
}

uint64_t tsi_table_bad_count(const struct tsi_table *t)
{
	return t->nbad;
}

uint64_t tsi_table_bad_at(const struct tsi_table *t, uint64_t k)
{
	return t->bad[k].index;
}

const char *tsi_table_bad_reason(const struct tsi_table *t, uint64_t i)
{
	uint64_t low = 0;
	uint64_t high = t->nbad;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (t->bad[mid].index < i)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == t->nbad || t->bad[low].index != i)
		return NULL;
	return t->bad[low].reason;
}

/* Where in the list of folders that of a path is. */
static uint64_t folder_of(const struct tsi_table *t, uint64_t path,
			  uint64_t label)
{
	const uint64_t *folder = t->folder;

	/* Most often each class is a folder. */
	if (label + 1 < t->n.folders && folder[label] <= path &&
	    path < folder[label + 1])
		return label;
	return tsi_path_folder(folder, t->n.folders, path);
}

void tsi_table_locate(const struct tsi_table *t, uint64_t i,
		      struct tsi_location *out)
{
	out->folder = NULL;
	if (t->n.folders)
		out->folder = t->paths +
			      t->folder[folder_of(t, t->path[i], t->label[i])];
	out->file = t->paths + t->path[i];
	out->member = t->n.named ? t->paths + t->member[i] : NULL;
	out->offset = t->n.ranged ? t->offset[i] : 0;
	out->length = t->n.ranged ? t->length[i] : 0;
	out->size = t->size[i];
}

int64_t tsi_table_label(const struct tsi_table *t, uint64_t i)
{
	return t->label[i];
}

/* ------------------------------------------------------------------------
 * Sharing
 */

static bool share(const struct tsi_table *t, const void *column,
		  struct tsi_table_shared *out)
{
	const char *block = t->block;
	int fd = tsi_block_fd(&t->made);

	if (fd < 0 || t->n.bare)
		return false;
	*out = (struct tsi_table_shared){
		.fd = fd,
		.length = t->made.shared.len,
		.at = (uint64_t)((const char *)column - block),
		.texts_at = (uint64_t)(t->paths - block),
		.texts_len = t->n.paths_len,
		.folders_at = (uint64_t)((const char *)t->folder - block),
		.folders = t->n.folders,
	};
	return true;
}

bool tsi_table_share_paths(const struct tsi_table *t,
			   struct tsi_table_shared *out)
{
	return share(t, t->path, out);
}

bool tsi_table_share_labels(const struct tsi_table *t,
			    struct tsi_table_shared *out)
{
	return share(t, t->label, out);
}

/* ------------------------------------------------------------------------
 * Choosing
 */

static void copy_row(struct tsi_table *to, uint64_t k,
		     const struct tsi_table *from, uint64_t i)
{
	to->path[k] = from->path[i];
	to->size[k] = from->size[i];
	to->label[k] = from->label[i];
	if (to->n.ranged) {
		to->offset[k] = from->offset[i];
		to->length[k] = from->length[i];
	}
	if (to->n.named)
		to->member[k] = from->member[i];
}

int tsi_table_choose(struct tsi_table *t, const uint64_t *rows, uint64_t n)
{
	struct tsi_table_lengths lengths = t->n;
	struct tsi_table to = { .block = NULL };
	void *block;
	int err = 0;

	lengths.count = n;
	block = tsi_block_alloc(tsi_table_block_len(&lengths), &to.made);
	if (!block)
		return tsi_err(TSOCK_ENOMEM, "no memory for a selection");
	tsi_table_set_block(&to, &lengths, block);
	memcpy(to.class_name, t->class_name,
	       lengths.classes * sizeof(*to.class_name));
	memcpy(to.stamp, t->stamp, lengths.stamps * sizeof(*to.stamp));
	memcpy(to.folder, t->folder, lengths.folders * sizeof(*to.folder));
	memcpy(to.paths, t->paths, lengths.paths_len);
	memcpy(to.names, t->names, lengths.names_len);
	for (uint64_t k = 0; k < n && !err; k++) {
		const char *reason = tsi_table_bad_reason(t, rows[k]);

		if (!lengths.bare)
			copy_row(&to, k, t, rows[k]);
		if (reason)
			err = tsi_table_add_bad(&to, k, reason);
	}
	if (!err && t->columns)
		err = tsi_columns_choose(t->columns, rows, n);
	if (err) {
		tsi_table_clear(&to);
		return err;
	}
	to.columns = t->columns;
	t->columns = NULL;
	tsi_table_clear(t);
	*t = to;
	return 0;
}

/* The columns, but for rows, of a table with more classes. */
static void copy_names(struct tsi_table *to, const struct tsi_table *from,
		       char *const *name)
{
	uint64_t at = from->n.names_len;

	memcpy(to->stamp, from->stamp, to->n.stamps * sizeof(*to->stamp));
	memcpy(to->folder, from->folder, to->n.folders * sizeof(*to->folder));
	memcpy(to->paths, from->paths, to->n.paths_len);
	memcpy(to->names, from->names, at);
	for (uint32_t i = 0; i < to->n.classes; i++) {
		size_t len = strlen(name[i]) + 1;

		memcpy(to->names + at, name[i], len);
		to->class_name[i] = at;
		at += len;
	}
}

int tsi_table_set_classes(struct tsi_table *t, char *const *name, uint32_t n,
			  const uint32_t *label)
{
	struct tsi_table_lengths lengths = t->n;
	struct tsi_table to = { .block = NULL };
	void *block;

	assert(!t->n.bare);
	lengths.classes = n;
	for (uint32_t i = 0; i < n; i++)
		lengths.names_len += strlen(name[i]) + 1;
	block = tsi_block_alloc(tsi_table_block_len(&lengths), &to.made);
	if (!block)
		return tsi_err(TSOCK_ENOMEM, "no memory for classes");
	tsi_table_set_block(&to, &lengths, block);
	copy_names(&to, t, name);
	for (uint64_t i = 0; i < lengths.count; i++) {
		copy_row(&to, i, t, i);
		to.label[i] = label[i];
	}
	to.columns = t->columns;
	to.bad = t->bad;
	to.nbad = t->nbad;
	to.bad_cap = t->bad_cap;
	tsi_block_free(t->block, &t->made);
	*t = to;
	return 0;
}

/* ------------------------------------------------------------------------
 * Filling
 */

static uint64_t put_name(struct tsi_table_writer *w, const char *name)
{
	uint64_t at = w->names;
	size_t len = strlen(name) + 1;

	assert(at + len <= w->table->n.names_len);
	memcpy(w->table->names + at, name, len);
	w->names += len;
	return at;
}

int tsi_table_begin(struct tsi_table_writer *w, struct tsi_table *t,
		    const struct tsi_table_lengths *n, const char *root)
{
	void *block = tsi_block_alloc(tsi_table_block_len(n), &t->made);

	if (!block)
		return tsi_err(TSOCK_ENOMEM, "no memory to index the data set");
	tsi_table_set_block(t, n, block);
	*w = (struct tsi_table_writer){ .table = t };
	put_name(w, root);
	return 0;
}

void tsi_table_put_class(struct tsi_table_writer *w, const char *name)
{
	assert(w->classes < w->table->n.classes);
	w->table->class_name[w->classes++] = put_name(w, name);
}

void tsi_table_put_stamp(struct tsi_table_writer *w, const char *path,
			 const struct tsi_stamp *stamp)
{
	struct tsi_stamp *to = &w->table->stamp[w->stamps++];

	assert(w->stamps <= w->table->n.stamps);
	*to = *stamp;
	assert(path || w->classes);
	to->path =
		path ? put_name(w, path) : w->table->class_name[w->classes - 1];
}

uint64_t tsi_table_put_path(struct tsi_table_writer *w, const char *path)
{
	size_t len = strlen(path) + 1;
	uint64_t at = w->paths;

	assert(at + len <= w->table->n.paths_len);
	memcpy(w->table->paths + at, path, len);
	w->paths += len;
	return at;
}

void tsi_table_put_folder(struct tsi_table_writer *w, const char *path)
{
	assert(w->folders < w->table->n.folders);
	w->table->folder[w->folders++] = tsi_table_put_path(w, path);
}

void tsi_table_put_row(struct tsi_table_writer *w, uint64_t path,
		       uint32_t label, uint64_t offset, uint64_t length)
{
	struct tsi_table *t = w->table;
	uint64_t i = w->rows++;

	assert(i < t->n.count && !w->folders == !t->n.folders);
	t->path[i] = path;
	t->label[i] = label;
	t->size[i] = 0;
	if (t->n.ranged) {
		t->offset[i] = offset;
		t->length[i] = length;
	}
}

void tsi_table_put_member(struct tsi_table_writer *w, const char *name)
{
	assert(w->table->n.named && w->rows > 0);
	w->table->member[w->rows - 1] = tsi_table_put_path(w, name);
}

/* A path in two parts, of which the first is kept from row to row. */
struct hashed_path {
	const char *folder;
	size_t begun; /* bytes of it, with its '/' */
	char text[TSI_PATH];
};

static uint64_t hash_path(struct hashed_path *p, const struct tsi_location *at,
			  uint64_t h)
{
	size_t n = strlen(at->file);

	if (at->folder != p->folder) {
		p->folder = at->folder;
		p->begun = tsi_path_begin(at->folder, p->text);
	}
	if (!p->begun)
		return tsi_hash(at->file, n, h);
	if (n > TSI_PATH - p->begun)
		n = TSI_PATH - p->begun;
	memcpy(p->text + p->begun, at->file, n);
	return tsi_hash(p->text, p->begun + n, h);
}

uint64_t tsi_table_fingerprint(const struct tsi_table *t)
{
	uint64_t h = tsi_hash(&t->n.count, sizeof(t->n.count), 0);
	struct hashed_path path = { .begun = 0 };

	if (t->columns)
		h = tsi_columns_fingerprint(t->columns, t->n.count, h);
	for (uint64_t i = 0; !t->n.bare && i < t->n.count; i++) {
		struct tsi_location at;
		uint64_t row[5];

		tsi_table_locate(t, i, &at);
		row[0] = hash_path(&path, &at, h);
		row[1] = at.offset;
		row[2] = at.length;
		row[3] = at.size;
		row[4] = (uint64_t)tsi_table_label(t, i);
		h = tsi_hash(row, sizeof(row), 0);
	}
	for (uint64_t k = 0; k < t->nbad; k++)
		h = tsi_hash(&t->bad[k].index, sizeof(t->bad[k].index), h);
	return h;
}
