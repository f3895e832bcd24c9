/* SPDX-License-Identifier: MIT */
/*
 * kernels_colour.c - the inner loops of operations on colours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/canvas.h"
#include "ops/colour_kernel.h"
#include "test/lib/image_gen.h"
#include "test/lib/kernels.h"

#define ROUNDS 300
#define MOST 300
#define UNTOUCHED 0x5a

static uint64_t state;

static uint32_t below(uint32_t n)
{
	return (image_gen_random(&state) >> 8) % n;
}

static void noise(uint8_t *p, size_t n)
{
	unsigned kind = below(4), base = below(250);

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(kind == 0   ? 0 - below(2)
				 : kind == 1 ? base + below(6)
					     : below(256));
}

/* One that copies, lies between, or clips. */
static float some_alpha(void)
{
	static const float special[] = { 0, 1, .5f, -1, 10, 1e9f, -1e9f };
	unsigned i = below(16);

	return i < 7 ? special[i] : (float)below(1000003) / 500000;
}

/*
 * Two buffers, of which the version has the second; each just as long as its
 * room is, so that what is beyond is seen.
 */
struct pair {
	uint8_t *a, *b;
	size_t room;
};

/* Both buffers have the same bytes. */
static struct pair make_pair(size_t n)
{
	struct pair p = { NULL, NULL, n + TSI_CANVAS_SLACK };

	p.a = malloc(p.room);
	p.b = malloc(p.room);
	noise(p.a, p.room);
	memcpy(p.b, p.a, p.room);
	return p;
}

static void end_pair(struct pair *p, size_t n)
{
	assert_memory_equal(p->a, p->b, n);
	free(p->a);
	free(p->b);
}

static void make_table(uint8_t *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		table[i] = (uint8_t)below(256);
}

static void compare_look_up(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;
	uint8_t table[256];

	state = 40;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST);
		struct pair p = make_pair(n);

		make_table(table, 256);
		plain->look_up(table, p.a, n);
		version->look_up(table, p.b, n);
		end_pair(&p, n);
	}
}

static void compare_look_up3(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;
	uint8_t tables[3][256];

	state = 41;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST);
		struct pair p = make_pair(3 * n);

		make_table(tables[0], sizeof(tables));
		plain->look_up3((const uint8_t(*)[256])tables, p.a, n);
		version->look_up3((const uint8_t(*)[256])tables, p.b, n);
		end_pair(&p, 3 * n);
	}
}

/* To other memory, and to its own. */
static void compare_luminance(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 42;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST);
		struct pair p = make_pair(3 * n);
		struct pair to = make_pair(n);

		plain->luminance(p.a, to.a, n);
		version->luminance(p.b, to.b, n);
		end_pair(&to, n);
		plain->luminance(p.a, p.a, n);
		version->luminance(p.b, p.b, n);
		end_pair(&p, n);
	}
}

static void compare_spread(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 43;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST);
		struct pair p = make_pair(n);
		struct pair to = make_pair(3 * n);

		plain->spread(p.a, to.a, n);
		version->spread(p.b, to.b, n);
		end_pair(&to, 3 * n);
		end_pair(&p, n);
	}
}

static void compare_sum(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 44;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST);
		uint8_t *p = malloc(n);

		noise(p, n);
		assert_int_equal(version->sum(p, n), plain->sum(p, n));
		free(p);
	}
}

static void compare_extremes(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 45;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t low[2][3], high[2][3];
		size_t n = 1 + below(3 * MOST);
		uint8_t *p = malloc(n);

		noise(p, n);
		/* Not all have 0 and 255. */
		for (size_t v = 0; v < n; v++)
			p[v] = (uint8_t)(40 + v % 3 + p[v] / 2);
		plain->extremes(p, n, low[0], high[0]);
		version->extremes(p, n, low[1], high[1]);
		assert_memory_equal(low[0], low[1], 3);
		assert_memory_equal(high[0], high[1], 3);
		free(p);
	}
}

static void compare_saturate(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 46;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST);
		struct pair p = make_pair(3 * n);
		float alpha = some_alpha();

		plain->saturate(alpha, p.a, n);
		version->saturate(alpha, p.b, n);
		end_pair(&p, 3 * n);
	}
}

static void compare_blend(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 47;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(3 * MOST);
		struct pair p = make_pair(n), d = make_pair(n);
		float alpha = some_alpha();

		plain->blend(alpha, d.a, p.a, n);
		version->blend(alpha, d.b, p.b, n);
		end_pair(&p, n);
		end_pair(&d, n);
	}
}

/* Some rows are longer than what a version does at a time. */
static void compare_smooth(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 48;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t step = below(2) ? 3 : 1, wide = i % 8 ? 1 : 8;
		size_t row = step * (3 + wide * below(MOST));
		struct pair p = make_pair(3 * row), to = make_pair(row);
		size_t n = row - 2 * step, at = row + step;
		float alpha = some_alpha();

		plain->smooth(alpha, p.a + at, row, step, to.a, n);
		version->smooth(alpha, p.b + at, row, step, to.b, n);
		end_pair(&p, 3 * row);
		end_pair(&to, n);
	}
}

/* All colours, by some; and few of them by all. */
static void compare_hue(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 49;
	for (unsigned red = 0; red < 256; red++) {
		struct pair p = make_pair(3 << 16);
		uint8_t by = (uint8_t)below(256);

		for (size_t i = 0; i < 1 << 16; i++) {
			p.a[3 * i] = (uint8_t)red;
			p.a[3 * i + 1] = (uint8_t)(i >> 8);
			p.a[3 * i + 2] = (uint8_t)i;
		}
		memcpy(p.b, p.a, p.room);
		plain->hue(by, p.a, 1 << 16);
		version->hue(by, p.b, 1 << 16);
		end_pair(&p, 3 << 16);
	}
	for (unsigned by = 0; by < 256; by++) {
		size_t n = 1 + below(MOST);
		struct pair p = make_pair(3 * n);

		plain->hue((uint8_t)by, p.a, n);
		version->hue((uint8_t)by, p.b, n);
		end_pair(&p, 3 * n);
	}
}

static float sums[2][MOST + 64];

static void compare_weigh(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 50;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST), end = (n + 15) / 16 * 16;
		float weight = (float)below(1000003) / 1000003, untouched;
		struct pair p = make_pair(n);

		memset(&untouched, UNTOUCHED, sizeof(untouched));
		for (size_t v = 0; v < MOST + 64; v++)
			sums[0][v] =
				v < end ? (float)below(60000) / 256 : untouched;
		memcpy(sums[1], sums[0], sizeof(sums[0]));
		plain->weigh(weight, p.a, sums[0], n);
		version->weigh(weight, p.b, sums[1], n);
		assert_memory_equal(sums[0], sums[1], n * sizeof(float));
		for (size_t v = end; v < MOST + 64; v++)
			assert_memory_equal(&sums[1][v], &untouched,
					    sizeof(float));
		end_pair(&p, n);
	}
}

static void compare_truncate(const struct kernels_at *k)
{
	const struct tsi_colour_kernel *plain = k->plain, *version = k->kernel;

	state = 51;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST);
		struct pair to = make_pair(n);

		for (size_t v = 0; v < MOST + 64; v++)
			sums[0][v] = (float)below(70000) / 256 - 5;
		sums[0][below((uint32_t)n)] = 254.99999f;
		sums[0][below((uint32_t)n)] = 255.00002f;
		plain->truncate(sums[0], to.a, n);
		version->truncate(sums[0], to.b, n);
		end_pair(&to, n);
	}
}

KERNELS_INIT(colour)

#define SLOT(name) \
	{ \
#name, offsetof(struct tsi_colour_kernel, name), \
			compare_##name \
	}

const struct kernels_group kernels_colour = {
	.name = "changed_colours_are_those_of_plain_c",
	.size = sizeof(struct tsi_colour_kernel),
	.init = init_colour,
	.slot = {
		SLOT(look_up),
		SLOT(look_up3),
		SLOT(luminance),
		SLOT(spread),
		SLOT(sum),
		SLOT(extremes),
		SLOT(saturate),
		SLOT(blend),
		SLOT(smooth),
		SLOT(hue),
		SLOT(weigh),
		SLOT(truncate),
	},
};
