/* SPDX-License-Identifier: MIT */
/*
 * token_batches.c - serve documents to language models, in padded batches.
 *
 *     cc -std=c99 -O2 token_batches.c -o token_batches -ltsock
 *     ./token_batches corpus.bin 0 1024 16 text 3 &
 *     ./read_batches text
 *     python -c "import tsock
 *     print(next(iter(tsock.DataLoader('text', None))))"
 *
 * FILE has tokens of 16 bits, in documents that each end with the token END.  A
 * batch is BATCH whole documents, cut at LONGEST tokens and padded to the
 * longest among them, so each has a shape of its own (tsock/ragged.h):
 *
 *     input_ids       int32 [documents, width]
 *     attention_mask  bool, likewise: where a token is
 *     document        int64 [documents]: which one it is in FILE
 *
 * An epoch has every document once, in another order each epoch.  EPOCHS 0
 * serves until Ctrl-C.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tsock/tsock.h>

enum { IDS, MASK, DOCUMENT, ARRAYS };

#define NEST \
	"[\"d\",[[\"input_ids\",[\"f\",0]],[\"attention_mask\",[\"f\",1]]," \
	"[\"document\",[\"f\",2]]]]"

struct corpus {
	const uint16_t *token;
	uint64_t *begin; /* of each document, and the end of the last one */
	uint64_t documents;
	uint64_t longest; /* tokens of one that are served */
	uint64_t batch;   /* documents */
	uint64_t *order;  /* of the documents, in the epoch ... */
	uint64_t epoch;   /* ... that is served */
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static uint64_t length_of(const struct corpus *c, uint64_t document)
{
	uint64_t n = c->begin[document + 1] - c->begin[document];

	return n < c->longest ? n : c->longest;
}

/* The arrays of a batch of so many documents and so many tokens of each. */
static void shape(struct tsock_ragged_array *a, uint64_t rows, uint64_t width)
{
	memset(a, 0, ARRAYS * sizeof(*a));
	a[IDS].dtype = TSOCK_RAGGED_I32;
	a[MASK].dtype = TSOCK_RAGGED_BOOL;
	a[DOCUMENT].dtype = TSOCK_RAGGED_I64;
	a[IDS].ndim = a[MASK].ndim = 2;
	a[DOCUMENT].ndim = 1;
	a[IDS].shape[0] = a[MASK].shape[0] = a[DOCUMENT].shape[0] = rows;
	a[IDS].shape[1] = a[MASK].shape[1] = width;
}

/* Bytes of a slot that has room for every batch. */
static uint64_t slot_bytes(const struct corpus *c)
{
	struct tsock_ragged_array a[ARRAYS];
	uint64_t longest = 0, bytes;

	for (uint64_t i = 0; i < c->documents; i++)
		if (length_of(c, i) > longest)
			longest = length_of(c, i);
	shape(a, c->batch < c->documents ? c->batch : c->documents, longest);
	bytes = tsock_ragged_bytes(NEST, a, ARRAYS);
	return (bytes + 4095) / 4096 * 4096;
}

/* Write these documents into a slot. */
static int write_batch(const struct corpus *c, const uint64_t *document,
		       uint64_t rows, void *slot, uint64_t room)
{
	struct tsock_ragged_array a[ARRAYS];
	uint64_t width = 0;

	for (uint64_t i = 0; i < rows; i++)
		if (length_of(c, document[i]) > width)
			width = length_of(c, document[i]);
	shape(a, rows, width);
	if (tsock_ragged_write(slot, room, NEST, a, ARRAYS))
		return -1;
	memset(a[IDS].data, 0, a[IDS].bytes);
	memset(a[MASK].data, 0, a[MASK].bytes);
	for (uint64_t i = 0; i < rows; i++) {
		const uint16_t *from = c->token + c->begin[document[i]];
		int32_t *ids = (int32_t *)a[IDS].data + i * width;
		uint64_t n = length_of(c, document[i]);

		for (uint64_t t = 0; t < n; t++)
			ids[t] = from[t];
		memset((uint8_t *)a[MASK].data + i * width, 1, n);
		((int64_t *)a[DOCUMENT].data)[i] = (int64_t)document[i];
	}
	return 0;
}

/* Make the batch with this number in the stream. */
static int make(struct corpus *c, tsock_server *s, uint64_t seq, uint64_t room)
{
	uint64_t batches = (c->documents + c->batch - 1) / c->batch;
	uint64_t first = seq % batches * c->batch;
	uint64_t rows = c->documents - first;

	if (c->epoch != seq / batches) {
		struct tsock_order_opts opts = TSOCK_ORDER_OPTS_INIT;

		opts.count = c->documents;
		c->epoch = seq / batches;
		if (tsock_order(&opts, c->epoch, c->order, c->documents))
			return -1;
	}
	if (rows > c->batch)
		rows = c->batch;
	return write_batch(c, c->order + first, rows,
			   tsock_serve_slot(s, 0, seq), room);
}

/* Returns the number of tokens in FILE, mapped; 0, having said why. */
static uint64_t map_tokens(const char *path, struct corpus *c)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		return 0;
	}
	if (st.st_size < 2) {
		fprintf(stderr, "token_batches: %s has no tokens\n", path);
		close(fd);
		return 0;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED) {
		perror(path);
		return 0;
	}
	c->token = p;
	return (uint64_t)st.st_size / 2;
}

static int find_documents(struct corpus *c, uint64_t tokens, unsigned end)
{
	uint64_t n = 1;

	for (uint64_t i = 0; i + 1 < tokens; i++)
		n += c->token[i] == end;
	c->begin = malloc((size_t)(n + 1) * sizeof(*c->begin));
	c->order = malloc((size_t)n * sizeof(*c->order));
	if (!c->begin || !c->order) {
		fprintf(stderr, "token_batches: no memory\n");
		return -1;
	}
	c->documents = n;
	c->begin[0] = 0;
	c->begin[n] = tokens;
	n = 0;
	for (uint64_t i = 0; i + 1 < tokens; i++)
		if (c->token[i] == end)
			c->begin[++n] = i + 1;
	return 0;
}

static int serve(struct corpus *c, const char *name, uint64_t epochs)
{
	struct tsock_field field = { "batch", TSOCK_U8, 0, 1, 0, { 0 } };
	struct tsock_serve_opts opts = TSOCK_SERVE_OPTS_INIT;
	struct timespec pause = { 0, 50 * 1000 * 1000 };
	uint64_t seq, room = slot_bytes(c);
	tsock_server *s;
	int err = 0;

	field.shape[0] = room;
	opts.nfields = 1;
	opts.fields = &field;
	opts.epoch_len = (c->documents + c->batch - 1) / c->batch;
	opts.epochs = epochs;
	opts.max_batch = 1;
	opts.ring = 32;
	opts.identity = "loader=token_batches\n" TSOCK_RAGGED_IDENTITY;
	if (tsock_serve_open(name, &opts, &s)) {
		fprintf(stderr, "token_batches: %s\n", tsock_errmsg());
		return 1;
	}
	while (!stop && !err && !tsock_serve_drained(s)) {
		/* Nothing is left to make: wait for the readers' end. */
		int n = tsock_serve_claim(s, 1, 50, &seq);

		if (n == TSOCK_EENDED)
			nanosleep(&pause, NULL);
		else if (n == 1 && !(err = make(c, s, seq, room)))
			tsock_serve_commit(s, seq, 1);
		else if (n != TSOCK_EAGAIN)
			err = -1;
	}
	if (err)
		fprintf(stderr, "token_batches: %s\n", tsock_errmsg());
	tsock_serve_close(s);
	return err != 0;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct corpus c = { .epoch = UINT64_MAX };
	uint64_t tokens;

	if (argc != 7 || !(c.longest = strtoull(argv[3], NULL, 10)) ||
	    !(c.batch = strtoull(argv[4], NULL, 10))) {
		fprintf(stderr, "usage: token_batches FILE END LONGEST BATCH "
				"NAME EPOCHS\n");
		return 2;
	}
	tokens = map_tokens(argv[1], &c);
	if (!tokens ||
	    find_documents(&c, tokens, (unsigned)strtoul(argv[2], NULL, 10)))
		return 1;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	return serve(&c, argv[5], strtoull(argv[6], NULL, 10));
}
