/* SPDX-License-Identifier: MIT */
/*
 * record.h - what a pack, or the cache in memory, holds of one file.
 *
 *   a packed image   of a JPEG whose pixels depend on its coefficients alone
 *                    (image/jpeg_whole.h), if there is memory for all of them
 *   the file itself  else, with a checksum in front of it, or a record as it
 *                    was, of a file that is one already
 *   the reason       why it can't be read
 *
 * A record is a function of the file's bytes, and of that memory.
 */
#ifndef TSI_PACKED_RECORD_H
#define TSI_PACKED_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_record_maker; /* used by one thread at a time */

/*
 * A JPEG whose coefficients may take more than `decode` bytes is kept as it is,
 * 6 for each pixel.  Fails with TSOCK_ENOMEM.
 */
int tsi_record_maker_create(uint64_t decode, struct tsi_record_maker **out);
/* NULL is allowed. */
void tsi_record_maker_destroy(struct tsi_record_maker *m);

struct tsi_record {
	uint8_t *data; /* free() */
	size_t len;
	bool packed;
	/*
	 * A JPEG that is kept and can't be decoded to its last row; the message
	 * of the thread's last error says why.
	 */
	bool damaged;
};

/* The record of a file of these bytes.  Fails with TSOCK_ENOMEM. */
int tsi_record_make(struct tsi_record_maker *m, const uint8_t *data, size_t len,
		    struct tsi_record *out);

/*
 * The packed image of a JPEG, valid until the maker is used again; or the data
 * themselves, if they are an undamaged one.  What comes back may be trusted
 * (tsi_jpeg_packed_open()).  Fails with TSOCK_ENOTSUP (there is none of this
 * file), ENOMEM.
 */
int tsi_record_pack(struct tsi_record_maker *m, const uint8_t *data, size_t len,
		    const uint8_t **record, size_t *record_len);

/* The record of a file that can't be read.  Fails with TSOCK_ENOMEM. */
int tsi_record_bad(const char *reason, struct tsi_record *out);

#endif
