/* SPDX-License-Identifier: MIT */
/*
 * description.h - what a producer says of its stream: does it make sense, and
 * has the stream the batches that are asked for?  Values alone: nothing here
 * talks to a producer.
 *
 * name is the stream's, for messages.  Any thread.
 */
#ifndef TSI_CONSUMER_DESCRIPTION_H
#define TSI_CONSUMER_DESCRIPTION_H

#include "order/part.h"
#include "tsock/tsock.h"
#include "wire/msg.h"

/* TSOCK_EPROTO where the producer says what can't be. */
int tsi_description_check(const struct tsi_msg_stream *s, const char *name);

/* TSOCK_EREFUSED where the stream has no batches as large. */
int tsi_description_allows(const struct tsi_msg_stream *s,
			   const struct tsock_opts *o, const char *name);

/* TSOCK_EREFUSED where the consumer can't begin as it wants to. */
int tsi_description_joins(const struct tsi_msg_stream *s,
			  const struct tsock_opts *o, const char *name);

/* TSOCK_EREFUSED where no epoch would have a batch for each rank. */
int tsi_description_fills_batch(const struct tsi_msg_stream *s,
				const struct tsock_opts *o, const char *name);

/*
 * Which part of an order of *whole samples the stream is; *whole is 0 where the
 * producer doesn't say.
 */
void tsi_description_part(const struct tsi_msg_stream *s, struct tsi_part *part,
			  uint64_t *whole);

/* All that tsock_get_info() tells; out->size becomes 0. */
void tsi_description_info(const struct tsi_msg_stream *s,
			  struct tsock_info *out);

#endif
