/* SPDX-License-Identifier: MIT */
/*
 * growth.h - a data set whose files change while it is served.
 *
 * A thread looks again and again whether files were added or removed.  When
 * something has changed, and two looks in a row have seen the same, it opens
 * the data set anew, beside the stream that is served, which it leaves alone:
 * its owner decides when that one ends, and starts the new one.  Where opening
 * fails (a folder is empty for the moment, say) one warning says so, and the
 * next change is waited for.
 */
#ifndef TSI_RUN_GROWTH_H
#define TSI_RUN_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "run/pipeline.h"
#include "run/service.h"

struct tsi_growth;

/*
 * Look at the data set of this service, which was opened with o; both must
 * outlive the thread.  Between two looks pass interval_ms, and up to 10 s where
 * a look takes more than a twentieth of that.  Fails with ENOMEM, ESYS.
 */
int tsi_growth_open(const struct tsi_pipeline_opts *o,
		    const struct tsi_service *served, unsigned interval_ms,
		    struct tsi_growth **out);

/*
 * Is the data set another one by now, and opened?  *samples and *classes are
 * how many it has.
 */
bool tsi_growth_found(struct tsi_growth *g, uint64_t *samples,
		      uint32_t *classes);

/*
 * End the thread, after the scan that it may be at.  Returns the data set as it
 * was opened last, which is the caller's to start or to close; NULL: it was
 * never opened anew.  NULL is allowed.
 */
struct tsi_service *tsi_growth_close(struct tsi_growth *g);

#endif
