/* SPDX-License-Identifier: MIT */
/*
 * index_keeper.c - the index of JPEG rows, kept on disk beside the scan.
 */
#include "run/index_keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "data/cache_file.h"
#include "data/format.h"
#include "jpeg/index_file.h"

/*
 * A save writes all of the index, so it must have grown by one part in so many:
 * crops that reach a little further down are no reason.
 */
#define PARTS_RUNNING 8
#define PARTS_CLOSING 64

struct tsi_index_keeper {
	const struct tsi_index *index;
	struct tsi_jpeg_index *x;
	bool reads;
	char path[PATH_MAX];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t told;
	uint64_t epochs; /* under lock */
	bool closing;    /* under lock */
	/* The thread's own. */
	uint64_t key;  /* of the data set */
	uint64_t rows; /* of the index when it was read or written last */
	bool complained;
};

static void load_index(struct tsi_index_keeper *k)
{
	int fd = tsi_cache_file_open(k->path);

	if (fd < 0)
		return;
	k->rows = tsi_jpeg_index_read(k->x, k->key, fd);
	close(fd);
	tsi_log(TSOCK_LOG_DEBUG, "%" PRIu64 " rows of JPEG files read from %s",
		k->rows, k->path);
}

static bool write_index(void *arg, int fd)
{
	const struct tsi_index_keeper *k = arg;

	return tsi_jpeg_index_write(k->x, k->key, fd);
}

static void save(struct tsi_index_keeper *k, uint64_t parts)
{
	uint64_t rows = tsi_jpeg_index_rows(k->x);

	if (rows <= k->rows + k->rows / parts)
		return;
	if (tsi_cache_file_replace(k->path, write_index, k)) {
		k->rows = rows;
		return;
	}
	if (!k->complained)
		tsi_log(TSOCK_LOG_INFO,
			"no index of JPEG rows written to %s: %s", k->path,
			strerror(errno));
	k->complained = true;
}

static void *keep(void *arg)
{
	struct tsi_index_keeper *k = arg;
	uint64_t seen = 0;
	bool closing = false;

	tsi_thread_name("tsock-index");
	/* On Linux this is the thread's own; keeping the index can wait. */
	setpriority(PRIO_PROCESS, 0, 19);
	k->key = tsi_index_fingerprint(k->index);
	if (k->reads)
		load_index(k);
	while (!closing) {
		pthread_mutex_lock(&k->lock);
		while (k->epochs == seen && !k->closing)
			pthread_cond_wait(&k->told, &k->lock);
		seen = k->epochs;
		closing = k->closing;
		pthread_mutex_unlock(&k->lock);
		save(k, closing ? PARTS_CLOSING : PARTS_RUNNING);
	}
	return NULL;
}

static void release(struct tsi_index_keeper *k)
{
	pthread_cond_destroy(&k->told);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static bool path_of(const struct tsi_pipeline_opts *o,
		    const struct tsi_index *index, char *out, size_t len)
{
	const struct tsi_format *format = tsi_index_format(index);
	char suffix[64];
	struct tsi_cache_name name = {
		.dir = o->cache,
		.root = tsi_index_name(index),
		.select = tsi_index_select(index),
		.suffix = suffix,
	};

	snprintf(suffix, sizeof(suffix), "%s.rows", tsi_format_layout(format));
	return tsi_cache_file_path(&name, out, len);
}

int tsi_index_keeper_open(const struct tsi_pipeline_opts *o,
			  const struct tsi_index *index,
			  struct tsi_jpeg_index *x,
			  struct tsi_index_keeper **out)
{
	char path[PATH_MAX];
	struct tsi_index_keeper *k;
	int err;

	*out = NULL;
	if (!x || !path_of(o, index, path, sizeof(path)))
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return tsi_err(TSOCK_ENOMEM, "no memory to keep an index");
	k->index = index;
	k->x = x;
	k->reads = !o->rescan;
	memcpy(k->path, path, sizeof(path));
	pthread_mutex_init(&k->lock, NULL);
	tsi_thread_cond_init(&k->told);
	err = tsi_thread_start(&k->thread, keep, k);
	if (!err)
		*out = k;
	else
		release(k);
	return err;
}

void tsi_index_keeper_tell(struct tsi_index_keeper *k, uint64_t epochs)
{
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	if (epochs != k->epochs)
		pthread_cond_signal(&k->told);
	k->epochs = epochs;
	pthread_mutex_unlock(&k->lock);
}

void tsi_index_keeper_close(struct tsi_index_keeper *k)
{
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	k->closing = true;
	pthread_cond_signal(&k->told);
	pthread_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	release(k);
}
