/* SPDX-License-Identifier: MIT */
/*
 * scan.c - walk an ImageFolder tree, in the order in which torchvision does.
 *
 * Classes are walked by several threads, each class by one.  Only folders are
 * opened here; of files nothing but the name is looked at, and what the folder
 * says of their kind: a row that may not be a regular file is marked bad, for
 * the caller to look at.
 *
 * There are two differences from torchvision, both where torchvision would go
 * on silently: a folder that can't be read is an error, and a symbolic link to
 * a folder above it is left out with a warning (os.walk would follow such a
 * link round and round).
 */
#include "data/imagefolder/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "data/entries.h"
#include "data/folder.h"
#include "data/name.h"
#include "data/parallel.h"
#include "data/text.h"

#define NONE UINT32_MAX

struct folder {
	uint64_t path; /* in text */
	uint64_t dev;
	struct tsi_stamp stamp;
	uint32_t parent; /* folder of the class; NONE for the class's own */
	uint64_t first;  /* its files in class_scan.file */
	uint64_t files;
};

struct file {
	uint64_t name : 63; /* in text */
	uint64_t odd : 1;   /* perhaps no regular file */
};

struct class_scan {
	const char *name;
	bool (*takes)(const char *name); /* a file for a sample's */
	struct tsi_text text;            /* folders' paths and files' names */
	struct folder *folder;
	uint32_t folders;
	uint32_t folder_cap;
	struct file *file;
	uint64_t files;
	uint64_t file_cap;
};

/*
 * A class of more bytes is kept where it was collected, a smaller one in as
 * much memory as it needs: there may be a hundred thousand of them.
 */
#define LARGE 65536
/* Classes that share the memory they are collected in. */
#define PIECE 256

struct scan {
	const struct tsi_root *root;
	const struct tsi_imagefolder_files *files;
	struct folder top;
	struct tsi_text names; /* of classes */
	uint64_t *order;       /* classes' offsets in names, sorted */
	struct class_scan *class_;
	uint64_t classes;
	uint64_t class_cap;
	bool flat; /* the root is the folder of the only class */
};

static int no_memory(void)
{
	return tsi_err(TSOCK_ENOMEM, "no memory to index the data set");
}

/* What stands before the names in a folder: NULL in the root itself. */
static const char *above(const char *folder)
{
	return *folder ? folder : NULL;
}

/* Open a folder and note what the cache and the loop check need of it. */
static int open_folder(const struct tsi_root *root, const char *path,
		       struct folder *f)
{
	struct stat st;
	int fd =
		tsi_root_openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (tsi_stamp_take(fd, &st, &f->stamp)) {
		int saved = errno;

		close(fd);
		errno = saved;
		return -1;
	}
	f->dev = st.st_dev;
	return fd;
}

static int folder_err(const struct tsi_root *root, const char *path)
{
	/* Long paths are cut: the reason has to fit in, too. */
	return tsi_err_sys("read the folder %.200s%s%.200s",
			   tsi_root_path(root), *path ? "/" : "", path);
}

static bool same(const struct folder *a, const struct folder *b)
{
	return a->dev == b->dev && a->stamp.ino == b->stamp.ino;
}

static bool loops(const struct scan *s, const struct class_scan *c,
		  const struct folder *f)
{
	if (same(f, &s->top))
		return true;
	for (uint32_t p = f->parent; p != NONE; p = c->folder[p].parent)
		if (same(f, &c->folder[p]))
			return true;
	return false;
}

static int add_folder(struct class_scan *c, const char *in, const char *name,
		      uint32_t parent)
{
	uint64_t cap = c->folder_cap;
	struct folder *f;
	int err;

	if (c->folders == NONE - 1)
		return tsi_err(TSOCK_ENOTSUP, "too many folders in class %s",
			       c->name);
	err = tsi_text_grow(&c->folder, c->folders, &cap, sizeof(*c->folder));
	if (err)
		return err;
	c->folder_cap = (uint32_t)cap;
	f = &c->folder[c->folders];
	memset(f, 0, sizeof(*f));
	f->parent = parent;
	err = tsi_text_add(&c->text, in, name, &f->path);
	if (!err)
		c->folders++;
	return err;
}

static int add_file(struct class_scan *c, const char *name, bool odd)
{
	int err = tsi_text_grow(&c->file, c->files, &c->file_cap,
				sizeof(*c->file));
	uint64_t at;

	if (!err)
		err = tsi_text_add(&c->text, NULL, name, &at);
	if (err)
		return err;
	c->file[c->files].name = at & (UINT64_MAX >> 1);
	c->file[c->files++].odd = odd;
	return 0;
}

static int read_folder(const struct scan *s, struct class_scan *c, uint32_t i,
		       int fd)
{
	/*
	 * One buffer for all folders would leave the heap untrimmed: 10 bytes a
	 * file then stay with the process.
	 */
	struct tsi_entries *entries = malloc(sizeof(*entries));
	uint64_t dev = c->folder[i].dev;
	const struct dirent *e;
	int err = 0;

	if (!entries)
		return no_memory();
	tsi_entries_begin(entries, fd);
	while (!err && (e = tsi_entries_next(entries))) {
		enum tsi_folder_kind kind = tsi_folder_kind(fd, e, dev);

		if (kind == TSI_FOLDER_FOLDER)
			err = add_folder(
				c, above(c->text.base + c->folder[i].path),
				e->d_name, i);
		else if (c->takes(e->d_name))
			err = add_file(c, e->d_name, kind == TSI_FOLDER_ODD);
	}
	if (!err && errno)
		err = folder_err(s->root, c->text.base + c->folder[i].path);
	free(entries);
	return err;
}

static int scan_folder(const struct scan *s, struct class_scan *c, uint32_t i)
{
	struct folder *f = &c->folder[i];
	const char *path = c->text.base + f->path;
	int fd = open_folder(s->root, path, f);
	int err;

	if (fd < 0)
		return folder_err(s->root, path);
	f->first = c->files;
	if (loops(s, c, f)) {
		tsi_log(TSOCK_LOG_WARN,
			"%s/%s is a link to a folder above it: left out",
			tsi_root_path(s->root), path);
		close(fd);
		return 0;
	}
	err = read_folder(s, c, i, fd);
	close(fd);
	c->folder[i].files = c->files - c->folder[i].first;
	return err;
}

static int by_name(const void *a, const void *b, void *base)
{
	return tsi_name_cmp((const char *)base + *(const uint64_t *)a,
			    (const char *)base + *(const uint64_t *)b);
}

static int by_file(const void *a, const void *b, void *base)
{
	return tsi_name_cmp((const char *)base + ((const struct file *)a)->name,
			    (const char *)base +
				    ((const struct file *)b)->name);
}

static int by_path(const void *a, const void *b, void *base)
{
	return by_name(&((const struct folder *)a)->path,
		       &((const struct folder *)b)->path, base);
}

/* After this the parents of folders are no longer valid. */
static void sort_class(struct class_scan *c)
{
	for (uint32_t i = 0; i < c->folders; i++)
		if (c->folder[i].files > 1)
			qsort_r(c->file + c->folder[i].first,
				c->folder[i].files, sizeof(*c->file), by_file,
				c->text.base);
	qsort_r(c->folder, c->folders, sizeof(*c->folder), by_path,
		c->text.base);
}

/* The tree below this folder. */
static int scan_class(const struct scan *s, struct class_scan *c,
		      const char *folder)
{
	int err = add_folder(c, NULL, folder, NONE);

	for (uint32_t i = 0; i < c->folders && !err; i++)
		err = scan_folder(s, c, i);
	if (!err)
		sort_class(c);
	return err;
}

static void free_class(struct class_scan *c)
{
	free(c->text.base);
	free(c->folder);
	free(c->file);
}

static void *copy_of(const void *p, size_t len)
{
	void *copy = malloc(len + 1);

	if (copy && len)
		memcpy(copy, p, len);
	return copy;
}

/* What was collected becomes c's; from is ready for another class then. */
static int keep_class(struct class_scan *from, struct class_scan *c)
{
	size_t folders = from->folders * sizeof(*from->folder);
	size_t files = from->files * sizeof(*from->file);

	*c = *from;
	if (from->text.len + folders + files > LARGE) {
		*from = (struct class_scan){ .takes = from->takes };
		return 0;
	}
	c->text.base = copy_of(from->text.base, from->text.len);
	c->folder = copy_of(from->folder, folders);
	c->file = copy_of(from->file, files);
	from->text.len = 0;
	from->folders = 0;
	from->files = 0;
	return c->text.base && c->folder && c->file ? 0 : no_memory();
}

static int scan_classes(void *arg, uint64_t first, uint64_t last)
{
	struct scan *s = arg;
	struct class_scan now = { .takes = s->files->takes };
	int err = 0;

	for (uint64_t k = first; k < last && !err; k++) {
		now.name = s->names.base + s->order[k];
		err = scan_class(s, &now, now.name);
		if (!err)
			err = keep_class(&now, &s->class_[k]);
	}
	free_class(&now);
	return err;
}

/* Small enough that all threads have work until the end. */
static uint64_t piece_of(uint64_t classes, unsigned threads)
{
	uint64_t n = classes / (16 * (uint64_t)threads + 1);

	return n < 1 ? 1 : n < PIECE ? n : PIECE;
}

static int read_classes(struct scan *s, struct tsi_entries *entries)
{
	int fd = open_folder(s->root, "", &s->top);
	const struct dirent *e;
	int err = 0;

	if (fd < 0)
		return folder_err(s->root, "");
	tsi_entries_begin(entries, fd);
	while (!err && (e = tsi_entries_next(entries))) {
		if (tsi_folder_kind(fd, e, 0) == TSI_FOLDER_FOLDER) {
			err = tsi_text_grow(&s->order, s->classes,
					    &s->class_cap, sizeof(*s->order));
			if (!err)
				err = tsi_text_add(&s->names, NULL, e->d_name,
						   &s->order[s->classes]);
			s->classes += !err;
		}
	}
	if (!err && errno)
		err = folder_err(s->root, "");
	close(fd);
	return err;
}

static int find_classes(struct scan *s)
{
	struct tsi_entries *entries = malloc(sizeof(*entries));
	int err = entries ? read_classes(s, entries) : no_memory();

	free(entries);
	if (err)
		return err;
	if (s->classes == 0)
		return tsi_err(
			TSOCK_EDATA,
			"no class folders in %s: a data set's root holds "
			"one folder of %s per class",
			tsi_root_path(s->root), s->files->name);
	if (s->classes >= UINT32_MAX)
		return tsi_err(TSOCK_ENOTSUP, "too many classes in %s",
			       tsi_root_path(s->root));
	qsort_r(s->order, s->classes, sizeof(*s->order), by_name,
		s->names.base);
	s->class_ = calloc(s->classes, sizeof(*s->class_));
	return s->class_ ? 0 : no_memory();
}

/* A class's own folder, whose path is its name. */
static bool is_class(const struct class_scan *c, const char *folder)
{
	return !strcmp(folder, c->name);
}

/* How long the columns become. */
static struct tsi_table_lengths measure(const struct scan *s)
{
	struct tsi_table_lengths n = {
		.classes = (uint32_t)s->classes,
		.names_len = strlen(tsi_root_path(s->root)) + 1,
	};

	if (!s->flat) {
		n.names_len += 1;
		n.stamps = 1;
	}

	for (uint64_t k = 0; k < s->classes; k++) {
		const struct class_scan *c = &s->class_[k];

		n.names_len += strlen(c->name) + 1;
		n.count += c->files;
		n.stamps += c->folders;
		for (uint32_t i = 0; i < c->folders; i++) {
			const struct folder *f = &c->folder[i];
			const char *path = c->text.base + f->path;

			n.names_len += is_class(c, path) ? 0 : strlen(path) + 1;
			n.folders += f->files > 0;
			n.paths_len += f->files ? strlen(path) + 1 : 0;
		}
		for (uint64_t j = 0; j < c->files; j++)
			n.paths_len +=
				strlen(c->text.base + c->file[j].name) + 1;
	}
	return n;
}

static int put_file(struct tsi_table_writer *w, const struct class_scan *c,
		    const struct file *f, uint32_t label)
{
	uint64_t path = tsi_table_put_path(w, c->text.base + f->name);

	tsi_table_put_row(w, path, label, 0, 0);
	return f->odd ? tsi_table_add_bad(w->table, w->rows - 1,
					  "may be no regular file")
		      : 0;
}

static int put_class(struct tsi_table_writer *w, const struct class_scan *c,
		     uint32_t label)
{
	int err = 0;

	tsi_table_put_class(w, c->name);
	for (uint32_t i = 0; i < c->folders; i++) {
		const struct folder *d = &c->folder[i];
		const char *folder = c->text.base + d->path;

		tsi_table_put_stamp(w, is_class(c, folder) ? NULL : folder,
				    &d->stamp);
		if (d->files)
			tsi_table_put_folder(w, folder);
		for (uint64_t j = 0; j < d->files && !err; j++)
			err = put_file(w, c, &c->file[d->first + j], label);
	}
	return err;
}

static int fill_table(const struct scan *s, struct tsi_table *t)
{
	struct tsi_table_lengths n = measure(s);
	struct tsi_table_writer w;
	int err = tsi_table_begin(&w, t, &n, tsi_root_path(s->root));

	if (err)
		return err;
	if (!s->flat)
		tsi_table_put_stamp(&w, "", &s->top.stamp);
	for (uint64_t k = 0; k < s->classes && !err; k++)
		err = put_class(&w, &s->class_[k], (uint32_t)k);
	return err;
}

static void free_scan(struct scan *s)
{
	for (uint64_t k = 0; s->class_ && k < s->classes; k++)
		free_class(&s->class_[k]);
	free(s->class_);
	free(s->order);
	free(s->names.base);
}

static int scan_classed(struct scan *s, const struct tsi_format_opts *o,
			struct tsi_table *t)
{
	int err = find_classes(s);

	if (!err)
		err = tsi_parallel(o->threads, s->classes,
				   piece_of(s->classes, o->threads),
				   scan_classes, s);
	if (!err)
		err = fill_table(s, t);
	free_scan(s);
	return err;
}

static int scan_flat(struct scan *s, struct tsi_table *t)
{
	struct class_scan all = { .name = ".", .takes = s->files->takes };
	int err = scan_class(s, &all, "");

	s->class_ = &all;
	s->classes = 1;
	if (!err && !all.files)
		err = tsi_err(TSOCK_EDATA,
			      "no %s in %s, nor in the folders below it",
			      s->files->name, tsi_root_path(s->root));
	if (!err)
		err = fill_table(s, t);
	s->class_ = NULL;
	free_class(&all);
	return err;
}

int tsi_imagefolder_scan_files(const struct tsi_imagefolder_files *files,
			       bool flat, const struct tsi_root *root,
			       const struct tsi_format_opts *o,
			       struct tsi_table *t)
{
	struct scan s = { .root = root, .files = files, .flat = flat };

	return flat ? scan_flat(&s, t) : scan_classed(&s, o, t);
}

static const struct tsi_imagefolder_files images = { tsi_folder_is_image,
						     "images" };

int tsi_imagefolder_scan(const struct tsi_root *root,
			 const struct tsi_format_opts *o, struct tsi_table *t)
{
	return tsi_imagefolder_scan_files(&images, false, root, o, t);
}

int tsi_imagefolder_scan_images(const struct tsi_root *root,
				const struct tsi_format_opts *o,
				struct tsi_table *t)
{
	return tsi_imagefolder_scan_files(&images, true, root, o, t);
}
