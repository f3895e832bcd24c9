/* SPDX-License-Identifier: MIT */
/*
 * patience.h - how long a wait goes on before it is said for whom.
 */
#ifndef TSI_BASE_PATIENCE_H
#define TSI_BASE_PATIENCE_H

#include <stdint.h>

/*
 * Milliseconds: 10,000, or what $TSOCK_PATIENCE_MS said at the first call.  It
 * is said again after six times as long.  Any thread.
 */
int64_t tsi_patience_ms(void);

#endif
