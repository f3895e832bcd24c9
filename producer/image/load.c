/* SPDX-License-Identifier: MIT */
/*
 * load.c - sniff, decode, crop, resize, flip and what else a recipe does.
 *
 * Rows flow in strips from a decoder to the resampler and from there to the
 * sample, or to the picture that further operations change; no whole image is
 * held, unless a recipe begins with what needs all of it.
 */
#include "image/load.h"
#include "image/plan.h"
#include "image/sniff.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ops/fill.h"
#include "ops/flip.h"
#include "ops/mix.h"
#include "pixel/budget.h"
#include "image/formats.h"
#include "recipe/recipe.h"
#include "resample/resample.h"
#include "pixel/wrapped.h"

#define NO_FILE UINT64_MAX /* a number that no file has */

struct tsi_image {
	struct tsi_image_opts opts;
	bool trusted;
	enum tsi_passes passes;
	struct tsi_resample *resample;
	struct tsi_canvas canvas; /* what operations on pixels change */
	struct tsi_canvas source; /* of which several views are made */
	uint8_t *more[TSI_RECIPE_VIEWS -
		      1];              /* where those behind the first go */
	double *draws;                 /* of the sample at hand */
	struct tsi_image_drawn last;   /* which has this image */
	struct tsi_decoder *decoder[]; /* one of each format */
};

/* What operations on finished pixels need. */
static int prepare_recipe(struct tsi_image *img)
{
	/* At least one: malloc(0) may return NULL. */
	img->draws = calloc(img->opts.recipe->draws + 1, sizeof(double));
	if (!img->draws)
		return tsi_err(TSOCK_ENOMEM, "no memory for an image decoder");
	tsi_canvas_init(&img->canvas, tsi_simd_best());
	tsi_canvas_init(&img->source, tsi_simd_best());
	img->canvas.resample = img->resample;
	img->canvas.pillow12 = img->passes == TSI_PASSES_12;
	return 0;
}

int tsi_image_create(const struct tsi_image_opts *opts, struct tsi_image **out)
{
	struct tsi_image *img;
	unsigned formats = 0;
	int err = 0;

	while (tsi_decoders[formats])
		formats++;
	img = calloc(1, sizeof(*img) + formats * sizeof(img->decoder[0]));
	if (!img)
		return tsi_err(TSOCK_ENOMEM, "no memory for an image decoder");
	img->opts = *opts;
	img->passes = opts->pillow && opts->pillow < 13 ? TSI_PASSES_12
							: TSI_PASSES_13;
	for (unsigned i = 0; i < formats && !err; i++)
		if (!tsi_decoders[i]->lacks)
			err = tsi_decoders[i]->create(&img->decoder[i]);
	if (!err)
		err = tsi_resample_create(TSI_SIMD_BEST, &img->resample);
	if (!err)
		err = prepare_recipe(img);
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
		if (!tsi_decoders[i]->lacks)
			tsi_decoders[i]->destroy(img->decoder[i]);
	tsi_resample_destroy(img->resample);
	tsi_canvas_fini(&img->canvas);
	tsi_canvas_fini(&img->source);
	free(img->draws);
	free(img);
}

/*
 * How this decoder is to decode for the plan, which becomes that of the rest.
 * A smaller image has means of pixels, and NEAREST wants pixels themselves.
 */
static unsigned make_fast(const struct tsi_image *img,
			  const struct tsi_decoder *d,
			  struct tsi_image_plan *plan)
{
	if (!img->opts.fast || !d->ops->shrinks)
		return 0;
	if (plan->views > 1 || plan->framing.filter == TSI_FILTER_NEAREST)
		return 1;
	return tsi_framing_shrink(&plan->axes, &plan->left, &plan->top);
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

/* Decode what the plan says to a picture of its size, three bytes a pixel. */
static int run_plan(struct tsi_image *img, struct tsi_decoder *d,
		    const struct tsi_image_plan *plan, uint8_t *dst)
{
	const struct tsi_framing *g = &plan->framing;
	const struct tsi_framing_axes *a = &plan->axes;
	size_t stride = (size_t)g->width * 3;
	struct tsi_rect rect;
	struct tsi_strip strip;
	int err;

	if (g->padded)
		tsi_fill(dst, (size_t)g->width * g->height, 3, g->fill);
	err = tsi_resample_begin(
		img->resample, &a->x, &a->y, img->passes, d->has_planes,
		dst + a->to_y * stride + (size_t)a->to_x * 3, stride, &rect);
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

/* The only view: as it is decoded, or by way of the canvas. */
static int make_view(struct tsi_image *img, struct tsi_decoder *d,
		     const struct tsi_image_plan *plan, uint8_t *dst)
{
	struct tsi_canvas *c = &img->canvas;
	const struct tsi_framing *g = &plan->framing;
	int err;

	if (tsi_image_plan_is_all(plan))
		return run_plan(img, d, plan, dst);
	err = tsi_canvas_begin(c, g->width, g->height, 3);
	if (!err)
		err = run_plan(img, d, plan, c->pixels);
	if (err)
		return err;
	if (g->mirror_y)
		tsi_flip_y(c);
	err = tsi_recipe_apply(plan->view[0].rest, img->draws, c);
	if (!err)
		memcpy(dst, c->pixels, tsi_canvas_bytes(c));
	return err;
}

/* All views, of one picture that is decoded for them. */
static int make_views(struct tsi_image *img, struct tsi_decoder *d,
		      const struct tsi_image_plan *plan, uint8_t *dst)
{
	struct tsi_canvas *c = &img->canvas, *source = &img->source;
	int err = tsi_canvas_begin(source, plan->framing.width,
				   plan->framing.height, 3);

	if (!err)
		err = run_plan(img, d, plan, source->pixels);
	for (unsigned k = 0; k < plan->views && !err; k++) {
		struct tsi_framing g = plan->view[k].framing;

		g.part.left -= plan->left;
		g.part.top -= plan->top;
		err = tsi_framing_apply_from(&g, source, c);
		if (!err)
			err = tsi_recipe_apply(plan->view[k].rest, img->draws,
					       c);
		if (!err)
			memcpy(k ? img->more[k - 1] : dst, c->pixels,
			       tsi_canvas_bytes(c));
	}
	return err;
}

/* Memory for pictures of so many pixels on the canvas, a mix and the mask. */
static uint64_t canvas_need(const struct tsi_image *img,
			    const struct tsi_image_plan *plan)
{
	const uint64_t pixels = plan->most;
	uint64_t mask = img->opts.masks ? tsi_image_mask_need(img->last.width,
							      img->last.height)
					: 0;

	if (tsi_image_plan_is_all(plan))
		return mask;
	return mask +
	       (plan->views > 1 ? 3 : 2) *
		       tsi_scratch_need(pixels * 3 + TSI_CANVAS_SLACK) +
	       (img->opts.recipe->mixes ? tsi_mix_need(pixels) : 0);
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

/* Where all images have one size, that of samples follows from it. */
static int check_size(const struct tsi_recipe *r,
		      const struct tsi_image_head *head)
{
	if (!r->of_width ||
	    (head->width == r->of_width && head->height == r->of_height))
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "its size is %u x %u, and the data set's images were "
		       "%u x %u: start the stream again",
		       head->width, head->height, r->of_width, r->of_height);
}

/* The file is one of this head. */
static int load_sample(struct tsi_image *img, const struct tsi_image_head *head,
		       uint64_t file, const void *data, size_t len,
		       struct tsi_op_sample *sample, uint8_t *dst,
		       struct tsi_box *box)
{
	struct tsi_decoder *d = img->decoder[head->format];
	struct tsi_decoder_hint hint = {
		.trusted = img->trusted,
		.opts = &img->opts,
		.file = file,
	};
	struct tsi_image_plan plan;
	int err = open_image(d, &hint, data, len, &sample->width,
			     &sample->height);

	if (err)
		return err;
	if (sample->width != head->width || sample->height != head->height)
		return tsi_err(TSOCK_EDATA,
			       "bad image: its size is %u x %u "
			       "and %u x %u",
			       head->width, head->height, sample->width,
			       sample->height);
	err = check_size(img->opts.recipe, head);
	if (err)
		return err;
	img->last = (struct tsi_image_drawn){ head->width, head->height,
					      img->draws };
	err = tsi_image_plan_make(img->opts.recipe, sample, img->draws, &plan);
	if (err)
		return err;
	tsi_framing_box(&plan.view[0].framing, box);
	d->fast = make_fast(img, d, &plan);
	err = claim(img, d->ops->need(d) +
				 tsi_resample_need(&plan.axes.x, &plan.axes.y,
						   img->passes) +
				 canvas_need(img, &plan));
	if (err)
		return err;
	return plan.views > 1 ? make_views(img, d, &plan, dst)
			      : make_view(img, d, &plan, dst);
}

static int load_file(struct tsi_image *img, uint64_t file, const void *data,
		     size_t len, struct tsi_op_sample *sample, uint8_t *dst,
		     struct tsi_box *box)
{
	struct tsi_image_head head;
	int err = tsi_wrapped_open(&data, &len, true);

	if (!err)
		err = tsi_image_sniff(data, len, true, &head);
	if (err)
		return err;
	err = load_sample(img, &head, file, data, len, sample, dst, box);
	close_image(img, &head);
	tsi_resample_trim(img->resample);
	tsi_canvas_trim(&img->canvas);
	tsi_canvas_trim(&img->source);
	return err;
}

int tsi_image_load_file(struct tsi_image *img, uint64_t file, const void *data,
			size_t len, uint32_t epoch, uint64_t index,
			uint8_t *dst, struct tsi_box *box)
{
	struct tsi_op_sample sample = { .seed = img->opts.seed,
					.epoch = epoch,
					.index = index };
	struct tsi_box b;
	int err = load_file(img, file, data, len, &sample, dst, &b);

	if (!err)
		*box = b;
	return err;
}

int tsi_image_load_other(struct tsi_image *img, const void *data, size_t len,
			 uint32_t epoch, uint64_t index, uint8_t *dst)
{
	const struct tsi_image_drawn first = img->last;
	struct tsi_op_sample sample = { .seed = img->opts.seed,
					.epoch = epoch,
					.index = index,
					.first_width = first.width,
					.first_height = first.height };
	struct tsi_box box;
	int err = load_file(img, NO_FILE, data, len, &sample, dst, &box);

	img->last = first;
	return err;
}

int tsi_image_load(struct tsi_image *img, const void *data, size_t len,
		   uint32_t epoch, uint64_t index, uint8_t *dst,
		   struct tsi_box *box)
{
	return tsi_image_load_file(img, NO_FILE, data, len, epoch, index, dst,
				   box);
}

void tsi_image_set_more(struct tsi_image *img, uint8_t *const *to)
{
	for (unsigned k = 1; k < img->opts.recipe->views; k++)
		img->more[k - 1] = to[k - 1];
}

struct tsi_image_drawn tsi_image_last(const struct tsi_image *img)
{
	return img->last;
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
	return img->opts.recipe->same_rows;
}

uint32_t tsi_image_bottom(const struct tsi_image *img, uint32_t width,
			  uint32_t height, uint32_t epoch, uint64_t index)
{
	const struct tsi_op_sample sample = { .seed = img->opts.seed,
					      .epoch = epoch,
					      .index = index,
					      .width = width,
					      .height = height };
	struct tsi_image_plan plan;

	if (tsi_image_plan_make(img->opts.recipe, &sample, img->draws, &plan))
		return height;
	return plan.top + tsi_taps_end(&plan.axes.y);
}

uint32_t tsi_image_least_bottom(const struct tsi_image *img, uint32_t width,
				uint32_t height)
{
	return tsi_recipe_least_bottom(img->opts.recipe, width, height);
}
