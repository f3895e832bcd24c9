/* SPDX-License-Identifier: MIT */
/*
 * value.c - numbers, sizes, times and choices on a command line.
 */
#include "cli/value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cli/advice.h"
#include "run/pipeline.h"

#define MAX_SECONDS UINT64_C(31536000)

/* A decimal number and nothing else. */
static bool parse_u64(const char *s, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	*out = strtoull(s, &end, 10);
	return *end == '\0' && errno == 0;
}

int tsi_value_count(const char *name, const char *value, uint64_t min,
		    uint64_t max, uint64_t *out)
{
	uint64_t v;

	if (parse_u64(value, &v) && v >= min && v <= max) {
		*out = v;
		return 0;
	}
	if (max == UINT64_MAX)
		return tsi_err(TSOCK_EARG,
			       "--%s %s: a whole number, not negative, below "
			       "2^64 is wanted",
			       name, value);
	return tsi_err(TSOCK_EARG,
		       "--%s %s: a whole number from %" PRIu64 " to %" PRIu64
		       " is wanted",
		       name, value, min, max);
}

int tsi_value_choice(const char *name, const char *list, const char *value,
		     uint64_t *out)
{
	size_t len = strlen(value);
	const char *word = list;

	for (uint64_t i = 0;; i++) {
		size_t n = strcspn(word, "|");

		if (n == len && strncmp(word, value, n) == 0) {
			*out = i;
			return 0;
		}
		if (!word[n])
			break;
		word += n + 1;
	}
	word = tsi_text_nearest(value, list, &len);
	if (word)
		return tsi_err(TSOCK_EARG,
			       "--%s %s: choose one of %s (did you mean %.*s?)",
			       name, value, list, (int)len, word);
	return tsi_err(TSOCK_EARG, "--%s %s: choose one of %s", name, value,
		       list);
}

/* K, M, G and T are powers of 1024, with or without "iB" or "B". */
int tsi_value_bytes(const char *name, const char *value, uint64_t min,
		    uint64_t max, uint64_t *out)
{
	static const char units[] = "KMGT";
	char *end;
	const char *unit;
	double v;

	if (!isdigit((unsigned char)*value))
		goto bad;
	v = strtod(value, &end);
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit)
			goto bad;
		v *= (double)(UINT64_C(1024) << 10 * (unit - units));
		if (strcmp(end + 1, "") != 0 && strcmp(end + 1, "B") != 0 &&
		    strcmp(end + 1, "iB") != 0)
			goto bad;
	}
	if (v < (double)min || v > (double)max)
		return tsi_err(TSOCK_EARG,
			       "--%s %s: 1M to 1024T is wanted; K, M, G or T "
			       "give the unit",
			       name, value);
	*out = (uint64_t)v;
	return 0;

bad:
	return tsi_err(TSOCK_EARG,
		       "--%s %s: a size such as 512M or 4G is wanted", name,
		       value);
}

/* Seconds with a fraction, at least a millisecond unless zero is allowed. */
int tsi_value_seconds(const char *name, const char *value, bool zero,
		      uint64_t *ms)
{
	char *end = NULL;
	double v = isdigit((unsigned char)*value) ? strtod(value, &end) : -1;

	if (v >= 0 && (end[0] == '\0' || strcmp(end, "s") == 0) &&
	    v <= (double)MAX_SECONDS && (zero || v >= 0.001)) {
		*ms = (uint64_t)(v * 1000 + 0.5);
		return 0;
	}
	return tsi_err(TSOCK_EARG,
		       "--%s %s: seconds%s are wanted, e.g. 30 or 0.5", name,
		       value, zero ? "" : " above 0");
}

int tsi_value_share(const char *name, const char *value, double *out)
{
	char *end = NULL;
	double v = isdigit((unsigned char)*value) || *value == '.'
			   ? strtod(value, &end)
			   : -1;

	if (v >= 0 && v <= 1 && end != value && !*end) {
		*out = v;
		return 0;
	}
	return tsi_err(TSOCK_EARG,
		       "--%s %s: a share from 0 to 1 is wanted, e.g. 0.05",
		       name, value);
}

/* The number that *value begins with, up to the character behind it, or to its
 * end if that is 0; *value is moved beyond both. */
static bool take_number(const char **value, char behind, uint64_t *out)
{
	const char *end = strchr(*value, behind);
	char digits[24];
	size_t n;

	if (!end)
		return false;
	n = (size_t)(end - *value);
	if (n >= sizeof(digits))
		return false;
	memcpy(digits, *value, n);
	digits[n] = '\0';
	*value = end + 1;
	return parse_u64(digits, out);
}

static bool read_shard(const char *value, uint64_t *first, uint64_t *last,
		       uint64_t *world)
{
	const char *dash = strchr(value, '-');

	if (!dash)
		return take_number(&value, '/', first) &&
		       (*last = *first, take_number(&value, '\0', world));
	return take_number(&value, '-', first) &&
	       take_number(&value, '/', last) &&
	       take_number(&value, '\0', world);
}

int tsi_value_shard(const char *name, const char *value, uint32_t *first,
		    uint32_t *last, uint32_t *world)
{
	uint64_t a, b, w;

	if (!read_shard(value, &a, &b, &w))
		return tsi_err(TSOCK_EARG,
			       "--%s %s: RANK/WORLD is wanted, e.g. 0/4, or "
			       "FIRST-LAST/WORLD, e.g. 0-1/4",
			       name, value);
	if (w < 1 || w > TSI_PART_WORLD)
		return tsi_err(TSOCK_EARG, "--%s %s: a job has 1 to %u ranks",
			       name, value, TSI_PART_WORLD);
	if (b >= w)
		return tsi_err(TSOCK_EARG,
			       "--%s %s: ranks count from 0, so they are below "
			       "the number of all ranks",
			       name, value);
	if (a > b)
		return tsi_err(TSOCK_EARG,
			       "--%s %s: the first rank comes before the last "
			       "one, as in 0-1/4",
			       name, value);
	*first = (uint32_t)a;
	*last = (uint32_t)b;
	*world = (uint32_t)w;
	return 0;
}

int tsi_value_start(const char *name, const char *value, uint64_t *epoch,
		    uint64_t *position)
{
	const char *at = value;
	uint64_t e, p;

	if (!take_number(&at, ':', &e) || !take_number(&at, '\0', &p))
		return tsi_err(
			TSOCK_EARG,
			"--%s %s: EPOCH:POSITION is wanted, both counted "
			"from 0, e.g. 3:51200",
			name, value);
	*epoch = e;
	*position = p;
	return 0;
}
