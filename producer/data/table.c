/*
 * table.c - the rows of a data set and their strings.
 */
#include "data/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"

uint64_t tsi_table_block_len(const struct tsi_table *t)
{
	return t->count * sizeof(*t->path) +
	       t->classes * sizeof(*t->class_name) + t->dirs * sizeof(*t->dir) +
	       t->count * sizeof(*t->size) + t->count * sizeof(*t->label) +
	       t->paths_len + t->names_len;
}

void tsi_table_set_columns(struct tsi_table *t)
{
	t->path = t->block;
	t->class_name = t->path + t->count;
	t->dir = (struct tsi_table_dir *)(t->class_name + t->classes);
	t->size = (uint32_t *)(t->dir + t->dirs);
	t->label = t->size + t->count;
	t->paths = (char *)(t->label + t->count);
	t->names = t->paths + t->paths_len;
}

void tsi_table_clear(struct tsi_table *t)
{
	for (uint64_t k = 0; k < t->nbad; k++)
		free(t->bad[k].reason);
	free(t->bad);
	free(t->block);
	*t = (struct tsi_table){ .block = NULL };
}

int tsi_table_add_bad(struct tsi_table *t, uint64_t i, const char *reason)
{
	char *copy = strdup(reason);

	if (copy && t->nbad == t->bad_room) {
		uint64_t more = t->bad_room * 2 + 16;
		void *p = realloc(t->bad, more * sizeof(*t->bad));

		if (p) {
			t->bad = p;
			t->bad_room = more;
		}
	}
	if (!copy || t->nbad == t->bad_room) {
		free(copy);
		return tsi_err(TSOCK_ENOMEM, "no memory for an index");
	}
	t->bad[t->nbad++] = (struct tsi_table_bad){ i, copy };
	return 0;
}

static int by_index(const void *a, const void *b)
{
	uint64_t i = ((const struct tsi_table_bad *)a)->index;
	uint64_t j = ((const struct tsi_table_bad *)b)->index;

	return (i > j) - (i < j);
}

void tsi_table_sort_bad(struct tsi_table *t)
{
	if (t->nbad > 1)
		qsort(t->bad, t->nbad, sizeof(*t->bad), by_index);
}

const struct tsi_table_bad *tsi_table_find_bad(const struct tsi_table *t,
					       uint64_t i)
{
	uint64_t low = 0;
	uint64_t high = t->nbad;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (t->bad[mid].index < i)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->nbad && t->bad[low].index == i ? &t->bad[low] : NULL;
}

int64_t tsi_table_mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}
