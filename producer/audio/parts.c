/* SPDX-License-Identifier: MIT */
/*
 * parts.c - which bytes of a file samples need.
 */
#include "audio/parts.h"

#include <string.h>

/* Bytes between two parts that are read sooner than a part more. */
#define NEAR 16384

struct tsi_audio_parts tsi_audio_parts_of(size_t head)
{
	return (struct tsi_audio_parts){ .n = 1, .part = { { 0, head } } };
}

static uint64_t end_of(const struct tsi_audio_part *part)
{
	return part->at + part->len;
}

/* Put part k and the one behind it together, if they are near. */
static void join(struct tsi_audio_parts *p, unsigned k)
{
	struct tsi_audio_part *a = &p->part[k], *b = a + 1;

	if (k + 1 >= p->n || b->at > end_of(a) + NEAR)
		return;
	if (end_of(b) > end_of(a))
		a->len = end_of(b) - a->at;
	p->n--;
	memmove(b, b + 1, (p->n - k - 1) * sizeof(*b));
}

void tsi_audio_parts_add(struct tsi_audio_parts *p, uint64_t at, size_t len)
{
	unsigned k = 1;

	while (k < p->n && p->part[k].at < at)
		k++;
	memmove(&p->part[k + 1], &p->part[k], (p->n - k) * sizeof(p->part[0]));
	p->part[k] = (struct tsi_audio_part){ at, len };
	p->n++;
	join(p, k);
	join(p, k - 1);
}

uint64_t tsi_audio_parts_bytes(const struct tsi_audio_parts *p)
{
	uint64_t bytes = 0;

	for (unsigned k = 0; k < p->n; k++)
		bytes += p->part[k].len;
	return bytes;
}

unsigned tsi_audio_parts_behind(const struct tsi_audio_parts *p, size_t head,
				struct tsi_audio_part *to)
{
	unsigned n = 0;

	if (p->part[0].len > head)
		to[n++] =
			(struct tsi_audio_part){ head, p->part[0].len - head };
	for (unsigned k = 1; k < p->n; k++)
		to[n++] = p->part[k];
	return n;
}

const uint8_t *tsi_audio_parts_find(const struct tsi_audio_parts *p,
				    const uint8_t *data, uint64_t at)
{
	unsigned k = 0;

	for (; at >= end_of(&p->part[k]); k++)
		data += p->part[k].len;
	return data + (at - p->part[k].at);
}
