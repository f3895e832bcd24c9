/* SPDX-License-Identifier: MIT */
#include "test/lib/next_producer.h"

struct source next_producer_restart(const char *name)
{
	return (struct source){ .name = name,
				.n = 2000,
				.ring = 256,
				.max_batch = 32,
				.payload = 600,
				.image = 8,
				.pace_us = 30,
				.identity = "kind=test\nseed=1\n" };
}

struct next_producer next_producer_prepare(struct source src)
{
	struct next_producer p;

	assert_int_equal(pipe(p.go), 0);
	src.go = p.go[0];
	p.pid = stream_start_producer(&src);
	return p;
}

pid_t next_producer_begin(struct next_producer *p)
{
	assert_int_equal(write(p->go[1], "", 1), 1);
	close(p->go[0]);
	close(p->go[1]);
	return p->pid;
}
