/* SPDX-License-Identifier: MIT */
/*
 * jobs_fixture.h - a producer's table of jobs, and the JOINs of their ranks.
 */
#ifndef TEST_LIB_JOBS_FIXTURE_H
#define TEST_LIB_JOBS_FIXTURE_H

#include "serve/jobs.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct tsi_jobs jobs;

static inline int clear(void **state)
{
	(void)state;
	tsi_jobs_init(&jobs, 1000);
	return 0;
}

static inline int forget_all(void **state)
{
	(void)state;
	tsi_jobs_fini(&jobs);
	return 0;
}

#define on_a_clear_table(test) \
	cmocka_unit_test_setup_teardown(test, clear, forget_all)

/* JOIN of a rank of job 'name'; its nonce is its pid. */
static inline struct tsi_msg_join join_of(uint8_t name, uint32_t rank,
					  uint32_t world, uint32_t pid)
{
	struct tsi_msg_join j = { .pid = pid,
				  .rank = rank,
				  .world = world,
				  .batch_size = 10,
				  .between = TSOCK_BETWEEN_LEAVE,
				  .returns = TSI_RETURNS };

	memset(j.job, name, TSOCK_JOB);
	memcpy(j.nonce, &pid, sizeof(pid));
	return j;
}

/* A process that waits to be killed. */
static inline pid_t process(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!pid)
		pause();
	return pid;
}

#endif
