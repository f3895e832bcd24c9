/* SPDX-License-Identifier: MIT */
/*
 * test_part.c - the parts of several producers: what the ranks of all of them
 * read, against the order of one.  Arithmetic alone: no samples, no processes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "order/part.h"
#include "order/ranks.h"
#include "tsock/tsock.h"

enum { MOST = 400, WORLD = 13, EPOCH = 5 };

static uint32_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(state >> 4) * below >> 28);
}

/* A job: its ranks lie on several nodes, each with a part. */
struct job {
	uint64_t whole, batch;
	uint32_t world, nodes;
	struct tsi_part part[WORLD];
	bool once, drop_last;
};

/* Nodes with unequal numbers of ranks. */
static void deal_ranks(struct job *j, uint64_t start, uint64_t epoch)
{
	uint32_t first = 0;

	for (j->nodes = 0; first < j->world; j->nodes++) {
		uint32_t ranks = 1 + draw(j->world - first);

		j->part[j->nodes] = (struct tsi_part){
			.first = first,
			.ranks = ranks > 1 || draw(2) ? ranks : 0,
			.world = j->world,
			.start = start,
			.start_epoch = epoch,
		};
		assert_int_equal(tsi_part_check(&j->part[j->nodes], j->whole),
				 0);
		first += ranks;
	}
}

static struct job draw_job(uint64_t whole)
{
	struct job j = { .whole = whole,
			 .batch = 1 + draw(7),
			 .world = 1 + draw(WORLD) };

	return j;
}

static uint32_t ranks_of(const struct tsi_part *p)
{
	return p->ranks ? p->ranks : 1;
}

static struct tsi_ranks rank_of(const struct job *j, uint32_t node,
				uint32_t rank, uint64_t epoch)
{
	const struct tsi_part *p = &j->part[node];

	return (struct tsi_ranks){
		.rank = rank,
		.world = ranks_of(p),
		.once = j->once,
		.drop_last = j->drop_last,
		.batch = j->batch,
		.padding = j->drop_last ? tsi_part_last_row(p, j->whole, epoch)
					: tsi_part_padding(p, j->whole, epoch),
	};
}

/* How often a step of all ranks has each position of the whole order; at is
 * where the node's ranks are in its part, and is moved.  Returns the samples. */
static uint64_t read_node(const struct job *j, uint32_t node, uint64_t epoch,
			  uint64_t *at, uint8_t *times, uint64_t *least)
{
	const struct tsi_part *p = &j->part[node];
	uint64_t len = tsi_part_len(p, j->whole), all = 0, first, count;
	struct tsi_ranks r;

	for (uint32_t k = 0; k < ranks_of(p); k++) {
		r = rank_of(j, node, k, epoch);
		count = tsi_ranks_next(&r, len - *at, &first);
		for (uint64_t i = 0; i < count; i++)
			times[tsi_part_at(p, j->whole, epoch,
					  *at + first + i)]++;
		if (count < *least)
			*least = count;
		all += count;
	}
	r = rank_of(j, node, 0, epoch);
	*at += tsi_ranks_block(&r, len - *at);
	return all;
}

static uint64_t read_step(const struct job *j, uint64_t epoch, uint64_t *at,
			  uint8_t *times, uint64_t *least)
{
	uint64_t all = 0;

	memset(times, 0, MOST);
	*least = UINT64_MAX;
	for (uint32_t n = 0; n < j->nodes; n++)
		all += read_node(j, n, epoch, &at[n], times, least);
	return all;
}

static void begin(const struct job *j, uint64_t epoch, uint64_t *at)
{
	for (uint32_t n = 0; n < j->nodes; n++)
		at[n] = tsi_part_begin(&j->part[n], j->whole, epoch);
}

static bool is_over(const struct job *j, const uint64_t *at)
{
	for (uint32_t n = 0; n < j->nodes; n++)
		if (at[n] < tsi_part_len(&j->part[n], j->whole))
			return false;
	return true;
}

/* Where all nodes are in the whole order. */
static uint64_t whole_at(const struct job *j, uint64_t epoch,
			 const uint64_t *at)
{
	uint64_t to = 0, other;

	for (uint32_t n = 0; n < j->nodes; n++) {
		assert_true(tsi_part_to_whole(&j->part[n], j->whole, epoch,
					      at[n], &other));
		if (n)
			assert_int_equal(to, other);
		to = other;
	}
	return to;
}

/* A whole epoch, or the rest of one, from start on. */
static void check_epoch(const struct job *j, uint64_t epoch, uint64_t start)
{
	uint64_t at[WORLD], each = 0, all = 0, least, block, from = start;
	uint64_t rows = (j->whole - start + j->world - 1) / j->world;
	uint8_t times[MOST];

	block = j->world * j->batch;
	begin(j, epoch, at);
	while (!is_over(j, at)) {
		uint64_t n, end = from + block, beyond;

		assert_int_equal(whole_at(j, epoch, at), from);
		n = read_step(j, epoch, at, times, &least);
		beyond = end > j->whole ? end - j->whole : 0;
		/* What one producer's ranks have in this step, and its padding. */
		if (!beyond) {
			assert_int_equal(n, block);
			for (uint64_t p = 0; p < j->whole; p++)
				assert_int_equal(times[p],
						 p >= from && p < end);
		} else if (j->once && !j->drop_last) {
			assert_int_equal(n, j->whole - from);
			for (uint64_t p = 0; p < j->whole; p++)
				assert_int_equal(times[p], p >= from);
		} else if (!j->drop_last) {
			uint64_t padded = start + rows * j->world;
			uint8_t want[MOST] = { 0 };

			assert_int_equal(n, padded - from);
			for (uint64_t p = from; p < padded; p++)
				want[p % j->whole]++;
			assert_memory_equal(times, want, MOST);
		} else {
			assert_int_equal(n, 0);
		}
		if (!j->once && least) /* all ranks have as many */
			assert_int_equal(n, least * j->world);
		each += least;
		all += n;
		from = end < j->whole ? end : j->whole;
	}
	assert_int_equal(whole_at(j, epoch, at), j->whole);
	if (j->once && !j->drop_last)
		assert_int_equal(all, j->whole - start);
	else if (!j->drop_last)
		assert_int_equal(each, rows);
}

static void all_parts_together_have_what_one_order_has(void **unused)
{
	(void)unused;
	for (state = 0; state < 3000; state++) {
		uint32_t seed = state;
		struct job j = draw_job(1 + draw(MOST));
		uint64_t start = draw(3) ? draw((uint32_t)j.whole) : 0;

		j.once = draw(2);
		j.drop_last = !draw(4);
		deal_ranks(&j, start, EPOCH);
		check_epoch(&j, EPOCH, start);
		check_epoch(&j, EPOCH - 1, 0);
		check_epoch(&j, EPOCH + 1, 0);
		state = seed;
	}
}

/* Equal nodes have had this since there are shards. */
static void one_rank_is_a_shard_as_it_was(void **unused)
{
	(void)unused;
	for (uint64_t whole = 1; whole < 40; whole++)
		for (uint32_t world = 1; world < 9; world++)
			for (uint32_t rank = 0; rank < world; rank++) {
				struct tsi_part p = { .first = rank,
						      .world = world };
				uint64_t n = (whole + world - 1) / world;

				assert_int_equal(tsi_part_len(&p, whole), n);
				for (uint64_t k = 0; k < n; k++)
					assert_int_equal(
						tsi_part_at(&p, whole, 3, k),
						(k * world + rank) % whole);
			}
}

static void a_place_in_the_whole_order_is_found_again(void **unused)
{
	(void)unused;
	for (state = 0; state < 2000; state++) {
		uint32_t seed = state;
		uint64_t whole = 1 + draw(MOST);
		struct job j = draw_job(whole);
		uint64_t start = draw((uint32_t)whole);

		deal_ranks(&j, start, EPOCH);
		for (uint64_t q = 0; q <= whole; q++)
			for (uint32_t n = 0; n < j.nodes; n++) {
				uint64_t at, to;
				bool cut = q == whole ||
					   (q >= start &&
					    (q - start) % j.world == 0);

				assert_int_equal(
					tsi_part_from_whole(&j.part[n], whole,
							    EPOCH, q, &at),
					cut);
				if (!cut)
					continue;
				assert_true(tsi_part_to_whole(&j.part[n], whole,
							      EPOCH, at, &to));
				assert_int_equal(to, q);
			}
		state = seed;
	}
}

/* ---- jobs that die, and go on with another number of ranks ---- */

struct run {
	uint64_t whole, epoch, position; /* the last checkpoint */
	bool once;
	uint16_t seen[MOST]; /* in the epoch, up to the checkpoint */
	uint32_t twice;      /* that may have come twice in it */
};

/* A job goes on at the checkpoint: its producers are there, or are new. */
static void go_on(struct run *r, struct job *j, uint64_t *at)
{
	bool anew = r->position && (r->position % j->world || draw(2));

	deal_ranks(j, anew ? r->position : 0, r->epoch);
	for (uint32_t n = 0; n < j->nodes; n++)
		assert_true(tsi_part_from_whole(&j->part[n], j->whole, r->epoch,
						r->position, &at[n]));
}

static void end_epoch(struct run *r)
{
	uint32_t twice = 0;

	for (uint64_t p = 0; p < r->whole; p++) {
		assert_true(r->seen[p] >= 1);
		twice += r->seen[p] - 1u;
	}
	assert_true(twice <= r->twice);
	memset(r->seen, 0, sizeof(r->seen));
	r->epoch++;
	r->position = 0;
}

/* Until it dies, or so many epochs are read; checkpoints every few steps. */
static void live(struct run *r, uint64_t epochs)
{
	struct job j = draw_job(r->whole);
	uint64_t at[WORLD], least;
	uint32_t steps = draw(30), every = 1 + draw(5);
	uint16_t since[MOST];
	uint8_t times[MOST];

	j.once = r->once;
	r->twice = j.once ? 0 : j.world - 1;
	go_on(r, &j, at);
	memcpy(since, r->seen, sizeof(since));
	for (uint32_t s = 1; s <= steps && r->epoch < epochs; s++) {
		read_step(&j, r->epoch, at, times, &least);
		for (uint64_t p = 0; p < r->whole; p++)
			since[p] = (uint16_t)(since[p] + times[p]);
		if (is_over(&j, at)) {
			memcpy(r->seen, since, sizeof(since));
			end_epoch(r);
			memset(since, 0, sizeof(since));
			begin(&j, r->epoch, at);
		} else if (s % every == 0) {
			memcpy(r->seen, since, sizeof(since));
			r->position = whole_at(&j, r->epoch, at);
		}
	}
}

static void a_job_that_dies_goes_on_with_any_number_of_ranks(void **unused)
{
	(void)unused;
	for (uint32_t seed = 0; seed < 10000; seed++) {
		struct run r = { .whole = 1 };

		state = seed;
		/* All ranks of a padded epoch have one, so it isn't shorter. */
		r.whole += WORLD + draw(120);
		r.once = draw(2);
		for (unsigned lives = 0; r.epoch < 3 && lives < 500; lives++)
			live(&r, 3);
		assert_int_equal(r.epoch, 3);
	}
}

/* ---- what programs call ---- */

static struct tsock_part_opts opts_of(uint32_t shard, uint32_t ranks,
				      uint32_t shards, uint64_t whole)
{
	struct tsock_part_opts o = TSOCK_PART_OPTS_INIT;

	o.shard = shard;
	o.shard_ranks = ranks;
	o.shards = shards;
	o.whole_len = whole;
	return o;
}

static void refused(const struct tsock_part_opts *o, const char *text)
{
	assert_int_equal(tsock_part_len(o), 0);
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
}

static void programs_are_told_the_same(void **unused)
{
	struct tsock_part_opts o = opts_of(1, 3, 4, 101);
	uint64_t n = 7;

	(void)unused;
	assert_int_equal(tsock_part_len(&o), 78);
	assert_int_equal(tsock_part_padding(&o, 0), 3);
	assert_int_equal(tsock_part_last_row(&o, 0), 3);
	assert_int_equal(tsock_part_position(&o, 0, 30, &n), 0);
	assert_int_equal(n, 40);
	assert_int_equal(tsock_part_samples(&o, 0, 40, &n), 0);
	assert_int_equal(n, 30);
	assert_int_equal(tsock_part_samples(&o, 0, 101, &n), 0);
	assert_int_equal(n, 78);
	assert_int_equal(tsock_part_position(&o, 0, 31, &n), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "same place"));
	assert_int_equal(tsock_part_samples(&o, 2, 41, &n), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "--start 2:41"));
	assert_int_equal(n, 78);
	o.start_epoch = 2;
	o.start = 41;
	assert_int_equal(tsock_part_samples(&o, 2, 41, &n), 0);
	assert_int_equal(n, 78 - 45);
	assert_int_equal(tsock_part_samples(&o, 2, 40, &n), TSOCK_EREFUSED);
	o = opts_of(0, 0, 0, 101);
	assert_int_equal(tsock_part_len(&o), 101);
	assert_int_equal(tsock_part_padding(&o, 0), 0);
	assert_int_equal(tsock_part_last_row(&o, 0), 0);
	assert_int_equal(tsock_part_samples(&o, 2, 41, &n), 0);
	assert_int_equal(n, 41);
}

static void parts_that_make_no_sense_are_refused(void **unused)
{
	struct tsock_part_opts o = opts_of(3, 2, 4, 10);
	uint64_t n;

	(void)unused;
	refused(NULL, "NULL");
	refused(&o, "ranks 3 to 4 of 4");
	o = opts_of(UINT32_MAX, UINT32_MAX, 4, 10);
	refused(&o, "of 4");
	o = opts_of(4, 0, 4, 10);
	refused(&o, "rank 4 of 4");
	o = opts_of(0, 1, (1u << 20) + 1, 10);
	refused(&o, "at most 1048576");
	o = opts_of(1, 1, 0, 10);
	refused(&o, "no number of all ranks");
	o = opts_of(0, 1, 2, 0);
	refused(&o, "whole_len is 0");
	o = opts_of(0, 1, 2, UINT64_MAX);
	refused(&o, "2^63");
	o = opts_of(0, 1, 2, 10);
	o.start = 10;
	refused(&o, "position 10");
	o = opts_of(0, 0, 0, 10);
	o.start = 3;
	refused(&o, "only a part");
	o = opts_of(0, 1, 2, 10);
	assert_int_equal(tsock_part_samples(&o, 0, 2, NULL), TSOCK_EARG);
	assert_int_equal(tsock_part_position(&o, 0, 2, NULL), TSOCK_EARG);
	o.shard = 2;
	assert_int_equal(tsock_part_samples(&o, 0, 2, &n), TSOCK_EARG);
	assert_int_equal(tsock_part_position(&o, 0, 2, &n), TSOCK_EARG);
	assert_int_equal(tsock_part_padding(&o, 0), 0);
	assert_int_equal(tsock_part_last_row(&o, 0), 0);
}

static void the_largest_orders_do_not_overflow(void **unused)
{
	struct tsi_part p = { .first = (1u << 20) - 1, .world = 1u << 20 };
	uint64_t whole = UINT64_C(1) << 63, rows = whole >> 20, to;

	(void)unused;
	assert_int_equal(tsi_part_len(&p, whole), rows);
	assert_int_equal(tsi_part_at(&p, whole, 0, rows - 1), whole - 1);
	assert_int_equal(tsi_part_at(&p, whole - 1, 0, rows - 1), 0);
	assert_true(tsi_part_to_whole(&p, whole, 0, rows - 1, &to));
	assert_int_equal(to, whole - (1u << 20));
	p = (struct tsi_part){ .ranks = 1u << 20, .world = 1u << 20 };
	assert_true(tsi_part_len(&p, whole - 1) == whole);
	assert_int_equal(tsi_part_padding(&p, whole - 1, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_parts_together_have_what_one_order_has),
		cmocka_unit_test(one_rank_is_a_shard_as_it_was),
		cmocka_unit_test(a_place_in_the_whole_order_is_found_again),
		cmocka_unit_test(
			a_job_that_dies_goes_on_with_any_number_of_ranks),
		cmocka_unit_test(programs_are_told_the_same),
		cmocka_unit_test(parts_that_make_no_sense_are_refused),
		cmocka_unit_test(the_largest_orders_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
