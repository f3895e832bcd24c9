/* SPDX-License-Identifier: MIT */
/*
 * warnings.h - a program's warnings to all readers of its stream, now or later:
 * a list that only grows.
 *
 * The server's lock is held when these functions are called.
 */
#ifndef TSI_SERVE_WARNINGS_H
#define TSI_SERVE_WARNINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

/* All zeros: there is none. */
struct tsi_warnings {
	uint32_t n;
	struct {
		uint32_t kind;
		char *text;
	} warning[TSI_WARNINGS];
};

void tsi_warnings_fini(struct tsi_warnings *w);

/* False: there is no room, or no memory, for one more. */
bool tsi_warnings_add(struct tsi_warnings *w, uint32_t kind, const char *text);

/* Warning number i, from 0; false: there is no such. */
bool tsi_warnings_get(const struct tsi_warnings *w, uint32_t i,
		      struct tsi_msg_warning_data *out);

#endif
