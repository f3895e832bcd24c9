/* SPDX-License-Identifier: MIT */
/*
 * target.c - which file a sample is made from: its own, or the next one that is
 * good for this sample.
 */
#include "run/target.h"

#include "base/err.h"

static uint64_t files(const struct tsi_sampler *s)
{
	return tsi_index_count(tsi_sampler_index(s));
}

int tsi_target_first(struct tsi_target *t, struct tsi_sampler *s, uint64_t seq)
{
	struct tsi_badfiles *b = tsi_sampler_badfiles(s);
	int err;

	*t = (struct tsi_target){ 0 };
	err = tsi_sampler_at(s, seq, &t->id);
	if (err)
		return err;
	t->file = t->id.index;
	if (tsi_badfiles_changed(b, t->file))
		tsi_badfiles_forget(b, t->file);
	return 0;
}

bool tsi_target_is_bad(const struct tsi_target *t, const struct tsi_sampler *s,
		       const struct tsi_image *img)
{
	const struct tsi_badfiles *b = tsi_sampler_badfiles(s);
	struct tsi_image_extent e;

	if (tsi_badfiles_run(b, t->file, 1))
		return true;
	return tsi_badfiles_extent(b, t->file, &e) &&
	       tsi_image_bottom(img, e.width, e.height, (uint32_t)t->id.epoch,
				t->id.index) > e.rows;
}

/* Pass n files by; false when none is left. */
static bool pass(struct tsi_target *t, const struct tsi_sampler *s, uint64_t n)
{
	t->failures = 0;
	t->passed += n;
	t->file = (t->id.index + t->passed) % files(s);
	return t->passed < files(s);
}

void tsi_target_pass(struct tsi_target *t, const struct tsi_sampler *s)
{
	pass(t, s, 1);
}

/* Whole runs of files that are bad for every sample are passed in one step. */
static bool find(struct tsi_target *t, const struct tsi_sampler *s,
		 const struct tsi_image *img)
{
	const struct tsi_badfiles *b = tsi_sampler_badfiles(s);

	for (;;) {
		uint64_t n = tsi_badfiles_run(b, t->file, files(s) - t->passed);

		if (n == 0 && !tsi_target_is_bad(t, s, img))
			return true;
		if (!pass(t, s, n ? n : 1))
			return false;
	}
}

int tsi_target_choose(struct tsi_target *t, struct tsi_sampler *s,
		      const struct tsi_image *img)
{
	if (t->passed < files(s) && find(t, s, img))
		return 0;
	if (!t->again) {
		tsi_badfiles_forget_all(tsi_sampler_badfiles(s));
		t->again = true;
		t->passed = 0;
		t->file = t->id.index;
		if (find(t, s, img))
			return 0;
	}
	return tsi_err(TSOCK_EDATA,
		       "no file of %s is good any more: the last one "
		       "tried for sample %llu",
		       tsi_index_root(tsi_sampler_index(s)),
		       (unsigned long long)t->id.index);
}
