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

#define NONE UINT64_MAX

struct folder {
	uint64_t path; /* in text */
	uint64_t dev;
	struct tsi_stamp stamp;
	uint64_t parent; /* in piece.folder; NONE for a class's own */
	uint64_t first;  /* its files in piece.file */
	uint64_t files;
};

struct file {
	uint64_t name : 63; /* in text */
	uint64_t odd : 1;   /* perhaps no regular file */
};

/*
 * Classes whose names are collected in the same memory: a hundred thousand small
 * ones would otherwise take three allocations each.
 */
struct piece {
	struct tsi_text text; /* folders' paths and files' names */
	struct folder *folder;
	uint64_t folders;
	uint64_t folder_cap;
	struct file *file;
	uint64_t files;
	uint64_t file_cap;
	struct tsi_entries *entries; /* of the folder that is read */
};

/* The most classes of a piece. */
#define PIECE 256

struct class_scan {
	uint64_t first; /* its own folder, in its piece */
	uint64_t folders;
};

struct scan {
	const struct tsi_root *root;
	const struct tsi_imagefolder_files *files;
	struct folder top;
	struct tsi_text names; /* of classes */
	uint64_t *order;       /* classes' offsets in names, sorted */
	uint64_t classes;
	uint64_t class_cap;
	struct class_scan *class_;
	struct piece *piece;
	uint64_t each; /* classes of a piece */
	bool flat;     /* the root is the folder of the only class */
};

static const char *class_name(const struct scan *s, uint64_t k)
{
	return s->flat ? "." : s->names.base + s->order[k];
}

/* A class's own folder. */
static const char *class_folder(const struct scan *s, uint64_t k)
{
	return s->flat ? "" : class_name(s, k);
}

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

static bool loops(const struct scan *s, const struct piece *p,
		  const struct folder *f)
{
	if (same(f, &s->top))
		return true;
	for (uint64_t i = f->parent; i != NONE; i = p->folder[i].parent)
		if (same(f, &p->folder[i]))
			return true;
	return false;
}

static int add_folder(struct piece *p, const char *in, const char *name,
		      uint64_t parent)
{
	int err = tsi_text_grow(&p->folder, p->folders, &p->folder_cap,
				sizeof(*p->folder));
	struct folder *f;

	if (err)
		return err;
	f = &p->folder[p->folders];
	memset(f, 0, sizeof(*f));
	f->parent = parent;
	err = tsi_text_add(&p->text, in, name, &f->path);
	if (!err)
		p->folders++;
	return err;
}

static int add_file(struct piece *p, const char *name, bool odd)
{
	int err = tsi_text_grow(&p->file, p->files, &p->file_cap,
				sizeof(*p->file));
	uint64_t at;

	if (!err)
		err = tsi_text_add(&p->text, NULL, name, &at);
	if (err)
		return err;
	p->file[p->files].name = at & (UINT64_MAX >> 1);
	p->file[p->files++].odd = odd;
	return 0;
}

static int read_folder(const struct scan *s, struct piece *p, uint64_t i,
		       int fd)
{
	uint64_t dev = p->folder[i].dev;
	const struct dirent *e;
	int err = 0;

	tsi_entries_begin(p->entries, fd);
	while (!err && (e = tsi_entries_next(p->entries))) {
		enum tsi_folder_kind kind = tsi_folder_kind(fd, e, dev);

		if (kind == TSI_FOLDER_FOLDER)
			err = add_folder(
				p, above(p->text.base + p->folder[i].path),
				e->d_name, i);
		else if (s->files->takes(e->d_name))
			err = add_file(p, e->d_name, kind == TSI_FOLDER_ODD);
	}
	if (!err && errno)
		err = folder_err(s->root, p->text.base + p->folder[i].path);
	return err;
}

static int scan_folder(const struct scan *s, struct piece *p, uint64_t i)
{
	struct folder *f = &p->folder[i];
	const char *path = p->text.base + f->path;
	int fd = open_folder(s->root, path, f);
	int err;

	if (fd < 0)
		return folder_err(s->root, path);
	f->first = p->files;
	if (loops(s, p, f)) {
		tsi_log(TSOCK_LOG_WARN,
			"%s/%s is a link to a folder above it: left out",
			tsi_root_path(s->root), path);
		close(fd);
		return 0;
	}
	err = read_folder(s, p, i, fd);
	close(fd);
	p->folder[i].files = p->files - p->folder[i].first;
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
static void sort_class(struct piece *p, const struct class_scan *c)
{
	for (uint64_t i = c->first; i < p->folders; i++)
		if (p->folder[i].files > 1)
			qsort_r(p->file + p->folder[i].first,
				p->folder[i].files, sizeof(*p->file), by_file,
				p->text.base);
	if (c->folders > 1)
		qsort_r(p->folder + c->first, c->folders, sizeof(*p->folder),
			by_path, p->text.base);
}

/* The tree below a class's folder. */
static int scan_class(const struct scan *s, struct piece *p, uint64_t k)
{
	struct class_scan *c = &s->class_[k];
	int err;

	c->first = p->folders;
	err = add_folder(p, NULL, class_folder(s, k), NONE);
	for (uint64_t i = c->first; i < p->folders && !err; i++)
		err = scan_folder(s, p, i);
	c->folders = p->folders - c->first;
	if (!err && c->folders > UINT32_MAX - 1)
		err = tsi_err(TSOCK_ENOTSUP, "too many folders in class %s",
			      class_name(s, k));
	if (!err)
		sort_class(p, c);
	return err;
}

static void free_piece(struct piece *p)
{
	free(p->text.base);
	free(p->folder);
	free(p->file);
}

/* The array, without what is behind len bytes of it. */
static void *cut_to(void *array, size_t len)
{
	void *shorter = array ? realloc(array, len + 1) : NULL;

	return shorter ? shorter : array;
}

/* What is collected, after an error too, is out's. */
static int scan_piece(const struct scan *s, uint64_t first, uint64_t last,
		      struct piece *out)
{
	/* Not collected in *out: other threads write beside it. */
	struct piece p = { .entries = malloc(sizeof(*p.entries)) };
	int err = p.entries ? 0 : no_memory();

	for (uint64_t k = first; k < last && !err; k++)
		err = scan_class(s, &p, k);
	free(p.entries);
	p.entries = NULL;
	p.text.base = cut_to(p.text.base, p.text.len);
	p.folder = cut_to(p.folder, p.folders * sizeof(*p.folder));
	p.file = cut_to(p.file, p.files * sizeof(*p.file));
	*out = p;
	return err;
}

static int scan_classes(void *arg, uint64_t first, uint64_t last)
{
	struct scan *s = arg;

	return scan_piece(s, first, last, &s->piece[first / s->each]);
}

/* So few classes of a piece that all threads have work until the end. */
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

static int find_classes(struct scan *s, unsigned threads)
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
	s->each = piece_of(s->classes, threads);
	s->class_ = calloc(s->classes, sizeof(*s->class_));
	s->piece = calloc((s->classes - 1) / s->each + 1, sizeof(*s->piece));
	return s->class_ && s->piece ? 0 : no_memory();
}

static bool is_class(const struct scan *s, uint64_t k, const char *folder)
{
	return !strcmp(folder, class_name(s, k));
}

static void measure_folder(const struct scan *s, uint64_t k,
			   const struct folder *f, struct tsi_table_lengths *n)
{
	const struct piece *p = &s->piece[k / s->each];
	const char *path = p->text.base + f->path;
	size_t len = strlen(path) + 1;

	n->names_len += is_class(s, k, path) ? 0 : len;
	n->count += f->files;
	if (!f->files)
		return;
	n->folders++;
	n->paths_len += len;
	for (uint64_t j = 0; j < f->files; j++)
		n->paths_len +=
			strlen(p->text.base + p->file[f->first + j].name) + 1;
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
		const struct piece *p = &s->piece[k / s->each];

		n.names_len += strlen(class_name(s, k)) + 1;
		n.stamps += (uint32_t)c->folders;
		for (uint64_t i = 0; i < c->folders; i++)
			measure_folder(s, k, &p->folder[c->first + i], &n);
	}
	return n;
}

static int put_file(struct tsi_table_writer *w, const struct piece *p,
		    const struct file *f, uint32_t label)
{
	uint64_t path = tsi_table_put_path(w, p->text.base + f->name);

	tsi_table_put_row(w, path, label, 0, 0);
	return f->odd ? tsi_table_add_bad(w->table, w->rows - 1,
					  "may be no regular file")
		      : 0;
}

static int put_class(const struct scan *s, struct tsi_table_writer *w,
		     uint64_t k)
{
	const struct class_scan *c = &s->class_[k];
	const struct piece *p = &s->piece[k / s->each];
	int err = 0;

	tsi_table_put_class(w, class_name(s, k));
	for (uint64_t i = 0; i < c->folders; i++) {
		const struct folder *d = &p->folder[c->first + i];
		const char *folder = p->text.base + d->path;

		tsi_table_put_stamp(w, is_class(s, k, folder) ? NULL : folder,
				    &d->stamp);
		if (d->files)
			tsi_table_put_folder(w, folder);
		for (uint64_t j = 0; j < d->files && !err; j++)
			err = put_file(w, p, &p->file[d->first + j],
				       (uint32_t)k);
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
		err = put_class(s, &w, k);
	return err;
}

static void free_scan(struct scan *s)
{
	for (uint64_t k = 0; s->piece && k < s->classes; k += s->each)
		free_piece(&s->piece[k / s->each]);
	free(s->piece);
	free(s->class_);
	free(s->order);
	free(s->names.base);
}

static int scan_classed(struct scan *s, const struct tsi_format_opts *o,
			struct tsi_table *t)
{
	int err = find_classes(s, o->threads);

	if (!err)
		err = tsi_parallel(o->threads, s->classes, s->each,
				   scan_classes, s);
	if (!err)
		err = fill_table(s, t);
	free_scan(s);
	return err;
}

static int scan_flat(struct scan *s, struct tsi_table *t)
{
	struct class_scan root;
	struct piece all;
	int err;

	s->class_ = &root;
	s->classes = 1;
	s->piece = &all;
	s->each = 1;
	err = scan_piece(s, 0, 1, &all);
	if (!err && !all.files)
		err = tsi_err(TSOCK_EDATA,
			      "no %s in %s, nor in the folders below it",
			      s->files->name, tsi_root_path(s->root));
	if (!err)
		err = fill_table(s, t);
	s->class_ = NULL;
	s->piece = NULL;
	free_piece(&all);
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
