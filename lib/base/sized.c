/* SPDX-License-Identifier: MIT */
/*
 * sized.c - public structs that grow at their end.
 */
#include "base/sized.h"

#include <string.h>

#include "base/err.h"
#include "tsock/tsock.h"

#define MOST 65536 /* bytes: a size that was never set is often larger */

/* What no caller can do without is in each since the first version. */
#define TYPE(type, name, how, member) \
	{ \
		name, how, TSI_SIZED_TO(type, member), sizeof(type) \
	}

const struct tsi_sized tsi_sized_opts = TYPE(
	struct tsock_opts, "opts", "start from TSOCK_OPTS_INIT", batch_size);
const struct tsi_sized tsi_sized_serve_opts =
	TYPE(struct tsock_serve_opts, "opts",
	     "start from TSOCK_SERVE_OPTS_INIT", epoch_len);
const struct tsi_sized tsi_sized_info =
	TYPE(struct tsock_info, "info",
	     "set info.size to sizeof(struct tsock_info)", nfields);
const struct tsi_sized tsi_sized_stats =
	TYPE(struct tsock_stats, "out",
	     "set out.size to sizeof(struct tsock_stats)", row);
const struct tsi_sized tsi_sized_geometry =
	TYPE(struct tsock_geometry, "out",
	     "set out.size to sizeof(struct tsock_geometry)", capacity);
const struct tsi_sized tsi_sized_order_opts =
	TYPE(struct tsock_order_opts, "opts",
	     "start from TSOCK_ORDER_OPTS_INIT", count);
const struct tsi_sized tsi_sized_rank_opts =
	TYPE(struct tsock_rank_opts, "opts", "start from TSOCK_RANK_OPTS_INIT",
	     batch_size);
const struct tsi_sized tsi_sized_part_opts =
	TYPE(struct tsock_part_opts, "opts", "start from TSOCK_PART_OPTS_INIT",
	     whole_len);

const struct tsi_sized tsi_sized_gpu_samples =
	TYPE(struct tsock_gpu_samples, "from",
	     "start from TSOCK_GPU_SAMPLES_INIT", arg);
const struct tsi_sized tsi_sized_table_info =
	TYPE(struct tsock_table_info, "out",
	     "set out.size to sizeof(struct tsock_table_info)", folders);

static uint32_t size_of(const void *caller)
{
	uint32_t size;

	memcpy(&size, caller, sizeof(size));
	return size;
}

static size_t shared(const struct tsi_sized *type, const void *caller)
{
	uint32_t size = size_of(caller);

	return size < type->size ? size : type->size;
}

int tsi_sized_check(const char *call, const struct tsi_sized *type,
		    const void *out)
{
	if (!out)
		return tsi_err(TSOCK_EARG, "%s: %s is NULL: %s", call,
			       type->name, type->hint);
	if (size_of(out) < type->least || size_of(out) > MOST)
		return tsi_err(TSOCK_EARG, "%s: %s.size is %u: %s", call,
			       type->name, (unsigned)size_of(out), type->hint);
	return 0;
}

int tsi_sized_read(const char *call, const struct tsi_sized *type,
		   const void *from, void *to)
{
	const uint8_t *bytes = from;
	uint32_t size = (uint32_t)type->size;
	int err = tsi_sized_check(call, type, from);

	if (err)
		return err;
	for (size_t i = type->size; i < size_of(from); i++)
		if (bytes[i])
			return tsi_err(TSOCK_EARG,
				       "%s: an option of %s is set that this "
				       "version (%s) doesn't know",
				       call, type->name,
				       tsock_version_string());
	memcpy(to, from, shared(type, from));
	memcpy(to, &size, sizeof(size));
	return 0;
}

void tsi_sized_write(const struct tsi_sized *type, const void *from, void *out)
{
	uint32_t size = (uint32_t)shared(type, out), room = size_of(out);

	memcpy(out, from, size);
	memset((uint8_t *)out + size, 0, room - size);
	memcpy(out, &size, sizeof(size));
}
