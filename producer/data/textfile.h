/* SPDX-License-Identifier: MIT */
/*
 * textfile.h - a file that an option names, read whole.
 */
#ifndef TSI_DATA_TEXTFILE_H
#define TSI_DATA_TEXTFILE_H

#include <stddef.h>

#include "data/stamp.h"

struct tsi_textfile {
	char *path; /* absolute */
	char *text; /* a NUL behind it */
	size_t len;
};

/*
 * Read the file of this option ("--select").  With stamp, the file's stamp is
 * taken before it is read.  Fails with EDATA (it isn't a file that can be
 * read), ENOMEM; there is nothing to free then.
 */
int tsi_textfile_read(const char *option, const char *path,
		      struct tsi_stamp *stamp, struct tsi_textfile *out);

/* The text behind the bytes with which some editors begin one. */
char *tsi_textfile_begin(const struct tsi_textfile *t);

void tsi_textfile_free(struct tsi_textfile *t);

#endif
