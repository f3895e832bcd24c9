/* SPDX-License-Identifier: MIT */
/*
 * pack.c - tsock-pack: a data set into files that are read without Huffman
 * decoding.  Options, signals, progress, and nothing else.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "cli/advice.h"
#include "cli/check.h"
#include "cli/guess.h"
#include "cli/masks.h"
#include "cli/number.h"
#include "cli/options.h"
#include "cli/serve.h"
#include "cli/split.h"
#include "cli/value.h"
#include "pack/pack.h"
#include "tsock/tsock.h"

#define LIVE_NS INT64_C(500000000)
#define PLAIN_NS INT64_C(10000000000)
#define SHARD_SIZE (UINT64_C(2) << 30)
#define UNSET UINT64_MAX

static const char usage[] =
	"usage: tsock-pack [OPTIONS] SOURCE DEST\n"
	"\n"
	"Write the data set at SOURCE to DEST in a form that tsock-producer "
	"decodes many\n"
	"times faster than JPEG, with exactly the same pixels, about twice as "
	"large.\n"
	"DEST is then given as --root; samples, their order and labels are "
	"SOURCE's.\n"
	"Broken off, the same command goes on where it was.\n"
	"\n"
	"  -d, --dataset FORMAT    a format of tsock-producer's (by what lies "
	"there)\n"
	"      --split train|val   which part: SOURCE/train or SOURCE/val\n"
	"      --labels FILE       labels and fields of the images, as for\n"
	"                          tsock-producer\n"
	"      --masks DIR         the images' masks, likewise; of a table "
	"also\n"
	"                          its column of images that has them\n"
	"      --schema TEXT       of records and tokens how a sample lies in "
	"its\n"
	"                          file, as for tsock-producer\n"
	"      --documents WAY     of tokens: ignore|mark|whole|pack, "
	"likewise,\n"
	"      --end-token N       and the token behind each document,\n"
	"      --begin-token N     or in front of it\n"
	"  -j, --threads N         that read and pack (as many CPUs as "
	"affinity "
	"and\n"
	"                          quota allow)\n"
	"      --shard-size SIZE   most bytes of a file of DEST (2G)\n"
	"      --allow-empty       a class without images is no error\n"
	"      --rescan            scan SOURCE again\n"
	"      --cache-dir DIR     keep the scan of SOURCE there\n"
	"      --no-cache          keep no scan, and use none\n"
	"  -q, --quiet             errors alone, and no progress\n"
	"  -V, --version           print the version, and exit\n"
	"  -h, --help              print this, and exit\n";

enum {
	OPT_SPLIT = 256,
	OPT_LABELS,
	OPT_MASKS,
	OPT_SCHEMA,
	OPT_DOCUMENTS,
	OPT_END_TOKEN,
	OPT_BEGIN_TOKEN,
	OPT_SHARD_SIZE,
	OPT_ALLOW_EMPTY,
	OPT_RESCAN,
	OPT_CACHE_DIR,
	OPT_NO_CACHE,
};

static const struct option longs[] = {
	{ "dataset", required_argument, NULL, 'd' },
	{ "split", required_argument, NULL, OPT_SPLIT },
	{ "labels", required_argument, NULL, OPT_LABELS },
	{ "masks", required_argument, NULL, OPT_MASKS },
	{ "schema", required_argument, NULL, OPT_SCHEMA },
	{ "documents", required_argument, NULL, OPT_DOCUMENTS },
	{ "end-token", required_argument, NULL, OPT_END_TOKEN },
	{ "begin-token", required_argument, NULL, OPT_BEGIN_TOKEN },
	{ "threads", required_argument, NULL, 'j' },
	{ "shard-size", required_argument, NULL, OPT_SHARD_SIZE },
	{ "allow-empty", no_argument, NULL, OPT_ALLOW_EMPTY },
	{ "rescan", no_argument, NULL, OPT_RESCAN },
	{ "cache-dir", required_argument, NULL, OPT_CACHE_DIR },
	{ "no-cache", no_argument, NULL, OPT_NO_CACHE },
	{ "quiet", no_argument, NULL, 'q' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct command {
	struct tsi_pack_opts pack;
	struct tsi_dataset data;
	struct tsi_cli_masks masks;
	struct tsi_pack_masks reads; /* calls of masks */
	uint64_t dataset;
	uint64_t threads;
	bool quiet;
	bool live; /* standard error is a terminal */
	bool done; /* --help, --version */
	int64_t begun;
	int64_t shown;
	struct tsi_pack_progress last;
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = sig;
}

/* ------------------------------------------------------------------------
 * Options
 */

static int set_documents(struct command *c)
{
	uint64_t way;
	int err = tsi_value_choice("documents", "ignore|mark|whole|pack",
				   optarg, &way);

	if (!err)
		c->pack.documents.way = (enum tsi_documents_way)way;
	return err;
}

static int set_token(struct command *c, int option)
{
	struct tsi_documents_opts *d = &c->pack.documents;
	const bool end = option == OPT_END_TOKEN;

	if (d->stands)
		return tsi_err(TSOCK_EARG,
			       "one of --end-token and --begin-token tells "
			       "documents apart");
	d->stands = end ? TSI_DOCUMENTS_END : TSI_DOCUMENTS_BEGIN;
	return tsi_value_count(end ? "end-token" : "begin-token", optarg, 0,
			       UINT32_MAX, &d->token);
}

static int set(struct command *c, char **argv, int option)
{
	switch (option) {
	case 'd':
		return tsi_value_choice("dataset", TSI_FORMAT_WORDS, optarg,
					&c->dataset);
	case OPT_SPLIT:
		return tsi_value_choice("split", "train|val", optarg,
					&c->data.split);
	case OPT_LABELS:
		c->pack.labels = optarg;
		return 0;
	case OPT_MASKS:
		c->masks.folder = optarg;
		return 0;
	case OPT_SCHEMA:
		c->pack.schema = optarg;
		return 0;
	case OPT_DOCUMENTS:
		return set_documents(c);
	case OPT_END_TOKEN:
	case OPT_BEGIN_TOKEN:
		return set_token(c, option);
	case 'j':
		return tsi_value_count("threads", optarg, 1, 1024, &c->threads);
	case OPT_SHARD_SIZE:
		return tsi_value_bytes("shard-size", optarg, 1 << 20,
				       UINT64_C(1) << 50, &c->pack.shard_size);
	case OPT_ALLOW_EMPTY:
		c->pack.allow_empty = true;
		return 0;
	case OPT_RESCAN:
		c->pack.rescan = true;
		return 0;
	case OPT_CACHE_DIR:
		c->pack.cache_dir = optarg;
		return 0;
	case OPT_NO_CACHE:
		c->pack.cache_dir = "";
		return 0;
	case 'q':
		c->quiet = true;
		return 0;
	case 'h':
		fputs(usage, stdout);
		c->done = true;
		return 0;
	case 'V':
		printf("tsock-pack %s\n", tsock_version_string());
		c->done = true;
		return 0;
	case ':':
		return tsi_err(TSOCK_EARG, "%s needs a value",
			       argv[optind - 1]);
	default:
		return tsi_err(TSOCK_EARG,
			       "unknown option %s; --help lists them all",
			       argv[optind - 1]);
	}
}

/* As tsock-producer does. */
static void choose_format(struct command *c, const char *root)
{
	const struct tsi_format *f =
		c->dataset != UNSET ? tsi_format_at((unsigned)c->dataset)
				    : tsi_guess_format(root);

	if (c->dataset == UNSET && c->pack.schema && f != &tsi_format_audio &&
	    f != &tsi_format_packed)
		f = strchr(c->pack.schema, ':') ? &tsi_format_records
						: &tsi_format_tokens;
	if (c->data.split == UNSET)
		c->data.split =
			tsi_format_has_splits(f) || tsi_format_splits_inside(f)
				? TSI_SPLIT_TRAIN
				: TSI_SPLIT_NONE;
	if (c->pack.labels || (c->masks.folder && c->dataset == UNSET))
		f = tsi_format_classless(f);
	c->data.format = f;
}

/* What samples are; of audio the files are packed, whatever crops they have. */
static int look(struct command *c)
{
	const struct tsi_format *f = c->data.format;
	const struct tsi_format_opts o = {
		.schema = c->pack.schema,
		.held_out = c->data.split == TSI_SPLIT_VAL,
		.documents = c->pack.documents,
	};

	c->pack.held_out = o.held_out;
	if (tsi_format_has_audio(f))
		return 0;
	if (c->pack.schema && !tsi_format_has_schema(f))
		return tsi_err(TSOCK_EARG,
			       "--schema means nothing to --dataset %s, whose "
			       "files say what they hold: leave it out",
			       tsi_format_name(f));
	if (c->pack.documents.way && !tsi_format_has_documents(f))
		return tsi_err(TSOCK_EARG,
			       "--documents means nothing to --dataset %s, but "
			       "to tokens alone: leave it out",
			       tsi_format_name(f));
	if (tsi_format_look(f, c->data.folder, &o, &c->data.samples))
		return TSOCK_EARG;
	c->pack.train = c->data.samples.train;
	c->pack.eval = c->data.samples.eval;
	return 0;
}

static int find_masks(struct command *c)
{
	const char *given = c->masks.folder;
	int err = tsi_split_masks(&c->data, given);

	if (err)
		return err;
	c->masks.folder = c->data.masks;
	c->reads = (struct tsi_pack_masks){
		.folder = c->data.masks,
		.column = given,
		.open = tsi_cli_masks_open,
		.read = tsi_cli_masks_read,
		.close = tsi_cli_masks_close,
		.arg = &c->masks,
	};
	c->pack.masks = &c->reads;
	return 0;
}

static int complete(struct command *c, int argc, char **argv)
{
	if (argc - optind != 2)
		return tsi_err(TSOCK_EARG,
			       "two folders are wanted: the data set's, and "
			       "where the pack is to go (--help says more)");
	choose_format(c, argv[optind]);
	c->data.root = argv[optind];
	c->pack.dest = argv[optind + 1];
	if (tsi_advice_url("SOURCE", c->data.root))
		return TSOCK_EARG;
	if (tsi_split_find(&c->data) || look(c))
		return TSOCK_EARG;
	if (c->masks.folder && find_masks(c))
		return TSOCK_ENOMEM;
	c->pack.format = c->data.format;
	c->pack.source = c->data.folder;
	c->pack.threads =
		c->threads ? (unsigned)c->threads : tsi_limits_cpus("");
	if (!tsi_format_has_class_folders(c->data.format) ||
	    access(c->data.root, F_OK) == 0)
		return tsi_check_root(&c->data);
	return tsi_err(TSOCK_EARG, "there is no folder %s", c->data.root);
}

static int parse(struct command *c, int argc, char **argv)
{
	int got, err = 0;

	opterr = 0;
	while (!err && !c->done &&
	       (got = getopt_long(argc, argv, ":d:j:qVh", longs, NULL)) != -1)
		err = set(c, argv, got);
	return err || c->done ? err : complete(c, argc, argv);
}

/* ------------------------------------------------------------------------
 * Progress
 */

static void print_log(void *arg, int level, const char *line)
{
	struct command *c = arg;

	if (level <= (c->quiet ? TSOCK_LOG_ERROR : TSOCK_LOG_INFO))
		fprintf(stderr, "%s%s\n", c->live && c->shown ? "\n" : "",
			line);
}

static void show(struct command *c, const struct tsi_pack_progress *p,
		 int64_t now)
{
	double seconds = (double)(now - c->begun) / 1e9;
	double rate = seconds > 0 ? (double)(p->done - p->before) / seconds : 0;
	double left = rate > 0 ? (double)(p->samples - p->done) / rate : 0;
	char done[28], all[28], size[16];

	fprintf(stderr, "%s%s of %s samples, %.0f/s, %s written, %.0f s left%s",
		c->live ? "\r" : "", tsi_number_thousands(done, p->done),
		tsi_number_thousands(all, p->samples), rate,
		tsi_number_megabytes(size, p->written), left,
		c->live ? "\033[K" : "\n");
	c->shown = now;
}

static bool on_progress(void *arg, const struct tsi_pack_progress *p)
{
	struct command *c = arg;
	int64_t now = tsi_now_ns();

	c->last = *p;
	if (!c->quiet && now - (c->shown ? c->shown : c->begun) >=
				 (c->live ? LIVE_NS : PLAIN_NS))
		show(c, p, now);
	return !stopped;
}

static void summary(const struct command *c)
{
	const struct tsi_pack_progress *p = &c->last;
	char n[28], packed[28], kept[28], bad[28], from[16], to[16];

	if (c->quiet)
		return;
	if (c->live && c->shown)
		fputc('\n', stderr);
	printf("%s samples in %s: %s packed, %s kept as they were, %s bad; "
	       "%s from %s, %u file%s\n",
	       tsi_number_thousands(n, p->samples), c->pack.dest,
	       tsi_number_thousands(packed, p->packed),
	       tsi_number_thousands(kept, p->kept),
	       tsi_number_thousands(bad, p->bad),
	       tsi_number_megabytes(to, p->written),
	       tsi_number_megabytes(from, p->read), p->shards,
	       p->shards == 1 ? "" : "s");
	if (p->before)
		printf("(of these %s samples by an earlier run, which isn't in "
		       "the other numbers)\n",
		       tsi_number_thousands(n, p->before));
}

static int fail(const struct command *c)
{
	fprintf(stderr, "%stsock-pack: %s\n", c->live && c->shown ? "\n" : "",
		tsock_errmsg());
	return stopped ? 128 + stopped : 1;
}

int main(int argc, char **argv)
{
	static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction act = { .sa_handler = on_signal,
				 .sa_flags = (int)SA_RESETHAND };
	struct command c = {
		.dataset = UNSET,
		.data.split = UNSET,
		.pack = { .shard_size = SHARD_SIZE, .progress = on_progress },
	};
	int err;

	tsi_check_stdio();
	c.live = isatty(STDERR_FILENO);
	c.pack.arg = &c;
	tsock_set_logger(print_log, &c);
	if (parse(&c, argc, argv)) {
		fprintf(stderr, "tsock-pack: %s\n", tsock_errmsg());
		free(c.data.masks);
		free(c.data.folder);
		return TSI_EXIT_USAGE;
	}
	for (unsigned i = 0; i < 3 && !c.done; i++)
		sigaction(stops[i], &act, NULL);
	c.begun = tsi_now_ns();
	err = c.done ? 0 : tsi_pack_run(&c.pack);
	if (err)
		err = fail(&c);
	else if (!c.done)
		summary(&c);
	free(c.data.masks);
	free(c.data.folder);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = TSI_EXIT_SYSTEM;
	return err;
}
