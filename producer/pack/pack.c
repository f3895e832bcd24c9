/* SPDX-License-Identifier: MIT */
/*
 * pack.c - a data set into a pack.
 */
#include "pack/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/index.h"
#include "data/packed/pack.h"
#include "data/parallel.h"
#include "image/sniff.h"
#include "packed/record.h"
#include "io/reader.h"
#include "pack/fields.h"
#include "pack/index.h"
#include "pack/shards.h"

/* Samples that are in memory at a time: so many bytes of files, and so many. */
#define BATCH_BYTES ((uint64_t)32 << 20)
#define BATCH 1024u
#define MAKERS 64u
/* Damaged files that get a line of their own. */
#define LOGGED_MAX 20u
/* Memory for the coefficients of one JPEG: about 40 million pixels. */
#define DECODE ((uint64_t)256 << 20)

/* A sample's record, or why there is none. */
struct made {
	struct tsi_record record;
	uint64_t read;
	bool bad; /* for every crop */
};

struct packing {
	const struct tsi_pack_opts *o;
	struct tsi_index *index;
	struct tsi_shards *shards;
	/* Records: of all samples, then of their masks, if they have any. */
	uint64_t records, done;
	char *part; /* the folder until the pack is complete */
	struct tsi_pack_progress p;
	uint64_t first; /* sample of the batch */
	struct made made[BATCH];
	_Atomic uint64_t named; /* damaged files, in the log */
	/* Makers that no thread uses just now. */
	pthread_mutex_t lock;
	struct tsi_record_maker *maker[MAKERS];
	unsigned makers;
};

/* ------------------------------------------------------------------------
 * One sample
 */

static int take_maker(struct packing *k, struct tsi_record_maker **out)
{
	*out = NULL;
	pthread_mutex_lock(&k->lock);
	if (k->makers)
		*out = k->maker[--k->makers];
	pthread_mutex_unlock(&k->lock);
	return *out ? 0 : tsi_record_maker_create(DECODE, out);
}

static void give_maker(struct packing *k, struct tsi_record_maker *m)
{
	pthread_mutex_lock(&k->lock);
	if (k->makers < MAKERS) {
		k->maker[k->makers++] = m;
		m = NULL;
	}
	pthread_mutex_unlock(&k->lock);
	tsi_record_maker_destroy(m);
}

/* The file can't be read: is it bad, or is it this machine's fault? */
static int unreadable(const struct packing *k, uint64_t i, int err,
		      struct made *out)
{
	char name[TSI_INDEX_SAMPLE];

	if (!tsi_io_reader_blames_file(err) && !tsi_index_bad(k->index, i))
		return tsi_err(
			TSOCK_ESYS, "can't read %.200s/%.200s: %s",
			tsi_index_root(k->index),
			tsi_index_sample(k->index, i, name, sizeof(name)),
			tsi_io_reader_strerror(err));
	out->bad = true;
	return tsi_record_bad(tsi_io_reader_strerror(err), &out->record);
}

/* Bytes to be read at most: a file's size is another one now, perhaps. */
static size_t room_for(const struct packing *k, const struct tsi_location *at)
{
	uint64_t most = TSI_READER_MAX - TSI_PACK_ALIGN;
	struct stat st;

	if (at->length || fstatat(tsi_index_dirfd(k->index), at->path, &st, 0))
		return most;
	return st.st_size >= 0 && (uint64_t)st.st_size < most
		       ? (size_t)st.st_size
		       : most;
}

/* Of a folder the scan has named those that are no images. */
static void name_bad(struct packing *k, uint64_t i, const char *kept)
{
	char name[TSI_INDEX_SAMPLE];
	uint64_t n = atomic_fetch_add(&k->named, 1);

	if (n < LOGGED_MAX)
		tsi_log(TSOCK_LOG_WARN, "bad file %s: %s%s",
			tsi_index_sample(k->index, i, name, sizeof(name)),
			tsock_errmsg(), kept);
	if (n == LOGGED_MAX)
		tsi_log(TSOCK_LOG_WARN, "more bad files are only counted");
}

/* A table says of no file whether it is an image. */
static bool is_image(const uint8_t *data, size_t len)
{
	struct tsi_image_head head;

	return !tsi_image_sniff(data, len, true, &head);
}

static int make_one(struct packing *k, struct tsi_record_maker *m, uint64_t i,
		    struct made *out)
{
	struct tsi_read_request q = { .dirfd = tsi_index_dirfd(k->index) };
	struct tsi_location at;
	uint8_t *data;
	size_t len;
	int err;

	tsi_index_locate(k->index, i, &at);
	q.path = at.path;
	q.offset = at.offset;
	q.length = at.length;
	out->bad = tsi_index_bad(k->index, i);
	out->read = 0;
	err = tsi_io_read(&q, room_for(k, &at), &data, &len);
	if (err)
		return unreadable(k, i, err, out);
	err = tsi_record_make(m, data, len, &out->record);
	out->read = len;
	if (!err && !out->bad && !is_image(data, len)) {
		out->bad = true;
		name_bad(k, i, "");
	}
	if (!err && out->record.damaged && !out->bad)
		name_bad(k, i, "; kept as it is, for crops above the damage");
	free(data);
	return err;
}

/* A mask's file as it is, which has checksums of its own. */
static int make_mask(struct packing *k, uint64_t i, struct made *out)
{
	const struct tsi_pack_masks *m = k->o->masks;
	int err = m->read(m->arg, i, TSI_READER_MAX, &out->record.data,
			  &out->record.len);

	if (!err && out->record.len) {
		out->read = out->record.len;
		return 0;
	}
	if (err && !tsi_io_reader_blames_file(err)) {
		char name[TSI_INDEX_SAMPLE];

		return tsi_err(
			TSOCK_ESYS, "can't read the mask of %.200s: %s",
			tsi_index_sample(k->index, i, name, sizeof(name)),
			tsi_io_reader_strerror(err));
	}
	/* An image without a mask; every record has a byte. */
	free(out->record.data);
	out->record.data = calloc(1, 1);
	out->record.len = 1;
	out->bad = true;
	return out->record.data ? 0 : tsi_err(TSOCK_ENOMEM, "no memory");
}

static int make_some(void *arg, uint64_t first, uint64_t last)
{
	struct packing *k = arg;
	struct tsi_record_maker *m;
	int err = take_maker(k, &m);

	if (err)
		return err;
	for (uint64_t i = first; i < last && !err; i++)
		err = k->first + i < k->p.samples
			      ? make_one(k, m, k->first + i, &k->made[i])
			      : make_mask(k, k->first + i - k->p.samples,
					  &k->made[i]);
	give_maker(k, m);
	return err;
}

/* ------------------------------------------------------------------------
 * Batches
 */

/* A file's size, of which a scan that looks at no file knows nothing. */
static uint64_t size_of(const struct packing *k, const struct tsi_location *at)
{
	struct stat st;

	if (at->size || fstatat(tsi_index_dirfd(k->index), at->path, &st, 0) ||
	    st.st_size < 0)
		return at->size;
	return (uint64_t)st.st_size;
}

static unsigned batch_size(const struct packing *k)
{
	unsigned most =
		k->o->batch && k->o->batch < BATCH ? k->o->batch : BATCH;
	uint64_t bytes = 0;
	unsigned n = 0;

	while (n < most && k->first + n < k->records) {
		struct tsi_location at;

		/* Images and masks aren't made together; masks are small. */
		if (k->first + n == k->p.samples && n)
			break;
		if (k->first + n >= k->p.samples) {
			n++;
			continue;
		}

		tsi_index_locate(k->index, k->first + n, &at);
		bytes += at.length ? at.length : size_of(k, &at);
		if (n && bytes > BATCH_BYTES)
			break;
		n++;
	}
	return n;
}

/* Of masks the bad ones alone are counted, whose images are good. */
static void count(struct packing *k, const struct made *m, bool bad)
{
	uint64_t i = k->done++;

	k->p.done = k->done / (k->records / k->p.samples);
	if (i >= k->p.samples) {
		k->p.bad += bad && !tsi_index_bad(k->index, i - k->p.samples);
		return;
	}
	k->p.packed += m->record.packed;
	k->p.kept += !m->record.packed && !bad;
	k->p.bad += bad;
}

static int write_batch(struct packing *k, unsigned n)
{
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++) {
		const struct made *m = &k->made[i];
		bool bad = m->bad || m->record.damaged;

		err = tsi_shards_add(k->shards, m->record.data, m->record.len,
				     m->bad);
		if (err)
			break;
		count(k, m, bad);
		k->p.read += m->read;
		k->p.written += m->record.len;
	}
	return err ? err : tsi_shards_sync(k->shards);
}

static int make_batch(struct packing *k, unsigned n)
{
	int err;

	memset(k->made, 0, n * sizeof(k->made[0]));
	err = tsi_parallel(k->o->threads, n, 1, make_some, k);
	if (!err)
		err = write_batch(k, n);
	for (unsigned i = 0; i < n; i++)
		free(k->made[i].record.data);
	return err;
}

static int report(struct packing *k)
{
	k->p.shards = tsi_shards_files(k->shards);
	if (k->o->progress(k->o->arg, &k->p))
		return 0;
	return tsi_err(TSOCK_EENDED,
		       "stopped after %llu of %llu samples; the same command "
		       "goes on from there",
		       (unsigned long long)k->p.done,
		       (unsigned long long)k->p.samples);
}

static int make_all(struct packing *k)
{
	int err = 0;

	k->done = tsi_shards_count(k->shards);
	k->p.done = k->done / (k->records / k->p.samples);
	k->p.before = k->p.done;
	while (!err && k->done < k->records) {
		k->first = k->done;
		err = make_batch(k, batch_size(k));
		if (!err)
			err = report(k);
	}
	return err;
}

/* ------------------------------------------------------------------------
 * Before and after
 */

static int sniff(void *arg, const void *data, size_t len, bool whole)
{
	struct tsi_image_head head;

	(void)arg;
	return tsi_image_sniff(data, len, whole, &head);
}

static int open_index(struct packing *k)
{
	struct tsi_index_opts opts = {
		.format = k->o->format,
		.root = k->o->source,
		.labels = k->o->labels,
		.rescan = k->o->rescan,
		.allow_empty = k->o->allow_empty,
		.look_at_all = true,
		.cache_dir = k->o->cache_dir,
		.threads = k->o->threads,
		.sniff = sniff,
		.sniffs = tsi_image_formats_read(),
	};
	int err = tsi_index_open(&opts, &k->index);

	if (err)
		return err;
	k->p.samples = tsi_index_count(k->index);
	k->records = k->p.samples;
	if (!k->o->masks)
		return 0;
	k->records *= 2;
	return k->o->masks->open(k->o->masks->arg, k->index);
}

/* What is packed: a part of another source isn't continued. */
static uint64_t source_hash(const struct tsi_index *x, const char *masks)
{
	const char *root = tsi_index_name(x);
	const struct tsi_columns *c = tsi_index_columns(x);
	uint64_t sum = tsi_hash(root, strlen(root), 0);

	if (masks)
		sum = tsi_hash(masks, strlen(masks), ~sum);
	if (c)
		sum = tsi_columns_fingerprint(c, tsi_index_count(x), sum);
	for (uint64_t i = 0; i < tsi_index_count(x); i++) {
		struct tsi_location at;
		uint64_t number[3];

		tsi_index_locate(x, i, &at);
		number[0] = at.offset;
		number[1] = at.length ? at.length : at.size;
		number[2] = (uint64_t)tsi_index_label(x, i);
		sum = tsi_hash(at.path, strlen(at.path), sum);
		sum = tsi_hash(number, sizeof(number), sum);
	}
	return sum;
}

/* DST.part, wherever a '/' at the end of DST is. */
static int name_part(struct packing *k)
{
	size_t len = strlen(k->o->dest);

	while (len > 1 && k->o->dest[len - 1] == '/')
		len--;
	if (asprintf(&k->part, "%.*s.part", (int)len, k->o->dest) < 0) {
		k->part = NULL;
		return tsi_err(TSOCK_ENOMEM, "no memory for a pack");
	}
	return 0;
}

/* An empty folder may stand where the pack is to go. */
static int check_dest(const struct packing *k)
{
	const char *dest = k->o->dest;

	if (tsi_pack_is_at(dest))
		return tsi_err(TSOCK_EEXIST,
			       "%s is a pack already: remove it, or choose "
			       "another place",
			       dest);
	if (access(dest, F_OK) && errno == ENOENT)
		return 0;
	if (rmdir(dest))
		return tsi_err(TSOCK_EEXIST,
			       "%s is there already, and no empty folder: "
			       "choose another place for the pack",
			       dest);
	return 0;
}

/* All on disk, then the name: a reader that finds the pack finds all of it. */
static int finish_pack(struct packing *k)
{
	int dirfd = tsi_shards_dirfd(k->shards);
	int err = tsi_pack_index_write(k->index, k->shards);

	if (err)
		return err;
	if (fsync(dirfd))
		return tsi_err_sys("write %s to disk", k->part);
	if (rename(k->part, k->o->dest))
		return tsi_err_sys("rename %s to %s", k->part, k->o->dest);
	unlinkat(dirfd, "journal", 0);
	fsync(dirfd);
	return 0;
}

int tsi_pack_run(const struct tsi_pack_opts *o)
{
	struct packing *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return tsi_err(TSOCK_ENOMEM, "no memory for a pack");
	k->o = o;
	pthread_mutex_init(&k->lock, NULL);
	err = name_part(k);
	if (!err)
		err = check_dest(k);
	if (!err)
		err = open_index(k);
	if (!err)
		err = tsi_pack_fields_check(k->index);
	if (!err)
		err = tsi_shards_open(
			k->part,
			source_hash(k->index,
				    o->masks ? o->masks->folder : NULL),
			o->shard_size, &k->shards);
	if (!err)
		err = make_all(k);
	if (!err)
		err = finish_pack(k);
	while (k->makers)
		tsi_record_maker_destroy(k->maker[--k->makers]);
	tsi_shards_close(k->shards);
	if (o->masks)
		o->masks->close(o->masks->arg);
	tsi_index_close(k->index);
	pthread_mutex_destroy(&k->lock);
	free(k->part);
	free(k);
	return err;
}
