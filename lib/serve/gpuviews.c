/*
 * gpuviews.c - which GPU a view is on, how it is reached, what it is made of.
 *
 * On each GPU that has consumers there is one ring as decoded; all other views
 * of that GPU are made of it.  It is filled from the host ring, or from the
 * ring of another GPU that this one can read directly.
 */
#include "serve/server.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "mem/gpu.h"

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
	int err = tsi_gpu_find(spec->uuid, device);

	if (!err)
		err = tsi_gpu_info(*device, &info);
	if (err)
		/* The consumer does without: it copies by itself. */
		return tsi_err(TSOCK_ENOTSUP,
			       "the producer can't use that GPU: %s",
			       tsock_errmsg());
	err = choose_path(s, spec->path, &info, &spec->path);
	*granularity = spec->path == TSOCK_PATH_VMM ? info.granularity : 0;
	return err;
}

/* Another GPU's ring as decoded, that this GPU can read directly. */
static unsigned neighbour(const struct tsock_server *s, unsigned device)
{
	struct tsi_gpu_info info;

	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		const struct tsi_view *v = &s->view[i];

		if (v->phase != TSI_VIEW_READY || !v->spec.gpu ||
		    !plain(&v->spec) || v->device == device ||
		    v->kind != TSI_STAGE_UPLOAD)
			continue;
		if (tsi_gpu_info(v->device, &info) || info.mig)
			continue;
		if (tsi_gpu_peer(device, v->device))
			return i;
	}
	return 0;
}

int tsi_gpuviews_source(struct tsock_server *s,
			const struct tsi_view_spec *spec, unsigned device,
			unsigned *source, enum tsi_stage_kind *kind)
{
	struct tsi_view_spec raw = { .dtype = TSOCK_U8,
				     .layout = TSOCK_HWC,
				     .gpu = 1,
				     .path = spec->path };

	if (!plain(spec)) {
		memcpy(raw.uuid, spec->uuid, TSI_UUID);
		*kind = TSI_STAGE_GPU_CONVERT;
		return tsi_views_find(s, &raw, source);
	}
	*source = s->fanout == TSOCK_FANOUT_HOST ? 0 : neighbour(s, device);
	*kind = *source ? TSI_STAGE_PEER : TSI_STAGE_UPLOAD;
	return 0;
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
