/* SPDX-License-Identifier: MIT */
/*
 * table_file.c - a table in a file: a header, the table's columns, the indices
 * of bad rows.
 *
 * A path that would lead out of the tree (absolute, or with "..") makes a file
 * wrong as any damage does: no scan writes one.
 */
#include "data/table_file.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"

#define ENDIAN 0x01020304
#define RANGED 1u
#define NAMED 2u
#define FOLDERED 4u

struct head {
	char magic[8];
	uint32_t version;
	uint32_t endian;
	uint64_t checksum; /* of the header with 0 here, and all that follows */
	uint64_t count;
	uint64_t paths_len;
	uint64_t names_len;
	uint64_t nbad;
	uint32_t classes;
	uint32_t stamps;
	uint32_t probe;   /* which one says what is bad; 0: none */
	uint32_t columns; /* RANGED, NAMED, FOLDERED: what the table has */
	uint64_t folders; /* if FOLDERED; else it isn't in the file */
};

/* So many bytes of the header are in the file. */
static size_t head_len(const struct head *h)
{
	return h->columns & FOLDERED ? sizeof(*h)
				     : offsetof(struct head, folders);
}

static uint64_t checksum(struct head h, const struct tsi_table *t,
			 const uint64_t *bad)
{
	uint64_t sum;

	h.checksum = 0;
	sum = tsi_hash(&h, head_len(&h), 0);
	sum = tsi_hash(t->block, tsi_table_block_len(&t->n), sum);
	return tsi_hash(bad, h.nbad * sizeof(*bad), sum);
}

static struct tsi_table_lengths lengths_of(const struct head *h)
{
	return (struct tsi_table_lengths){
		.count = h->count,
		.paths_len = h->paths_len,
		.names_len = h->names_len,
		.folders = h->folders,
		.classes = h->classes,
		.stamps = h->stamps,
		.ranged = (h->columns & RANGED) != 0,
		.named = (h->columns & NAMED) != 0,
	};
}

/* The file is of this kind, as long as its header says. */
static bool check_head(const struct tsi_table_kind *kind, const struct head *h,
		       uint64_t len)
{
	struct tsi_table_lengths n = lengths_of(h);

	if (memcmp(h->magic, kind->magic, sizeof(h->magic)) ||
	    h->version != kind->version || h->endian != ENDIAN)
		return false;
	if (h->count == 0 || h->classes == 0 || h->stamps == 0 ||
	    h->paths_len == 0 || h->names_len == 0)
		return false;
	/* No length is beyond the file's, so no sum of them overflows. */
	if (len > UINT64_MAX / 64 || h->count > len || h->paths_len > len ||
	    h->names_len > len || h->nbad > h->count || h->folders > len ||
	    h->columns & ~(RANGED | NAMED | FOLDERED) ||
	    (h->columns & FOLDERED) != (h->folders ? FOLDERED : 0))
		return false;
	return len == head_len(h) + tsi_table_block_len(&n) +
			      h->nbad * sizeof(uint64_t);
}

/* The path is relative, and no ".." leads out of the tree. */
static bool stays_inside(const char *path)
{
	if (*path == '/')
		return false;
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return false;
	return true;
}

/* Folders stand in their order, and each path stays inside with its folder. */
static bool check_folders(const struct tsi_table *t)
{
	const struct tsi_table_lengths *n = &t->n;

	for (uint64_t k = 0; k < n->folders; k++)
		if (t->folder[k] >= n->paths_len ||
		    (k ? t->folder[k] <= t->folder[k - 1] : t->folder[k] > 0) ||
		    !stays_inside(t->paths + t->folder[k]))
			return false;
	return true;
}

/* Every offset leads into its column, every string ends in it. */
static bool check_columns(const char *root, const struct tsi_table *t,
			  const uint64_t *bad, uint64_t nbad)
{
	size_t root_len = root ? strlen(root) + 1 : 0;
	const struct tsi_table_lengths *n = &t->n;

	if (t->paths[n->paths_len - 1] || t->names[n->names_len - 1] ||
	    n->names_len < root_len ||
	    (root && memcmp(t->names, root, root_len)))
		return false;
	for (uint64_t i = 0; i < n->count; i++)
		if (t->path[i] >= n->paths_len || t->label[i] >= n->classes ||
		    !stays_inside(t->paths + t->path[i]))
			return false;
	if (!check_folders(t))
		return false;
	for (uint32_t i = 0; i < n->classes; i++)
		if (t->class_name[i] >= n->names_len)
			return false;
	for (uint32_t i = 0; i < n->stamps; i++)
		if (t->stamp[i].path >= n->names_len ||
		    !stays_inside(t->names + t->stamp[i].path))
			return false;
	for (uint64_t i = 0; n->ranged && i < n->count; i++)
		if (t->offset[i] > 0 && t->length[i] == 0)
			return false;
	for (uint64_t i = 0; n->named && i < n->count; i++)
		if (t->member[i] >= n->paths_len)
			return false;
	for (uint64_t k = 0; k < nbad; k++)
		if (bad[k] >= n->count || (k > 0 && bad[k] <= bad[k - 1]))
			return false;
	return true;
}

static bool load_body(const char *root, const struct head *h, int fd,
		      struct tsi_table *t, uint64_t **bad)
{
	struct tsi_table_lengths n = lengths_of(h);
	uint64_t block_len = tsi_table_block_len(&n);
	void *block = tsi_block_alloc(block_len, &t->made);

	*bad = malloc(h->nbad * sizeof(**bad) + 1);
	if (!block || !*bad) {
		tsi_block_free(block, &t->made);
		t->made = (struct tsi_block){ .shared.fd = -1 };
		return false;
	}
	tsi_table_set_block(t, &n, block);
	return tsi_file_read_all(fd, block, block_len) &&
	       tsi_file_read_all(fd, *bad, h->nbad * sizeof(**bad)) &&
	       checksum(*h, t, *bad) == h->checksum &&
	       check_columns(root, t, *bad, h->nbad);
}

static bool read_head(int fd, struct head *h)
{
	size_t least = offsetof(struct head, folders);

	return tsi_file_read_all(fd, h, least) &&
	       tsi_file_read_all(fd, (char *)h + least, head_len(h) - least);
}

bool tsi_table_file_read(int fd, const struct tsi_table_kind *kind,
			 const char *root, struct tsi_table *t, uint64_t **bad,
			 uint64_t *nbad)
{
	struct head h = { .folders = 0 };
	struct stat st;

	*bad = NULL;
	*nbad = 0;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !read_head(fd, &h) ||
	    !check_head(kind, &h, (uint64_t)st.st_size))
		return false;
	if (h.probe == kind->probe && load_body(root, &h, fd, t, bad)) {
		*nbad = h.nbad;
		return true;
	}
	tsi_table_clear(t);
	free(*bad);
	*bad = NULL;
	return false;
}

bool tsi_table_file_write(int fd, const struct tsi_table_kind *kind,
			  const struct tsi_table *t)
{
	struct head h = { .version = kind->version, .endian = ENDIAN };
	uint64_t *bad;
	bool ok;

	h.nbad = tsi_table_bad_count(t);
	bad = malloc(h.nbad * sizeof(*bad) + 1);
	if (!bad)
		return false;
	for (uint64_t k = 0; k < h.nbad; k++)
		bad[k] = tsi_table_bad_at(t, k);
	memcpy(h.magic, kind->magic, sizeof(h.magic));
	h.count = t->n.count;
	h.paths_len = t->n.paths_len;
	h.names_len = t->n.names_len;
	h.classes = t->n.classes;
	h.stamps = t->n.stamps;
	h.folders = t->n.folders;
	h.columns = (t->n.ranged ? RANGED : 0) | (t->n.named ? NAMED : 0) |
		    (t->n.folders ? FOLDERED : 0);
	h.probe = kind->probe;
	h.checksum = checksum(h, t, bad);
	ok = tsi_file_write(fd, &h, head_len(&h)) &&
	     tsi_file_write(fd, t->block, tsi_table_block_len(&t->n)) &&
	     tsi_file_write(fd, bad, h.nbad * sizeof(*bad));
	free(bad);
	return ok;
}
