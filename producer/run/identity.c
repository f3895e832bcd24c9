/* SPDX-License-Identifier: MIT */
/*
 * identity.c - what decides a stream's samples, as text.
 */
#include "run/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/labels/labels.h"
#include "data/packed/pack.h"
#include "data/root.h"

static const char *const orders[] = {
	[TSOCK_ORDER_PHILOX] = "philox",
	[TSOCK_ORDER_TORCH] = "torch",
	[TSOCK_ORDER_SEQUENTIAL] = "sequential",
};

static void put_text(FILE *f, const char *key, const char *value)
{
	fprintf(f, "%s=", key);
	for (; *value; value++) {
		if (*value == '\\')
			fputs("\\\\", f);
		else if (*value == '\n')
			fputs("\\n", f);
		else
			putc(*value, f);
	}
	putc('\n', f);
}

static void put_number(FILE *f, const char *key, uint64_t value)
{
	fprintf(f, "%s=%" PRIu64 "\n", key, value);
}

/* What isn't in an identity is said of what has to be compared with one. */
static void put_none(FILE *f, const char *key, bool described)
{
	if (described)
		put_text(f, key, TSI_IDENTITY_NONE);
}

static void put_flag(FILE *f, const char *key, bool on, bool described)
{
	if (on)
		put_number(f, key, 1);
	else
		put_none(f, key, described);
}

static void put_sampling(FILE *f, const struct tsi_sampling *s, bool described)
{
	if (!tsi_sampling_is_any(s)) {
		put_none(f, "sampler", described);
		return;
	}
	fputs("sampler=", f);
	tsi_sampling_write(s, f);
	putc('\n', f);
}

/* Which positions of the order, and where an epoch of them is dealt anew. */
static void put_ranks(FILE *f, const struct tsi_part *p, bool described)
{
	if (p->world && p->ranks > 1)
		fprintf(f, "shard=%" PRIu32 "-%" PRIu32 "/%" PRIu32 "\n",
			p->first, p->first + p->ranks - 1, p->world);
	else if (p->world)
		fprintf(f, "shard=%" PRIu32 "/%" PRIu32 "\n", p->first,
			p->world);
	else
		put_none(f, "shard", described);
	if (p->start)
		fprintf(f, "start=%" PRIu64 ":%" PRIu64 "\n", p->start_epoch,
			p->start);
	else
		put_none(f, "start", described);
}

/* segments: 0 if it depends on the data set. */
static void put_order(FILE *f, const struct tsi_pipeline_opts *o,
		      uint32_t segments, bool described)
{
	put_text(f, "order", orders[o->order]);
	put_number(f, "seed", o->seed);
	put_sampling(f, &o->sampling, described);
	if (segments)
		put_number(f, "segments", segments);
	put_ranks(f, &o->part, described);
	put_text(f, "on-error",
		 o->on_error == TSI_RAISE ? "raise" : "substitute");
	/* How the file that stands in is found: 1 was the next good one. */
	if (o->on_error != TSI_RAISE && !described)
		put_number(f, "substitutes", 2);
	/* A loader that asks for no keys may read a stream that has them. */
	put_flag(f, "keys", o->keys, false);
	put_flag(f, "grows", o->grows, described);
}

/* A folder or file, by its absolute path where it is there. */
static void put_path(FILE *f, const char *key, const char *given,
		     bool described)
{
	char *path = given ? realpath(given, NULL) : NULL;

	if (given)
		put_text(f, key, path ? path : given);
	else
		put_none(f, key, described);
	free(path);
}

static void put_labels(FILE *f, uint64_t fingerprint)
{
	fprintf(f, "labels=%016" PRIx64 "\n", fingerprint);
}

static void put_crops(FILE *f, const struct tsi_pipeline_opts *o)
{
	char text[TSI_RECIPE_TEXT + 20];

	snprintf(text, sizeof(text), "%s%s%s",
		 o->audio.clips == TSI_AUDIO_WHOLE ? "Whole"
		 : o->audio.centre                 ? "Crop(middle)"
						   : "Crop(random)",
		 o->sound ? " " : "", o->sound ? o->sound->text : "");
	put_text(f, "transform", text);
}

static void put_image(FILE *f, const struct tsi_pipeline_opts *o,
		      bool described)
{
	if (o->audio.views) {
		put_crops(f, o);
		put_number(f, "views", o->audio.views);
		return;
	}
	if (!o->recipe) {
		put_none(f, "transform", described);
		return;
	}
	put_text(f, "transform", o->recipe->text);
	put_path(f, "masks", o->masks, described);
	if (o->boxes)
		put_text(f, "boxes", o->boxes);
	else
		put_none(f, "boxes", described);
	/* Pixels are those of up to 12, or those of 13 and later. */
	put_number(f, "pillow", o->pillow && o->pillow < 13 ? 12 : 13);
	put_flag(f, "fast", o->fast, described);
}

static void put_documents(FILE *f, const struct tsi_documents_opts *o,
			  bool described)
{
	static const char *const ways[] = { "ignore", "mark", "whole", "pack" };
	static const char *const keys[] = {
		[TSI_DOCUMENTS_END] = "end-token",
		[TSI_DOCUMENTS_BEGIN] = "begin-token",
	};

	if (o->way)
		put_text(f, "documents", ways[o->way]);
	else
		put_none(f, "documents", described);
	for (unsigned k = TSI_DOCUMENTS_END; k <= TSI_DOCUMENTS_BEGIN; k++)
		if (o->way && o->stands == k)
			put_number(f, keys[k], o->token);
		else
			put_none(f, keys[k], described);
}

static void put_clips(FILE *f, enum tsi_audio_clips clips, bool described)
{
	static const char *const words[] = { "crop", "whole", "cut" };

	if (clips != TSI_AUDIO_CROP)
		put_text(f, "clips", words[clips]);
	else
		put_none(f, "clips", described);
}

/* Which part of the data set, and what of it a sample is. */
static void put_part(FILE *f, const struct tsi_pipeline_opts *o, bool described)
{
	put_flag(f, "held-out", o->held_out, described);
	if (o->schema)
		put_text(f, "schema", o->schema);
	else
		put_none(f, "schema", described);
	put_documents(f, &o->documents, described);
	put_clips(f, o->audio.clips, described);
}

/* The images of a sample, if there are several. */
static void put_images(FILE *f, const struct tsi_columns *c)
{
	char text[(TSI_OTHERS + 1) * sizeof(c->other[0])] = "image";
	size_t n = strlen(text);

	if (!tsi_columns_others(c))
		return;
	for (unsigned k = 0; k < tsi_columns_others(c); k++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",%s",
				      tsi_columns_other(c, k));
	put_text(f, "images", text);
}

static void put_samples(FILE *f, const struct tsi_sampler *s)
{
	const struct tsi_index *x = tsi_sampler_index(s);

	put_text(f, "dataset", tsi_format_name(tsi_index_format(x)));
	put_text(f, "root", tsi_index_name(x));
	put_number(f, "samples", tsi_index_count(x));
	fprintf(f, "files=%016" PRIx64 "\n", tsi_index_fingerprint(x));
	put_images(f, tsi_index_columns(x));
	if (tsi_index_select(x)) {
		put_text(f, "select", tsi_index_select(x));
		fprintf(f, "weights=%016" PRIx64 "\n",
			tsi_index_weights_fingerprint(x));
	}
	if (tsi_index_labels(x))
		put_labels(f, tsi_index_labels_fingerprint(x));
	if (!tsi_index_unlabelled(x))
		put_number(f, "classes", tsi_index_classes(x));
}

int tsi_identity_text(const struct tsi_pipeline_opts *o,
		      const struct tsi_sampler *s, char **out)
{
	size_t bytes;
	FILE *f = open_memstream(out, &bytes);

	if (!f)
		return tsi_err(TSOCK_ENOMEM, "no memory for the identity");
	put_samples(f, s);
	put_part(f, o, false);
	put_order(f, o, tsi_sampler_segments(s), false);
	if (tsi_sampler_order_version(s))
		put_number(f, "order-version", tsi_sampler_order_version(s));
	put_image(f, o, false);
	if (fclose(f)) {
		free(*out);
		*out = NULL;
		return tsi_err(TSOCK_ENOMEM, "no memory for the identity");
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * Before there is a stream
 */

/* The format of the folder, and those that would read the same tree alike. */
static void put_formats(FILE *f, const struct tsi_format *format, bool alike)
{
	put_text(f, "dataset", tsi_format_name(format));
	if (!alike || !tsi_format_has_class_folders(format))
		return;
	for (unsigned k = 0; k < TSI_FORMATS_COUNT; k++) {
		const struct tsi_format *other = tsi_format_at(k);

		if (other != format && tsi_format_has_class_folders(other))
			put_text(f, "dataset", tsi_format_name(other));
	}
}

/* What isn't there has the name that it was given. */
static void put_folder(FILE *f, const struct tsi_pipeline_opts *o, bool alike)
{
	const struct tsi_format *format = o->format, *pack = NULL;
	struct tsi_root root;
	bool there;

	tsi_root_init(&root);
	there = tsi_format_open(format, o->folder, &root) == 0;
	if (there)
		pack = tsi_pack_format_in(&root);
	if (pack)
		format = pack;
	put_formats(f, format, alike);
	put_text(f, "root", there ? tsi_root_name(&root) : o->folder);
	tsi_root_close(&root);
}

/* By the content of their file; one that can't be read by its name. */
static void describe_labels(FILE *f, const char *labels)
{
	uint64_t fingerprint;

	if (!labels)
		put_none(f, "labels", true);
	else if (tsi_labels_describe(labels, &fingerprint))
		put_text(f, "labels", labels);
	else
		put_labels(f, fingerprint);
}

void tsi_identity_describe(const struct tsi_pipeline_opts *o, bool alike,
			   FILE *to)
{
	uint32_t segments = o->segments;

	if (!segments && o->order != TSOCK_ORDER_SEQUENTIAL)
		segments = 1;
	put_folder(to, o, alike);
	put_part(to, o, true);
	put_path(to, "select", o->select, true);
	describe_labels(to, o->labels);
	put_order(to, o, segments, true);
	put_image(to, o, true);
}
