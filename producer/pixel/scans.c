/* SPDX-License-Identifier: MIT */
/*
 * scans.c - what the scans of a JPEG file cost, by its markers.
 */
#include "pixel/scans.h"

#include <string.h>

enum {
	TEM = 0x01,
	RST0 = 0xd0,
	RST7 = 0xd7,
	SOI = 0xd8,
	EOI = 0xd9,
	SOS = 0xda,
};

bool tsi_scans_too_many(const struct tsi_scan_frame *f,
			const struct tsi_scan_work *w)
{
	uint64_t most = TSI_SCANS_FREE;

	for (unsigned i = 0; i < f->n && !f->arithmetic; i++)
		most += TSI_SCANS_EACH * f->blocks[i];
	return w->scans > TSI_SCANS_MAX || w->visits > most;
}

/*
 * The marker at or behind p, which moves behind it; 0 at the end.  The data of
 * a scan has none but restarts: a 0xff in it is followed by a zero.
 */
static unsigned next_marker(const uint8_t **p, const uint8_t *end)
{
	while (*p < end) {
		const uint8_t *q = memchr(*p, 0xff, (size_t)(end - *p));

		if (!q)
			break;
		while (q < end && *q == 0xff)
			q++;
		if (q == end)
			break;
		*p = q + 1;
		if (*q != 0 && *q != TEM && !(*q >= RST0 && *q <= RST7))
			return *q;
	}
	return 0;
}

/* A scan's header, len bytes at p: it counts the components that it names. */
static void add_scan(const struct tsi_scan_frame *f, const uint8_t *p,
		     size_t len, struct tsi_scan_work *w)
{
	unsigned n = len ? p[0] : 0;

	w->scans++;
	for (unsigned i = 0; i < n && 2 + 2 * (size_t)i < len; i++)
		for (unsigned k = 0; k < f->n; k++)
			if (f->id[k] == p[1 + 2 * i])
				w->visits += f->blocks[k];
}

struct tsi_scan_work tsi_scans_count(const struct tsi_scan_frame *f,
				     const void *data, size_t len)
{
	struct tsi_scan_work w = { 0 };
	const uint8_t *p = data, *end = p + len;

	/* Behind the marker that every file begins with. */
	p += len < 2 ? len : 2;
	while (!tsi_scans_too_many(f, &w)) {
		unsigned marker = next_marker(&p, end);
		size_t n;

		if (!marker || marker == SOI || marker == EOI || end - p < 2)
			break;
		n = (size_t)p[0] << 8 | p[1];
		if (n < 2 || (size_t)(end - p) < n)
			break;
		if (marker == SOS)
			add_scan(f, p + 2, n - 2, &w);
		p += n;
	}
	return w;
}
