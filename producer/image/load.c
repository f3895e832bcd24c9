/* SPDX-License-Identifier: MIT */
/*
 * load.c - sniff, decode, crop, resize, flip: the composition, as a preset
 * plans it.
 *
 * Rows flow in strips from a decoder to the resampler and from there to the
 * sample; no whole image is ever held.
 */
#include "image/load.h"
#include "image/sniff.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "pixel/budget.h"
#include "image/formats.h"
#include "image/preset.h"
#include "resample/resample.h"
#include "pixel/wrapped.h"

struct tsi_image {
	struct tsi_image_opts opts;
	bool trusted;
	enum tsi_passes passes;
	struct tsi_resample *resample;
	struct tsi_decoder *decoder[]; /* one of each format */
};

static int check_opts(const struct tsi_image_opts *o)
{
	if (!o->preset)
		return tsi_err(TSOCK_EARG, "a preset is missing");
	if (!o->size || o->size > TSI_IMAGE_SIZE_MAX)
		return tsi_err(TSOCK_EARG, "size is %u, must be 1 to %u",
			       o->size, TSI_IMAGE_SIZE_MAX);
	return o->preset->check ? o->preset->check(o) : 0;
}

int tsi_image_create(const struct tsi_image_opts *opts, struct tsi_image **out)
{
	struct tsi_image *img;
	unsigned formats = 0;
	int err = check_opts(opts);

	if (err)
		return err;
	while (tsi_decoders[formats])
		formats++;
	img = calloc(1, sizeof(*img) + formats * sizeof(img->decoder[0]));
	if (!img)
		return tsi_err(TSOCK_ENOMEM, "no memory for an image decoder");
	img->opts = *opts;
	img->passes = opts->pillow && opts->pillow < 13 ? TSI_PASSES_12
							: TSI_PASSES_13;
	for (unsigned i = 0; i < formats && !err; i++)
		err = tsi_decoders[i]->create(&img->decoder[i]);
	if (!err)
		err = tsi_resample_create(TSI_SIMD_BEST, &img->resample);
	if (err) {
		tsi_image_destroy(img);
		return err;
	}
	*out = img;
	return 0;
}

void tsi_image_destroy(struct tsi_image *img)
{
	if (!img)
		return;
	for (unsigned i = 0; tsi_decoders[i]; i++)
		tsi_decoders[i]->destroy(img->decoder[i]);
	tsi_resample_destroy(img->resample);
	free(img);
}

/* Both edges are to shrink so many times at least: 1, 2, 4 or 8. */
static unsigned shrink_of(const struct tsi_preset_plan *p)
{
	unsigned n = 8;

	while (n > 1 && (p->x.in / n < p->x.out || p->y.in / n < p->y.out))
		n /= 2;
	return n;
}

/* Scale a part of an edge, from *at on, to the image at 1/n of its size. */
static void shrink_edge(struct tsi_axis *a, uint32_t *at, unsigned n)
{
	uint32_t end = (*at + a->in + n - 1) / n;

	a->from = (double)(*at % n) / n;
	a->span = (double)a->in / n;
	*at /= n;
	a->in = end - *at;
}

/*
 * How this decoder is to decode for the plan, which becomes that of the rest.
 */
static unsigned make_fast(const struct tsi_image *img,
			  const struct tsi_decoder *d,
			  struct tsi_preset_plan *plan)
{
	unsigned n;

	if (!img->opts.fast || !d->ops->shrinks)
		return 0;
	n = shrink_of(plan);
	if (n > 1) {
		shrink_edge(&plan->x, &plan->left, n);
		shrink_edge(&plan->y, &plan->top, n);
	}
	return n;
}

/* A large image's memory comes out of the budget, and only a large one's. */
static int claim(struct tsi_image *img, uint64_t need)
{
	struct tsi_budget_claim *c = img->opts.claim;

	if (c)
		c->need = need;
	if (!c || need <= TSI_IMAGE_SMALL)
		return 0;
	return tsi_budget_claim_grow(c, c->file + need);
}

static int run_plan(struct tsi_image *img, struct tsi_decoder *d,
		    const struct tsi_preset_plan *plan, uint8_t *dst)
{
	size_t stride = (size_t)img->opts.size * 3;
	struct tsi_rect rect;
	struct tsi_strip strip;
	int err;

	if (plan->x.count < img->opts.size || plan->y.count < img->opts.size)
		memset(dst, 0, stride * img->opts.size);
	err = tsi_resample_begin(
		img->resample, &plan->x, &plan->y, img->passes, d->has_planes,
		dst + plan->to_y * stride + (size_t)plan->to_x * 3, stride,
		&rect);
	if (err)
		return err;
	d->planes = tsi_resample_planes(img->resample);
	rect.left += plan->left;
	rect.top += plan->top;
	err = d->ops->begin(d, &rect);
	for (uint32_t rows = 0; !err && rows < rect.height;
	     rows += strip.rows) {
		err = d->ops->read(d, &strip);
		if (err)
			return err;
		tsi_resample_push(img->resample, &strip);
	}
	return err;
}

/* Free the memory of an image that has this head. */
static void close_image(struct tsi_image *img,
			const struct tsi_image_head *head)
{
	struct tsi_decoder *d = img->decoder[head->format];

	d->ops->close(d);
}

/* Open the file, one of this head, with what is known of it. */
static int open_image(struct tsi_decoder *d,
		      const struct tsi_decoder_hint *hint, const void *data,
		      size_t len, uint32_t *width, uint32_t *height)
{
	if (d->ops->hint)
		d->ops->hint(d, hint);
	return d->ops->open(d, data, len, width, height);
}

/* The file is one of this head. */
static int load_sample(struct tsi_image *img, const struct tsi_image_head *head,
		       uint64_t file, const void *data, size_t len,
		       const struct tsi_preset_sample *sample, uint8_t *dst,
		       struct tsi_box *box)
{
	const struct tsi_preset *preset = img->opts.preset;
	struct tsi_decoder *d = img->decoder[head->format];
	struct tsi_decoder_hint hint = {
		.trusted = img->trusted,
		.opts = &img->opts,
		.file = file,
	};
	uint32_t width, height;
	struct tsi_preset_plan plan;
	int err = open_image(d, &hint, data, len, &width, &height);

	if (err)
		return err;
	if (width != head->width || height != head->height)
		return tsi_err(TSOCK_EDATA,
			       "bad image: its size is %u x %u "
			       "and %u x %u",
			       head->width, head->height, width, height);
	err = preset->plan(sample, width, height, box, &plan);
	if (err)
		return err;
	d->fast = make_fast(img, d, &plan);
	err = claim(img, d->ops->need(d) + tsi_resample_need(&plan.x, &plan.y,
							     img->passes));
	if (!err)
		err = run_plan(img, d, &plan, dst);
	if (!err && preset->apply)
		preset->apply(sample, dst);
	return err;
}

int tsi_image_load_file(struct tsi_image *img, uint64_t file, const void *data,
			size_t len, uint32_t epoch, uint64_t index,
			uint8_t *dst, struct tsi_box *box)
{
	struct tsi_preset_sample sample = { &img->opts, epoch, index };
	struct tsi_image_head head;
	struct tsi_box b;
	int err = tsi_wrapped_open(&data, &len, true);

	if (!err)
		err = tsi_image_sniff(data, len, true, &head);
	if (err)
		return err;
	err = load_sample(img, &head, file, data, len, &sample, dst, &b);
	close_image(img, &head);
	tsi_resample_trim(img->resample);
	if (!err)
		*box = b;
	return err;
}

int tsi_image_load(struct tsi_image *img, const void *data, size_t len,
		   uint32_t epoch, uint64_t index, uint8_t *dst,
		   struct tsi_box *box)
{
	/* A number that no file has. */
	return tsi_image_load_file(img, UINT64_MAX, data, len, epoch, index,
				   dst, box);
}

void tsi_image_trust(struct tsi_image *img, bool trusted)
{
	img->trusted = trusted;
}

/* From the first row to the last one that can be decoded. */
static int measure_rows(struct tsi_image *img,
			const struct tsi_image_head *head, const void *data,
			size_t len, struct tsi_image_extent *out)
{
	struct tsi_decoder *d = img->decoder[head->format];
	/* What damage means is the format's library's to say. */
	static const struct tsi_image_opts by_lib = { .stock_jpeg = true };
	struct tsi_decoder_hint hint = { .opts = &by_lib };
	struct tsi_rect rect = { 0 };
	struct tsi_strip strip;
	uint32_t rows = 0;
	int err = open_image(d, &hint, data, len, &rect.width, &rect.height);

	if (!err)
		err = claim(img, d->ops->need(d));
	d->planes = false;
	/* Rows that interpolation needs of the next ones aren't lost, fast. */
	d->fast = img->opts.fast && d->ops->shrinks;
	if (!err)
		err = d->ops->begin(d, &rect);
	if (err)
		return err;
	while (!err && rows < rect.height) {
		err = d->ops->read(d, &strip);
		rows += err ? 0 : strip.rows;
	}
	if (err && err != TSOCK_EDATA)
		return err;
	/* A strip that failed had good rows too. */
	if (err)
		rows = d->ops->rows(d);
	if (!rows)
		return err;
	*out = (struct tsi_image_extent){ rect.width, rect.height, rows };
	return 0;
}

int tsi_image_measure(struct tsi_image *img, const void *data, size_t len,
		      struct tsi_image_extent *out)
{
	struct tsi_image_head head;
	int err = tsi_wrapped_open(&data, &len, true);

	if (!err)
		err = tsi_image_sniff(data, len, true, &head);
	if (err)
		return err;
	err = measure_rows(img, &head, data, len, out);
	close_image(img, &head);
	return err;
}

bool tsi_image_same_rows(const struct tsi_image *img)
{
	return img->opts.preset->same_rows;
}

uint32_t tsi_image_bottom(const struct tsi_image *img, uint32_t width,
			  uint32_t height, uint32_t epoch, uint64_t index)
{
	struct tsi_preset_sample sample = { &img->opts, epoch, index };
	struct tsi_preset_plan plan;
	struct tsi_box box;

	if (img->opts.preset->plan(&sample, width, height, &box, &plan))
		return height;
	return plan.top + plan.y.in;
}

uint32_t tsi_image_least_bottom(const struct tsi_image *img, uint32_t width,
				uint32_t height)
{
	const struct tsi_preset *p = img->opts.preset;

	return p->least_bottom ? p->least_bottom(width, height) : 1;
}
