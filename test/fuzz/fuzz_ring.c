/* SPDX-License-Identifier: MIT */
/*
 * fuzz_ring.c - whatever tsi_ring_read() lets through can be mapped and read
 * without a byte outside the data, in every mode and for every batch.
 *
 * An input is a list of changes to a good header: a kind, then what it says.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "consumer/mapping.h"
#include "corpus.h"
#include "ring/ring.h"

#define SMALL (UINT64_C(1) << 20) /* bytes of rings that are really made */

static struct tsi_geometry good[3];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct tsock_field field[] = {
		{ .name = "image",
		  .dtype = TSOCK_U8,
		  .ndim = 3,
		  .shape = { 16, 16, 3 } },
		{ .name = "label", .dtype = TSOCK_I64 },
		{ .name = "odd", .dtype = TSOCK_U8, .ndim = 1, .shape = { 7 } },
	};
	const char *folder = corpus_folder(*argc, *argv);
	/* Kinds 0 to 6, each with a number that tells something apart. */
	static const uint8_t seed[][12] = {
		{ 0, 1, 0, 8, 0 },
		{ 1, 2, 1, 0, 1, 0 },
		{ 2, 0, 7, 3, 3, 0x40 },
		{ 2, 3, 0, 0x10, 0, 0, 6, 9 },
		{ 2, 1, 0, 4, 0, 0, 5, 16, 0, 2 },
	};

	never(tsi_geometry_make(field, 1,
				&(struct tsi_geometry_wish){ .ring = 64,
							     .join_window = 32,
							     .max_batch = 16 },
				&good[0]));
	never(tsi_geometry_make(field, 3,
				&(struct tsi_geometry_wish){ .ring = 64,
							     .join_window = 32,
							     .max_batch = 16 },
				&good[1]));
	never(tsi_geometry_make(field + 2, 1,
				&(struct tsi_geometry_wish){ .ring = 4,
							     .join_window = 2,
							     .max_batch = 1 },
				&good[2]));
	for (size_t i = 0; folder && i < sizeof(seed) / sizeof(seed[0]); i++) {
		char name[16];

		snprintf(name, sizeof(name), "%zu", i);
		corpus_put(folder, name, seed[i], sizeof(seed[i]));
	}
	return 0;
}

static void fill(struct tsi_ring_shared *s, const struct tsi_geometry *g)
{
	memset((void *)s, 0, sizeof(*s));
	s->magic = TSI_RING_MAGIC;
	s->abi = TSI_RING_ABI;
	s->header_bytes = sizeof(*s);
	s->capacity = g->capacity;
	s->epoch_len = 100;
	s->join_window = g->join_window;
	s->max_batch = g->max_batch;
	s->end = TSI_NEVER;
	s->nfields = g->nfields;
	s->nrows = TSI_MAX_ROWS;
	memcpy(s->field, g->field, sizeof(s->field));
}

/* Lengths that fit the rest, so that more than the first check is passed. */
static void mend(struct tsi_ring_shared *s, unsigned i)
{
	struct tsi_ring_field *f = &s->field[i % TSOCK_MAX_FIELDS];

	f->sample_bytes = tsi_geometry_field_bytes(&f->desc);
	f->map_bytes = ((s->capacity + f->margin) * f->sample_bytes + 4095) &
		       ~UINT64_C(4095);
}

static void change(struct tsi_ring_shared *s, struct bytes *in)
{
	unsigned kind = (unsigned)take(in, 1) % 7;
	unsigned i = (unsigned)take(in, 1) % TSOCK_MAX_FIELDS;
	struct tsi_ring_field *f = &s->field[i];
	uint64_t *word[] = { &s->capacity, &s->max_batch, &s->join_window,
			     &f->margin,   &f->map_bytes, &f->sample_bytes };

	switch (kind) {
	case 0: /* any byte before the rows */
		((uint8_t *)s)[take(in, 2) %
			       offsetof(struct tsi_ring_shared, wake)] =
			(uint8_t)take(in, 1);
		break;
	case 1: /* a number, by its low bytes or all of it */
		*word[take(in, 1) % 6] = take(in, take(in, 1) & 1 ? 8 : 2);
		break;
	case 2: /* a field, and all that follows from it */
		f->desc.dtype = (uint32_t)take(in, 1) % 7;
		f->desc.ndim = (uint32_t)take(in, 1) % 6;
		for (unsigned d = 0; d < TSOCK_MAX_DIMS; d++)
			f->desc.shape[d] = take(in, 1);
		f->margin = take(in, 1) & 1 ? s->max_batch : 0;
		mend(s, i);
		break;
	case 3:
		s->nfields = (uint32_t)take(in, 1) % 18;
		break;
	case 4: /* another size, for all */
		s->capacity = take(in, 2);
		s->max_batch = s->capacity / 4;
		s->join_window = s->capacity / 2;
		for (unsigned k = 0; k < s->nfields % 17; k++) {
			if (s->field[k].margin)
				s->field[k].margin = s->max_batch;
			mend(s, k);
		}
		break;
	default:
		mend(s, i);
	}
}

/* The furthest byte that any batch can reach, by mapping.c's arithmetic. */
static void check_reach(const struct tsi_geometry *s)
{
	for (unsigned i = 0; i < s->nfields; i++) {
		const struct tsi_ring_field *f = &s->field[i];
		unsigned __int128 span = f->map_bytes;
		unsigned __int128 far = s->capacity - 1 + s->max_batch;

		far *= f->sample_bytes;
		if (!f->margin)
			span += s->capacity *
				(unsigned __int128)f->sample_bytes;
		never(far > span);
		never(!f->margin &&
		      f->map_bytes != s->capacity * f->sample_bytes);
		never(span > UINT64_MAX / 2 && f->map_bytes < SMALL);
	}
}

/* Every byte is what the ring holds there: its slot's number. */
static void read_placement(const struct tsi_geometry *s,
			   const struct tsi_placement *placed)
{
	for (unsigned i = 0; i < s->nfields; i++) {
		const uint8_t *p = placed->data[i];
		uint64_t bytes = s->field[i].sample_bytes;

		for (uint64_t k = 0; k < placed->count; k++) {
			uint64_t slot = (placed->slot + k) % s->capacity;

			for (uint64_t j = 0; j < bytes; j++)
				never(p[k * bytes + j] != (uint8_t)(slot + i));
		}
	}
}

static void fill_data(const struct tsi_geometry *s, unsigned i, int fd)
{
	const struct tsi_ring_field *f = &s->field[i];
	uint8_t *p = mmap(NULL, f->map_bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);

	never(p == MAP_FAILED);
	for (uint64_t k = 0; k < s->capacity + f->margin; k++)
		memset(p + k * f->sample_bytes,
		       (int)(k % s->capacity + i) & 255, f->sample_bytes);
	munmap(p, f->map_bytes);
}

static void read_batches(struct tsi_mapping *w, const struct tsi_geometry *s,
			 uint64_t batch, uint64_t first)
{
	struct tsi_placement placed[3] = { { .slot = 0 } };

	for (unsigned k = 0; k < 3; k++) {
		placed[k].small = malloc(w->small_bytes + 1);
		never(!placed[k].small);
		if (tsi_mapping_place(w, first + k * batch, batch, &placed[k]))
			abort();
		read_placement(s, &placed[k]);
		if (w->mode != TSI_MAP_SHARED && k == 1)
			never(tsi_mapping_make_private(w, &placed[k]));
		read_placement(s, &placed[k]);
	}
	for (unsigned k = 0; k < 3; k++) {
		tsi_mapping_clear(w, &placed[k]);
		free(placed[k].small);
		free(placed[k].copy);
	}
}

static void use(const struct tsi_geometry *s, struct bytes *in)
{
	uint64_t batch = 1 + take(in, 2) % s->max_batch, first = take(in, 4);
	enum tsi_mapping_mode mode =
		(unsigned)take(in, 1) % 2 ? TSI_MAP_SHARED : TSI_MAP_PRIVATE;
	struct tsi_mapping w;
	int fd[TSOCK_MAX_FIELDS];
	uint64_t bytes = 0;

	for (unsigned i = 0; i < s->nfields; i++) {
		if (s->field[i].map_bytes > SMALL)
			return;
		bytes += s->field[i].map_bytes;
	}
	if (bytes > SMALL)
		return;
	for (unsigned i = 0; i < s->nfields; i++) {
		fd[i] = memfd_create("fuzz", MFD_CLOEXEC);
		never(fd[i] < 0 ||
		      ftruncate(fd[i], (off_t)s->field[i].map_bytes));
		fill_data(s, i, fd[i]);
	}
	never(tsi_mapping_init(&w, mode, s, batch, fd));
	read_batches(&w, s, batch, first);
	/* Over the end of the ring. */
	read_batches(&w, s, batch, s->capacity * 5 - batch / 2 - batch);
	tsi_mapping_fini(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tsi_ring_shared s;
	struct tsi_ring_ident id;
	struct tsi_geometry g;
	struct bytes in = { data, size }, tail = in;
	int lowest = corpus_lowest_fd();
	size_t len = sizeof(s);

	fill(&s, &good[take(&in, 1) % 3]);
	while (in.left)
		change(&s, &in);
	if (size > 200)
		len -= size - 200;
	if (tsi_ring_read(&s, len, &g, &id))
		return 0;
	check_reach(&g);
	if (size > 8)
		tail = (struct bytes){ data + size - 8, 8 };
	use(&g, &tail);
	never(corpus_lowest_fd() != lowest);
	return 0;
}
