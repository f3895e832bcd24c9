/* SPDX-License-Identifier: MIT */
/*
 * mkdata.c - a made-up photo set in ImageNet's layout, from a seed.
 *
 *     mkdata DIR [--classes N] [--images N] [--val N] [--seed N]
 *                [--quality Q] [--min PX] [--max PX] [--jobs N]
 *
 * writes the JPEG files DIR/train/CLASS/NAME and DIR/val/CLASS/NAME.  Octaves
 * of smooth noise, shapes with hard edges and a little grain cost a decoder
 * about what photos cost: sizes, chroma samplings and bits per pixel are spread
 * roughly as in ImageNet, with some progressive files added.  The same
 * arguments give the same bytes with the same libjpeg, whatever the number of
 * jobs.
 *
 * A tool of the benches and the demo: no part of the loader, and so it may
 * include jpeglib.h for itself.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jpeglib.h>

#define EDGE_MAX 4096
#define SHAPES 7

struct options {
	const char *dir;
	unsigned classes;
	unsigned images;
	unsigned val;
	uint64_t seed;
	unsigned quality; /* 0: varied */
	unsigned min;
	unsigned max;
	unsigned jobs;
};

struct shape {
	float x, y, rx, ry;
	float colour[3];
	float smooth; /* what is left of the texture inside */
	bool box;
};

/* Smooth noise: random values on a lattice, blended between. */
struct octave {
	unsigned cell;
	float amplitude;
	uint64_t key;
};

struct scene {
	unsigned width, height;
	struct octave light[5];
	struct octave tint[2][2];
	struct shape shape[SHAPES];
	unsigned shapes;
	float base[3];
	float slope[2];
	float grain;
	uint64_t key;
	int h, v; /* luma sampling factors */
	bool grey;
	bool progressive;
	unsigned quality;
};

static void die(const char *what, const char *name)
{
	fprintf(stderr, "mkdata: %s %s: %s\n", what, name, strerror(errno));
	exit(1);
}

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return mix(*state);
}

/* Uniform in [low, high). */
static float between(uint64_t *state, float low, float high)
{
	return low + (high - low) * (float)(next(state) >> 40) * 0x1p-24f;
}

static unsigned below(uint64_t *state, unsigned n)
{
	return (unsigned)(next(state) >> 33) % n;
}

static float lattice(uint64_t key, unsigned x, unsigned y)
{
	uint64_t r = mix(key ^ ((uint64_t)y << 32 | x));

	/* The sum of four bytes is nearly normal. */
	return ((float)((r & 255) + (r >> 8 & 255) + (r >> 16 & 255) +
			(r >> 24 & 255)) -
		510.0f) *
	       (1.0f / 147.8f);
}

/* Add row y of an octave to out. */
static void add_octave(const struct octave *o, unsigned width, unsigned y,
		       float *out)
{
	static float row[EDGE_MAX + 2];
	unsigned n = width / o->cell + 2, at = y / o->cell;
	float down = (float)(y % o->cell) / (float)o->cell;
	float step = 1.0f / (float)o->cell;

	for (unsigned i = 0; i < n; i++) {
		float a = lattice(o->key, i, at);
		float b = lattice(o->key, i, at + 1);

		row[i] = (a + (b - a) * down) * o->amplitude;
	}
	for (unsigned i = 0, x = 0; x < width; i++) {
		float a = row[i], d = (row[i + 1] - row[i]) * step;
		unsigned end = x + o->cell < width ? o->cell : width - x;

		for (unsigned k = 0; k < end; k++)
			out[x + k] += a + d * (float)k;
		x += end;
	}
}

/* Pixels [*from, return value) of row y are inside. */
static unsigned shape_span(const struct shape *s, unsigned width, unsigned y,
			   unsigned *from)
{
	float dy = ((float)y - s->y) / s->ry, half, low, high;

	if (dy <= -1.0f || dy >= 1.0f)
		return *from = 0;
	half = s->box ? s->rx : s->rx * sqrtf(1.0f - dy * dy);
	low = s->x - half;
	high = s->x + half;
	*from = low < 0 ? 0 : (unsigned)low;
	if (high <= (float)*from)
		return *from = 0;
	return high > (float)width ? width : (unsigned)high;
}

static uint8_t clip(float v)
{
	return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

static void add_grain(const struct scene *s, unsigned y, float *out)
{
	uint64_t r = mix(s->key + y);

	for (unsigned x = 0; x < s->width; x++) {
		r ^= r << 13;
		r ^= r >> 7;
		r ^= r << 17;
		out[x] += ((float)(r & 255) + (float)(r >> 8 & 255) - 255.0f) *
			  s->grain;
	}
}

/* Row y as interleaved luma and chroma, or as luma alone. */
static void paint_row(const struct scene *s, unsigned y, uint8_t *out)
{
	static float plane[3][EDGE_MAX];

	for (unsigned x = 0; x < s->width; x++) {
		plane[0][x] = s->base[0] + s->slope[0] * (float)x +
			      s->slope[1] * (float)y;
		plane[1][x] = s->base[1];
		plane[2][x] = s->base[2];
	}
	for (unsigned i = 0; i < 5; i++)
		add_octave(&s->light[i], s->width, y, plane[0]);
	for (unsigned c = 0; c < 2 && !s->grey; c++)
		for (unsigned i = 0; i < 2; i++)
			add_octave(&s->tint[c][i], s->width, y, plane[1 + c]);
	for (unsigned i = 0; i < s->shapes; i++) {
		const struct shape *p = &s->shape[i];
		unsigned from, to = shape_span(p, s->width, y, &from);

		for (unsigned c = 0; c < 3; c++)
			for (unsigned x = from; x < to; x++)
				plane[c][x] =
					p->colour[c] +
					p->smooth * (plane[c][x] - s->base[c]);
	}
	add_grain(s, y, plane[0]);
	for (unsigned x = 0; x < s->width; x++) {
		if (s->grey) {
			out[x] = clip(plane[0][x]);
			continue;
		}
		for (unsigned c = 0; c < 3; c++)
			out[3 * x + c] = clip(plane[c][x]);
	}
}

static void choose_size(const struct options *o, uint64_t *r, struct scene *s)
{
	static const float ratio[] = { 1.333f, 1.333f, 1.333f, 1.5f,
				       1.5f,   0.75f,  0.667f, 1.0f };
	float a = ratio[below(r, 8)];
	unsigned edge = o->min + below(r, o->max - o->min + 1), other;

	/* Most photos of such sets were scaled to one and the same edge. */
	if (below(r, 10) < 6 && o->min <= 500 && o->max >= 500)
		edge = 500;
	other = (unsigned)((float)edge * (a < 1 ? a : 1 / a));
	if (!other)
		other = 1;
	s->width = a < 1 ? other : edge;
	s->height = a < 1 ? edge : other;
}

static void choose_coding(const struct options *o, uint64_t *r, struct scene *s)
{
	unsigned k = below(r, 100);

	s->h = s->v = 1;
	if (k >= 70 && k < 92)
		s->h = s->v = 2;
	else if (k >= 92 && k < 96)
		s->h = 2;
	s->grey = k >= 97;
	s->progressive = below(r, 100) < 4;
	s->quality = o->quality ? o->quality : 88 + below(r, 10);
}

static void choose_shapes(uint64_t *r, struct scene *s)
{
	float w = (float)s->width, h = (float)s->height;

	s->shapes = 2 + below(r, SHAPES - 1);
	for (unsigned i = 0; i < s->shapes; i++) {
		struct shape *p = &s->shape[i];

		p->x = between(r, 0, w);
		p->y = between(r, 0, h);
		p->rx = between(r, 0.04f, 0.3f) * w + 1;
		p->ry = between(r, 0.04f, 0.3f) * h + 1;
		p->colour[0] = between(r, 20, 235);
		p->colour[1] = between(r, 90, 166);
		p->colour[2] = between(r, 90, 166);
		p->smooth = between(r, 0.2f, 1.1f);
		p->box = below(r, 3) == 0;
	}
}

static void choose_scene(const struct options *o, uint64_t key, unsigned kind,
			 struct scene *s)
{
	static const unsigned cell[5] = { 97, 37, 13, 5, 2 };
	static const float amplitude[5] = { 26, 17, 13, 12, 12 };
	uint64_t r = key, look = mix(o->seed ^ (uint64_t)kind << 20);
	float busy;

	memset(s, 0, sizeof(*s));
	s->key = next(&r);
	choose_size(o, &r, s);
	choose_coding(o, &r, s);
	busy = between(&r, 0.5f, 1.5f);
	for (unsigned i = 0; i < 5; i++)
		s->light[i] = (struct octave){ cell[i], amplitude[i] * busy,
					       next(&r) };
	for (unsigned c = 0; c < 2; c++)
		for (unsigned i = 0; i < 2; i++)
			s->tint[c][i] =
				(struct octave){ i ? 11 : 61, i ? 4.0f : 9.0f,
						 next(&r) };
	/* What the images of a class have in common. */
	s->base[1] = between(&look, 108, 148) + between(&r, -6, 6);
	s->base[2] = between(&look, 108, 148) + between(&r, -6, 6);
	s->base[0] = between(&r, 90, 160);
	s->slope[0] = between(&r, -40, 40) / (float)s->width;
	s->slope[1] = between(&r, -60, 60) / (float)s->height;
	s->grain = between(&r, 0.005f, 0.035f);
	choose_shapes(&r, s);
}

static void write_jpeg(const struct scene *s, const char *path)
{
	static uint8_t row[3 * EDGE_MAX];
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr err;
	JSAMPROW rows[1] = { row };
	FILE *f = fopen(path, "wb");

	if (!f)
		die("open", path);
	c.err = jpeg_std_error(&err);
	jpeg_create_compress(&c);
	jpeg_stdio_dest(&c, f);
	c.image_width = s->width;
	c.image_height = s->height;
	c.input_components = s->grey ? 1 : 3;
	c.in_color_space = s->grey ? JCS_GRAYSCALE : JCS_YCbCr;
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, (int)s->quality, TRUE);
	if (!s->grey) {
		c.comp_info[0].h_samp_factor = s->h;
		c.comp_info[0].v_samp_factor = s->v;
	}
	if (s->progressive)
		jpeg_simple_progression(&c);
	jpeg_start_compress(&c, TRUE);
	for (unsigned y = 0; y < s->height; y++) {
		paint_row(s, y, row);
		jpeg_write_scanlines(&c, rows, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	if (fclose(f))
		die("write", path);
}

static void make_dir(const char *path)
{
	if (mkdir(path, 0777) && errno != EEXIST)
		die("mkdir", path);
}

static void make_split(const struct options *o, const char *split,
		       unsigned images, unsigned job)
{
	char path[4096];
	struct scene s;

	for (unsigned kind = 0; kind < o->classes; kind++) {
		for (unsigned i = 0; i < images; i++) {
			uint64_t n = (uint64_t)kind * images + i;

			if (n % o->jobs != job)
				continue;
			choose_scene(o, mix(o->seed * 2 + (*split == 'v')) + n,
				     kind, &s);
			snprintf(path, sizeof(path),
				 "%s/%s/n%08u/n%08u_%05u.JPEG", o->dir, split,
				 kind + 1, kind + 1, i);
			write_jpeg(&s, path);
		}
	}
}

static void make_dirs(const struct options *o)
{
	static const char *const split[2] = { "train", "val" };
	char path[4096];

	make_dir(o->dir);
	for (unsigned k = 0; k < 2; k++) {
		if (k ? !o->val : !o->images)
			continue;
		snprintf(path, sizeof(path), "%s/%s", o->dir, split[k]);
		make_dir(path);
		for (unsigned kind = 0; kind < o->classes; kind++) {
			snprintf(path, sizeof(path), "%s/%s/n%08u", o->dir,
				 split[k], kind + 1);
			make_dir(path);
		}
	}
}

static int run_jobs(const struct options *o)
{
	int status, bad = 0;

	for (unsigned job = 0; job < o->jobs; job++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork", "a job");
		if (!pid) {
			make_split(o, "train", o->images, job);
			make_split(o, "val", o->val, job);
			exit(0);
		}
	}
	while (wait(&status) > 0)
		bad |= status;
	return bad ? 1 : 0;
}

static void usage(FILE *f)
{
	fprintf(f, "usage: mkdata DIR [options]\n"
		   "Make a photo set of JPEG files in DIR/train and DIR/val.\n"
		   "  --classes N   classes (10)\n"
		   "  --images N    training images of each class (100)\n"
		   "  --val N       validation images of each class (10)\n"
		   "  --seed N      what they show (0)\n"
		   "  --quality Q   JPEG quality 1 to 100 (88 to 97, mixed)\n"
		   "  --min PX      shortest long edge (250)\n"
		   "  --max PX      longest long edge (640)\n"
		   "  --jobs N      processes (one per processor)\n");
}

static uint64_t number(const char *name, const char *text, uint64_t low,
		       uint64_t high)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || v < low ||
	    v > high) {
		fprintf(stderr,
			"mkdata: --%s is '%s', must be a number from %llu to "
			"%llu\n",
			name, text, (unsigned long long)low,
			(unsigned long long)high);
		exit(2);
	}
	return v;
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option table[] = {
		{ "classes", 1, NULL, 'c' }, { "images", 1, NULL, 'i' },
		{ "val", 1, NULL, 'v' },     { "seed", 1, NULL, 's' },
		{ "quality", 1, NULL, 'q' }, { "min", 1, NULL, 'm' },
		{ "max", 1, NULL, 'M' },     { "jobs", 1, NULL, 'j' },
		{ "help", 0, NULL, 'h' },    { NULL, 0, NULL, 0 },
	};
	int c, at;

	while ((c = getopt_long(argc, argv, "", table, &at)) != -1) {
		const char *name = c == '?' ? "" : table[at].name;

		if (c == 'h') {
			usage(stdout);
			exit(0);
		} else if (c == 'c')
			o->classes = (unsigned)number(name, optarg, 1, 100000);
		else if (c == 'i')
			o->images = (unsigned)number(name, optarg, 0, 99999);
		else if (c == 'v')
			o->val = (unsigned)number(name, optarg, 0, 99999);
		else if (c == 's')
			o->seed = number(name, optarg, 0, UINT64_MAX);
		else if (c == 'q')
			o->quality = (unsigned)number(name, optarg, 1, 100);
		else if (c == 'm')
			o->min = (unsigned)number(name, optarg, 1, EDGE_MAX);
		else if (c == 'M')
			o->max = (unsigned)number(name, optarg, 1, EDGE_MAX);
		else if (c == 'j')
			o->jobs = (unsigned)number(name, optarg, 1, 1024);
		else
			exit(2);
	}
	if (argc - optind != 1 || o->min > o->max) {
		usage(stderr);
		exit(2);
	}
	o->dir = argv[optind];
}

int main(int argc, char **argv)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct options o = { .classes = 10,
			     .images = 100,
			     .val = 10,
			     .min = 250,
			     .max = 640,
			     .jobs = cores > 0 ? (unsigned)cores : 1 };

	parse(&o, argc, argv);
	make_dirs(&o);
	return run_jobs(&o);
}
