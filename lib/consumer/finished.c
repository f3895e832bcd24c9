/* SPDX-License-Identifier: MIT */
/*
 * finished.c - the epochs that this process has read to their end.
 */
#include "consumer/finished.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define STREAMS 64 /* that are remembered, each for each rank read here */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
	uint64_t stream;
	struct tsi_finished read; /* end 0: not in use */
	uint64_t noted;           /* a number that grows with each */
} known[STREAMS];
static uint64_t notes;

/* With a lock that nobody holds. */
static void forget_known(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(known, 0, sizeof(known));
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_known);
}

static void enter(void)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
}

/* With the lock held; STREAMS: it isn't known. */
static unsigned find_stream(uint64_t stream)
{
	unsigned i = 0;

	while (i < STREAMS && (!known[i].read.end || known[i].stream != stream))
		i++;
	return i;
}

static unsigned oldest(void)
{
	unsigned found = 0;

	for (unsigned i = 0; i < STREAMS; i++) {
		if (!known[i].read.end)
			return i;
		if (known[i].noted < known[found].noted)
			found = i;
	}
	return found;
}

struct tsi_finished tsi_finished_read(uint64_t stream)
{
	struct tsi_finished f = { .end = 0 };
	unsigned i;

	enter();
	i = find_stream(stream);
	if (i < STREAMS)
		f = known[i].read;
	pthread_mutex_unlock(&lock);
	return f;
}

void tsi_finished_note(uint64_t stream, struct tsi_finished f)
{
	unsigned i;

	if (!f.end)
		return;
	enter();
	i = find_stream(stream);
	if (i == STREAMS) {
		i = oldest();
		known[i].stream = stream;
		known[i].read.end = 0;
	}
	if (known[i].read.lineage != f.lineage || known[i].read.end < f.end)
		known[i].read = f;
	known[i].noted = ++notes;
	pthread_mutex_unlock(&lock);
}

void tsi_finished_go_back(uint64_t stream, uint64_t start)
{
	unsigned i;

	enter();
	i = find_stream(stream);
	if (i < STREAMS && known[i].read.end > start)
		known[i].read.end = start;
	pthread_mutex_unlock(&lock);
}
