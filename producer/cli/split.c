/* SPDX-License-Identifier: MIT */
/*
 * split.c - which folder below the root a split is.
 */
#include "cli/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/err.h"
#include "data/packed/pack.h"

#define NAMES 4

/* The split's own name first. */
static const char *const names[][NAMES] = {
	[TSI_SPLIT_TRAIN] = { "train", "training" },
	[TSI_SPLIT_VAL] = { "val", "valid", "validation", "test" },
};

/* NULL: no memory. */
static char *join(const char *root, const char *name, bool *there)
{
	struct stat st;
	char *path;

	if (asprintf(&path, "%s/%s", root, name) < 0)
		return NULL;
	*there = !stat(path, &st) && S_ISDIR(st.st_mode);
	return path;
}

/* How many folders there are by these names, from the k-th on; *last of them. */
static unsigned count_folders(const char *root, uint64_t split, unsigned k,
			      const char **last)
{
	unsigned n = 0;

	for (; k < NAMES && names[split][k]; k++) {
		bool there = false;

		free(join(root, names[split][k], &there));
		if (!there)
			continue;
		n++;
		*last = names[split][k];
	}
	return n;
}

char *tsi_split_folder(const char *root, uint64_t split)
{
	const char *name;
	bool there;
	char *path;

	if (split == TSI_SPLIT_NONE)
		return strdup(root);
	path = join(root, names[split][0], &there);
	if (!path || there || count_folders(root, split, 1, &name) != 1)
		return path;
	free(path);
	return join(root, name, &there);
}

unsigned tsi_split_found(const char *root, uint64_t split, char *to, size_t len)
{
	unsigned n = 0;
	size_t at = 0;

	*to = '\0';
	for (unsigned k = 0; k < NAMES && names[split][k]; k++) {
		bool there = false;

		free(join(root, names[split][k], &there));
		if (!there || at >= len)
			continue;
		at += (size_t)snprintf(to + at, len - at, "%s%s",
				       n ? " and " : "", names[split][k]);
		n++;
	}
	return n;
}

bool tsi_split_is(const char *name)
{
	for (unsigned s = 0; s < sizeof(names) / sizeof(names[0]); s++)
		for (unsigned k = 0; k < NAMES && names[s][k]; k++)
			if (!strcasecmp(name, names[s][k]))
				return true;
	return !strcasecmp(name, "eval");
}

int tsi_split_find(struct tsi_dataset *d)
{
	d->folder = tsi_split_folder(
		d->root, tsi_format_splits_inside(d->format) ? TSI_SPLIT_NONE
							     : d->split);
	if (!d->folder)
		return tsi_err(TSOCK_ENOMEM, "no memory for the options");
	return tsi_pack_resolve(d->root, &d->folder, &d->format);
}

int tsi_split_masks(struct tsi_dataset *d, const char *masks)
{
	const char *split = d->folder + strlen(d->root);

	if (asprintf(&d->masks, "%s%s", masks, split) >= 0)
		return 0;
	d->masks = NULL;
	return tsi_err(TSOCK_ENOMEM, "no memory for the options");
}
