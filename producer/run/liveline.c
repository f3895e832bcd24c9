/*
 * liveline.c - what the stream does now, in one line.
 */
#include "run/liveline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How far a consumer is behind the newest sample. */
static uint64_t lag(const struct tsi_live *l, const struct tsock_stats_row *r)
{
	return r->tail < l->stats.head ? l->stats.head - r->tail : 0;
}

static const struct tsock_stats_row *slowest(const struct tsi_live *l)
{
	const struct tsock_stats_row *worst = NULL;

	for (uint32_t i = 0; i < l->stats.nrows; i++)
		if (!worst || lag(l, &l->stats.row[i]) > lag(l, worst))
			worst = &l->stats.row[i];
	return worst;
}

enum tsi_bottleneck tsi_live_bottleneck(const struct tsi_live *a,
					const struct tsi_live *b,
					const struct tsi_live_style *style)
{
	uint64_t io = b->io_ns - a->io_ns;
	uint64_t decode = b->decode_ns - a->decode_ns;
	const struct tsock_stats_row *r = slowest(b);
	double could = (double)(b->now_ns - a->now_ns) * style->threads;

	if (b->stats.consumers < style->min_consumers && b->stats.claimed == 0)
		return TSI_BY_START;
	if (b->stats.consumers == 0 || !r)
		return TSI_BY_NOBODY;
	/*
	 * Idle workers and a ring with next to no room: it is the readers.  A
	 * worker in the middle of a sample counts its time when that is done.
	 */
	if ((double)(io + decode) < could / 2 &&
	    b->stats.claimed + b->stats.capacity / 16 >= b->stats.limit)
		return r->view && r->waiting ? TSI_BY_VIEW : TSI_BY_CONSUMER;
	return io > decode ? TSI_BY_IO : TSI_BY_DECODE;
}

static void bottleneck_text(char *buf, size_t size, const struct tsi_live *a,
			    const struct tsi_live *b,
			    const struct tsi_live_style *style)
{
	switch (tsi_live_bottleneck(a, b, style)) {
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
	case TSI_BY_VIEW:
		snprintf(buf, size, "conversion-bound");
		return;
	case TSI_BY_DECODE:
		snprintf(buf, size, "decode-bound");
		return;
	case TSI_BY_IO:
		snprintf(buf, size, "io-bound");
		return;
	}
}

static void rates_text(char *buf, size_t size, const struct tsi_live *a,
		       const struct tsi_live *b)
{
	double dt = (double)(b->now_ns - a->now_ns) / 1e9;
	const struct tsock_stats *st = &b->stats;
	const struct tsock_stats_row *r = slowest(b);
	uint64_t n = st->epoch_len ? st->epoch_len : 1;
	uint64_t fill = r && st->capacity ? lag(b, r) * 100 / st->capacity : 0;
	double images = 0, bytes = 0;
	char number[28];

	if (dt > 0) {
		images = (double)(st->produced - a->stats.produced) / dt;
		bytes = (double)(st->read_bytes - a->stats.read_bytes) / dt;
	}
	snprintf(buf, size,
		 "%s images/s  %.1f MB/s  ring %" PRIu64 "%%  epoch %" PRIu64
		 " %" PRIu64 "%%",
		 tsi_thousands(number, (uint64_t)(images + 0.5)), bytes / 1e6,
		 fill, st->head / n, st->head % n * 100 / n);
	if (st->bad_samples > 0) {
		size_t len = strlen(buf);

		snprintf(buf + len, size - len, "  %" PRIu64 " substituted",
			 st->bad_samples);
	}
}

/* The consumers, the slowest first, as many as fit into room columns. */
static void consumers_text(char *buf, size_t size, const struct tsi_live *l,
			   size_t room)
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
			one, sizeof(one), "%s%u (batch %u) lag %" PRIu64,
			k ? ", " : ": ", r->pid, r->batch_size, lag(l, r));
		/* Room is kept to say how many more there are. */
		if (len + n + (left > 1 ? 7 : 0) > room || len + n + 8 > size)
			break;
		memcpy(buf + len, one, n + 1);
		len += n;
		left--;
	}
	if (left && left < l->stats.consumers && len + 8 < size)
		snprintf(buf + len, size - len, " +%u", left);
}

size_t tsi_live_line(char *buf, size_t size, const struct tsi_live *a,
		     const struct tsi_live *b,
		     const struct tsi_live_style *style)
{
	size_t width = style->width ? style->width : SIZE_MAX;
	char rates[256], who[1024], why[64];
	size_t used;
	int n;

	rates_text(rates, sizeof(rates), a, b);
	bottleneck_text(why, sizeof(why), a, b, style);
	used = strlen(rates) + strlen(why) + 4;
	consumers_text(who, sizeof(who), b,
		       width == SIZE_MAX ? SIZE_MAX
		       : width > used    ? width - used
					 : 0);
	if (used + strlen(who) > width)
		who[0] = '\0';
	n = snprintf(buf, size, "%s%s%s  ", rates, who[0] ? "  " : "", who);
	if (n < 0 || (size_t)n >= size)
		return strlen(buf);
	if ((size_t)n > width) {
		buf[width] = '\0';
		return width;
	}
	if ((size_t)n + strlen(why) > width)
		why[width - (size_t)n] = '\0';
	snprintf(buf + n, size - (size_t)n, "%s%s%s",
		 style->colour ? "\033[1m" : "", why,
		 style->colour ? "\033[0m" : "");
	return strlen(buf);
}

const char *tsi_thousands(char *buf, uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *to = buf;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buf;
}

const char *tsi_megabytes(char *buf, uint64_t bytes)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB" };
	double v = (double)bytes / 1000;
	unsigned u = 0;

	while (v >= 999.95 && u < 4) {
		v /= 1000;
		u++;
	}
	snprintf(buf, 16, "%.1f %s", v, units[u]);
	return buf;
}
