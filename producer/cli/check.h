/* SPDX-License-Identifier: MIT */
/*
 * check.h - what can be checked before anything starts: folders, descriptors,
 * the two splits.
 */
#ifndef TSI_CLI_CHECK_H
#define TSI_CLI_CHECK_H

#include "cli/options.h"
#include "data/index.h"
#include "run/pipeline.h"
#include "tsock/tsock.h"

/* /dev/null for each of the first three descriptors that is closed. */
void tsi_check_stdio(void);

/* The data set's folder is there and can be read: EDATA otherwise. */
int tsi_check_root(const struct tsi_dataset *data);

/*
 * All checks of a start that need no scan: a start, --dry-run and
 * --check-config make the same ones.  *p becomes what the options say, with
 * the numbers that they leave to us, and *g the sizes.
 */
int tsi_check_start(const struct tsi_options *o, struct tsi_pipeline_opts *p,
		    struct tsock_geometry *g);

/*
 * The ring fits into --memory (EARG), unless that is 0, and into what there is
 * (ENOMEM).  tsi_check_start() asks it of the smallest ring, unless --ring says
 * how large it is; a caller that has scanned asks again.
 */
int tsi_check_ring(const struct tsi_pipeline_opts *p,
		   const struct tsock_geometry *g);

/* Warn when train and val, side by side, have different classes. */
void tsi_check_splits(const struct tsi_dataset *data,
		      const struct tsi_index *x);

#endif
