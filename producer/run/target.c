/* SPDX-License-Identifier: MIT */
/*
 * target.c - which file a sample is made from: its own, or the first of its
 * substitutes that is good for this sample.
 */
#include "run/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "io/reader.h"

#define RETRIES 3

bool tsi_target_is_bad(const struct tsi_target *t, const struct tsi_sampler *s,
		       const struct tsi_maker *m)
{
	const struct tsi_badfiles *b = tsi_sampler_badfiles(s);
	struct tsi_image_extent e;

	switch (tsi_badfiles_look(b, t->file, &e)) {
	case TSI_BAD_NOT:
		return false;
	case TSI_BAD_BELOW:
		return tsi_maker_end(m, &e, &t->id) > e.rows;
	case TSI_BAD_WHOLE:
		break;
	}
	return true;
}

/* On to the next substitute; false when there is none. */
static bool pass(struct tsi_target *t, const struct tsi_sampler *s)
{
	const struct tsi_substitutes *from = tsi_sampler_substitutes(s);
	uint64_t beyond = tsi_substitutes_beyond_class(from, t->id.index);

	t->failures = 0;
	/* What all tries of the class would come to. */
	if (t->tries < beyond &&
	    tsi_badfiles_class_lost(tsi_sampler_badfiles(s), t->id.index))
		t->tries = beyond;
	do
		if (!tsi_substitutes_at(from, t->id.epoch, t->id.index,
					t->tries++, &t->file))
			return false;
	while (t->file == t->id.index);
	return true;
}

static bool find_good(struct tsi_target *t, const struct tsi_sampler *s,
		      const struct tsi_maker *m)
{
	while (tsi_target_is_bad(t, s, m))
		if (!pass(t, s))
			return false;
	return true;
}

/* There is none left: try all of them once more, from its own on. */
static int try_again(struct tsi_target *t, struct tsi_sampler *s,
		     const struct tsi_maker *m)
{
	if (!t->again) {
		tsi_badfiles_forget_all(tsi_sampler_badfiles(s));
		t->again = true;
		t->tries = 0;
		t->file = t->id.index;
		if (find_good(t, s, m))
			return 0;
	}
	return tsi_err(TSOCK_EDATA,
		       "no file of %s is good any more: the last one "
		       "tried for sample %llu",
		       tsi_index_root(tsi_sampler_index(s)),
		       (unsigned long long)t->id.index);
}

/* From the target on. */
static int choose_good(struct tsi_target *t, struct tsi_sampler *s,
		       const struct tsi_maker *m)
{
	return find_good(t, s, m) ? 0 : try_again(t, s, m);
}

/* ---- what came of it ---- */

static int name_file(const struct tsi_target *t, const struct tsi_sampler *s,
		     int code, const char *what)
{
	const struct tsi_index *x = tsi_sampler_index(s);
	char name[TSI_INDEX_SAMPLE];

	return tsi_err(code, "%s/%s: %s", tsi_index_root(x),
		       tsi_index_sample(x, t->file, name, sizeof(name)), what);
}

static int replace(struct tsi_target *t, struct tsi_sampler *s,
		   const struct tsi_maker *m, const char *reason)
{
	if (tsi_sampler_raises(s))
		return name_file(t, s, TSOCK_EDATA, reason);
	tsi_badlist_report(
		tsi_sampler_badlist(s), t->file, reason,
		tsi_badfiles_class_lost(tsi_sampler_badfiles(s), t->file));
	return pass(t, s) ? choose_good(t, s, m) : try_again(t, s, m);
}

static int replace_for_all(struct tsi_target *t, struct tsi_sampler *s,
			   const struct tsi_maker *m, const char *reason)
{
	tsi_badfiles_remember(tsi_sampler_badfiles(s), t->file, NULL,
			      t->read_ns);
	return replace(t, s, m, reason);
}

static int undecodable(struct tsi_target *t, struct tsi_sampler *s,
		       const struct tsi_maker *m, const struct tsi_outcome *o)
{
	const struct tsi_image_extent *e = &o->extent;
	bool raises = tsi_sampler_raises(s);

	/* Every sample's centre crop needs the same rows. */
	if (!raises &&
	    (tsi_maker_same_end(m) || o->measure_err == TSOCK_EDATA ||
	     (!o->measure_err && e->rows < tsi_maker_least_end(m, e))))
		return replace_for_all(t, s, m, o->reason);
	/* A failure that isn't about its rows may not come again. */
	if (!raises && !o->measure_err && e->rows < e->height)
		tsi_badfiles_remember(tsi_sampler_badfiles(s), t->file, e,
				      t->read_ns);
	return replace(t, s, m, o->reason);
}

static int unread(struct tsi_target *t, struct tsi_sampler *s,
		  const struct tsi_maker *m, int err)
{
	char reason[160];

	if (err == ESTALE) /* replaced while it was read */
		return replace(t, s, m, strerror(err));
	if (tsi_io_reader_blames_file(err))
		return replace_for_all(t, s, m, tsi_io_reader_strerror(err));
	if (err == EMFILE || err == ENFILE) {
		snprintf(reason, sizeof(reason),
			 "%s; raise the limit (ulimit -n) or lower --threads",
			 strerror(err));
		return name_file(t, s, TSOCK_ESYS, reason);
	}
	if (err == ENOTCONN) {
		snprintf(reason, sizeof(reason),
			 "the file system that was mounted there is gone (%s): "
			 "mount it again",
			 strerror(err));
		return name_file(t, s, TSOCK_ESYS, reason);
	}
	if (t->failures++ < RETRIES)
		return 0;
	snprintf(reason, sizeof(reason), "%s, %d times in a row", strerror(err),
		 RETRIES + 1);
	return name_file(t, s, TSOCK_ESYS, reason);
}

int tsi_target_next(struct tsi_target *t, struct tsi_sampler *s,
		    const struct tsi_maker *m, const struct tsi_outcome *o)
{
	switch (o->came) {
	case TSI_CAME_KNOWN:
		return choose_good(t, s, m);
	case TSI_CAME_UNREAD:
		return unread(t, s, m, o->err);
	case TSI_CAME_UNDECODABLE:
		return undecodable(t, s, m, o);
	case TSI_CAME_NEVER:
		return replace_for_all(t, s, m, o->reason);
	case TSI_CAME_NOT_NOW:
		return replace(t, s, m, o->reason);
	case TSI_CAME_CROWDED:
	case TSI_CAME_SAMPLE:
		return 0;
	case TSI_CAME_NO_MEMORY:
		return name_file(t, s, TSOCK_ENOMEM, o->reason);
	case TSI_CAME_END:
		break;
	}
	return o->err;
}

int tsi_target_first(struct tsi_target *t, struct tsi_sampler *s,
		     const struct tsi_maker *m, uint64_t seq)
{
	struct tsi_badfiles *b = tsi_sampler_badfiles(s);
	const char *why = NULL;
	int err;

	*t = (struct tsi_target){ 0 };
	err = tsi_sampler_at(s, seq, &t->id);
	if (err)
		return err;
	t->file = t->id.index;
	if (tsi_badfiles_changed(b, t->file))
		tsi_badfiles_forget(b, t->file);
	if (tsi_sampler_raises(s))
		why = tsi_index_bad_reason(tsi_sampler_index(s), t->file);
	return why ? replace(t, s, m, why) : choose_good(t, s, m);
}
