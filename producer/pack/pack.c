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

#include "audio/load.h"
#include "base/err.h"
#include "base/log.h"
#include "data/index.h"
#include "data/packed/pack.h"
#include "data/parallel.h"
#include "image/sniff.h"
#include "packed/record.h"
#include "io/reader.h"
#include "pack/fields.h"
#include "pack/index.h"
#include "pack/place.h"
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
	struct tsi_pack_planes planes;
	/* Records: of all samples, then of what else they have. */
	uint64_t records, done;
	char *part; /* the folder until the pack is complete */
	struct tsi_pack_progress p;
	bool audio;
	uint64_t first; /* record of the batch */
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

	if (at->length || tsi_index_stat(k->index, at, &st))
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

/* Audio is decoded as it is read: its files are kept as they are. */
static int make_record(struct packing *k, struct tsi_record_maker *m,
		       uint8_t **data, size_t len, struct tsi_record *out)
{
	if (!k->audio)
		return tsi_record_make(m, *data, len, out);
	*out = (struct tsi_record){ .data = *data, .len = len };
	*data = NULL;
	return len ? 0 : tsi_record_bad("it is empty", out);
}

/* Image `plane` of sample i, which is the first or one behind it. */
static int make_one(struct packing *k, struct tsi_record_maker *m, uint64_t i,
		    unsigned plane, struct made *out)
{
	struct tsi_read_request q = { .dirfd = tsi_index_dirfd(k->index) };
	struct tsi_location at;
	uint8_t *data;
	size_t len;
	int err;

	if (plane)
		tsi_index_locate_other(k->index, k->planes.other[plane - 1], i,
				       &at);
	else
		tsi_index_locate(k->index, i, &at);
	q.folder = at.folder;
	q.path = at.file;
	q.offset = at.offset;
	q.length = at.length;
	out->bad = !plane && tsi_index_bad(k->index, i);
	out->read = 0;
	err = tsi_io_read(&q, room_for(k, &at), &data, &len);
	if (err)
		return unreadable(k, i, err, out);
	err = make_record(k, m, &data, len, &out->record);
	out->read = len;
	if (!err && !out->bad && !k->audio && !is_image(data, len)) {
		out->bad = true;
		name_bad(k, i, "");
	}
	if (!err && out->record.damaged && !out->bad)
		name_bad(k, i, "; kept as it is, for crops above the damage");
	free(data);
	return err;
}

/* Of a table's column of images. */
static int read_column(struct packing *k, uint64_t i, struct made *out)
{
	struct tsi_read_request q = { .dirfd = tsi_index_dirfd(k->index) };
	struct tsi_location at;

	tsi_index_locate_other(k->index, (unsigned)k->planes.mask, i, &at);
	q.folder = at.folder;
	q.path = at.file;
	q.offset = at.offset;
	q.length = at.length;
	return tsi_io_read(&q, room_for(k, &at), &out->record.data,
			   &out->record.len);
}

/* A mask's file as it is, which has checksums of its own. */
static int make_mask(struct packing *k, uint64_t i, struct made *out)
{
	const struct tsi_pack_masks *m = k->o->masks;
	int err = k->planes.mask >= 0
			  ? read_column(k, i, out)
			  : m->read(m->arg, i, TSI_READER_MAX,
				    &out->record.data, &out->record.len);

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

/* Which of a sample's images a record is, or its mask. */
static unsigned plane_of(const struct packing *k, uint64_t record)
{
	return (unsigned)(record / k->p.samples);
}

static bool is_mask(const struct packing *k, unsigned plane)
{
	return plane > k->planes.others;
}

static int make_some(void *arg, uint64_t first, uint64_t last)
{
	struct packing *k = arg;
	struct tsi_record_maker *m;
	int err = take_maker(k, &m);

	if (err)
		return err;
	for (uint64_t r = first; r < last && !err; r++) {
		uint64_t i = (k->first + r) % k->p.samples;
		unsigned plane = plane_of(k, k->first + r);

		err = is_mask(k, plane) ? make_mask(k, i, &k->made[r])
					: make_one(k, m, i, plane, &k->made[r]);
	}
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

	if (at->size || tsi_index_stat(k->index, at, &st) || st.st_size < 0)
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
		uint64_t i = (k->first + n) % k->p.samples;
		unsigned plane = plane_of(k, k->first + n);
		struct tsi_location at;

		/* Images and masks aren't made together; masks are small. */
		if (!i && n)
			break;
		if (is_mask(k, plane)) {
			n++;
			continue;
		}
		if (plane)
			tsi_index_locate_other(
				k->index, k->planes.other[plane - 1], i, &at);
		else
			tsi_index_locate(k->index, i, &at);
		bytes += at.length ? at.length : size_of(k, &at);
		if (n && bytes > BATCH_BYTES)
			break;
		n++;
	}
	return n;
}

/* Of masks and other images the bad ones alone, whose first images are good. */
static void count(struct packing *k, const struct made *m, bool bad)
{
	uint64_t i = k->done++;

	k->p.done = k->done / (k->records / k->p.samples);
	if (i >= k->p.samples) {
		k->p.bad += bad && !tsi_index_bad(k->index, i % k->p.samples);
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
	const struct packing *k = arg;
	struct tsi_image_head head;

	return k->audio ? tsi_audio_sniff(data, len, whole)
			: tsi_image_sniff(data, len, whole, &head);
}

/* Which of a table's columns of images has the masks; -1: none. */
static int find_mask_column(const struct packing *k)
{
	const struct tsi_columns *c = tsi_index_columns(k->index);

	for (unsigned i = 0; k->o->masks && i < tsi_columns_others(c); i++)
		if (!strcmp(tsi_columns_other(c, i), k->o->masks->column))
			return (int)i;
	return -1;
}

static int find_planes(struct packing *k)
{
	const struct tsi_columns *c = tsi_index_columns(k->index);
	struct tsi_pack_planes *p = &k->planes;

	p->mask = find_mask_column(k);
	p->masks = k->o->masks != NULL;
	for (unsigned i = 0; i < tsi_columns_others(c); i++)
		if ((int)i != p->mask)
			p->other[p->others++] = i;
	if (p->others && p->masks)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s has %u images a sample, which can't have "
			       "masks, too: leave out --masks",
			       tsi_index_name(k->index), p->others + 1);
	k->records = k->p.samples * tsi_pack_planes_count(p);
	if (!p->masks || p->mask >= 0)
		return 0;
	return k->o->masks->open(k->o->masks->arg, k->index);
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
		.schema = k->o->schema,
		.held_out = k->o->held_out,
		.documents = k->o->documents,
		.named = !tsi_format_nameless(k->o->format),
		.sniff = sniff,
		.sniff_arg = k,
	};
	int err;

	k->audio = tsi_format_has_audio(k->o->format);
	opts.sniffs =
		k->audio ? tsi_audio_formats_read() : tsi_image_formats_read();
	err = tsi_index_open(&opts, &k->index);
	if (err)
		return err;
	k->p.samples = tsi_index_count(k->index);
	return find_planes(k);
}

static bool on_rows(void *arg, uint64_t done, uint64_t all)
{
	struct packing *k = arg;

	k->p.done =
		(uint64_t)((double)k->p.samples * (double)done / (double)all);
	return k->o->progress(k->o->arg, &k->p);
}

/* Samples that have no files: a table of all that they have. */
static int write_whole(struct packing *k)
{
	const struct tsi_pack_whole w = { .train = k->o->train,
					  .eval = k->o->eval,
					  .progress = on_rows,
					  .arg = k };
	struct stat st;
	int err = k->o->masks ? tsi_err(TSOCK_EARG,
					"--masks: samples of %s have no image "
					"files, to which masks belong: leave "
					"it out",
					tsi_index_name(k->index))
			      : tsi_pack_fields_table(k->index, k->shards, &w);

	if (err)
		return err;
	k->p.done = k->p.kept = k->p.samples;
	if (!fstatat(tsi_shards_dirfd(k->shards), TSI_PACK_TABLE, &st, 0))
		k->p.read = k->p.written = (uint64_t)st.st_size;
	k->p.shards = 1;
	k->o->progress(k->o->arg, &k->p);
	return 0;
}

/* All on disk, then the name: a reader that finds the pack finds all of it. */
static int finish_pack(struct packing *k)
{
	int dirfd = tsi_shards_dirfd(k->shards);
	bool whole = tsi_pack_fields_whole(k->index);
	int err = whole ? write_whole(k)
			: tsi_pack_index_write(k->index, k->shards, &k->planes);

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
	err = tsi_pack_place_part(o->dest, &k->part);
	if (!err)
		err = tsi_pack_place_check(o->dest);
	if (!err)
		err = open_index(k);
	if (!err)
		err = tsi_shards_open(
			k->part,
			tsi_pack_place_source(
				k->index, o->masks ? o->masks->folder : NULL),
			o->shard_size, &k->shards);
	if (!err && !tsi_pack_fields_whole(k->index))
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
