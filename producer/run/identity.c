/* SPDX-License-Identifier: MIT */
/*
 * identity.c - what decides a stream's samples, as text.
 */
#include "run/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

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

static void put_samples(FILE *f, const struct tsi_pipeline_opts *o,
			const struct tsi_sampler *s)
{
	const struct tsi_index *x = tsi_sampler_index(s);

	put_text(f, "dataset", tsi_format_name(tsi_index_format(x)));
	put_text(f, "root", tsi_index_name(x));
	put_number(f, "samples", tsi_index_count(x));
	fprintf(f, "files=%016" PRIx64 "\n", tsi_index_fingerprint(x));
	if (tsi_index_select(x)) {
		put_text(f, "select", tsi_index_select(x));
		fprintf(f, "weights=%016" PRIx64 "\n",
			tsi_index_weights_fingerprint(x));
	}
	put_number(f, "classes", tsi_index_classes(x));
	put_text(f, "order", orders[o->order]);
	put_number(f, "seed", o->seed);
	put_number(f, "segments", tsi_sampler_segments(s));
	if (o->sharded)
		fprintf(f, "shard=%" PRIu32 "/%" PRIu32 "\n", o->rank,
			o->world);
	put_text(f, "on-error",
		 o->on_error == TSI_RAISE ? "raise" : "substitute");
	/* How the file that stands in is found: 1 was the next good one. */
	if (o->on_error != TSI_RAISE)
		put_number(f, "substitutes", 2);
	if (o->keys)
		put_number(f, "keys", 1);
	if (o->grows)
		put_number(f, "grows", 1);
}

static void put_image(FILE *f, const struct tsi_pipeline_opts *o)
{
	put_text(f, "preset", o->preset->name);
	put_number(f, "size", o->size);
	if (!o->preset->no_resize)
		put_number(f, "resize", o->resize);
	/* Pixels are those of up to 12, or those of 13 and later. */
	put_number(f, "pillow", o->pillow && o->pillow < 13 ? 12 : 13);
	if (o->fast)
		put_number(f, "fast", 1);
}

int tsi_identity_text(const struct tsi_pipeline_opts *o,
		      const struct tsi_sampler *s, char **out)
{
	size_t bytes;
	FILE *f = open_memstream(out, &bytes);

	if (!f)
		return tsi_err(TSOCK_ENOMEM, "no memory for the identity");
	put_samples(f, o, s);
	put_image(f, o);
	if (fclose(f)) {
		free(*out);
		*out = NULL;
		return tsi_err(TSOCK_ENOMEM, "no memory for the identity");
	}
	return 0;
}
