/* SPDX-License-Identifier: MIT */
/*
 * documents.h - where the documents of files of tokens begin, and which tokens
 * each sample has.
 *
 * A sample is a run of at most T + 1 tokens of one file: a window, a document or
 * a piece of one, or several documents.  Which ones depends on the files and the
 * way alone.  8 bytes of memory are needed for a document, and half a byte for a
 * sample.
 */
#ifndef TSI_DATA_DOCUMENTS_H
#define TSI_DATA_DOCUMENTS_H

#include <stddef.h>
#include <stdint.h>

/* What --documents says; in the order of its words. */
enum tsi_documents_way {
	TSI_DOCUMENTS_IGNORE,
	TSI_DOCUMENTS_MARK,  /* windows every T tokens, and marks for them */
	TSI_DOCUMENTS_WHOLE, /* a sample is a document */
	TSI_DOCUMENTS_PACK,  /* a sample is as many documents as fit, marked */
};

/* Where a token stands that tells documents apart. */
enum tsi_documents_token {
	TSI_DOCUMENTS_NO_TOKEN,
	TSI_DOCUMENTS_END,
	TSI_DOCUMENTS_BEGIN,
};

struct tsi_documents_opts {
	enum tsi_documents_way way;
	enum tsi_documents_token stands;
	uint64_t token;
};

struct tsi_documents;
struct tsi_documents_file;

/* The tokens of a sample. */
struct tsi_documents_run {
	const struct tsi_documents_file *file;
	const uint8_t *data;  /* in a mapped file */
	uint64_t at, tokens;  /* the first one's number in the file; how many */
	uint64_t first, last; /* documents of the file that they are of */
};

/* Samples of T tokens and one more, of item bytes each.  Fails with ENOMEM. */
int tsi_documents_create(enum tsi_documents_way way, uint64_t t, size_t item,
			 struct tsi_documents **out);

/* NULL is allowed. */
void tsi_documents_destroy(struct tsi_documents *d);

/*
 * The next file: its tokens lie from data on, at least one.  n documents begin
 * at the tokens start[], of which the first is 0 and each later than the one
 * before; start is from malloc(), and d's from now on, also after a failure.
 * Fails with ENOMEM.
 */
int tsi_documents_add(struct tsi_documents *d, const uint8_t *data,
		      uint64_t tokens, uint64_t *start, uint64_t n);

/* Samples. */
uint64_t tsi_documents_count(const struct tsi_documents *d);

/* A number for where all documents begin, which goes on from h. */
uint64_t tsi_documents_hash(const struct tsi_documents *d, uint64_t h);

/* The tokens of sample i.  Any thread. */
void tsi_documents_find(const struct tsi_documents *d, uint64_t i,
			struct tsi_documents_run *out);

/*
 * For each of the T + 1 tokens of a sample which of its documents the token is
 * of, counted from 0; -1 where it has none.
 */
void tsi_documents_mark(const struct tsi_documents *d,
			const struct tsi_documents_run *run, int32_t *to);

#endif
