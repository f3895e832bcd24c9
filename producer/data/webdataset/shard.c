/* SPDX-License-Identifier: MIT */
/*
 * shard.c - the samples of one tar file of WebDataset's.
 */
#include "data/webdataset/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "data/webdataset/label.h"
#include "data/webdataset/tar.h"

/*
 * Images by rank: where a sample has several, the first of them counts.  What
 * can be read of the extensions that the webdataset package decodes as images,
 * and AVIF.
 */
static const char *const image[] = { "jpg", "png",  "jpeg", "webp", "gif",
				     "tif", "tiff", "bmp",  "ppm",  "pgm",
				     "pnm", "jpe",  "jfif", "dib",  "avif" };
#define IMAGES (sizeof(image) / sizeof(image[0]))

enum { CLS = IMAGES, JSON }; /* other files that mean something */

/* Where a label may come from, by rank. */
enum source { FROM_CLS, FROM_JSON, FROM_NOTHING };

/* The sample whose files are being read. */
struct group {
	char key[TSI_TAR_NAME];
	bool any;
	uint64_t first, last; /* offsets of its files' headers */
	unsigned rank;        /* of its image; IMAGES: there is none yet */
	char name[TSI_TAR_NAME];
	uint64_t offset;
	uint64_t length;
	enum source source;
	uint32_t label;
	bool odd; /* its .json has a "label" that is no number of a class */
};

struct reading {
	const struct tsi_root *root;
	struct tsi_shard *shard;
	struct tsi_tar tar;
	struct tsi_tar_member m;
	struct group g;
};

/* An error of the member that was read last. */
static int bad_member(const struct reading *r, const char *what)
{
	return tsi_err(TSOCK_EDATA, "%.300s: %.300s at offset %" PRIu64 " %s",
		       r->tar.path, r->m.name, r->m.header, what);
}

/*
 * The length of the key that a name begins with: all up to the first dot of the
 * last part.  0: it has none.  A last part that begins with a dot is all
 * suffix, if the part before has no dot: so the package's pattern has it,
 * ^((?:.*\/|)[^.]+)[.]([^/]*)$.
 */
static size_t key_len(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *last = slash ? slash + 1 : name;
	const char *dot = strchr(last, '.');
	const char *p;

	if (!dot)
		return 0;
	if (dot > last)
		return (size_t)(dot - name);
	for (p = slash; slash && p > name && p[-1] != '/'; p--)
		if (p[-1] == '.')
			return 0;
	return slash ? (size_t)(dot - name) : 0;
}

/* Names that begin with a part like __index__ are no samples. */
static bool is_meta(const char *name)
{
	size_t n = strcspn(name, "/");

	return n >= 4 && !memcmp(name, "__", 2) &&
	       !memcmp(name + n - 2, "__", 2);
}

static int begin_group(struct reading *r, size_t len)
{
	struct group *g = &r->g;

	memcpy(g->key, r->m.name, len);
	g->key[len] = '\0';
	g->any = true;
	g->first = r->m.header;
	g->rank = IMAGES;
	g->source = FROM_NOTHING;
	g->odd = false;
	return 0;
}

/* Is it KEY.cls or KEY.json? */
static bool is_label_of(const char *key, const char *name)
{
	size_t len = strlen(key);

	return !strncmp(name, key, len) && (!strcasecmp(name + len, ".cls") ||
					    !strcasecmp(name + len, ".json"));
}

/*
 * Is the group's label in the shard, but not beside the image?  Reads all
 * headers again: for the message of an error alone.
 */
static bool find_label(const struct reading *r, uint64_t *at)
{
	struct tsi_tar *t = malloc(sizeof(*t));
	struct tsi_tar_member *m = malloc(sizeof(*m));
	bool found = false;

	if (t && m) {
		tsi_tar_init(t, r->tar.path, r->tar.fd, r->tar.len);
		while (!found && tsi_tar_next(t, m) > 0)
			found = (m->header < r->g.first ||
				 m->header > r->g.last) &&
				m->regular && is_label_of(r->g.key, m->name);
		*at = found ? m->header : 0;
	}
	free(t);
	free(m);
	return found;
}

static int no_label(const struct reading *r)
{
	const struct tsi_shard *s = r->shard;
	const char *key = r->g.key;
	uint64_t at;

	if (r->g.odd)
		return tsi_err(TSOCK_EDATA,
			       "%.300s: the \"label\" in %.300s.json is no "
			       "number of a class: a whole number from 0 to "
			       "%u is wanted, not in quotes",
			       r->tar.path, key, TSI_LABEL_END - 1);
	if (find_label(r, &at))
		return tsi_err(TSOCK_EDATA,
			       "%.300s: the label of sample %.300s, at offset "
			       "%" PRIu64 ", is not beside its image: the "
			       "files of a sample follow one another; make "
			       "the tar file by tar --sort=name",
			       r->tar.path, key, at);
	if (s->dotted)
		return tsi_err(
			TSOCK_EDATA,
			"%.300s: sample %.300s has no label; " TSI_SHARD_DOTTED,
			r->tar.path, key, s->text.base + s->dotted_name);
	return tsi_err(TSOCK_EDATA,
		       "%.300s: sample %.300s has no label: a file .cls with "
		       "its number, or .json with an object that has a number "
		       "\"label\", is wanted beside the image",
		       r->tar.path, key);
}

/* The sample is complete: it becomes a row. */
static int end_group(struct reading *r)
{
	struct group *g = &r->g;
	struct tsi_shard *s = r->shard;
	struct tsi_shard_row *row;
	int err;

	if (!g->any)
		return 0;
	g->any = false;
	if (g->rank == IMAGES) {
		s->without++;
		return 0;
	}
	if (g->source == FROM_NOTHING && !s->bare)
		return no_label(r);
	err = tsi_text_grow(&s->row, s->rows, &s->row_cap, sizeof(*s->row));
	if (err)
		return err;
	s->cls |= g->source == FROM_CLS;
	row = &s->row[s->rows];
	row->offset = g->offset;
	row->length = g->length;
	row->label = g->label;
	err = tsi_text_add(&s->text, NULL, g->name, &row->name);
	s->rows += !err;
	return err;
}

static int take_image(struct reading *r, unsigned rank)
{
	struct group *g = &r->g;

	if (rank == g->rank)
		return bad_member(r, "is there twice");
	if (r->m.sparse)
		return bad_member(r, "is stored as a sparse file: make the tar "
				     "file without --sparse");
	if (rank > g->rank)
		return 0;
	/* No bytes: a whole file would be meant by no length. */
	if (r->m.size == 0)
		return bad_member(r, "is empty");
	g->rank = rank;
	g->offset = r->m.offset;
	g->length = r->m.size;
	strcpy(g->name, r->m.name);
	return 0;
}

/* All of the member's bytes: free().  No text if the file ends before. */
static int read_member(struct reading *r, char **out)
{
	size_t len = (size_t)r->m.size;
	char *text = malloc(len + 1);
	int got;

	if (!text)
		return tsi_err(TSOCK_ENOMEM, "no memory to read labels");
	got = tsi_tar_read(&r->tar, r->m.offset, text, len);
	if (got <= 0) {
		free(text);
		text = NULL;
	}
	*out = text;
	return got < 0 ? got : 0;
}

static int take_cls(struct reading *r)
{
	struct group *g = &r->g;
	char *text = NULL;
	int err = 0;
	bool ok;

	if (g->source == FROM_CLS)
		return bad_member(r, "is there twice");
	if (r->m.size <= TSI_LABEL_TEXT)
		err = read_member(r, &text);
	if (err)
		return err;
	/* Cut off: the sample has no label, and ends the shard. */
	if (!text && r->m.size <= TSI_LABEL_TEXT)
		return 0;
	ok = text && tsi_label_text(text, (size_t)r->m.size, &g->label);
	free(text);
	if (!ok)
		return bad_member(r,
				  "is no label: a number from 0 to 999999 is "
				  "wanted, as text");
	g->source = FROM_CLS;
	return 0;
}

/* An object that has no label may describe something else. */
static int take_json(struct reading *r)
{
	struct group *g = &r->g;
	enum tsi_label_kind kind;
	char *text = NULL;
	int err;

	if (g->source != FROM_NOTHING || r->m.size > TSI_LABEL_JSON)
		return 0;
	err = read_member(r, &text);
	if (err)
		return err;
	kind = text ? tsi_label_json(text, (size_t)r->m.size, &g->label)
		    : TSI_LABEL_ABSENT;
	if (kind == TSI_LABEL_NUMBER)
		g->source = FROM_JSON;
	g->odd = g->odd || kind == TSI_LABEL_OTHER;
	free(text);
	return 0;
}

/* What the suffix means: a rank of an image, CLS or JSON; -1: nothing. */
static int meaning(const char *suffix)
{
	for (unsigned i = 0; i < IMAGES; i++)
		if (!strcasecmp(suffix, image[i]))
			return (int)i;
	if (!strcasecmp(suffix, "cls"))
		return CLS;
	return strcasecmp(suffix, "json") ? -1 : JSON;
}

/* A file that would mean something if its key ended at the last dot. */
static int note_dotted(struct tsi_shard *s, const char *name,
		       const char *suffix)
{
	const char *dot = strrchr(suffix, '.');

	if (!dot || meaning(dot + 1) < 0 || s->dotted++)
		return 0;
	return tsi_text_add(&s->text, NULL, name, &s->dotted_name);
}

static int take_member(struct reading *r)
{
	size_t len = key_len(r->m.name);
	const char *suffix;
	int what, err = 0;

	if (!r->m.regular || !len || is_meta(r->m.name))
		return 0;
	if (!r->g.any || strncmp(r->g.key, r->m.name, len) || r->g.key[len]) {
		err = end_group(r);
		if (!err)
			err = begin_group(r, len);
	}
	if (err)
		return err;
	r->g.last = r->m.header;
	suffix = r->m.name + len + 1;
	what = meaning(suffix);
	if (what < 0 && !r->shard->bare)
		tsi_unread_note(&r->shard->unread, suffix);
	if (what < 0)
		return note_dotted(r->shard, r->m.name, suffix);
	if (what >= CLS && r->shard->bare)
		return 0;
	if (what == CLS)
		return take_cls(r);
	return what == JSON ? take_json(r) : take_image(r, (unsigned)what);
}

/* A tar file ends at its mark: what cat put behind it is never read. */
static int look_behind(struct reading *r)
{
	uint64_t at;
	int got = tsi_tar_behind(&r->tar, &at);

	if (got > 0)
		tsi_log(TSOCK_LOG_WARN,
			"%s: what lies behind the end mark at offset %" PRIu64
			" is not read: tar files that cat has joined end "
			"there; join them by tar --concatenate, or give them "
			"as shards of their own",
			r->tar.path, at);
	return got < 0 ? got : 0;
}

/*
 * Damage ends the shard; the samples before it stay, all but a last one whose
 * label may lie behind it.
 */
static int end_shard(struct reading *r, int err)
{
	bool cut = err || tsi_tar_unended(&r->tar);

	if (err && (err != TSOCK_EDATA || !r->tar.any))
		return err;
	if (cut && r->g.source == FROM_NOTHING)
		r->g.any = false;
	if (err)
		tsi_log(TSOCK_LOG_WARN,
			"%s; the samples behind it are left out (%" PRIu64
			" before it are kept)",
			tsock_errmsg(),
			r->shard->rows + (r->g.any && r->g.rank < IMAGES));
	else if (cut)
		tsi_log(TSOCK_LOG_WARN,
			"%s: the end mark of a tar file is missing at offset "
			"%" PRIu64 ": was the file cut off?",
			r->tar.path, r->tar.len);
	else
		err = look_behind(r);
	return err && err != TSOCK_EDATA ? err : end_group(r);
}

static int read_headers(struct reading *r)
{
	int got = 0, err = 0;

	while (!err && (got = tsi_tar_next(&r->tar, &r->m)) > 0)
		err = take_member(r);
	return err ? err : end_shard(r, got);
}

/* A FIFO or a device isn't to be waited for. */
static int open_shard(struct reading *r, const char *path, int *out)
{
	int fd = tsi_root_openat(r->root, r->shard->path,
				 O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const char *kind;
	struct stat st;

	if (fd < 0)
		return tsi_err_sys("open the shard %.300s", path);
	if (tsi_stamp_take(fd, &st, &r->shard->stamp)) {
		close(fd);
		return tsi_err_sys("stat %.300s", path);
	}
	kind = tsi_file_kind(st.st_mode);
	if (kind) {
		close(fd);
		return tsi_err(TSOCK_EDATA, "%.300s is no tar file but %s",
			       path, kind);
	}
	tsi_tar_init(&r->tar, path, fd, (uint64_t)st.st_size);
	*out = fd;
	return 0;
}

int tsi_shard_read(const struct tsi_root *root, struct tsi_shard *s)
{
	struct reading *r = calloc(1, sizeof(*r));
	char *path = NULL;
	int fd = -1, err;

	if (!r || asprintf(&path, "%s/%s", tsi_root_path(root), s->path) < 0) {
		free(r);
		return tsi_err(TSOCK_ENOMEM, "no memory to read %s", s->path);
	}
	r->root = root;
	r->shard = s;
	err = open_shard(r, path, &fd);
	if (!err) {
		err = read_headers(r);
		close(fd);
	}
	free(path);
	free(r);
	return err;
}

void tsi_shard_free(struct tsi_shard *s)
{
	free(s->text.base);
	free(s->row);
}
