/* SPDX-License-Identifier: MIT */
/*
 * stop_file.h - NAME.stopped, the file beside the sockets that says when the
 * stream of that name was stopped for good, and by whom.
 *
 * It concerns the readers of that time: they neither wait for another producer
 * nor start one.  A process that opens the name later joins the stream that
 * runs by then, or starts it.  So the file has a time, and needn't be removed.
 */
#ifndef TSI_WIRE_STOP_FILE_H
#define TSI_WIRE_STOP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/address.h"

#define TSI_STOP_WHO 128 /* bytes of who stopped it */

/* Record that who stopped the stream now. */
int tsi_stop_file_write(const struct tsi_address *a, const char *who);

/*
 * Was the stream stopped after since_ns, a tsi_now_ns() of any process of this
 * machine?  Then who says which process did it.
 */
bool tsi_stop_file_since(const struct tsi_address *a, int64_t since_ns,
			 char who[TSI_STOP_WHO]);

/* TSOCK_EENDED, with a message that who stopped the stream. */
int tsi_stop_file_err(const struct tsi_address *a, const char *who);

#endif
