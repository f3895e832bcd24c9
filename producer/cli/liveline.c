/* SPDX-License-Identifier: MIT */
/*
 * liveline.c - what the stream does now, in one line.
 */
#include "cli/liveline.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/number.h"

/* How far a consumer is behind the newest sample. */
static uint64_t lag(const struct tsi_snapshot *l,
		    const struct tsock_stats_row *r)
{
	return r->tail < l->stats.head ? l->stats.head - r->tail : 0;
}

static const struct tsock_stats_row *slowest(const struct tsi_snapshot *l)
{
	const struct tsock_stats_row *worst = NULL;

	for (uint32_t i = 0; i < l->stats.nrows; i++)
		if (!worst || lag(l, &l->stats.row[i]) > lag(l, worst))
			worst = &l->stats.row[i];
	return worst;
}

static bool is_stopped(const struct tsi_snapshot *l,
		       const struct tsock_stats_row *r)
{
	return l->stopped[r - l->stats.row];
}

/* Is the ring full, and do the workers wait for the slowest consumer? */
static bool is_full(const struct tsi_snapshot *a, const struct tsi_snapshot *b,
		    const struct tsi_liveline_style *style)
{
	uint64_t busy = b->io_ns - a->io_ns + b->decode_ns - a->decode_ns;
	double could = (double)(b->now_ns - a->now_ns) * style->threads;

	/*
	 * Workers are idle and hardly a slot is free.  A worker counts its time
	 * when a sample is done.
	 */
	return (double)busy < could / 2 &&
	       b->stats.claimed + b->stats.capacity / 16 >= b->stats.limit;
}

/* Has this consumer waited for most of the time since a? */
static bool has_waited(const struct tsi_snapshot *a,
		       const struct tsi_snapshot *b,
		       const struct tsock_stats_row *r)
{
	for (uint32_t i = 0; i < a->stats.nrows; i++) {
		const struct tsock_stats_row *old = &a->stats.row[i];

		if (old->pid == r->pid && old->batch_size == r->batch_size &&
		    old->view == r->view && old->samples <= r->samples)
			return r->wait_ns > old->wait_ns &&
			       r->wait_ns - old->wait_ns >=
				       (uint64_t)(b->now_ns - a->now_ns) / 2;
	}
	return false;
}

/* The consumer's view lacks samples that the base ring has, and has slots. */
static bool waits_for_view(const struct tsi_snapshot *l,
			   const struct tsock_stats_row *r)
{
	uint64_t low = r->tail;

	for (uint32_t i = 0; i < l->stats.nrows; i++)
		if (l->stats.row[i].view == r->view &&
		    l->stats.row[i].tail < low)
			low = l->stats.row[i].tail;
	return r->view && r->waiting &&
	       r->tail + r->batch_size <= l->stats.head &&
	       r->tail + r->batch_size <= low + l->stats.capacity;
}

/* This consumer has read all samples that there are, or nearly all. */
static bool waits_for_samples(const struct tsi_snapshot *a,
			      const struct tsi_snapshot *b,
			      const struct tsock_stats_row *r)
{
	if (r->waiting && r->tail + r->batch_size > b->stats.head)
		return true;
	return has_waited(a, b, r) &&
	       r->tail + UINT64_C(2) * r->batch_size > b->stats.head;
}

enum tsi_bottleneck
tsi_liveline_bottleneck(const struct tsi_snapshot *a,
			const struct tsi_snapshot *b,
			const struct tsi_liveline_style *style)
{
	const struct tsock_stats *st = &b->stats;
	const struct tsock_stats_row *r = slowest(b);

	if (st->consumers < style->min_consumers && st->claimed == 0)
		return TSI_BY_START;
	if (st->consumers == 0 || !r)
		return TSI_BY_NOBODY;
	if (is_full(a, b, style))
		return waits_for_view(b, r) ? TSI_BY_VIEW
		       : is_stopped(b, r)   ? TSI_BY_STOPPED
					    : TSI_BY_CONSUMER;
	for (uint32_t i = 0; i < st->nrows; i++)
		if (waits_for_view(b, &st->row[i]))
			return TSI_BY_VIEW;
	for (uint32_t i = 0; i < st->nrows; i++)
		if (waits_for_samples(a, b, &st->row[i]))
			return b->io_ns - a->io_ns > b->decode_ns - a->decode_ns
				       ? TSI_BY_IO
				       : TSI_BY_DECODE;
	return is_stopped(b, r) ? TSI_BY_STOPPED : TSI_BY_NONE;
}

static void bottleneck_text(char *buf, size_t size,
			    const struct tsi_snapshot *a,
			    const struct tsi_snapshot *b,
			    const struct tsi_liveline_style *style)
{
	switch (tsi_liveline_bottleneck(a, b, style)) {
	case TSI_BY_START:
		if (style->min_consumers > 1)
			snprintf(buf, size, "waiting for %u of %u consumers",
				 style->min_consumers - b->stats.consumers,
				 style->min_consumers);
		else
			snprintf(buf, size, "waiting for the first consumer");
		return;
	case TSI_BY_NOBODY:
		snprintf(buf, size, "waiting for a consumer");
		return;
	case TSI_BY_CONSUMER:
		snprintf(buf, size, "waiting for consumer %u", slowest(b)->pid);
		return;
	case TSI_BY_STOPPED:
		snprintf(buf, size, "consumer %u is stopped", slowest(b)->pid);
		return;
	case TSI_BY_VIEW:
		snprintf(buf, size, "conversion-bound");
		return;
	case TSI_BY_DECODE:
		snprintf(buf, size, "decode-bound");
		return;
	case TSI_BY_IO:
		snprintf(buf, size, "io-bound");
		return;
	case TSI_BY_NONE:
		snprintf(buf, size, "nobody waits");
		return;
	}
}

/* How full the base ring is, in percent. */
static unsigned ring_fill(const struct tsock_stats *st)
{
	uint64_t low = st->limit > st->capacity ? st->limit - st->capacity : 0;
	uint64_t in = st->head > low ? st->head - low : 0;

	if (!st->capacity)
		return 0;
	return in < st->capacity ? (unsigned)(in * 100 / st->capacity) : 100;
}

/* The parts of a line; where the line is too long, the first go first. */
enum { BYTES = 1, EACH = 2, RING = 4, EPOCH = 8, WORST = 16, ALL = 31 };

static void append_text(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void append_text(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
}

static void rates_text(char *buf, size_t size, const struct tsi_snapshot *a,
		       const struct tsi_snapshot *b, unsigned what)
{
	double dt = (double)(b->now_ns - a->now_ns) / 1e9;
	const struct tsock_stats *st = &b->stats;
	uint64_t n = st->epoch_len ? st->epoch_len : 1;
	double images = 0, bytes = 0;
	char number[28];

	if (dt > 0) {
		images = (double)(st->produced - a->stats.produced) / dt;
		bytes = (double)(st->read_bytes - a->stats.read_bytes) / dt;
	}
	snprintf(buf, size, "%s images/s",
		 tsi_number_thousands(number, (uint64_t)(images + 0.5)));
	if (what & BYTES)
		append_text(buf, size, "  %.1f MB/s", bytes / 1e6);
	if (what & RING)
		append_text(buf, size, "  ring %u%%", ring_fill(st));
	if (what & EPOCH)
		append_text(buf, size, "  epoch %" PRIu64 " %" PRIu64 "%%",
			    st->head / n, st->head % n * 100 / n);
	if (st->bad_samples > 0 && what & EPOCH)
		append_text(buf, size, "  %" PRIu64 " substituted",
			    st->bad_samples);
}

/*
 * The consumers, the slowest first, as many as fit into width columns.  False
 * if not even the slowest fits.
 */
static bool each_text(char *buf, size_t size, const struct tsi_snapshot *l,
		      size_t width)
{
	bool told[TSOCK_STATS_ROWS] = { false };
	uint32_t left = l->stats.consumers;
	size_t len;

	len = (size_t)snprintf(buf, size, "%u consumer%s", left,
			       left == 1 ? "" : "s");
	for (uint32_t k = 0; k < l->stats.nrows; k++) {
		const struct tsock_stats_row *r = NULL;
		char one[96];
		size_t n;
		uint32_t at = 0;

		for (uint32_t i = 0; i < l->stats.nrows; i++) {
			const struct tsock_stats_row *c = &l->stats.row[i];

			if (!told[i] && (!r || lag(l, c) > lag(l, r))) {
				r = c;
				at = i;
			}
		}
		told[at] = true;
		n = (size_t)snprintf(
			one, sizeof(one), "%s%u (batch %u) lag %" PRIu64 "%s",
			k ? ", " : ": ", r->pid, r->batch_size, lag(l, r),
			is_stopped(l, r) ? " stopped" : "");
		/* Columns are kept to say how many more there are. */
		if (len + n + (left > 1 ? 7 : 0) > width || len + n + 8 > size)
			break;
		memcpy(buf + len, one, n + 1);
		len += n;
		left--;
	}
	if (left && len + 8 < size)
		append_text(buf, size, " +%u", left);
	return !left || left < l->stats.consumers;
}

/* The slowest consumer alone. */
static void worst_text(char *buf, size_t size, const struct tsi_snapshot *l)
{
	const struct tsock_stats_row *r = slowest(l);

	buf[0] = '\0';
	if (!r)
		return;
	snprintf(buf, size, "%u lag %" PRIu64, r->pid, lag(l, r));
	if (l->stats.consumers > 1)
		append_text(buf, size, " +%u", l->stats.consumers - 1);
}

static size_t compose(char *buf, size_t size, const struct tsi_snapshot *a,
		      const struct tsi_snapshot *b,
		      const struct tsi_liveline_style *style, unsigned what,
		      size_t width, const char *why)
{
	char rates[256], who[1024] = "";
	size_t used;

	rates_text(rates, sizeof(rates), a, b, what);
	if (style->threads < style->all_threads && what & EPOCH)
		append_text(rates, sizeof(rates), "  %u/%u threads",
			    style->threads, style->all_threads);
	used = strlen(rates) + strlen(why) + 4;
	if (what & EACH && !each_text(who, sizeof(who), b,
				      width == SIZE_MAX ? SIZE_MAX
				      : width > used    ? width - used
							: 0))
		return SIZE_MAX;
	if ((what & (EACH | WORST)) == WORST)
		worst_text(who, sizeof(who), b);
	snprintf(buf, size, "%s%s%s  ", rates, who[0] ? "  " : "", who);
	return strlen(buf) + strlen(why);
}

size_t tsi_liveline_format(char *buf, size_t size, const struct tsi_snapshot *a,
			   const struct tsi_snapshot *b,
			   const struct tsi_liveline_style *style)
{
	static const unsigned tries[] = { ALL,
					  ALL & ~BYTES,
					  ALL & ~EACH,
					  ALL & ~EACH & ~BYTES,
					  EPOCH | WORST,
					  WORST,
					  0 };
	size_t width = style->width ? style->width : SIZE_MAX;
	char why[64];
	size_t n;

	bottleneck_text(why, sizeof(why), a, b, style);
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		if (compose(buf, size, a, b, style, tries[i], width, why) <=
		    width)
			break;
	n = strlen(buf);
	if (n > width) {
		buf[width] = '\0';
		return width;
	}
	if (n + strlen(why) > width)
		why[width - n] = '\0';
	append_text(buf, size, "%s%s%s", style->colour ? "\033[1m" : "", why,
		    style->colour ? "\033[0m" : "");
	return strlen(buf);
}
