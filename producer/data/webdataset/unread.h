/* SPDX-License-Identifier: MIT */
/*
 * unread.h - the files of samples in tar files that nothing reads, although
 * --labels would make fields of them: texts and arrays.
 */
#ifndef TSI_DATA_WEBDATASET_UNREAD_H
#define TSI_DATA_WEBDATASET_UNREAD_H

/* Endings as --labels is given them: ".emb.npy+.txt", each once. */
struct tsi_unread {
	char endings[200];
};

/* A file KEY.suffix is there: what is no text or array is passed over. */
void tsi_unread_note(struct tsi_unread *u, const char *suffix);

/* All of another's are there, too. */
void tsi_unread_add(struct tsi_unread *u, const struct tsi_unread *other);

#endif
