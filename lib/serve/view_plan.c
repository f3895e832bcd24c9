/* SPDX-License-Identifier: MIT */
/*
 * view_plan.c - what a view will be: its GPU, transport, source and ring.
 *
 * On each GPU that has consumers there is one view of the samples as they are
 * stored, filled from the host ring; all other views of that GPU are made of
 * it.  (The thread of such a view may find a better source, another GPU's ring:
 * view_neighbour.c.)
 */
#include "serve/view_plan.h"

#include <string.h>

#include "base/err.h"

/* The first transport that may work. */
static int first_transport(const struct tsi_gpu_entry *gpu, uint32_t *transport)
{
	const char *vmm = tsi_gpu_table_why_not(gpu, TSOCK_TRANSPORT_VMM);
	const char *legacy = tsi_gpu_table_why_not(gpu, TSOCK_TRANSPORT_LEGACY);

	if (vmm && legacy)
		return tsi_err(TSOCK_ENOTSUP,
			       "GPU %u can't share memory between processes: "
			       "vmm: %.90s; legacy: %.90s",
			       gpu->device, vmm, legacy);
	*transport = vmm ? TSOCK_TRANSPORT_LEGACY : TSOCK_TRANSPORT_VMM;
	return 0;
}

static int choose_transport(const struct tsi_gpu_entry *gpu, uint32_t asked,
			    uint32_t offered, uint32_t *transport)
{
	uint32_t only = offered ? offered : asked;
	const char *lacks;

	if (offered && asked && asked != offered)
		return tsi_err(TSOCK_ENOTSUP, "the producer offers another "
					      "transport to its GPU memory");
	if (only == TSOCK_TRANSPORT_STAGED)
		return tsi_err(TSOCK_ENOTSUP,
			       "the producer keeps no rings on GPUs");
	if (!only)
		return first_transport(gpu, transport);
	lacks = tsi_gpu_table_lacks(gpu, only);
	if (lacks)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s can't share its memory between processes "
			       "that way: %s",
			       gpu->info.name, lacks);
	*transport = only;
	return 0;
}

static int plan_on_gpu(const struct tsi_gpu_entry *gpu, uint32_t offered,
		       struct tsi_view_plan *p)
{
	int err = choose_transport(gpu, p->spec.transport, offered,
				   &p->spec.transport);

	if (err)
		return err;
	p->device = gpu->device;
	p->granularity = p->spec.transport == TSOCK_TRANSPORT_VMM
				 ? gpu->info.granularity
				 : 0;
	p->has_source = !tsi_view_spec_is_stored(&p->spec);
	p->kind = p->has_source ? TSI_STAGE_GPU_CONVERT : TSI_STAGE_UPLOAD;
	if (!p->has_source)
		return 0;
	p->source = (struct tsi_view_spec){ .dtype = TSOCK_U8,
					    .layout = TSOCK_HWC,
					    .gpu = 1,
					    .transport = p->spec.transport };
	memcpy(p->source.uuid, p->spec.uuid, TSI_UUID);
	return 0;
}

int tsi_view_plan_make(const struct tsi_view_spec *asked,
		       const struct tsi_gpu_entry *gpu, uint32_t transport,
		       struct tsi_view_plan *out)
{
	*out = (struct tsi_view_plan){ .spec = *asked,
				       .granularity = tsi_geometry_page(),
				       .kind = TSI_STAGE_CONVERT };
	return gpu ? plan_on_gpu(gpu, transport, out) : 0;
}

int tsi_view_plan_geometry(const struct tsi_view_plan *p,
			   const struct tsi_geometry *base,
			   struct tsi_geometry *out)
{
	struct tsock_field field[TSOCK_MAX_FIELDS];
	bool any = p->spec.gpu && tsi_view_spec_is_stored(&p->spec);
	int err = tsi_view_spec_check(&p->spec);

	for (unsigned i = 0; i < base->nfields && !err; i++) {
		const struct tsock_field *f = tsi_geometry_field(base, i);

		any |= f->flags & TSOCK_FIELD_IMAGE;
		err = tsi_view_spec_check_field(&p->spec, f);
		tsi_view_spec_field(&p->spec, f, &field[i]);
	}
	if (err)
		return err;
	if (!any)
		return tsi_err(TSOCK_EREFUSED,
			       "the stream has no image field: ask for its "
			       "fields as they are");
	err = tsi_geometry_like(base, field, base->nfields, p->granularity,
				out);
	if (!err)
		out->two_halves = base->two_halves && !p->spec.gpu;
	return err;
}
