/* SPDX-License-Identifier: MIT */
/*
 * attach.h - from a token to a mapped ring.
 *
 * Trusts nothing that the producer sends before it has been checked: kinds and
 * lengths of the descriptors, and every number in the header.
 */
#ifndef TSI_CONSUMER_ATTACH_H
#define TSI_CONSUMER_ATTACH_H

#include <stdint.h>

#include "consumer/mapping.h"
#include "consumer/reader.h"
#include "wire/msg.h"
#include "wire/address.h"

struct tsi_connecting;
struct tsi_gpu_backend_parts;

struct tsi_attach {
	const struct tsi_address *address;
	const uint8_t *nonce, *token;
	uint64_t incarnation, epoch_len; /* that were announced */
	uint64_t position;               /* to go on there; or 0 */
	const struct tsock_field *field; /* of the ring, as expected */
	unsigned nfields;
	uint64_t batch;
	enum tsi_mapping_mode mode;
	const struct tsi_gpu_backend_parts
		*gpu; /* NULL: batches in host memory */
	bool *no_gpu; /* true: the memory on the GPU couldn't be opened */
	struct tsi_connecting *connecting; /* to the producer */
	int timeout_ms;
};

/*
 * Connect, check, map.  start and end are where the first epoch lies.  Errors
 * of tsi_fdpass_connect(), EPROTO, ENOMEM, and ELOST for another incarnation.
 * EAGAIN with a connection under way: called again, it goes on with that.
 * If it fails, the claim may have been made: LEAVE with the nonce ends it.  The
 * reader sends LEAVE by itself if its claim ends after it was retired.
 */
int tsi_attach(const struct tsi_attach *a, struct tsi_reader **out,
	       uint64_t *start, uint64_t *end);

#endif
