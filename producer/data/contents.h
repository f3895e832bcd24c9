/* SPDX-License-Identifier: MIT */
/*
 * contents.h - what lies in a folder that isn't a data set, or not the one that
 * was asked for, and how people train with that today.
 *
 * Files are told by their names, and where these say nothing by their first
 * bytes.  For messages only: nothing that is read depends on it.
 */
#ifndef TSI_DATA_CONTENTS_H
#define TSI_DATA_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TSI_CONTENTS_KINDS 32 /* at most */
#define TSI_CONTENTS_NAME 64  /* bytes that show a name, perhaps cut */

/* What a kind is called. */
#define TSI_CONTENTS_AUDIO "audio"

struct tsi_contents {
	uint32_t folders;
	uint32_t files;  /* all that are no folders */
	uint32_t images; /* by names that ImageFolder takes for images */
	char other[TSI_CONTENTS_NAME]; /* the first file of no known kind */
	struct {
		uint32_t count;
		char first[TSI_CONTENTS_NAME]; /* by name, in byte order */
	} of[TSI_CONTENTS_KINDS];
};

/*
 * Look at the entries of a folder, at 100,000 of them at most, below the
 * descriptor at as openat() does.  Where the folder holds folders alone, look
 * into the first of these instead, and so on, deep times at most.  False: it can't be read; *c
 * is empty then.
 */
bool tsi_contents_look(int at, const char *folder, unsigned deep,
		       struct tsi_contents *c);

/* The kind of which there are most files; -1: no kind is known. */
int tsi_contents_most(const struct tsi_contents *c);

/* Which kind is called that, "Parquet" for example; -1: none. */
int tsi_contents_kind(const char *what);

/* Can the producer do something with this kind, where it is given that way? */
bool tsi_contents_is_native(int kind);

/*
 * "12 Parquet files (a.parquet, ...)", "3 files (a.xyz, ...)", "700 images",
 * "folders alone" or "no files", written to to[0..len).
 */
const char *tsi_contents_say(const struct tsi_contents *c, char *to,
			     size_t len);

/* What to do with files of this kind, which isn't native: half a sentence. */
const char *tsi_contents_way(int kind);

#endif
