/* SPDX-License-Identifier: MIT */
/*
 * scan.c - the samples of WebDataset's shards, found by their tar headers.
 *
 * Each shard is read by one thread.  Of a shard nothing but headers and labels
 * is read.
 */
#include "data/webdataset/scan.h"

#include <dirent.h>
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
#include "base/log.h"
#include "base/text.h"
#include "data/contents.h"
#include "data/folder.h"
#include "data/name.h"
#include "data/parallel.h"
#include "data/text.h"
#include "data/webdataset/label.h"
#include "data/webdataset/pattern.h"
#include "data/webdataset/shard.h"

#define FOLDERS 1000 /* that are looked into for a message */

struct scan {
	const struct tsi_root *root;
	bool bare;   /* samples need no label */
	bool folder; /* all of its shards: a new one changes the data set */
	struct tsi_stamp stamp;
	struct tsi_text names; /* of shards */
	uint64_t *name;
	uint64_t shards;
	uint64_t cap;
	struct tsi_shard *shard;
};

static bool is_tar(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && *name != '.' && !strcasecmp(name + len - 4, ".tar");
}

static int by_name(const void *a, const void *b, void *base)
{
	return tsi_name_cmp((const char *)base + *(const uint64_t *)a,
			    (const char *)base + *(const uint64_t *)b);
}

static int read_folder(struct scan *s, DIR *d)
{
	struct dirent *e;
	int err = 0;

	for (errno = 0; !err && (e = readdir(d)); errno = 0) {
		if (!is_tar(e->d_name) || tsi_folder_entry(d, e))
			continue;
		err = tsi_text_grow(&s->name, s->shards, &s->cap,
				    sizeof(*s->name));
		if (!err)
			err = tsi_text_add(&s->names, NULL, e->d_name,
					   &s->name[s->shards]);
		s->shards += !err;
	}
	if (!err && errno)
		err = tsi_err_sys("read the folder %s", tsi_root_path(s->root));
	return err;
}

/* A folder in the root that holds shards; false: none was seen. */
static bool shards_below(const struct scan *s, char *to, size_t len)
{
	int fd = tsi_root_openat(s->root, "",
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct tsi_contents c;
	struct dirent *e;
	bool found = false;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (unsigned i = 0; i < FOLDERS && !found && (e = readdir(d)); i++) {
		if (*e->d_name == '.' || !tsi_folder_entry(d, e))
			continue;
		found = tsi_contents_look(dirfd(d), e->d_name, 0, &c) &&
			c.of[tsi_contents_kind("tar")].count;
		if (found)
			tsi_text_printable(to, len, e->d_name);
	}
	closedir(d);
	return found;
}

static int no_shards(const struct scan *s)
{
	const char *root = tsi_root_path(s->root);
	char what[160], below[256];
	struct tsi_contents c;
	int kind;

	if (shards_below(s, below, sizeof(below)))
		return tsi_err(TSOCK_EDATA,
			       "no file *.tar in %s, but in %s/%s: give that "
			       "folder as --root",
			       root, root, below);
	tsi_contents_look(tsi_root_fd(s->root), ".", 0, &c);
	kind = tsi_contents_most(&c);
	return tsi_err(TSOCK_EDATA,
		       "no file *.tar in %.300s, which holds %s: %s", root,
		       tsi_contents_say(&c, what, sizeof(what)),
		       kind >= 0 ? tsi_contents_way(kind)
				 : "the root of a WebDataset is a folder of "
				   "shards, or a pattern such as "
				   "DIR/shard-{0000..0146}.tar");
}

/* Compressed shards beside others aren't samples of the data set. */
static void warn_compressed(const struct scan *s)
{
	int kind = tsi_contents_kind("compressed tar");
	struct tsi_contents c;

	if (tsi_contents_look(tsi_root_fd(s->root), ".", 0, &c) &&
	    c.of[kind].count)
		tsi_log(TSOCK_LOG_WARN,
			"%s: %u compressed tar files (%s ...) are left out: %s",
			tsi_root_path(s->root), c.of[kind].count,
			c.of[kind].first, tsi_contents_way(kind));
}

static int find_in_folder(struct scan *s)
{
	int fd = tsi_root_openat(s->root, "",
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	DIR *d = NULL;
	int err;

	if (fd < 0 || tsi_stamp_take(fd, &st, &s->stamp) ||
	    !(d = fdopendir(fd))) {
		err = tsi_err_sys("read the folder %s", tsi_root_path(s->root));
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = read_folder(s, d);
	closedir(d);
	if (!err && s->shards == 0)
		return no_shards(s);
	if (!err)
		warn_compressed(s);
	if (!err)
		qsort_r(s->name, s->shards, sizeof(*s->name), by_name,
			s->names.base);
	return err;
}

static int find_shards(struct scan *s)
{
	const char *pattern = tsi_root_pattern(s->root);
	int err;

	s->folder = pattern == NULL;
	err = s->folder ? find_in_folder(s)
			: tsi_pattern_expand(pattern, &s->names, &s->name,
					     &s->shards, &s->cap);
	if (err)
		return err;
	s->shard = calloc(s->shards, sizeof(*s->shard));
	if (!s->shard)
		return tsi_err(TSOCK_ENOMEM, "no memory to index the data set");
	for (uint64_t k = 0; k < s->shards; k++)
		s->shard[k] =
			(struct tsi_shard){ .path = s->names.base + s->name[k],
					    .bare = s->bare };
	return 0;
}

static int read_shards(void *arg, uint64_t first, uint64_t last)
{
	struct scan *s = arg;
	int err = 0;

	for (uint64_t k = first; k < last && !err; k++)
		err = tsi_shard_read(s->root, &s->shard[k]);
	return err;
}

static uint64_t class_names_len(uint32_t classes)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < classes; i++)
		len += (uint64_t)snprintf(NULL, 0, "%" PRIu32, i) + 1;
	return len;
}

/* How long the columns become. */
static struct tsi_table_lengths measure(const struct scan *s)
{
	struct tsi_table_lengths n = {
		.ranged = true,
		.named = true,
		.stamps = (uint32_t)(s->shards + s->folder),
		.names_len = strlen(tsi_root_name(s->root)) + 1 + s->folder,
	};

	for (uint64_t k = 0; k < s->shards; k++) {
		const struct tsi_shard *d = &s->shard[k];

		n.count += d->rows;
		n.paths_len += strlen(d->path) + 1 + d->text.len;
		n.names_len += strlen(d->path) + 1;
		for (uint64_t i = 0; i < d->rows; i++)
			if (d->row[i].label >= n.classes)
				n.classes = d->row[i].label + 1;
	}
	n.names_len += class_names_len(n.classes);
	return n;
}

static void put_shard(struct tsi_table_writer *w, const struct tsi_shard *d)
{
	uint64_t path = tsi_table_put_path(w, d->path);

	tsi_table_put_stamp(w, d->path, &d->stamp);
	for (uint64_t i = 0; i < d->rows; i++) {
		const struct tsi_shard_row *r = &d->row[i];

		tsi_table_put_row(w, path, r->label, r->offset, r->length);
		tsi_table_put_member(w, d->text.base + r->name);
	}
}

/* The first file whose key ends elsewhere than meant; NULL: none. */
static const char *dotted(const struct scan *s)
{
	for (uint64_t k = 0; k < s->shards; k++)
		if (s->shard[k].dotted)
			return s->shard[k].text.base + s->shard[k].dotted_name;
	return NULL;
}

static int no_sample(const struct scan *s)
{
	const char *name = dotted(s);

	if (name)
		return tsi_err(TSOCK_EDATA,
			       "no sample in %.300s: " TSI_SHARD_DOTTED,
			       tsi_root_name(s->root), name);
	return tsi_err(TSOCK_EDATA,
		       "no sample in %s: none of its shards has a "
		       "file " TSI_SHARD_IMAGES,
		       tsi_root_name(s->root));
}

static int fill_table(const struct scan *s, struct tsi_table *t)
{
	struct tsi_table_lengths n = measure(s);
	struct tsi_table_writer w;
	int err;

	if (n.count == 0)
		return no_sample(s);
	err = tsi_table_begin(&w, t, &n, tsi_root_name(s->root));
	if (err)
		return err;
	for (uint32_t i = 0; i < n.classes; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%" PRIu32, i);
		tsi_table_put_class(&w, name);
	}
	if (s->folder)
		tsi_table_put_stamp(&w, "", &s->stamp);
	for (uint64_t k = 0; k < s->shards; k++)
		put_shard(&w, &s->shard[k]);
	return 0;
}

static void warn_without(const struct scan *s)
{
	const char *name = dotted(s);
	uint64_t without = 0;

	for (uint64_t k = 0; k < s->shards; k++)
		without += s->shard[k].without;
	if (without && name)
		tsi_log(TSOCK_LOG_WARN,
			"%.300s: %" PRIu64 " samples have no image and are "
			"left out; " TSI_SHARD_DOTTED,
			tsi_root_name(s->root), without, name);
	else if (without)
		tsi_log(TSOCK_LOG_WARN,
			"%s: %" PRIu64 " samples have no image "
			"(" TSI_SHARD_IMAGES ") and are left out",
			tsi_root_name(s->root), without);
}

/* Texts and arrays could be fields. */
static void hint_unread(const struct scan *s)
{
	struct tsi_unread u = { "" };
	const char *root = tsi_root_path(s->root);
	bool cls = false;

	for (uint64_t k = 0; k < s->shards; k++) {
		tsi_unread_add(&u, &s->shard[k].unread);
		cls |= s->shard[k].cls;
	}
	if (*u.endings)
		tsi_log(TSOCK_LOG_INFO,
			"%.300s has files beside its images that nothing "
			"reads: --labels %.300s:label=%s,fields=%s (in Python "
			"labels=) makes fields of them",
			root, root, cls ? ".cls" : ".json.label", u.endings);
}

static int scan_shards(const struct tsi_root *root,
		       const struct tsi_format_opts *o, bool bare,
		       struct tsi_table *t)
{
	struct scan s = { .root = root, .bare = bare };
	int err = find_shards(&s);

	if (!err)
		err = tsi_parallel(o->threads, s.shards, 1, read_shards, &s);
	if (!err)
		err = fill_table(&s, t);
	if (!err) {
		warn_without(&s);
		hint_unread(&s);
	}
	for (uint64_t k = 0; s.shard && k < s.shards; k++)
		tsi_shard_free(&s.shard[k]);
	free(s.shard);
	free(s.name);
	free(s.names.base);
	return err;
}

int tsi_webdataset_scan(const struct tsi_root *root,
			const struct tsi_format_opts *o, struct tsi_table *t)
{
	return scan_shards(root, o, false, t);
}

int tsi_webdataset_scan_bare(const struct tsi_root *root,
			     const struct tsi_format_opts *o,
			     struct tsi_table *t)
{
	return scan_shards(root, o, true, t);
}
