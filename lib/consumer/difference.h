/* SPDX-License-Identifier: MIT */
/*
 * difference.h - is that the same stream, of which a number means the same
 * sample?  Compares what two producers say: pure.
 */
#ifndef TSI_CONSUMER_DIFFERENCE_H
#define TSI_CONSUMER_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "consumer/meta.h"
#include "wire/msg.h"

/* What a producer says of its stream. */
struct tsi_said {
	const struct tsi_msg_stream *stream;
	const struct tsi_meta *meta;
};

/*
 * True if they differ in anything that decides the samples; why is then, for
 * people, what was and what is.
 */
bool tsi_difference(const struct tsi_said *was, const struct tsi_said *is,
		    char *why, size_t size);

#endif
