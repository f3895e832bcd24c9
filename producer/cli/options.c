/* SPDX-License-Identifier: MIT */
/*
 * options.c - the command line of tsock-producer, checked.
 */
#include "cli/options.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cli/advice.h"
#include "cli/guess.h"
#include "cli/node.h"
#include "cli/option_table.h"
#include "cli/option_value.h"
#include "cli/split.h"
#include "cli/transform.h"

static int set_mode(struct tsi_options *o, const struct tsi_opt *r,
		    const char *value)
{
	enum tsi_run_mode mode = (enum tsi_run_mode)r->min;

	/* --help and --version win over everything else. */
	if (o->mode == TSI_RUN_HELP || o->mode == TSI_RUN_VERSION)
		return 0;
	if (o->mode != TSI_RUN_SERVE && o->mode != mode &&
	    mode != TSI_RUN_HELP && mode != TSI_RUN_VERSION)
		return tsi_err(TSOCK_EARG,
			       "--%s: one of --check-config, --describe, "
			       "--dry-run, --list and --stop at a time",
			       r->name);
	o->mode = mode;
	return r->arg ? tsi_option_text(r, value, &o->stop) : 0;
}

static int set_option(struct tsi_options *o, const struct tsi_opt *r,
		      const char *value)
{
	int err;

	if (r->kind == TSI_OPT_ACTION)
		return set_mode(o, r, value);
	err = tsi_option_value(r, value, (char *)o + r->at);
	if (err)
		return err;
	o->given[r->id] = true;
	if (r->kind == TSI_OPT_QUIET)
		o->log_level = TSOCK_LOG_ERROR;
	if (o->no_cache && o->cache_dir)
		return tsi_err(TSOCK_EARG,
			       "--cache-dir and --no-cache contradict each "
			       "other");
	return 0;
}

/* ------------------------------------------------------------------------
 * All options, by getopt
 */

struct words {
	struct option longs[TSI_OPTS_MAX + 1];
	char letters[2 * TSI_OPTS_MAX + 2];
};

static void make_words(struct words *w)
{
	struct option *l = w->longs;
	char *c = w->letters;

	memset(w, 0, sizeof(*w));
	*c++ = ':'; /* tell a missing value from an unknown option */
	for (size_t i = 0; i < tsi_opts_count; i++) {
		if (tsi_opts[i].kind == TSI_OPT_GROUP)
			continue;
		l->name = tsi_opts[i].name;
		l->has_arg = tsi_opts[i].arg ? required_argument : no_argument;
		l->val = 256 + (int)i;
		l++;
		if (tsi_opts[i].letter) {
			*c++ = tsi_opts[i].letter;
			if (tsi_opts[i].arg)
				*c++ = ':';
		}
	}
}

static const struct tsi_opt *row_of(int val)
{
	if (val >= 256)
		return &tsi_opts[val - 256];
	for (size_t i = 0; i < tsi_opts_count; i++)
		if (tsi_opts[i].letter && tsi_opts[i].letter == val)
			return &tsi_opts[i];
	return NULL;
}

static int bad_option(int got, char **argv, const struct words *w)
{
	const struct tsi_opt *r = row_of(optopt);
	const char *word = argv[optind - 1];
	size_t len = strcspn(word, "=");

	if (got == ':')
		return tsi_err(TSOCK_EARG, "--%s needs a value: %s",
			       r ? r->name : word, r ? r->arg : "");
	/* A known long option was refused, so it was given a value. */
	if (optopt >= 256 && r)
		return tsi_err(TSOCK_EARG, "--%s takes no value", r->name);
	if (optopt)
		return tsi_err(TSOCK_EARG,
			       "unknown option -%c; --help lists them all",
			       optopt);
	for (const struct option *l = w->longs; l->name; l++)
		if (len > 2 && strncmp(l->name, word + 2, len - 2) == 0)
			return tsi_err(TSOCK_EARG,
				       "%.*s could mean several options, "
				       "--%s is one",
				       (int)len, word, l->name);
	for (const struct option *l = w->longs; l->name; l++)
		if (len > 2 &&
		    tsi_text_near(word + 2, len - 2, l->name, strlen(l->name)))
			return tsi_err(TSOCK_EARG,
				       "unknown option %.*s; did you mean "
				       "--%s? --help lists them all",
				       (int)len, word, l->name);
	return tsi_err(TSOCK_EARG, "unknown option %.*s; --help lists them all",
		       (int)len, word);
}

static bool ends_in(const char *text, const char *end, const char *tail)
{
	size_t len = strlen(tail);

	return (size_t)(end - text) > len && !memcmp(end - len, tail, len);
}

/*
 * The stream's name: the format's, or the folder's, made of characters that a
 * name may have; with -val for the val split, unless the folder is called so.
 */
static void default_name(struct tsi_options *o)
{
	const char *end = o->data.root + strlen(o->data.root);
	const char *tail = o->data.split == TSI_SPLIT_VAL ? "-val" : "";
	size_t most = TSI_NAME_MAX - strlen(tail);
	const char *at;
	size_t len = 0;

	while (end > o->data.root && end[-1] == '/')
		end--;
	if (ends_in(o->data.root, end, tail))
		tail = "";
	at = end;
	while (at > o->data.root && at[-1] != '/')
		at--;
	for (;
	     !tsi_format_names_stream(o->data.format) && at < end && len < most;
	     at++) {
		bool odd = !tsi_option_name_char(*at);

		/* A name begins with a letter or a digit. */
		if (len || (!odd && isalnum((unsigned char)*at)))
			o->name[len++] = odd ? '-' : *at;
	}
	while (len && !isalnum((unsigned char)o->name[len - 1]))
		len--;
	snprintf(o->name + len, sizeof(o->name) - len, "%s%s",
		 len ? "" : tsi_format_name(o->data.format), tail);
}

static const struct tsi_format *find_format(const struct tsi_options *o)
{
	const struct tsi_format *found;

	if (o->dataset != TSI_UNSET)
		return tsi_format_at((unsigned)o->dataset);
	found = tsi_guess_format(o->root);
	if (!o->schema || found == &tsi_format_audio ||
	    found == &tsi_format_packed)
		return found;
	/* Such files say nothing of themselves: fields have names. */
	return strchr(o->schema, ':') ? &tsi_format_records
				      : &tsi_format_tokens;
}

/* The format, and which part: as asked, or by what lies in the root. */
static void choose_format(struct tsi_options *o)
{
	const struct tsi_format *found = find_format(o);

	if (o->split == TSI_UNSET)
		o->split = tsi_format_has_splits(found) ||
					   tsi_format_splits_inside(found)
				   ? TSI_SPLIT_TRAIN
				   : TSI_SPLIT_NONE;
	/* Where there are masks or labels, folders needn't be classes. */
	if (o->labels || (o->masks && o->dataset == TSI_UNSET))
		found = tsi_format_classless(found);
	o->data.format = found;
}

static int find_masks(struct tsi_options *o)
{
	int err = o->masks ? tsi_split_masks(&o->data, o->masks) : 0;

	return o->masks && !err ? tsi_recipe_check_masks(o->recipe) : err;
}

/* Samples that are drawn have no order. */
static int check_sampler(const struct tsi_options *o)
{
	if (o->sampler.way == TSI_SAMPLING_ORDER || o->order == TSI_UNSET ||
	    o->order == TSOCK_ORDER_PHILOX)
		return 0;
	return tsi_err(TSOCK_EARG,
		       "--sampler %s contradicts --order %s: its samples are "
		       "drawn by --seed; leave out --order",
		       o->sampler.way == TSI_SAMPLING_WEIGHTED ? "weighted"
							       : "balanced",
		       tsi_options_order((enum tsock_order_kind)o->order));
}

static struct tsi_documents_opts documents_of(const struct tsi_options *o)
{
	struct tsi_documents_opts d = {
		.way = (enum tsi_documents_way)o->documents,
	};

	if (o->given[TSI_OPTION_end_token]) {
		d.stands = TSI_DOCUMENTS_END;
		d.token = o->end_token;
	} else if (o->given[TSI_OPTION_begin_token]) {
		d.stands = TSI_DOCUMENTS_BEGIN;
		d.token = o->begin_token;
	}
	return d;
}

static int check_documents(const struct tsi_options *o)
{
	const struct tsi_documents_opts d = documents_of(o);

	if (d.way && !tsi_format_has_documents(o->data.format))
		return tsi_err(TSOCK_EARG,
			       "--documents means nothing to --dataset %s, but "
			       "to tokens alone: leave it out",
			       tsi_format_name(o->data.format));
	if (d.stands && !d.way)
		return tsi_err(TSOCK_EARG,
			       "--%s says nothing without --documents "
			       "mark, whole or pack",
			       d.stands == TSI_DOCUMENTS_END ? "end-token"
							     : "begin-token");
	if (o->given[TSI_OPTION_end_token] && o->given[TSI_OPTION_begin_token])
		return tsi_err(TSOCK_EARG,
			       "--end-token contradicts --begin-token: one of "
			       "them tells documents apart");
	return 0;
}

static int check_clips(const struct tsi_options *o)
{
	if (o->clips == TSI_AUDIO_CROP || o->data.format == &tsi_format_audio)
		return 0;
	return tsi_err(TSOCK_EARG,
		       "--clips means nothing to --dataset %s, but to audio "
		       "alone: leave it out",
		       tsi_format_name(o->data.format));
}

static int check_part(const struct tsi_options *o)
{
	if (o->given[TSI_OPTION_start] && !o->given[TSI_OPTION_shard])
		return tsi_err(TSOCK_EARG,
			       "--start says nothing without --shard: a stream "
			       "of whole epochs goes on anywhere as it is");
	if (o->start.position && o->segments > 1)
		return tsi_err(TSOCK_EARG,
			       "--start contradicts --segments: in the epoch "
			       "that is dealt anew they would be others");
	if (o->start.position && o->epochs && o->start.epoch >= o->epochs)
		return tsi_err(TSOCK_EARG,
			       "--start %" PRIu64 ":%" PRIu64
			       ": a stream of --epochs %" PRIu64
			       " has no epoch of that number, counted from 0",
			       o->start.epoch, o->start.position, o->epochs);
	if (o->grows && (o->start.position || o->shard.last > o->shard.first))
		return tsi_err(TSOCK_EARG,
			       "--grows contradicts --%s: the producers of a "
			       "job's parts would find new files in different "
			       "epochs",
			       o->start.position ? "start" : "shard");
	return 0;
}

/* Where the data set is, and what its samples are. */
static int find_data(struct tsi_options *o)
{
	const struct tsi_format *format;
	struct tsi_format_opts f = {
		.schema = o->schema,
		.held_out = o->data.split == TSI_SPLIT_VAL,
		.documents = documents_of(o),
	};
	int err;

	err = tsi_split_find(&o->data);
	if (err)
		return err;
	format = o->data.format;
	if (o->schema && !tsi_format_has_schema(format))
		return tsi_err(TSOCK_EARG,
			       "--schema means nothing to --dataset %s, whose "
			       "files say what they hold: leave it out",
			       tsi_format_name(format));
	if (tsi_format_nameless(format) && (o->select || o->keys))
		return tsi_err(TSOCK_EARG,
			       "--%s: samples of --dataset %s have no names; "
			       "use their numbers, by subset= in Python",
			       o->select ? "select" : "keys",
			       tsi_format_name(format));
	return tsi_format_look(format, o->data.folder, &f, &o->data.samples);
}

/* What depends on other options. */
static int complete(struct tsi_options *o)
{
	int err;

	if (!o->root)
		return tsi_err(TSOCK_EARG,
			       "--root is missing: the folder of the data set");
	if (tsi_advice_url("--root", o->root) ||
	    (o->select && tsi_advice_url("--select", o->select)) ||
	    (o->masks && tsi_advice_url("--masks", o->masks)))
		return TSOCK_EARG;
	o->data.root = o->root;
	choose_format(o);
	o->data.split = o->split;
	if (!o->name[0])
		default_name(o);
	if (o->grows && o->select)
		return tsi_err(
			TSOCK_EARG,
			"--grows contradicts --select: the samples are "
			"those that its file names; change the file, and "
			"start another stream");
	if (o->allow_bad.given && o->on_error == TSI_RAISE)
		return tsi_err(
			TSOCK_EARG,
			"--allow-bad contradicts --on-error raise, which "
			"lets no bad file pass");
	if (o->shard_cache_size && !o->shard_cache)
		return tsi_err(TSOCK_EARG,
			       "--shard-cache-size says nothing without "
			       "--shard-cache DIR, the folder of the copies");
	if (o->no_index && o->index_memory)
		return tsi_err(TSOCK_EARG,
			       "--no-index contradicts --index-memory");
	if (o->fast && o->pillow)
		return tsi_err(TSOCK_EARG,
			       "--fast contradicts --pillow: fast pixels are "
			       "those of no Pillow; leave out one of them");
	err = check_part(o);
	if (!err)
		err = check_sampler(o);
	if (!err)
		err = check_documents(o);
	if (!err)
		err = check_clips(o);
	if (!err)
		err = find_data(o);
	if (!err)
		err = tsi_transform_choose(o);
	if (err)
		return err;
	if (o->order == TSOCK_ORDER_TORCH && o->segments > 1)
		return tsi_err(TSOCK_EARG,
			       "--segments %" PRIu64
			       " contradicts --order torch: its shuffle can't "
			       "be cut; use --order philox",
			       o->segments);
	tsi_transform_warn(o);
	err = o->boxes ? tsi_recipe_check_boxes(o->recipe) : 0;
	return err ? err : find_masks(o);
}

static const struct tsi_options defaults = {
#define OPTION(kind, member, name, letter, arg, low, high, init, ...) \
	.member = init,
#include "cli/options.def"
};

int tsi_options_parse(struct tsi_options *out, int argc, char **argv)
{
	struct tsi_options o = defaults;
	struct words w;
	int got, err;

	make_words(&w);
	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((got = getopt_long(argc, argv, w.letters, w.longs, NULL)) !=
	       -1) {
		if (got == '?' || got == ':')
			return bad_option(got, argv, &w);
		err = set_option(&o, row_of(got), optarg);
		if (err)
			return err;
	}
	if (o.transform && !strcmp(o.transform, "help"))
		o.mode = TSI_RUN_TRANSFORMS;
	if (o.mode == TSI_RUN_HELP || o.mode == TSI_RUN_VERSION ||
	    o.mode == TSI_RUN_TRANSFORMS) {
		*out = o;
		return 0;
	}
	if (optind < argc)
		return tsi_err(TSOCK_EARG,
			       "unexpected argument '%s'; the data set's "
			       "folder is given with --root",
			       argv[optind]);
	if (o.force && o.mode != TSI_RUN_STOP)
		return tsi_err(TSOCK_EARG, "--force goes with --stop alone");
	if (o.mode != TSI_RUN_LIST && o.mode != TSI_RUN_DEVICES &&
	    o.mode != TSI_RUN_STOP) {
		err = complete(&o);
		if (err) {
			tsi_options_fini(&o);
			return err;
		}
	}
	*out = o;
	return 0;
}

void tsi_options_fini(struct tsi_options *o)
{
	free(o->data.folder);
	free(o->data.masks);
	o->data.folder = o->data.masks = NULL;
	tsi_recipe_free(o->recipe);
	tsi_recipe_free(o->sound);
	o->recipe = o->sound = NULL;
}

/* A start at an epoch's beginning is none. */
static struct tsi_part part_of(const struct tsi_options *o)
{
	struct tsi_part p = { .start = o->start.position };

	if (p.start)
		p.start_epoch = o->start.epoch;
	if (!o->given[TSI_OPTION_shard])
		return p;
	p.first = o->shard.first;
	p.ranks = o->shard.last - o->shard.first + 1;
	p.world = o->shard.world;
	return p;
}

void tsi_options_pipeline(const struct tsi_options *o,
			  struct tsi_pipeline_opts *out)
{
	*out = (struct tsi_pipeline_opts){
		.format = o->data.format,
		.folder = o->data.folder,
		.schema = o->schema,
		.held_out = tsi_format_splits_inside(o->data.format) &&
			    o->data.split == TSI_SPLIT_VAL,
		.documents = documents_of(o),
		.select = o->select,
		.labels = o->labels,
		.masks = o->data.masks,
		.boxes = o->boxes,
		.keys = o->keys,
		.grows = o->grows,
		.on_error = (enum tsi_on_error)o->on_error,
		.allow_bad = o->allow_bad,
		.order = (enum tsock_order_kind)o->order,
		.sampling = o->sampler,
		.segments = (uint32_t)o->segments,
		.part = part_of(o),
		.recipe = o->recipe,
		.audio = tsi_transform_audio(o),
		.sound = o->sound,
		.seed = o->seed,
		.pillow = (uint32_t)o->pillow,
		.fast = o->fast,
		.image_memory = o->image_memory,
		.index_memory = o->index_memory,
		.image_cache = o->cache,
		.rescan = o->rescan,
		.allow_empty = o->allow_empty,
		.look_at_all = o->mode == TSI_RUN_DRY,
		.cache = o->no_cache ? "" : o->cache_dir,
		.shard_cache = o->shard_cache,
		.shard_cache_size = o->shard_cache_size,
		.threads = (unsigned)o->threads,
		.io = (enum tsi_io_reader_kind)o->io,
		.direct = o->direct,
		.name = o->name,
		.epochs = o->epochs,
		.ring = (uint32_t)o->ring.samples,
		.ring_bytes = o->ring.bytes,
		.least_batch = (uint32_t)o->least_batch,
		.join_window = (uint32_t)o->join_window,
		.max_batch = (uint32_t)o->max_batch,
		.min_consumers = (uint32_t)o->min_consumers,
		.slow = o->slow.action,
		.slow_ms = (uint32_t)(o->slow.ms < UINT32_MAX ? o->slow.ms
							      : UINT32_MAX),
		.memory = o->memory,
		.gpu_memory = o->gpu_memory,
		.fanout = (uint32_t)o->fanout,
		.gpu_transport = (uint32_t)o->gpu_transport,
	};
}

const char *tsi_options_order(enum tsock_order_kind order)
{
	static const char *const words[] = { "philox", "torch", "sequential" };

	return words[order];
}
