/* SPDX-License-Identifier: MIT */
/*
 * stamps.c - whether a table's files have changed since it was written.
 */
#include "data/columnar/stamps.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "data/mapped.h"

#define STAMPED 4096 /* files whose sizes and times are looked at */

/* What "files.stamp" has of a file. */
struct stamp {
	int64_t bytes, mtime_ns;
};

static int check_stamp(const struct tsi_root *root,
		       const struct tsi_columnar *c, const char *path,
		       const struct stamp *was)
{
	struct stat st;

	if (tsi_root_stat(root, path, &st))
		return tsi_err(TSOCK_EDATA,
			       "%s names %s, which can't be "
			       "opened: %s",
			       tsi_columnar_path(c), path, strerror(errno));
	if (st.st_size == was->bytes &&
	    (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec ==
		    was->mtime_ns)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%s has changed since the table %s was written: write "
		       "the table again",
		       path, tsi_columnar_path(c));
}

int tsi_columnar_check_stamps(const struct tsi_root *root,
			      const struct tsi_columnar *c, const char *paths,
			      const uint64_t *at, uint64_t files)
{
	const struct tsi_columnar_entry *e =
		tsi_columnar_find(c, "files.stamp");
	uint64_t some = files < STAMPED ? files : STAMPED;
	const struct stamp *stamp;
	int err = 0;

	if (!e)
		return 0;
	if (e->kind != TSI_COLUMNAR_VALUES || e->dtype != TSOCK_I64 ||
	    e->ndim != 1 || e->shape[0] != 2 || e->count != files)
		return tsi_err(TSOCK_EDATA,
			       "%s: the column files.stamp isn't a size and a "
			       "time, int64 [2], for each file",
			       tsi_columnar_path(c));
	stamp = tsi_columnar_data(c, e);
	for (uint64_t k = 0; k < some && !err; k++) {
		uint64_t i = k * files / some;
		struct stamp was;

		if (!tsi_mapped_copy(&was, &stamp[i], sizeof(was)))
			return tsi_columnar_fail(c, e,
						 "was cut short while it "
						 "was read");
		err = check_stamp(root, c, paths + at[i], &was);
	}
	return err;
}
