/* SPDX-License-Identifier: MIT */
/*
 * verdict.c - how many bad files are too many, and what is said of them.
 */
#include "run/verdict.h"

#include <inttypes.h>
#include <stdio.h>

/* That many bytes of names and reasons are shown. */
#define SHOWN "%.120s"

static double share_of(uint64_t bad, uint64_t files)
{
	return (double)bad / (double)files;
}

bool tsi_verdict_too_many(const struct tsi_tolerance *t, uint64_t bad,
			  uint64_t files)
{
	return share_of(bad, files) > t->share;
}

bool tsi_verdict_surely_too_many(const struct tsi_tolerance *t, uint64_t bad,
				 uint64_t looked)
{
	double k = (double)bad, n = (double)looked;
	double most = n * t->share;

	/* k - 3 sqrt(k) > most, without the root. */
	return k > most && (k - most) * (k - most) > 9 * k;
}

/* The least share of two digits that lets so many pass. */
static double let_pass(const struct tsi_bad_files *all)
{
	double hundredths = share_of(all->bad, all->files) * 100;
	double up = (double)(uint64_t)hundredths;

	if (up < hundredths || up < 1)
		up++;
	return up / 100;
}

/* "; the first is dog/1.heic: neither JPEG nor PNG but a HEIC image" */
static void put_first(FILE *f, const struct tsi_bad_files *b)
{
	if (b->looked < b->bad)
		fprintf(f, " (%" PRIu64 " were looked at)", b->looked);
	if (b->first)
		fprintf(f, "; the first is " SHOWN ": " SHOWN, b->first,
			b->reason);
}

static void put_counts(FILE *f, const struct tsi_bad_files *all)
{
	fprintf(f, "%" PRIu64 " of %" PRIu64 " files (%.3g %%) can't be read",
		all->bad, all->files, 100 * share_of(all->bad, all->files));
}

static FILE *begin(char *to, size_t len)
{
	FILE *f = fmemopen(to, len, "w");

	if (!f)
		snprintf(to, len, "too many files can't be read");
	return f;
}

void tsi_verdict_refuse(const struct tsi_bad_files *all,
			const struct tsi_lost_classes *lost, char *to,
			size_t len)
{
	FILE *f = begin(to, len);

	if (!f)
		return;
	fprintf(f, SHOWN ": ", all->name);
	put_counts(f, all);
	if (lost->n == 1)
		fprintf(f, ", and class " SHOWN " has no other", lost->name);
	else if (lost->n)
		fprintf(f,
			", and class " SHOWN " and %" PRIu32
			" more have no other",
			lost->name, lost->n - 1);
	put_first(f, all);
	fprintf(f,
		"; convert or remove them, or have good files take their "
		"places: --allow-bad %g (allow_bad=%g in Python)",
		let_pass(all), let_pass(all));
	fclose(f);
}

void tsi_verdict_warn_class(const struct tsi_bad_files *class_,
			    const struct tsi_bad_files *all, char *to,
			    size_t len)
{
	FILE *f = begin(to, len);

	if (!f)
		return;
	fprintf(f, "class " SHOWN ": none of its %" PRIu64 " files can be read",
		class_->name, class_->files);
	put_first(f, class_);
	fprintf(f,
		"; images of other classes take their places; --allow-bad %g "
		"(allow_bad=%g in Python) lets that pass",
		let_pass(all), let_pass(all));
	fclose(f);
}

void tsi_verdict_warn_share(const struct tsi_bad_files *all, char *to,
			    size_t len)
{
	FILE *f = begin(to, len);

	if (!f)
		return;
	fputs("so far ", f);
	put_counts(f, all);
	put_first(f, all);
	fputs("; others take their places; a larger --allow-bad (allow_bad= "
	      "in Python) lets that pass",
	      f);
	fclose(f);
}
