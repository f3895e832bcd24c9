/* SPDX-License-Identifier: MIT */
/*
 * check.c - what can be checked before anything starts.
 */
#include "cli/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "cli/advice.h"
#include "cli/number.h"
#include "cli/split.h"
#include "data/folder.h"
#include "data/packed/pack.h"
#include "data/labels/labels.h"
#include "data/select.h"
#include "run/service.h"
#include "wire/address.h"

/* Sockets, rings, epolls, read-ahead, and the first few consumers. */
#define DESCRIPTORS_OURS 48
#define DESCRIPTORS_THREAD 6
/* More tar files than this are opened for each of their samples. */
#define OPEN_FILES 4096

void tsi_check_stdio(void)
{
	/* Else a ring or a socket gets number 2, and log lines go into it. */
	for (int fd = open("/dev/null", O_RDWR); fd >= 0 && fd < 3;)
		fd = dup(fd);
}

/* A data set that isn't a tree of class folders: its format looks for it. */
static int check_by_format(const struct tsi_dataset *data)
{
	struct tsi_root r;
	int err;

	tsi_root_init(&r);
	err = tsi_format_open(data->format, data->folder, &r);
	tsi_root_close(&r);
	return err;
}

/* The folder of the split isn't there, nor another one that must be it. */
static int no_split(const struct tsi_dataset *data)
{
	char found[64], first[16];
	unsigned n =
		tsi_split_found(data->root, data->split, found, sizeof(found));

	if (!n)
		return tsi_err(TSOCK_EDATA,
			       "no folder %s: --root is the folder that holds "
			       "train and val; a tree without them is an "
			       "imagefolder",
			       data->folder);
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(found, " "), found);
	return tsi_err(TSOCK_EDATA,
		       "no folder %s, but %s: choose one by --dataset "
		       "imagefolder --root %s/%s%s",
		       data->folder, found, data->root, first,
		       data->split == TSI_SPLIT_VAL ? " --preset eval" : "");
}

int tsi_check_root(const struct tsi_dataset *data)
{
	bool split = data->split != TSI_SPLIT_NONE;
	struct stat st;
	DIR *d;

	if (!tsi_format_has_class_folders(data->format) ||
	    tsi_pack_is_at(data->folder))
		return check_by_format(data);
	if (stat(data->root, &st))
		return tsi_err(TSOCK_EDATA, "--root %s: %s", data->root,
			       strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return tsi_err(TSOCK_EDATA, "--root %s: not a folder",
			       data->root);
	if (tsi_advice_layout(data))
		return TSOCK_EDATA;
	if (split && stat(data->folder, &st) && errno == ENOENT)
		return no_split(data);
	d = opendir(data->folder);
	if (!d)
		return tsi_err(TSOCK_EDATA, "can't read %s: %s", data->folder,
			       strerror(errno));
	closedir(d);
	return 0;
}

/* The file of --select can be read, and its weights are numbers. */
static int check_select(const char *path)
{
	struct tsi_select *s;
	int err = tsi_select_open(path, &s);

	if (!err)
		tsi_select_close(s);
	return err;
}

/* Those of --labels can be read, and are all of one kind. */
static int check_labels(const struct tsi_pipeline_opts *p)
{
	struct tsi_labels *x;
	int err;

	if (p->format == &tsi_format_table)
		return tsi_err(TSOCK_EARG,
			       "--labels: %s is a table, which has labels of "
			       "its own; write these into it",
			       p->folder);
	err = tsi_labels_open(p->labels, NULL, &x);
	if (!err)
		tsi_labels_close(x);
	return err;
}

/* May it grow (--grows)?  What tsock-pack wrote doesn't. */
static int check_grows(const struct tsi_dataset *data)
{
	if (data->format != &tsi_format_packed && !tsi_pack_is_at(data->folder))
		return 0;
	return tsi_err(TSOCK_EARG,
		       "--grows: %s is what tsock-pack wrote, which never "
		       "grows; leave out --grows, or serve the files",
		       data->folder);
}

/*
 * Raise the limit of descriptors as far as allowed.  ESYS if it is too low
 * for so many threads.  *open_files is how many files of many samples may stay
 * open then.
 */
static int check_descriptors(unsigned threads, unsigned *open_files)
{
	rlim_t need = DESCRIPTORS_OURS + (rlim_t)threads * DESCRIPTORS_THREAD;
	struct rlimit r;
	rlim_t spare;

	*open_files = 0;
	if (getrlimit(RLIMIT_NOFILE, &r))
		return 0;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	getrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_cur >= need) {
		/* The rest is for consumers. */
		spare = (r.rlim_cur - need) / 4;
		*open_files = spare < OPEN_FILES ? (unsigned)spare : OPEN_FILES;
		return 0;
	}
	return tsi_err(TSOCK_ESYS,
		       "this process may open %llu descriptors and needs %llu "
		       "with %u threads: raise the limit (ulimit -n)",
		       (unsigned long long)r.rlim_cur, (unsigned long long)need,
		       threads);
}

int tsi_check_ring(const struct tsi_pipeline_opts *p,
		   const struct tsock_geometry *g)
{
	char limiter[256], samples[28], need[16], may[16];
	uint64_t memory = p->memory, there;

	tsi_number_thousands(samples, g->capacity);
	tsi_number_megabytes(need, g->ring_bytes);
	if (memory && g->ring_bytes > memory)
		return tsi_err(TSOCK_EARG,
			       "a ring of %s samples takes %s, more than "
			       "--memory's %s: make --ring, --max-batch or "
			       "--size smaller",
			       samples, need,
			       tsi_number_megabytes(may, memory));
	if (tsi_limits_memory("", &there, limiter, sizeof(limiter)) ||
	    g->ring_bytes <= there)
		return 0;
	return tsi_err(TSOCK_ENOMEM,
		       "a ring of %s samples takes %s but %s of memory are "
		       "available (by %s): make --ring, --max-batch or --size "
		       "smaller, or free some",
		       samples, need, tsi_number_megabytes(may, there),
		       limiter);
}

/* io_uring is there, where nothing else was asked for: ENOTSUP otherwise. */
static int check_reader(enum tsi_io_reader_kind kind)
{
	struct tsi_io_reader *r;
	int err;

	if (kind != TSI_READER_URING)
		return 0;
	err = tsi_io_reader_create(TSI_READER_URING, 1, &r);
	if (!err) {
		tsi_io_reader_destroy(r);
		return 0;
	}
	if (err != TSOCK_ENOTSUP)
		return err;
	return tsi_err(err, "--io uring: %s; auto does without",
		       tsock_errmsg());
}

/*
 * The memory that large images may use together, beside rings that use
 * ring_bytes at first: *bytes, which is --image-memory.  Where that is 0 it
 * becomes 2 GiB but at most --memory and half of what there is.  ENOMEM if
 * there is less than was asked for.
 */
static int check_image_memory(uint64_t memory, uint64_t ring_bytes,
			      uint64_t *bytes)
{
	uint64_t there = UINT64_MAX, most = TSI_IMAGE_MEMORY;
	char limiter[256], need[16], may[16];

	if (tsi_limits_memory("", &there, limiter, sizeof(limiter)))
		there = UINT64_MAX;
	there -= ring_bytes < there ? ring_bytes : there;
	if (*bytes > there)
		return tsi_err(TSOCK_ENOMEM,
			       "--image-memory is %s but %s of memory are "
			       "available beside the ring (by %s); lower it, "
			       "or free some",
			       tsi_number_megabytes(need, *bytes),
			       tsi_number_megabytes(may, there), limiter);
	if (*bytes)
		return 0;
	if (memory && memory < most)
		most = memory;
	*bytes = there / 2 < most ? there / 2 : most;
	return 0;
}

/*
 * The memory that the index of JPEG files may use: *bytes, which is
 * --index-memory.  Where that is 0 it becomes 4 GiB but at most a sixteenth of
 * what there is.
 */
static void check_index_memory(uint64_t *bytes)
{
	uint64_t there, most = UINT64_C(4) << 30;
	char limiter[256];

	if (*bytes)
		return;
	if (tsi_limits_memory("", &there, limiter, sizeof(limiter)) == 0 &&
	    there / 16 < most)
		most = there / 16;
	*bytes = most;
}

/*
 * How many bytes are read ahead, on the disks where any are (run/ahead.h): none
 * past the page cache, else 256 MiB but at most a sixteenth of the memory that
 * is available.
 */
static uint64_t read_ahead_bytes(bool direct)
{
	uint64_t there, most = UINT64_C(256) << 20;
	char limiter[256];

	if (direct)
		return 0;
	if (tsi_limits_memory("", &there, limiter, sizeof(limiter)) == 0 &&
	    there / 16 < most)
		most = there / 16;
	return most;
}

/*
 * There is so much memory for --cache beside rings and large images: ENOMEM
 * otherwise.
 */
static int check_cache(uint64_t bytes, uint64_t others)
{
	char limiter[256], need[16], may[16];
	uint64_t there;

	if (!bytes || tsi_limits_memory("", &there, limiter, sizeof(limiter)))
		return 0;
	there -= others < there ? others : there;
	if (bytes <= there)
		return 0;
	return tsi_err(TSOCK_ENOMEM,
		       "--cache is %s but %s of memory are available beside "
		       "the ring and large images (by %s); lower it, or free "
		       "some",
		       tsi_number_megabytes(need, bytes),
		       tsi_number_megabytes(may, there), limiter);
}

/* The folder of the stream's socket can be made and is ours. */
static int check_folder(const char *name)
{
	struct tsi_address address;
	int err = tsi_address_choose(name, &address);

	return err ? err : tsi_address_check(&address);
}

/*
 * EEXIST if another producer has locked the stream's name, whether it answers
 * or not: then a start would fail.  Locks nothing.
 */
static int check_name(const char *name)
{
	struct tsi_address address;
	int err = tsi_address_choose(name, &address);
	long pid = 0;

	if (err || !tsi_address_is_locked(&address, &pid))
		return err;
	return tsi_err(TSOCK_EEXIST,
		       "stream %s is already served by process %ld: choose "
		       "another --name",
		       name, pid);
}

static int check_memories(const struct tsi_options *o,
			  struct tsi_pipeline_opts *p, struct tsock_geometry *g)
{
	struct tsock_geometry least = { .size = sizeof(least) };
	int err = tsi_service_geometry(p, TSI_EPOCH_LONG, g);

	/* Without --ring it depends on the data set, which is scanned later. */
	if (!err && !p->ring && !p->ring_bytes)
		err = tsi_service_geometry(p, 1, &least);
	if (!err)
		err = tsi_check_ring(p, least.capacity ? &least : g);
	if (!err)
		err = check_image_memory(p->memory, g->ring_bytes,
					 &p->image_memory);
	if (!o->no_index)
		check_index_memory(&p->index_memory);
	p->read_ahead = read_ahead_bytes(p->direct);
	if (!err)
		err = check_cache(p->image_cache,
				  g->ring_bytes + p->image_memory);
	return err;
}

int tsi_check_start(const struct tsi_options *o, struct tsi_pipeline_opts *p,
		    struct tsock_geometry *g)
{
	unsigned cpus = tsi_limits_cpus("");
	int err;

	tsi_options_pipeline(o, p);
	if (!p->threads)
		p->threads = cpus;
	p->convert = tsi_pool_converts(p->threads, cpus);
	err = check_memories(o, p, g);
	if (!err)
		err = check_descriptors(p->threads, &p->open_files);
	if (!err && p->grows)
		err = check_grows(&o->data);
	if (!err)
		err = tsi_check_root(&o->data);
	if (!err && p->select)
		err = check_select(p->select);
	if (!err && p->labels)
		err = check_labels(p);
	if (!err)
		err = check_reader(p->io);
	if (!err)
		err = check_folder(p->name);
	return err ? err : check_name(p->name);
}

static bool is_class(const struct tsi_index *x, const char *name)
{
	uint32_t low = 0, high = tsi_index_classes(x);

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int c = strcmp(name, tsi_index_class(x, mid));

		if (c == 0)
			return true;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

void tsi_check_splits(const struct tsi_dataset *data, const struct tsi_index *x)
{
	uint32_t common = 0, extra = 0;
	char *path;
	struct dirent *e;
	DIR *d;

	if (data->split == TSI_SPLIT_NONE ||
	    !tsi_format_has_class_folders(tsi_index_format(x)))
		return;
	path = tsi_split_folder(data->root, data->split == TSI_SPLIT_VAL
						    ? TSI_SPLIT_TRAIN
						    : TSI_SPLIT_VAL);
	d = !path || tsi_pack_is_at(path) ? NULL : opendir(path);
	if (!d) {
		free(path);
		return;
	}
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    !tsi_folder_entry(d, e))
			continue;
		if (is_class(x, e->d_name))
			common++;
		else
			extra++;
	}
	closedir(d);
	if (extra || common != tsi_index_classes(x))
		tsi_log(TSOCK_LOG_WARN,
			"%s and %s have different classes (%u in both, %u "
			"only there, %u only here): the same label means "
			"different classes",
			path, tsi_index_root(x), common, extra,
			tsi_index_classes(x) - common);
	free(path);
}
