/* SPDX-License-Identifier: MIT */
/*
 * documents.c - which tokens each sample has.
 *
 * Of windows that is arithmetic.  Samples of other ways follow from the ones
 * before: every 32nd is kept, and the others are found from there.
 */
#include "data/documents.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/text.h"

#define EACH 32

/* Where a sample begins. */
struct place {
	uint64_t at;
	uint64_t document;
};

struct tsi_documents_file {
	const uint8_t *data;
	uint64_t tokens;
	uint64_t *start; /* of each document */
	uint64_t documents;
	uint64_t first, samples; /* its first sample's number; how many */
	struct place *place;     /* of every EACHth sample */
	uint64_t places, room;
};

struct tsi_documents {
	enum tsi_documents_way way;
	uint64_t t;
	size_t item;
	struct tsi_documents_file *file;
	uint64_t files, room;
};

int tsi_documents_create(enum tsi_documents_way way, uint64_t t, size_t item,
			 struct tsi_documents **out)
{
	struct tsi_documents *d = calloc(1, sizeof(*d));

	if (!d)
		return tsi_err(TSOCK_ENOMEM, "no memory for documents");
	d->way = way;
	d->t = t;
	d->item = item;
	*out = d;
	return 0;
}

void tsi_documents_destroy(struct tsi_documents *d)
{
	if (!d)
		return;
	for (uint64_t k = 0; k < d->files; k++) {
		free(d->file[k].start);
		free(d->file[k].place);
	}
	free(d->file);
	free(d);
}

/* ---- the runs of a file, one after the other ---- */

static uint64_t end_of(const struct tsi_documents_file *f, uint64_t document)
{
	return document + 1 < f->documents ? f->start[document + 1] : f->tokens;
}

/* The run from its first token and document on. */
static void fill_run(const struct tsi_documents *d,
		     const struct tsi_documents_file *f,
		     struct tsi_documents_run *r)
{
	uint64_t end = f->tokens - r->at > d->t ? r->at + d->t + 1 : f->tokens;

	r->file = f;
	r->last = r->first;
	if (d->way == TSI_DOCUMENTS_PACK)
		while (r->last + 1 < f->documents &&
		       end_of(f, r->last + 1) <= end)
			r->last++;
	if (end_of(f, r->last) < end)
		end = end_of(f, r->last);
	r->tokens = end - r->at;
	r->data = f->data + r->at * d->item;
}

/* Go to where the next run begins; false: there is none. */
static bool next_run(const struct tsi_documents_file *f,
		     struct tsi_documents_run *r)
{
	uint64_t end = r->at + r->tokens;

	/* A document is cut as windows are: with one token in both pieces. */
	if (end_of(f, r->last) > end) {
		r->at = end - 1;
		r->first = r->last;
		return true;
	}
	r->at = end;
	r->first = r->last + 1;
	return r->first < f->documents;
}

static int count_runs(const struct tsi_documents *d,
		      struct tsi_documents_file *f)
{
	struct tsi_documents_run r = { .at = 0 };

	do {
		if (f->samples++ % EACH == 0) {
			int err = tsi_text_grow(&f->place, f->places, &f->room,
						sizeof(*f->place));

			if (err)
				return err;
			f->place[f->places++] = (struct place){
				.at = r.at,
				.document = r.first,
			};
		}
		fill_run(d, f, &r);
	} while (next_run(f, &r));
	return 0;
}

int tsi_documents_add(struct tsi_documents *d, const uint8_t *data,
		      uint64_t tokens, uint64_t *start, uint64_t n)
{
	int err = tsi_text_grow(&d->file, d->files, &d->room, sizeof(*d->file));
	struct tsi_documents_file *f;

	if (err) {
		free(start);
		return err;
	}
	f = &d->file[d->files];
	*f = (struct tsi_documents_file){ .data = data,
					  .tokens = tokens,
					  .start = start,
					  .documents = n,
					  .first = tsi_documents_count(d) };
	d->files++;
	if (d->way != TSI_DOCUMENTS_MARK)
		return count_runs(d, f);
	f->samples = (tokens - 1) / d->t;
	return 0;
}

uint64_t tsi_documents_count(const struct tsi_documents *d)
{
	const struct tsi_documents_file *f;

	if (!d->files)
		return 0;
	f = &d->file[d->files - 1];
	return f->first + f->samples;
}

uint64_t tsi_documents_hash(const struct tsi_documents *d, uint64_t h)
{
	for (uint64_t k = 0; k < d->files; k++)
		h = tsi_hash(d->file[k].start,
			     d->file[k].documents * sizeof(uint64_t), h);
	return h;
}

/* ---- a sample ---- */

static const struct tsi_documents_file *file_of(const struct tsi_documents *d,
						uint64_t i)
{
	uint64_t low = 0, high = d->files;

	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (d->file[mid].first <= i)
			low = mid;
		else
			high = mid;
	}
	return &d->file[low];
}

static uint64_t document_at(const struct tsi_documents_file *f, uint64_t token)
{
	uint64_t low = 0, high = f->documents;

	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (f->start[mid] <= token)
			low = mid;
		else
			high = mid;
	}
	return low;
}

void tsi_documents_find(const struct tsi_documents *d, uint64_t i,
			struct tsi_documents_run *out)
{
	const struct tsi_documents_file *f = file_of(d, i);
	struct tsi_documents_run r = { .file = f };
	uint64_t k = i - f->first;

	if (d->way == TSI_DOCUMENTS_MARK) {
		r.at = k * d->t;
		r.tokens = d->t + 1;
		r.data = f->data + r.at * d->item;
		r.first = document_at(f, r.at);
		r.last = document_at(f, r.at + d->t);
		*out = r;
		return;
	}
	r.at = f->place[k / EACH].at;
	r.first = f->place[k / EACH].document;
	fill_run(d, f, &r);
	for (k %= EACH; k; k--) {
		next_run(f, &r);
		fill_run(d, f, &r);
	}
	*out = r;
}

static void fill_marks(int32_t *to, uint64_t n, int32_t mark)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = mark;
}

void tsi_documents_mark(const struct tsi_documents *d,
			const struct tsi_documents_run *run, int32_t *to)
{
	const struct tsi_documents_file *f = run->file;
	uint64_t at = 0;

	for (uint64_t k = run->first; k <= run->last; k++) {
		uint64_t end = end_of(f, k) - run->at;

		if (end > run->tokens)
			end = run->tokens;
		fill_marks(to + at, end - at, (int32_t)(k - run->first));
		at = end;
	}
	fill_marks(to + at, d->t + 1 - at, -1);
}
