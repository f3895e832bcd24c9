/* SPDX-License-Identifier: MIT */
/*
 * index.c - which samples a data set has: opening and asking.
 */
#include "data/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/cache.h"
#include "data/census.h"
#include "data/doubt.h"
#include "data/empty.h"
#include "data/format.h"
#include "data/labels/labels.h"
#include "data/packed/pack.h"
#include "data/probe.h"
#include "data/names.h"
#include "data/select.h"
#include "data/weights.h"

struct tsi_index {
	const struct tsi_format *format;
	struct tsi_root root;
	struct tsi_table table;
	bool cached;
	struct tsi_select *select; /* NULL: all */
	struct tsi_labels *labels; /* NULL: those of the data set */
	bool (*foreign)(const char *name);
	uint8_t *
		judged; /* by class, enum tsi_doubt; NULL: nothing is presumed */
	uint32_t *scanned; /* each row's class there, if labels changed it */
	uint64_t all;
	uint64_t looked, looked_bad; /* see tsi_index_looked() */
	bool looked_at_all;
	struct tsi_weights weights;
	struct tsi_census *census;
};

/*
 * Opening each of a million files would take minutes on a slow disk, for what
 * their first read finds out anyway.  So many tell whether the data set is what
 * it seems to be, and which one it is.
 */
#define LOOKED 1024

/* How many samples of a scan are looked at, whatever they are. */
static uint64_t some_of(const struct tsi_index *x)
{
	uint64_t n = tsi_index_count(x);

	if (tsi_format_keeps_index(x->format))
		return 0;
	return n < LOOKED ? n : LOOKED;
}

static int look_at_all(struct tsi_index *x, const struct tsi_probe_opts *probe)
{
	x->looked_at_all = true;
	tsi_table_forget_bad(&x->table);
	return tsi_probe(&x->root, probe, &x->table, NULL, tsi_index_count(x));
}

static struct tsi_doubted doubted(const struct tsi_index *x)
{
	return (struct tsi_doubted){ .format = x->format,
				     .table = &x->table,
				     .foreign = x->foreign };
}

/* Where a class has nothing good so far, at some more of it. */
static int probe_classes(struct tsi_index *x,
			 const struct tsi_probe_opts *probe)
{
	struct tsi_doubted d = doubted(x);
	uint64_t *rows, n;
	int err;

	if (!tsi_index_bad_count(x))
		return 0;
	err = tsi_doubt_classes(&d, &rows, &n);
	if (!err)
		err = tsi_probe(&x->root, probe, &x->table, rows, n);
	free(rows);
	return err;
}

static int probe_these(struct tsi_index *x, const struct tsi_probe_opts *probe,
		       const uint64_t *others, uint64_t nothers, bool foreign)
{
	uint64_t n = some_of(x) + tsi_index_bad_count(x) + nothers;
	uint64_t *which = malloc(n * sizeof(*which) + 1);
	struct tsi_doubted d = doubted(x);
	int err;

	if (!which)
		return tsi_err(TSOCK_ENOMEM, "no memory for an index");
	n = tsi_doubt_looks(&d, some_of(x), others, nothers, which);
	tsi_table_forget_bad(&x->table);
	err = tsi_probe(&x->root, probe, &x->table, which, n);
	free(which);
	if (err || !some_of(x))
		return err;
	/* Is any good?  A kept index said so of the others. */
	if (tsi_index_bad_count(x) == n && n < tsi_index_count(x) && !foreign)
		return look_at_all(x, probe);
	return probe_classes(x, probe);
}

static int probe_some(struct tsi_index *x, const struct tsi_probe_opts *probe)
{
	struct tsi_doubted d = doubted(x);
	uint64_t *others = NULL, n = 0;
	bool all = false;
	int err = some_of(x) ? tsi_doubt_names(&d, &others, &n, &all) : 0;

	if (!err)
		err = probe_these(x, probe, others, n, all);
	free(others);
	return err;
}

/* What follows from what was looked at, now or when the scan was made. */
static int judge(struct tsi_index *x)
{
	struct tsi_doubted d = doubted(x);
	uint64_t some = some_of(x), count = tsi_index_count(x);

	x->looked = some;
	for (uint64_t k = 0; k < some; k++)
		x->looked_bad += tsi_index_bad(x, k * count / some);
	return some && !x->looked_at_all ? tsi_doubt_judge(&d, &x->judged) : 0;
}

/* Is a class without a sample an error? */
static bool checks_classes(const struct tsi_index *x,
			   const struct tsi_index_opts *opts)
{
	return !opts->allow_empty && tsi_format_has_class_folders(x->format);
}

/* A kept scan may be of a run to which such a class was no error. */
static bool load_scan(struct tsi_index *x, const struct tsi_index_opts *opts,
		      const struct tsi_cache_opts *cache, uint64_t **bad,
		      uint64_t *nbad)
{
	if (!tsi_cache_load(&x->root, cache, &x->table, bad, nbad))
		return false;
	if (!checks_classes(x, opts) ||
	    !tsi_empty_check(x->format, &x->root, &x->table))
		return true;
	free(*bad);
	*bad = NULL;
	*nbad = 0;
	tsi_table_clear(&x->table);
	return false;
}

static int scan(struct tsi_index *x, const struct tsi_index_opts *opts,
		unsigned threads, const struct tsi_probe_opts *probe)
{
	const struct tsi_format_opts o = { .schema = opts->schema,
					   .held_out = opts->held_out,
					   .documents = opts->documents,
					   .threads = threads,
					   .named = opts->named ||
						    opts->select };
	int64_t begun = tsi_now_ms();
	char what[40] = "samples";
	int err;

	tsi_log(TSOCK_LOG_INFO, "scanning %s", tsi_root_path(&x->root));
	err = tsi_format_scan(x->format, &x->root, &o, &x->table);
	if (!err && checks_classes(x, opts))
		err = tsi_empty_check(x->format, &x->root, &x->table);
	if (!err)
		err = probe_some(x, probe);
	if (err)
		return err;
	if (!tsi_index_unlabelled(x))
		snprintf(what, sizeof(what), "files, classes: %u",
			 tsi_index_classes(x));
	tsi_log(TSOCK_LOG_INFO, "scanned: %llu %s, in %.1f s",
		(unsigned long long)tsi_index_count(x), what,
		(double)(tsi_now_ms() - begun) / 1000);
	return 0;
}

/* Fill the table: from the cache, else by a scan, which is then kept. */
static int fill_index(struct tsi_index *x, const struct tsi_index_opts *opts)
{
	unsigned threads = opts->threads ? opts->threads : 4;
	struct tsi_cache_opts cache = {
		.layout = tsi_format_layout(x->format),
		.dir = tsi_format_keeps_index(x->format) ? "" : opts->cache_dir,
		.probe = opts->sniff ? opts->sniffs + 1 : 0,
		.threads = threads,
	};
	struct tsi_probe_opts probe = {
		.format = x->format,
		.sniff = opts->sniff,
		.arg = opts->sniff_arg,
		.survive_eio = opts->survive_eio,
		.threads = threads,
	};
	uint64_t *bad = NULL;
	uint64_t nbad = 0;
	int err;

	x->cached = !opts->rescan && load_scan(x, opts, &cache, &bad, &nbad);
	/* What was bad may have been mended since. */
	if (x->cached)
		err = tsi_probe(&x->root, &probe, &x->table, bad, nbad);
	else
		err = scan(x, opts, threads, &probe);
	free(bad);
	if (!err && (!x->cached || tsi_index_bad_count(x) != nbad))
		tsi_cache_save(&x->root, &cache, &x->table);
	if (some_of(x) == tsi_index_count(x) ||
	    tsi_format_keeps_index(x->format))
		x->looked_at_all = true;
	/* What else is found so isn't kept: see tsi_index_fingerprint(). */
	if (!err && opts->look_at_all && !x->looked_at_all)
		err = look_at_all(x, &probe);
	return err ? err : judge(x);
}

/* The classes by which rows are presumed to be bad. */
static int keep_classes(struct tsi_index *x)
{
	uint64_t n = tsi_index_count(x);

	if (!x->judged)
		return 0;
	x->scanned = malloc(n * sizeof(*x->scanned) + 1);
	if (!x->scanned)
		return tsi_err(TSOCK_ENOMEM, "no memory for an index");
	for (uint64_t i = 0; i < n; i++)
		x->scanned[i] = (uint32_t)tsi_index_label(x, i);
	return 0;
}

/* A mistake in the file is found before a scan, which may take long. */
static int fill_selected(struct tsi_index *x, const struct tsi_index_opts *opts)
{
	float *own = NULL;
	int err = 0;

	if (opts->select)
		err = tsi_select_open(opts->select, &x->select);
	if (!err && opts->labels)
		err = tsi_labels_open(opts->labels, tsi_root_path(&x->root),
				      &x->labels);
	if (!err)
		err = fill_index(x, opts);
	if (!err && x->labels)
		err = tsi_labels_apply(x->labels, x->format, &x->table,
				       opts->threads ? opts->threads : 4);
	if (err)
		return err;
	x->all = tsi_index_count(x);
	if (x->select)
		err = tsi_select_apply(x->select, x->format, &x->table, &own);
	if (!err)
		err = tsi_weights_find(&x->weights, &x->table, own);
	if (err || !x->labels)
		return err;
	err = keep_classes(x);
	return err ? err : tsi_labels_finish(x->labels, x->format, &x->table);
}

int tsi_index_open(const struct tsi_index_opts *opts, struct tsi_index **out)
{
	struct tsi_index *x = calloc(1, sizeof(*x));
	const struct tsi_format *pack = NULL;
	int err;

	if (!x)
		return tsi_err(TSOCK_ENOMEM, "no memory for an index");
	tsi_root_init(&x->root);
	x->format = opts->format;
	x->foreign = opts->foreign;
	err = tsi_format_open(x->format, opts->root, &x->root);
	/* A pack is known by its content. */
	if (!err)
		pack = tsi_pack_format_in(&x->root);
	if (pack)
		x->format = pack;
	if (!err)
		err = fill_selected(x, opts);
	if (!err)
		err = tsi_census_create(tsi_index_classes(x), &x->census);
	if (err) {
		tsi_index_close(x);
		return err;
	}
	*out = x;
	return 0;
}

void tsi_index_close(struct tsi_index *x)
{
	if (!x)
		return;
	tsi_census_destroy(x->census);
	tsi_weights_clear(&x->weights);
	free(x->judged);
	free(x->scanned);
	tsi_labels_close(x->labels);
	tsi_select_close(x->select);
	tsi_table_clear(&x->table);
	tsi_root_close(&x->root);
	free(x);
}

uint64_t tsi_index_count(const struct tsi_index *x)
{
	return tsi_table_count(&x->table);
}

bool tsi_index_looked_at_all(const struct tsi_index *x)
{
	return x->looked_at_all;
}

uint32_t tsi_index_classes(const struct tsi_index *x)
{
	return tsi_table_classes(&x->table);
}

const char *tsi_index_class(const struct tsi_index *x, uint32_t i)
{
	return tsi_table_class(&x->table, i);
}

bool tsi_index_unlabelled(const struct tsi_index *x)
{
	const struct tsi_columns *c = tsi_table_columns(&x->table);
	/* No folder is called so. */
	bool none = tsi_table_classes(&x->table) == 1 &&
		    !strcmp(tsi_table_class(&x->table, 0), ".");

	return x->labels ? !tsi_labels_classed(x->labels)
	       : c       ? !tsi_columns_classed(c)
			 : none || tsi_format_unlabelled(x->format);
}

int64_t tsi_index_label(const struct tsi_index *x, uint64_t i)
{
	return tsi_format_label(x->format, &x->table, i);
}

unsigned tsi_index_label_run(const struct tsi_index *x, uint64_t i,
			     int64_t to[TSI_INDEX_RUN])
{
	uint64_t left = tsi_index_count(x) - i;
	unsigned n = left < TSI_INDEX_RUN ? (unsigned)left : TSI_INDEX_RUN;

	tsi_format_labels(x->format, &x->table, i, n, to);
	return n;
}

uint64_t tsi_index_class_files(const struct tsi_index *x, uint32_t i)
{
	return tsi_census_files(x->census, x->format, &x->table, i);
}

const char *tsi_index_path(const struct tsi_index *x, uint64_t i,
			   char text[TSI_PATH])
{
	struct tsi_location at;

	tsi_format_locate_bytes(x->format, &x->table, i, &at);
	return tsi_location_path(&at, text);
}

int tsi_index_stat(const struct tsi_index *x, const struct tsi_location *at,
		   struct stat *out)
{
	char text[TSI_PATH];

	return tsi_root_stat(&x->root, tsi_location_path(at, text), out);
}

int tsi_index_dirfd(const struct tsi_index *x)
{
	return tsi_root_fd(&x->root);
}

const char *tsi_index_root(const struct tsi_index *x)
{
	return tsi_root_path(&x->root);
}

const struct tsi_format *tsi_index_format(const struct tsi_index *x)
{
	return x->format;
}

const char *tsi_index_name(const struct tsi_index *x)
{
	return tsi_root_name(&x->root);
}

const char *tsi_index_sample(const struct tsi_index *x, uint64_t i, char *to,
			     size_t len)
{
	struct tsi_location at;

	tsi_format_locate(x->format, &x->table, i, &at);
	if (at.member)
		snprintf(to, len, "%s: %s", at.file, at.member);
	else if (at.folder && *at.folder)
		snprintf(to, len, "%s/%s", at.folder, at.file);
	else
		return at.file;
	return to;
}

const char *tsi_index_select(const struct tsi_index *x)
{
	return x->select ? tsi_select_path(x->select) : NULL;
}

uint64_t tsi_index_all(const struct tsi_index *x)
{
	return x->all;
}

float tsi_index_weight(const struct tsi_index *x, uint64_t i)
{
	return tsi_weights_at(&x->weights, i);
}

bool tsi_index_weighs(const struct tsi_index *x)
{
	return tsi_weights_any(&x->weights);
}

bool tsi_index_weight_is_field(const struct tsi_index *x)
{
	return tsi_weights_own(&x->weights);
}

const char *tsi_index_key(const struct tsi_index *x, uint64_t i,
			  char text[TSI_PATH], size_t *len)
{
	return tsi_names_key(x->format, &x->table, i, text, len);
}

const char *tsi_index_labels(const struct tsi_index *x)
{
	return x->labels ? tsi_labels_path(x->labels) : NULL;
}

uint64_t tsi_index_labels_fingerprint(const struct tsi_index *x)
{
	return tsi_labels_fingerprint(x->labels);
}

const struct tsi_columns *tsi_index_columns(const struct tsi_index *x)
{
	return tsi_table_columns(&x->table);
}

bool tsi_index_share_labels(const struct tsi_index *x,
			    struct tsi_table_shared *out)
{
	return x->format->label == tsi_table_label &&
	       !tsi_index_unlabelled(x) && !tsi_index_columns(x) &&
	       tsi_table_share_labels(&x->table, out);
}

bool tsi_index_share_files(const struct tsi_index *x,
			   struct tsi_table_shared *out)
{
	return x->format->locate == tsi_table_locate &&
	       tsi_table_share_paths(&x->table, out);
}

bool tsi_index_share_keys(const struct tsi_index *x,
			  struct tsi_table_shared *out)
{
	/* Where they have names of their own, a key is a part of these. */
	return !tsi_table_named(&x->table) && tsi_index_share_files(x, out);
}

uint64_t tsi_index_weights_fingerprint(const struct tsi_index *x)
{
	return tsi_weights_fingerprint(&x->weights);
}

void tsi_index_locate(const struct tsi_index *x, uint64_t i,
		      struct tsi_location *out)
{
	tsi_format_locate(x->format, &x->table, i, out);
}

void tsi_index_locate_bytes(const struct tsi_index *x, uint64_t i,
			    struct tsi_location *out)
{
	tsi_format_locate_bytes(x->format, &x->table, i, out);
}

void tsi_index_locate_other(const struct tsi_index *x, unsigned k, uint64_t i,
			    struct tsi_location *out)
{
	tsi_format_locate_other(x->format, &x->table, k, i, out);
}

bool tsi_index_bad(const struct tsi_index *x, uint64_t i)
{
	return tsi_table_bad_reason(&x->table, i) != NULL;
}

const char *tsi_index_bad_reason(const struct tsi_index *x, uint64_t i)
{
	return tsi_table_bad_reason(&x->table, i);
}

uint64_t tsi_index_bad_count(const struct tsi_index *x)
{
	return tsi_table_bad_count(&x->table);
}

uint64_t tsi_index_bad_at(const struct tsi_index *x, uint64_t k)
{
	return tsi_table_bad_at(&x->table, k);
}

bool tsi_index_presumes(const struct tsi_index *x)
{
	return x->judged;
}

bool tsi_index_presumed(const struct tsi_index *x, uint64_t i)
{
	struct tsi_doubted d = doubted(x);

	if (!x->judged || tsi_index_bad(x, i))
		return false;
	return tsi_doubt_presumes(&d, x->judged,
				  x->scanned ? x->scanned[i]
					     : (uint64_t)tsi_index_label(x, i),
				  i);
}

uint64_t tsi_index_looked(const struct tsi_index *x, uint64_t *n)
{
	*n = x->looked;
	return x->looked_bad;
}

uint64_t tsi_index_fingerprint(const struct tsi_index *x)
{
	return tsi_table_fingerprint(&x->table);
}

bool tsi_index_same_folder(const struct tsi_index *x, const struct tsi_index *y)
{
	return tsi_root_equal(&x->root, &y->root);
}

bool tsi_index_look(const struct tsi_index *x, uint64_t *now)
{
	uint64_t file;
	/* What is read is the folder that was opened, wherever it is now. */
	bool same = !tsi_root_replaced(&x->root, now) &&
		    tsi_cache_look(&x->root, &x->table, now);

	if (!x->labels || tsi_labels_look(x->labels, &file))
		return same;
	*now = same ? file : tsi_hash(&file, sizeof(file), *now);
	return false;
}

bool tsi_index_cached(const struct tsi_index *x)
{
	return x->cached;
}
