/* SPDX-License-Identifier: MIT */
/*
 * meta.c - the texts of a stream: the names of its classes, and its identity.
 */
#include "consumer/meta.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int tsi_meta_begin(struct tsi_meta *m, uint32_t size, uint32_t nclasses)
{
	*m = (struct tsi_meta){
		.bytes = malloc((size_t)size + 1),
		.size = size,
		.nclasses = nclasses,
		.name = calloc((size_t)nclasses + 1, sizeof(*m->name)),
	};
	if (m->bytes && m->name)
		return 0;
	tsi_meta_end(m);
	return tsi_err(TSOCK_ENOMEM, "no memory for class names");
}

void tsi_meta_end(struct tsi_meta *m)
{
	free(m->bytes);
	free(m->name);
	*m = (struct tsi_meta){ .bytes = NULL };
}

bool tsi_meta_lacks(const struct tsi_meta *m, uint32_t *at)
{
	*at = m->have;
	return m->have < m->size;
}

bool tsi_meta_add(struct tsi_meta *m, uint32_t at, const uint8_t *bytes,
		  uint32_t len)
{
	if (at != m->have || !len || len > m->size - m->have)
		return false;
	memcpy(m->bytes + at, bytes, len);
	m->have += len;
	return true;
}

bool tsi_meta_divide(struct tsi_meta *m)
{
	const char *p = m->bytes, *end = p + m->size;

	/* The last text may lack its NUL. */
	m->bytes[m->size] = 0;
	for (uint32_t i = 0; i < m->nclasses; i++) {
		if (p >= end)
			return false;
		m->name[i] = p;
		p += strlen(p) + 1;
	}
	m->identity = p < end ? p : "";
	return true;
}

const char *tsi_meta_class(const struct tsi_meta *m, uint32_t i)
{
	return i < m->nclasses ? m->name[i] : NULL;
}

const char *tsi_meta_identity(const struct tsi_meta *m)
{
	return m->identity;
}
