/* SPDX-License-Identifier: MIT */
/*
 * report.c - what tsock-producer says about a stream before and after it, and
 * about those that run already.
 */
#include "cli/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "avif/decoder.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/neighbours.h"
#include "cli/number.h"
#include "jpeg/turbo.h"
#include "png/file.h"
#include "png/png.h"
#include "run/cost.h"
#include "run/identity.h"
#include "tiff/tiff.h"
#include "webp/webp.h"
#include "wire/address.h"
#include "wire/zmq.h"

#define LISTED_AT_END 20
#define LIST_MAX 256
#define QUERY_MS 1000
#define RATE_NS 500000000

static void size_line(const char *what, uint64_t bytes)
{
	char number[16];

	printf("%-14s%s\n", what, tsi_number_megabytes(number, bytes));
}

/* What is on disk may be called anything. */
static void print_name(const char *name)
{
	char text[8192];

	tsi_text_printable(text, sizeof(text), name);
	fputs(text, stdout);
}

static void print_bad(void *arg, const char *path, const char *reason)
{
	(void)arg;
	printf("  ");
	print_name(path);
	printf(": ");
	print_name(reason);
	printf("\n");
}

static void print_order(const struct tsi_plan *p)
{
	const struct tsi_pipeline_opts *o = &p->pipeline;
	uint32_t segments = tsi_sampler_segments(p->sampler);

	printf("order         %s, seed %" PRIu64 ", %u segment%s",
	       tsi_options_order(o->order), o->seed, segments,
	       segments == 1 ? "" : "s");
	if (o->part.ranks > 1)
		printf(", ranks %u to %u of %u", o->part.first,
		       o->part.first + o->part.ranks - 1, o->part.world);
	else if (o->part.world)
		printf(", rank %u of %u", o->part.first, o->part.world);
	if (o->part.start)
		printf(", from position %" PRIu64 " of epoch %" PRIu64 " on",
		       o->part.start, o->part.start_epoch);
	printf("\n");
}

static void print_views_memory(const struct tsock_geometry *g)
{
	size_line("  float32", g->f32_bytes);
	size_line("  float16", g->f16_bytes);
	printf("              (the first always; float32, float16 and bfloat16 "
	       "once\n              for each layout and normalisation in "
	       "use)\n");
}

static void print_image_memory(const struct tsi_pipeline_opts *o)
{
	if (o->image_cache)
		size_line("  --cache", o->image_cache);
	size_line("  images", o->image_memory);
	printf("              (of large images while they are decoded; one "
	       "that alone\n              needs more is bad: "
	       "--image-memory)\n");
	if (o->index_memory)
		size_line("  index", o->index_memory);
}

static void print_memory(const struct tsi_plan *p)
{
	const struct tsock_geometry *g = &p->geometry;
	uint64_t there;
	char limiter[256];

	printf("memory\n");
	size_line(p->pipeline.recipe ? "  as decoded" : "  as stored",
		  g->ring_bytes);
	if (p->pipeline.recipe)
		print_views_memory(g);
	if (p->pipeline.memory)
		size_line("  --memory", p->pipeline.memory);
	if (p->pipeline.recipe)
		print_image_memory(&p->pipeline);
	if (tsi_limits_memory("", &there, limiter, sizeof(limiter)) == 0)
		size_line("  available", there);
}

void tsi_report_version(void)
{
	const char *webp = tsi_webp_version(), *tiff = tsi_tiff_version();
	const char *avif = tsi_avif_version();
	char zmq[32];

	tsi_zmq_version(zmq, sizeof(zmq));
	printf("tsock-producer %s\n", tsock_version_string());
	printf("libjpeg-turbo %s, libpng %s, zlib %s, libwebp %s, libtiff %s, "
	       "libavif %s, libzmq %s, %s liburing\n",
	       tsi_jpeg_turbo_version(), tsi_png_version(), tsi_png_file_zlib(),
	       webp ? webp : "none", tiff ? tiff : "none", avif ? avif : "none",
	       zmq, tsi_io_reader_has_uring() ? "with" : "without");
}

void tsi_report_describe(const struct tsi_options *o)
{
	struct tsi_pipeline_opts p;

	tsi_options_pipeline(o, &p);
	printf("name=%s\n", p.name);
	tsi_identity_describe(&p, !o->given[TSI_OPTION_dataset], stdout);
}

/* Images of one channel are reported as "224 x 224 grey". */
static void print_images(const struct tsi_pipeline_opts *o)
{
	printf("images        ");
	for (unsigned k = 0; k < o->recipe->views; k++) {
		const struct tsi_recipe_view *v = &o->recipe->view[k];

		printf("%s%u x %u%s", k ? ", " : "", v->width, v->height,
		       v->channels == 1 ? " grey" : "");
	}
	printf("%s\n", o->fast ? ", fast" : "");
}

/* How long the recipe takes: of a few images, since files differ. */
static void print_cost(const struct tsi_plan *p)
{
	struct tsi_cost cost;
	char us[28];

	if (tsi_cost_measure(p->sampler, p->pipeline.image_memory, &cost))
		printf("cost          unknown: %s\n", tsock_errmsg());
	else if (!cost.samples)
		printf("cost          unknown: no image could be decoded\n");
	else
		printf("cost          %s us for an image (median of %u, by one "
		       "thread)\n",
		       tsi_number_thousands(us, (uint64_t)(cost.us + 0.5)),
		       cost.samples);
}

/* " in 10 classes", or nothing where samples have none. */
static const char *in_classes(const struct tsi_index *x, char to[48])
{
	char n[28];

	snprintf(to, 48, " in %s class%s",
		 tsi_number_thousands(n, tsi_index_classes(x)),
		 tsi_index_classes(x) == 1 ? "" : "es");
	return tsi_index_unlabelled(x) ? "" : to;
}

static void print_bad_files(const struct tsi_plan *p)
{
	struct tsi_badlist *l = tsi_sampler_badlist(p->sampler);
	char n[28];

	printf("bad files     %s\n",
	       tsi_number_thousands(n, tsi_badlist_count(l)));
	tsi_badlist_each(l, print_bad, NULL);
}

void tsi_report_plan(const struct tsi_plan *p)
{
	const struct tsi_pipeline_opts *o = &p->pipeline;
	const struct tsi_index *x = tsi_sampler_index(p->sampler);
	char files[28], n[28], ring[28], classes[48];

	printf("stream        %s\n", o->name);
	printf("data set      %s at ", tsi_format_name(tsi_index_format(x)));
	print_name(tsi_index_name(x));
	printf("\n");
	printf("samples       %s%s (%s, %.2f s)\n",
	       tsi_number_thousands(files, tsi_index_count(x)),
	       in_classes(x, classes),
	       tsi_index_cached(x) ? "scan kept from before" : "scanned",
	       p->scan_seconds);
	if (tsi_index_select(x)) {
		printf("selection     of %s, by ",
		       tsi_number_thousands(n, tsi_index_all(x)));
		print_name(tsi_index_select(x));
		printf("\n");
	}
	if (tsi_index_labels(x)) {
		printf("labels        by ");
		print_name(tsi_index_labels(x));
		printf("\n");
	}
	if (o->recipe)
		print_bad_files(p);
	printf("epoch         %s samples\n",
	       tsi_number_thousands(n, tsi_sampler_epoch_len(p->sampler)));
	print_order(p);
	if (o->recipe) {
		print_images(o);
		printf("transform     %s\n", o->recipe->text);
		print_cost(p);
	}
	printf("threads       %u\n", p->pipeline.threads);
	printf("ring          %s samples, join window %s, batches up to %s\n",
	       tsi_number_thousands(ring, p->geometry.capacity),
	       tsi_number_thousands(files, p->geometry.join_window),
	       tsi_number_thousands(n, p->geometry.max_batch));
	print_memory(p);
}

/* Lines of a list, of which the first ones are logged. */
struct logged {
	unsigned n;
};

static void log_bad(void *arg, const char *path, const char *reason)
{
	struct logged *a = arg;

	if (a->n++ < LISTED_AT_END)
		tsi_log(TSOCK_LOG_WARN, "  %s: %s", path, reason);
}

static void log_class(void *arg, const char *name, uint64_t bad, uint64_t files)
{
	struct logged *a = arg;
	char n[28], all[28];

	if (a->n++ < LISTED_AT_END)
		tsi_log(TSOCK_LOG_WARN, "  class %s: %s of %s file%s", name,
			tsi_number_thousands(n, bad),
			tsi_number_thousands(all, files),
			files == 1 ? "" : "s");
}

static void log_lost_class(void *arg, const char *name, uint64_t bad,
			   uint64_t files)
{
	if (bad == files)
		log_class(arg, name, bad, files);
}

static void report_bad(const struct tsi_plan *p)
{
	const struct tsi_index *x = tsi_sampler_index(p->sampler);
	struct tsi_badlist *l = tsi_sampler_badlist(p->sampler);
	uint64_t bad = tsi_badlist_count(l);
	struct logged a = { 0 };
	char n[28];

	if (!bad)
		return;
	tsi_log(TSOCK_LOG_WARN, "%s bad file%s%s: %s; --dry-run lists %s",
		tsi_number_thousands(n, bad), bad == 1 ? "" : "s",
		tsi_index_presumes(x) ? ", some by what others of their class "
					"are"
		: tsi_index_looked_at_all(x)
			? ""
			: " among those that were looked at",
		p->pipeline.on_error == TSI_RAISE
			? "the stream will stop at the first"
			: "others will take their places",
		bad == 1 ? "it" : "them");
	tsi_badlist_classes(l, log_lost_class, &a);
}

void tsi_report_start(const struct tsi_plan *p, const struct tsi_pool *pool)
{
	const struct tsi_pipeline_opts *o = &p->pipeline;
	const struct tsi_index *x = tsi_sampler_index(p->sampler);
	const char *why = tsi_pool_reader_why(pool);
	char n[28], classes[48], mb[16], size[48] = "";
	struct tsi_address address;

	tsi_log(TSOCK_LOG_INFO, "%s samples%s at %s (%s, %.2f s)",
		tsi_number_thousands(n, tsi_index_count(x)),
		in_classes(x, classes), tsi_index_name(x),
		tsi_index_cached(x) ? "scan kept from before" : "scanned",
		p->scan_seconds);
	report_bad(p);
	if (o->recipe)
		snprintf(size, sizeof(size), "%u x %u%s, ",
			 o->recipe->view[0].width, o->recipe->view[0].height,
			 o->fast ? ", fast" : "");
	tsi_log(TSOCK_LOG_INFO, "%s%s order, seed %" PRIu64 ", %u segment%s",
		size, tsi_options_order(o->order), o->seed,
		tsi_sampler_segments(p->sampler),
		tsi_sampler_segments(p->sampler) == 1 ? "" : "s");
	tsi_log(TSOCK_LOG_INFO,
		"%u thread%s, files by %s%s%s%s; ring of %s samples, %s",
		p->pipeline.threads, p->pipeline.threads == 1 ? "" : "s",
		tsi_pool_reader(pool), why ? " (" : "", why ? why : "",
		why ? ")" : "", tsi_number_thousands(n, p->geometry.capacity),
		tsi_number_megabytes(mb, p->geometry.ring_bytes));
	if (tsi_pool_ahead(pool))
		tsi_log(TSOCK_LOG_INFO, "files are read ahead, up to %s, %s",
			tsi_number_megabytes(mb, o->read_ahead),
			tsi_pool_ahead(pool));
	if (!tsi_address_choose(o->name, &address))
		tsi_log(TSOCK_LOG_INFO, "serving \"%s\" at %s", o->name,
			tsi_address_folder(&address));
}

void tsi_report_cache(const struct tsi_pool *pool, uint64_t samples)
{
	struct tsi_image_cache_stats st;
	char images[28], used[16], most[16];

	if (!tsi_pool_cache(pool, &st))
		return;
	tsi_log(TSOCK_LOG_INFO,
		"cache: %s images in %s of %s; %.1f %% of the samples were "
		"made from it",
		tsi_number_thousands(images, st.images),
		tsi_number_megabytes(used, st.used),
		tsi_number_megabytes(most, st.budget),
		samples ? 100.0 * (double)st.hits / (double)samples : 0.0);
}

void tsi_report_end(const struct tsi_plan *p, const struct tsock_stats *st,
		    double seconds)
{
	struct tsi_badlist *b = tsi_sampler_badlist(p->sampler);
	uint64_t bad = tsi_badlist_count(b);
	struct logged a = { 0 }, c = { 0 };
	char n[28], mb[16], files[28];

	tsi_log(TSOCK_LOG_INFO,
		"made %s samples from %s in %.1f s (%.0f a second)",
		tsi_number_thousands(n, st->produced),
		tsi_number_megabytes(mb, st->read_bytes), seconds,
		seconds > 0 ? (double)st->produced / seconds : 0.0);
	if (!bad)
		return;
	tsi_log(TSOCK_LOG_WARN,
		"%s bad file%s, by the scan or later, each counted once; %s of "
		"the samples made %s another file's:",
		tsi_number_thousands(files, bad), bad == 1 ? "" : "s",
		tsi_number_thousands(n, st->bad_samples),
		st->bad_samples == 1 ? "is" : "are");
	tsi_badlist_each(b, log_bad, &a);
	if (bad > LISTED_AT_END)
		tsi_log(TSOCK_LOG_WARN, "  and %s more",
			tsi_number_thousands(n, bad - LISTED_AT_END));
	if (bad > LISTED_AT_END)
		tsi_badlist_classes(b, log_class, &c);
}

/* ------------------------------------------------------------------------
 * --list
 */

struct listed {
	char path[512];
	const char *name;
	struct tsock_stats before, now;
	int64_t before_ns;
	bool answers;
};

struct list {
	struct listed row[LIST_MAX];
	unsigned n;
};

static void list_one(void *arg, const char *name, const char *folder)
{
	struct list *l = arg;
	struct listed *r = &l->row[l->n];

	if (l->n == LIST_MAX || snprintf(r->path, sizeof(r->path), "%s/%s",
					 folder, name) >= (int)sizeof(r->path))
		return;
	r->name = strrchr(r->path, '/') + 1;
	l->n++;
}

static bool ask_listed(struct listed *r, struct tsock_stats *st)
{
	st->size = sizeof(*st);
	return tsock_query(r->path, QUERY_MS, st) == 0;
}

/* The ranks whose part it is; "-" for all of the data set. */
static void print_part(const struct tsock_stats *st)
{
	char part[40] = "-";

	if (st->shards && st->shard_ranks > 1)
		snprintf(part, sizeof(part), "%u-%u/%u", st->shard,
			 st->shard + st->shard_ranks - 1, st->shards);
	else if (st->shards)
		snprintf(part, sizeof(part), "%u/%u", st->shard, st->shards);
	printf(" %8s", part);
}

/* The longest wait of all; "-" where nobody waits. */
static void print_wait(const struct tsock_stats *st)
{
	const struct tsock_wait *w = &st->wait[0];

	if (!st->nwaits) {
		printf("  -\n");
		return;
	}
	printf("  ");
	print_name(w->who);
	printf(", %u s: consumer %u", w->waited_ms / 1000, w->pid);
	if (st->nwaits > 1)
		printf(" and %u more", st->nwaits - 1);
	printf("\n");
}

static void print_row(struct listed *r)
{
	double dt = (double)(tsi_now_ns() - r->before_ns) / 1e9;
	char len[28], rate[28], mb[16], folder[512], threads[24] = "-";
	unsigned working, all;

	if (!r->answers || !ask_listed(r, &r->now)) {
		print_name(r->path);
		printf("  does not answer\n");
		return;
	}
	snprintf(folder, sizeof(folder), "%.*s", (int)(r->name - 1 - r->path),
		 r->path);
	if (tsi_neighbours_ask(folder, r->name, &working, &all))
		snprintf(threads, sizeof(threads), "%u/%u", working, all);
	printf("%-20s %8u %12s %9u %10s %10s %8s", r->name, r->now.pid,
	       tsi_number_thousands(len, r->now.epoch_len), r->now.consumers,
	       tsi_number_thousands(rate,
				    (uint64_t)((double)(r->now.produced -
							r->before.produced) /
						       dt +
					       0.5)),
	       tsi_number_megabytes(mb, r->now.memory), threads);
	print_part(&r->now);
	print_wait(&r->now);
}

int tsi_report_list(void)
{
	struct timespec wait = { 0, RATE_NS };
	struct list *l = calloc(1, sizeof(*l));
	int n;

	if (!l)
		return tsi_err(TSOCK_ENOMEM, "no memory for a list");
	n = tsock_list(list_one, l);
	if (n < 0) {
		free(l);
		return n;
	}
	if (l->n == 0) {
		printf("no streams run here\n");
		free(l);
		return 0;
	}
	/* A rate is what two answers differ by. */
	for (unsigned i = 0; i < l->n; i++) {
		l->row[i].before_ns = tsi_now_ns();
		l->row[i].answers = ask_listed(&l->row[i], &l->row[i].before);
	}
	nanosleep(&wait, NULL);
	printf("%-20s %8s %12s %9s %10s %10s %8s %8s  %s\n", "STREAM", "PID",
	       "SAMPLES", "CONSUMERS", "IMAGES/S", "MEMORY", "THREADS", "PART",
	       "WAITS FOR");
	for (unsigned i = 0; i < l->n; i++)
		print_row(&l->row[i]);
	free(l);
	return 0;
}
