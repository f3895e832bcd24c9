/* SPDX-License-Identifier: MIT */
/*
 * sampling.c - --sampler: which samples an epoch has, and how often.
 */
#include "run/sampling.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define REPEAT_MAX 1024

/* Pass by a word at the start of *text; false: another one is there. */
static bool take_word(const char **text, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*text, word, n) != 0)
		return false;
	*text += n;
	return true;
}

/* Pass by a number from 1 to most. */
static bool take_number(const char **text, uint64_t most, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*out = strtoull(*text, &end, 10);
	*text = end;
	return !errno && *out >= 1 && *out <= most;
}

static bool take_way(const char **text, struct tsi_sampling *s)
{
	uint64_t n = 0;

	if (take_word(text, "weighted"))
		s->way = TSI_SAMPLING_WEIGHTED;
	else if (take_word(text, "balanced"))
		s->way = TSI_SAMPLING_BALANCED;
	else if (take_word(text, "repeat:") &&
		 take_number(text, REPEAT_MAX, &n))
		s->repeat = (uint32_t)n;
	else
		return false;
	return !**text || (take_word(text, ",") && **text);
}

static bool take_limit(const char **text, struct tsi_sampling *s)
{
	return take_word(text, "limit:") &&
	       take_number(text, INT64_MAX, &s->limit);
}

int tsi_sampling_read(const char *text, struct tsi_sampling *out)
{
	struct tsi_sampling s = { .way = TSI_SAMPLING_ORDER };
	const char *at = text;

	if ((strncmp(at, "limit:", 6) == 0 || take_way(&at, &s)) &&
	    (!*at || take_limit(&at, &s)) && !*at) {
		*out = s;
		return 0;
	}
	return tsi_err(TSOCK_EARG,
		       "--sampler %s: weighted, balanced, repeat:K (K from 1 "
		       "to %d) or limit:N is wanted, or one of the first three "
		       "with a limit, such as weighted,limit:50000",
		       text, REPEAT_MAX);
}

bool tsi_sampling_is_any(const struct tsi_sampling *s)
{
	return s->way != TSI_SAMPLING_ORDER || s->repeat > 1 || s->limit;
}

void tsi_sampling_write(const struct tsi_sampling *s, FILE *to)
{
	const char *comma = "";

	if (s->way != TSI_SAMPLING_ORDER) {
		fputs(s->way == TSI_SAMPLING_WEIGHTED ? "weighted" : "balanced",
		      to);
		comma = ",";
	} else if (s->repeat > 1) {
		fprintf(to, "repeat:%" PRIu32, s->repeat);
		comma = ",";
	}
	if (s->limit)
		fprintf(to, "%slimit:%" PRIu64, comma, s->limit);
}
