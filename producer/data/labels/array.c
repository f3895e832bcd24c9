/* SPDX-License-Identifier: MIT */
/*
 * array.c - a field of .npy files, one beside each sample.
 */
#include "data/labels/array.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "data/rows/npy.h"
#include "data/rows/schema.h"

#define NPY ".npy"

struct tsi_labels_array {
	uint64_t rows;
	bool *has;
	pthread_mutex_t lock; /* of the following two, until they are known */
	struct tsi_npy head;
	/* The rows lie behind it; NULL: no file was read yet. */
	struct tsi_column_part *part;
};

bool tsi_labels_array_is(const char *ending)
{
	size_t len = strlen(ending);

	return len >= strlen(NPY) && !strcmp(ending + len - strlen(NPY), NPY);
}

const char *tsi_labels_array_name(const char *ending, size_t *len)
{
	const char *end = ending + strlen(ending) - strlen(NPY);
	const char *name = end;

	if (end == ending)
		end += strlen(NPY);
	else
		while (*--name != '.')
			;
	*len = (size_t)(end - name) - 1;
	return name + 1;
}

static int no_memory(uint64_t bytes)
{
	return tsi_err(TSOCK_ENOMEM,
		       "no memory for %" PRIu64 " bytes of .npy files", bytes);
}

int tsi_labels_array_create(uint64_t rows, struct tsi_labels_array **out)
{
	struct tsi_labels_array *a = calloc(1, sizeof(*a));
	bool *has = calloc(rows + 1, sizeof(*has));

	if (!a || !has) {
		free(a);
		free(has);
		return no_memory(rows);
	}
	a->rows = rows;
	a->has = has;
	pthread_mutex_init(&a->lock, NULL);
	*out = a;
	return 0;
}

void tsi_labels_array_destroy(struct tsi_labels_array *a)
{
	if (!a)
		return;
	pthread_mutex_destroy(&a->lock);
	free(a->part);
	free(a->has);
	free(a);
}

/* "float32 [512]" */
static void describe(const struct tsi_npy *h, char *to, size_t room)
{
	int at = snprintf(to, room, "%s [", tsi_rows_dtype_name(h->dtype));

	for (uint32_t d = 0; d < h->ndim && at < (int)room; d++)
		at += snprintf(to + at, room - (size_t)at, "%s%" PRIu64,
			       d ? ", " : "", h->shape[d]);
	if (at < (int)room)
		snprintf(to + at, room - (size_t)at, "]");
}

/* Memory for all rows. */
static int allocate(struct tsi_labels_array *a, uint64_t bytes)
{
	uint64_t most = SIZE_MAX / 4, all;
	char by[128];

	if (tsi_limits_memory("", &most, by, sizeof(by)))
		most = SIZE_MAX / 4;
	if (a->rows >= SIZE_MAX / 4 / bytes || (a->rows + 1) * bytes > most)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for %" PRIu64 " arrays of %" PRIu64
			       " bytes: tsock.index() writes them into a "
			       "table, which needs none",
			       a->rows, bytes);
	all = sizeof(*a->part) + (a->rows + 1) * bytes;
	a->part = calloc(1, all);
	if (!a->part)
		return no_memory(all);
	*a->part = (struct tsi_column_part){ .data = (const uint8_t *)(a->part +
								       1) };
	return 0;
}

/* The first file decides; under the lock. */
static int begin(struct tsi_labels_array *a, const char *name,
		 const struct tsi_npy *h)
{
	uint64_t bytes = tsi_npy_bytes(h);
	int err;

	if (!bytes || h->ndim > TSOCK_MAX_DIMS)
		return tsi_err(TSOCK_EDATA,
			       "%s: an array that is a field has values, and "
			       "%d dimensions at most",
			       name, TSOCK_MAX_DIMS);
	err = allocate(a, bytes);
	if (!err)
		a->head = *h;
	return err;
}

static bool equal(const struct tsi_npy *a, const struct tsi_npy *b)
{
	return a->dtype == b->dtype && a->ndim == b->ndim &&
	       !memcmp(a->shape, b->shape, sizeof(a->shape));
}

static int check(struct tsi_labels_array *a, const char *name,
		 const struct tsi_npy *h)
{
	char is[128], others[128];
	int err;

	pthread_mutex_lock(&a->lock);
	err = a->part ? 0 : begin(a, name, h);
	pthread_mutex_unlock(&a->lock);
	if (err || equal(&a->head, h))
		return err;
	describe(h, is, sizeof(is));
	describe(&a->head, others, sizeof(others));
	return tsi_err(TSOCK_EDATA,
		       "%s: the array is %s, and others are %s: all samples "
		       "have one dtype and shape",
		       name, is, others);
}

int tsi_labels_array_take(struct tsi_labels_array *a, uint64_t i,
			  const char *name, const void *bytes, size_t len)
{
	struct tsi_npy h;
	int err = tsi_npy_parse(bytes, len, len, name, &h);
	size_t row;

	if (!err)
		err = check(a, name, &h);
	if (err)
		return err;
	row = (size_t)tsi_npy_bytes(&h);
	memcpy((uint8_t *)(a->part + 1) + i * row,
	       (const uint8_t *)bytes + h.at, row);
	a->has[i] = true;
	return 0;
}

bool tsi_labels_array_has(const struct tsi_labels_array *a, uint64_t i)
{
	return a->has[i];
}

void tsi_labels_array_give(struct tsi_labels_array *a, struct tsi_column *to)
{
	to->bytes = to->stride = (size_t)tsi_npy_bytes(&a->head);
	to->field.dtype = a->head.dtype;
	to->field.ndim = a->head.ndim;
	for (uint32_t d = 0; d < a->head.ndim; d++)
		to->field.shape[d] = a->head.shape[d];
	to->part = a->part;
	to->parts = 1;
	a->part = NULL;
}
