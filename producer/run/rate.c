/* SPDX-License-Identifier: MIT */
/*
 * rate.c - the sample rate of an audio file of the data set.
 */
#include "run/rate.h"

#include <errno.h>
#include <stdlib.h>

#include "audio/load.h"
#include "base/err.h"
#include "io/reader.h"

int tsi_rate_of(const struct tsi_index *x, uint64_t i, uint32_t *rate)
{
	struct tsi_location at;
	struct tsi_read_request q;
	char text[TSI_PATH];
	uint8_t *data;
	size_t len;
	int err;

	*rate = 0;
	if (tsi_index_bad(x, i))
		return 0;
	tsi_index_locate_bytes(x, i, &at);
	q = (struct tsi_read_request){ .dirfd = tsi_index_dirfd(x),
				       .folder = at.folder,
				       .path = at.file };
	err = tsi_io_read(&q, TSI_READER_MAX, &data, &len);
	if (err == ENOMEM)
		return tsi_err(TSOCK_ENOMEM, "no memory to read %s",
			       tsi_location_path(&at, text));
	if (err == EMFILE || err == ENFILE) {
		errno = err;
		return tsi_err_sys("read %s", tsi_location_path(&at, text));
	}
	if (err)
		return 0;
	err = tsi_audio_rate(data, len, rate);
	free(data);
	return err == TSOCK_EDATA ? 0 : err;
}
