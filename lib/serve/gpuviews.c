/*
 * gpuviews.c - which GPU a view is on, how it is reached, what it is made of.
 *
 * On each GPU that has consumers there is one ring as decoded; all other views
 * of that GPU are made of it.  It is filled from the host ring, or from the
 * ring of another GPU that this one can read directly.
 */
#include "serve/server.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "mem/gpu.h"
#include "stage/stage_fan.h"

/* A view as decoded: what a private consumer reads, and others are made of. */
static bool plain(const struct tsi_view_spec *spec)
{
	return spec->dtype == TSOCK_U8 && spec->layout == TSOCK_HWC;
}

static int choose_path(const struct tsock_server *s, uint32_t asked,
		       const struct tsi_gpu_info *info, uint32_t *path)
{
	uint32_t only = s->gpu_path ? s->gpu_path : asked;

	if (s->gpu_path && asked && asked != s->gpu_path)
		return tsi_err(TSOCK_ENOTSUP, "the producer offers another "
					      "path to its GPU memory");
	if (only == TSOCK_PATH_STAGED)
		return tsi_err(TSOCK_ENOTSUP,
			       "the producer keeps no rings on GPUs");
	*path = only               ? only
		: info->vmm_fd     ? TSOCK_PATH_VMM
		: info->legacy_ipc ? TSOCK_PATH_LEGACY
				   : TSOCK_PATH_AUTO;
	if (!*path || (*path == TSOCK_PATH_VMM && !info->vmm_fd) ||
	    (*path == TSOCK_PATH_LEGACY && !info->legacy_ipc))
		return tsi_err(TSOCK_ENOTSUP,
			       "%s can't share its memory between processes "
			       "that way",
			       info->name);
	return 0;
}

int tsi_gpuviews_resolve(struct tsock_server *s, struct tsi_view_spec *spec,
			 unsigned *device, uint64_t *granularity)
{
	struct tsi_gpu_info info;
	char why[200];
	int err = tsi_gpu_find(spec->uuid, device);

	if (!err)
		err = tsi_gpu_info(*device, &info);
	if (err) {
		snprintf(why, sizeof(why), "%s", tsock_errmsg());
		/* The consumer does without: it copies by itself. */
		return tsi_err(TSOCK_ENOTSUP,
			       "the producer can't use that GPU: %s", why);
	}
	err = choose_path(s, spec->path, &info, &spec->path);
	*granularity = spec->path == TSOCK_PATH_VMM ? info.granularity : 0;
	return err;
}

/*
 * Another GPU's ring as decoded, that this GPU can read directly; EAGAIN while
 * the first one is made.
 */
static int neighbour(const struct tsock_server *s, unsigned device,
		     unsigned *source)
{
	struct tsi_gpu_info info;

	*source = 0;
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		const struct tsi_view *v = &s->view[i];

		if ((v->phase != TSI_VIEW_READY &&
		     v->phase != TSI_VIEW_MAKING) ||
		    !v->spec.gpu || !plain(&v->spec) || v->device == device ||
		    v->kind != TSI_STAGE_UPLOAD)
			continue;
		if (tsi_gpu_info(v->device, &info) || info.mig ||
		    !tsi_gpu_peer(device, v->device))
			continue;
		*source = i;
		return v->phase == TSI_VIEW_READY ? 0 : TSOCK_EAGAIN;
	}
	return 0;
}

/* NCCL takes each GPU once; a second ring on one is copied to. */
static enum tsi_stage_kind from_gpu(const struct tsock_server *s,
				    unsigned source, unsigned device)
{
	if (s->fanout != TSOCK_FANOUT_NCCL || s->no_nccl)
		return TSI_STAGE_PEER;
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (s->view[i].phase != TSI_VIEW_EMPTY &&
		    s->view[i].kind == TSI_STAGE_BROADCAST &&
		    s->view[i].source == source && s->view[i].device == device)
			return TSI_STAGE_PEER;
	return TSI_STAGE_BROADCAST;
}

int tsi_gpuviews_source(struct tsock_server *s,
			const struct tsi_view_spec *spec, unsigned device,
			unsigned *source, enum tsi_stage_kind *kind)
{
	struct tsi_view_spec raw = { .dtype = TSOCK_U8,
				     .layout = TSOCK_HWC,
				     .gpu = 1,
				     .path = spec->path };
	int err = 0;

	if (!plain(spec)) {
		memcpy(raw.uuid, spec->uuid, TSI_UUID);
		*kind = TSI_STAGE_GPU_CONVERT;
		return tsi_views_find(s, &raw, source);
	}
	*source = 0;
	if (s->fanout != TSOCK_FANOUT_HOST)
		err = neighbour(s, device, source);
	*kind = *source ? from_gpu(s, *source, device) : TSI_STAGE_UPLOAD;
	return err;
}

/* Its own thread calls this, so nobody else waits; it isn't READY yet. */
void tsi_gpuviews_choose(struct tsi_view *v)
{
	struct tsock_server *s = v->server;
	unsigned from = s->view[v->source].device;
	int64_t host, peer;
	bool locked;

	tsi_gpuviews_pin(s);
	pthread_mutex_lock(&s->pin_lock);
	locked = s->pinned;
	pthread_mutex_unlock(&s->pin_lock);
	if (tsi_fan_measure(&v->ring, v->device, from, locked, &host, &peer)) {
		tsi_log(TSOCK_LOG_INFO,
			"GPU %u is filled from GPU %u, unmeasured: %s",
			v->device, from, tsock_errmsg());
		return;
	}
	tsi_log(TSOCK_LOG_INFO,
		"GPU %u is filled from %s %u: a copy takes %lld us from host "
		"memory, %lld us from GPU %u",
		v->device, host < peer ? "host memory, not GPU" : "GPU", from,
		(long long)(host / 1000), (long long)(peer / 1000), from);
	if (peer <= host)
		return;
	pthread_mutex_lock(&s->lock);
	v->kind = TSI_STAGE_UPLOAD;
	v->source = 0;
	tsi_members_source(&s->members, v->id, 0, v->geometry.capacity, false);
	pthread_mutex_unlock(&s->lock);
}

void tsi_gpuviews_pin(struct tsock_server *s)
{
	const struct tsi_ring *r = &s->view[0].ring;
	int err = 0;

	pthread_mutex_lock(&s->pin_lock);
	if (!s->pinned && !s->pin_failed) {
		unsigned i = 0;

		for (; i < r->shared->nfields && !err; i++)
			err = tsi_gpu_pin(r->data[i].base, r->data[i].len);
		s->pinned = !err;
		s->pin_failed = err != 0;
		if (err)
			tsi_log(TSOCK_LOG_WARN,
				"the ring can't be page-locked: copies to "
				"GPUs are slower (%s)",
				tsock_errmsg());
		while (err && --i > 0)
			tsi_gpu_unpin(r->data[i - 1].base, r->data[i - 1].len);
	}
	pthread_mutex_unlock(&s->pin_lock);
}

void tsi_gpuviews_unpin(struct tsock_server *s)
{
	const struct tsi_ring *r = &s->view[0].ring;

	for (unsigned i = 0; s->pinned && i < r->shared->nfields; i++)
		tsi_gpu_unpin(r->data[i].base, r->data[i].len);
	s->pinned = false;
}
