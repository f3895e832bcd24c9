/* SPDX-License-Identifier: MIT */
/*
 * meta.h - the texts of a stream: the names of its classes, and its identity.
 * They come from the producer in pieces (META in lib/wire/README.md).
 *
 * One thread at a time, as for the handle.  Nothing here talks to a producer.
 */
#ifndef TSI_CONSUMER_META_H
#define TSI_CONSUMER_META_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros: no text is expected yet. */
struct tsi_meta {
	char *bytes; /* each text ends with its NUL */
	uint32_t size, have;
	uint32_t nclasses;
	const char **name;    /* of the classes */
	const char *identity; /* NULL: not all texts have come */
};

/* Get ready for that many bytes, with that many names.  Fails with
 * TSOCK_ENOMEM. */
int tsi_meta_begin(struct tsi_meta *m, uint32_t size, uint32_t nclasses);

/* Free all texts.  As before tsi_meta_begin() from now on. */
void tsi_meta_end(struct tsi_meta *m);

/* Was it begun? */
static inline bool tsi_meta_begun(const struct tsi_meta *m)
{
	return m->bytes;
}

/* Does more have to come?  Then from byte *at on. */
bool tsi_meta_lacks(const struct tsi_meta *m, uint32_t *at);

/* A piece of len bytes, from byte at on.  False: it isn't the one that is
 * lacking, or too long. */
bool tsi_meta_add(struct tsi_meta *m, uint32_t at, const uint8_t *bytes,
		  uint32_t len);

/* All has come: find the texts.  False: there are too few. */
bool tsi_meta_divide(struct tsi_meta *m);

/* Texts, until tsi_meta_end(); NULL: there is no such class; not all came. */
const char *tsi_meta_class(const struct tsi_meta *m, uint32_t i);
const char *tsi_meta_identity(const struct tsi_meta *m);

#endif
