/* SPDX-License-Identifier: MIT */
/*
 * sndfile_none.c - in place of sndfile.c in a build without libsndfile.
 */
#include "audio/sndfile.h"

#include "base/err.h"

bool tsi_sndfile_is_there(void)
{
	return false;
}

int tsi_sndfile_create(struct tsi_sndfile **out)
{
	*out = NULL;
	return 0;
}

void tsi_sndfile_destroy(struct tsi_sndfile *s)
{
	(void)s;
}

int tsi_sndfile_open(struct tsi_sndfile *s, const void *data, size_t len,
		     struct tsi_sndfile_head *out)
{
	(void)s;
	(void)data;
	(void)len;
	(void)out;
	return tsi_err(TSOCK_EDATA,
		       "this tsock-producer was built without libsndfile and "
		       "reads WAV files of PCM or floats alone: install "
		       "libsndfile's headers and build it again");
}

void tsi_sndfile_close(struct tsi_sndfile *s)
{
	(void)s;
}

int tsi_sndfile_seek(struct tsi_sndfile *s, uint64_t at)
{
	(void)s;
	(void)at;
	return tsi_err(TSOCK_EDATA, "no file is open");
}

size_t tsi_sndfile_read(struct tsi_sndfile *s, size_t n, float *to)
{
	(void)s;
	(void)n;
	(void)to;
	return 0;
}
