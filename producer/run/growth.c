/* SPDX-License-Identifier: MIT */
/*
 * growth.c - a data set whose files change while it is served.
 */
#include "run/growth.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"

#define PART 20 /* of the time, at most, goes into looks ... */
#define MOST_NS INT64_C(10000000000) /* ... unless they are further apart */

struct tsi_growth {
	const struct tsi_pipeline_opts *o;
	const struct tsi_service *served;
	int64_t interval_ns;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t told;
	bool closing;               /* under lock */
	struct tsi_service *latest; /* opened last; under lock, or NULL */
	bool differs;               /* from what is served; under lock */
	/* The thread's own. */
	uint64_t seen;  /* by the last look, if it differed */
	uint64_t tried; /* what was there when opening failed last */
	bool differed, failed, warned;
	int64_t wait_ns; /* until the next look */
};

/* Wait so long; false: it is to end. */
static bool rest(struct tsi_growth *g, int64_t ns)
{
	int64_t until;
	bool closing;

	if (ns > MOST_NS)
		ns = MOST_NS;
	if (ns < g->interval_ns)
		ns = g->interval_ns;
	until = tsi_now_ns() + ns;

	pthread_mutex_lock(&g->lock);
	while (!g->closing && tsi_now_ns() < until)
		tsi_thread_wait(&g->told, &g->lock, until);
	closing = g->closing;
	pthread_mutex_unlock(&g->lock);
	return !closing;
}

/* The thread alone replaces it. */
static const struct tsi_index *watched(const struct tsi_growth *g)
{
	const struct tsi_service *s = g->latest ? g->latest : g->served;

	return tsi_sampler_index(tsi_service_sampler(s));
}

static void open_anew(struct tsi_growth *g)
{
	struct tsi_service *s, *old;
	bool differs;

	if (tsi_service_open(g->o, &s)) {
		g->failed = true;
		g->tried = g->seen;
		if (!g->warned)
			tsi_log(TSOCK_LOG_WARN,
				"the data set has changed, and can't be opened "
				"as it is: %s; what it had is served on",
				tsock_errmsg());
		g->warned = true;
		return;
	}
	g->failed = g->warned = g->differed = false;
	differs = !tsi_service_equal(s, g->served);
	pthread_mutex_lock(&g->lock);
	old = g->latest;
	g->latest = s;
	g->differs = differs;
	pthread_mutex_unlock(&g->lock);
	tsi_service_close(old);
}

/* A change counts when two looks in a row have seen the same. */
static void look_for_growth(struct tsi_growth *g)
{
	int64_t begin = tsi_now_ns();
	bool same, again;
	uint64_t now;

	same = tsi_index_look(watched(g), &now);
	g->wait_ns = (tsi_now_ns() - begin) * PART;
	if (same) {
		g->differed = g->failed = g->warned = false;
		return;
	}
	again = g->differed && now == g->seen;
	g->differed = true;
	g->seen = now;
	if (again && !(g->failed && now == g->tried))
		open_anew(g);
}

static void *watch(void *arg)
{
	struct tsi_growth *g = arg;

	tsi_thread_name("tsock-growth");
	while (rest(g, g->wait_ns))
		look_for_growth(g);
	return NULL;
}

static void release(struct tsi_growth *g)
{
	pthread_cond_destroy(&g->told);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

int tsi_growth_open(const struct tsi_pipeline_opts *o,
		    const struct tsi_service *served, unsigned interval_ms,
		    struct tsi_growth **out)
{
	struct tsi_growth *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to watch a data set that grows");
	g->o = o;
	g->served = served;
	g->interval_ns = (int64_t)interval_ms * 1000000;
	pthread_mutex_init(&g->lock, NULL);
	tsi_thread_cond_init(&g->told);
	err = tsi_thread_start(&g->thread, watch, g);
	if (err)
		release(g);
	else
		*out = g;
	return err;
}

bool tsi_growth_found(struct tsi_growth *g, uint64_t *samples,
		      uint32_t *classes)
{
	bool found;

	pthread_mutex_lock(&g->lock);
	found = g->differs;
	if (found) {
		const struct tsi_index *x =
			tsi_sampler_index(tsi_service_sampler(g->latest));

		*samples = tsi_index_count(x);
		*classes = tsi_index_classes(x);
	}
	pthread_mutex_unlock(&g->lock);
	return found;
}

struct tsi_service *tsi_growth_close(struct tsi_growth *g)
{
	struct tsi_service *latest;

	if (!g)
		return NULL;
	pthread_mutex_lock(&g->lock);
	g->closing = true;
	pthread_cond_signal(&g->told);
	pthread_mutex_unlock(&g->lock);
	pthread_join(g->thread, NULL);
	latest = g->latest;
	release(g);
	return latest;
}
