/* SPDX-License-Identifier: MIT */
/*
 * read_batches.c - read padded batches of tokens, without a copy.
 *
 *     cc -std=c99 -O2 read_batches.c -o read_batches -ltsock
 *     ./read_batches text
 *
 * The stream is one of token_batches.c's, or of Python's
 *
 *     tsock.serve(loader, "text", ragged=True)
 *
 * whose loader gives dicts of input_ids (int32 [n, width]), attention_mask
 * (bool, likewise) and document (int64 [n]).  Reads to the stream's end, and
 * says for each epoch how many tokens there were, how much was padding, and a
 * checksum of each document's number and tokens, whatever their order.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tsock/tsock.h>

enum { IDS, MASK, DOCUMENT, ARRAYS };

#define NEST \
	"[\"d\",[[\"input_ids\",[\"f\",0]],[\"attention_mask\",[\"f\",1]]," \
	"[\"document\",[\"f\",2]]]]"

struct seen {
	uint64_t batches, documents, tokens, places, checksum;
};

static void die(const char *what)
{
	fprintf(stderr, "read_batches: %s: %s\n", what, tsock_errmsg());
	exit(1);
}

/* Bytes of a slot; a stream of anything else but ragged batches ends this. */
static uint64_t slot_bytes(tsock *t, const char *name)
{
	struct tsock_field f;

	if (tsock_get_field(t, 0, &f))
		die(name);
	if (f.dtype != TSOCK_U8 || f.ndim != 1) {
		fprintf(stderr,
			"read_batches: stream %s has the field %s, and no "
			"ragged batches\n",
			name, f.name);
		exit(1);
	}
	return f.shape[0];
}

/* The library has seen to it that the arrays lie in the slot; these have to be
 * the ones that add_up() reads. */
static int is_expected(const struct tsock_ragged_array *a)
{
	return a[IDS].dtype == TSOCK_RAGGED_I32 && a[IDS].ndim == 2 &&
	       a[MASK].dtype == TSOCK_RAGGED_BOOL && a[MASK].ndim == 2 &&
	       a[DOCUMENT].dtype == TSOCK_RAGGED_I64 && a[DOCUMENT].ndim == 1 &&
	       a[MASK].shape[0] == a[IDS].shape[0] &&
	       a[MASK].shape[1] == a[IDS].shape[1] &&
	       a[DOCUMENT].shape[0] == a[IDS].shape[0];
}

static void add_up(struct seen *s, const struct tsock_ragged_array *a)
{
	uint64_t rows = a[IDS].shape[0], width = a[IDS].shape[1];

	for (uint64_t i = 0; i < rows; i++) {
		const int32_t *ids = (const int32_t *)a[IDS].data + i * width;
		const uint8_t *mask = (const uint8_t *)a[MASK].data + i * width;
		uint64_t sum = (uint64_t)((const int64_t *)a[DOCUMENT].data)[i];

		for (uint64_t t = 0; t < width; t++) {
			if (!mask[t])
				continue;
			s->tokens++;
			sum = (sum ^ (uint32_t)ids[t]) *
			      UINT64_C(0x100000001b3);
		}
		s->checksum += sum;
	}
	s->batches++;
	s->documents += rows;
	s->places += rows * width;
}

static void read_epoch(tsock *t, uint64_t room)
{
	struct tsock_ragged_array a[ARRAYS];
	struct seen s = { 0 };
	tsock_batch *b;
	int err;

	while ((err = tsock_next(t, -1, &b)) == 0) {
		if (tsock_ragged_read(tsock_batch_data(b, 0), room, NEST, a,
				      ARRAYS))
			die("a batch");
		if (!is_expected(a)) {
			fprintf(stderr, "read_batches: a batch has other "
					"dtypes or shapes\n");
			exit(1);
		}
		add_up(&s, a);
		tsock_batch_release(b);
	}
	if (err != TSOCK_EEPOCH)
		die("next");
	printf("epoch %llu: %llu batches, %llu documents, %llu tokens of %llu "
	       "places, checksum %016llx\n",
	       (unsigned long long)tsock_epoch(t),
	       (unsigned long long)s.batches, (unsigned long long)s.documents,
	       (unsigned long long)s.tokens, (unsigned long long)s.places,
	       (unsigned long long)s.checksum);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct tsock_opts opts = TSOCK_OPTS_INIT;
	uint64_t room;
	tsock *t;
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: read_batches NAME\n");
		return 2;
	}
	opts.batch_size = 1;
	if (tsock_open(argv[1], &opts, &t))
		die(argv[1]);
	room = slot_bytes(t, argv[1]);
	while ((err = tsock_begin(t)) == 0)
		read_epoch(t, room);
	if (err != TSOCK_EENDED)
		die("begin");
	tsock_close(t);
	return 0;
}
