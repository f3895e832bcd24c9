/* SPDX-License-Identifier: MIT */
/*
 * option_value.c - what an option's kind makes of its value.
 */
#include "cli/option_value.h"

#include <ctype.h>
#include <string.h>

#include "base/err.h"
#include "cli/options.h"
#include "cli/value.h"

static int set_slow(const char *value, struct tsi_slow *to)
{
	const char *colon = strchr(value, ':');
	size_t len = colon ? (size_t)(colon - value) : 0;

	if (strcmp(value, "block") == 0) {
		*to = (struct tsi_slow){ .action = TSOCK_SLOW_BLOCK };
		return 0;
	}
	to->action = len == 4 ? TSOCK_SLOW_KILL : TSOCK_SLOW_DETACH;
	if (colon &&
	    (!strncmp(value, "kill:", 5) || !strncmp(value, "detach:", 7)) &&
	    tsi_value_seconds("slow", colon + 1, false, &to->ms) == 0)
		return 0;
	return tsi_err(TSOCK_EARG,
		       "--slow %s: choose one of block|detach:SEC|kill:SEC, "
		       "with seconds above 0, e.g. kill:30",
		       value);
}

static int set_share(const struct tsi_opt *r, const char *value,
		     struct tsi_tolerance *to)
{
	to->given = true;
	return tsi_value_share(r->name, value, &to->share);
}

static int set_shard(const struct tsi_opt *r, const char *value,
		     struct tsi_shard *to)
{
	return tsi_value_shard(r->name, value, &to->first, &to->last,
			       &to->world);
}

static int set_start(const struct tsi_opt *r, const char *value,
		     struct tsi_start *to)
{
	return tsi_value_start(r->name, value, &to->epoch, &to->position);
}

#define ROOM_LEAST (UINT64_C(1) << 20)
#define ROOM_MOST (UINT64_C(1) << 50)

/* A number counts samples; with a unit it is a size. */
static int set_room(const struct tsi_opt *r, const char *value,
		    struct tsi_room *to)
{
	struct tsi_room room = { 0, 0 };
	size_t len = strlen(value);
	int err;

	if (!len || !isalpha((unsigned char)value[len - 1]))
		err = tsi_value_count(r->name, value, r->min, r->max,
				      &room.samples);
	else
		err = tsi_value_bytes(r->name, value, ROOM_LEAST, ROOM_MOST,
				      &room.bytes);
	if (!err)
		*to = room;
	return err;
}

bool tsi_option_name_char(char c)
{
	return c && strchr(TSI_NAME_CHARS, c);
}

/* A '-' in front would make a name look like an option. */
static int set_name(const char *value, char *to)
{
	if (strchr(value, '/'))
		return tsi_err(TSOCK_EARG,
			       "--name %s: a name has no '/'; TSOCK_DIR "
			       "chooses the folder of the sockets",
			       value);
	if (!tsi_address_is_name(value) || value[0] == '-')
		return tsi_err(TSOCK_EARG,
			       "--name %s: 1 to %d letters, digits, '.', '_' "
			       "and '-' are wanted, a letter or digit first",
			       value, TSI_NAME_MAX);
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

int tsi_option_text(const struct tsi_opt *r, const char *value, const char **to)
{
	if (!*value)
		return tsi_err(TSOCK_EARG,
			       "--%s: the value is empty, a %s is wanted",
			       r->name, r->arg);
	*to = value;
	return 0;
}

int tsi_option_value(const struct tsi_opt *r, const char *value, void *to)
{
	switch (r->kind) {
	case TSI_OPT_TEXT:
	case TSI_OPT_PATH:
		return tsi_option_text(r, value, to);
	case TSI_OPT_CHOICE:
		return tsi_value_choice(r->name, r->arg, value, to);
	case TSI_OPT_COUNT:
	case TSI_OPT_AUTO:
		if (r->kind == TSI_OPT_AUTO && !strcmp(value, "auto")) {
			*(uint64_t *)to = 0;
			return 0;
		}
		return tsi_value_count(r->name, value, r->min, r->max, to);
	case TSI_OPT_BYTES:
		return tsi_value_bytes(r->name, value, r->min, r->max, to);
	case TSI_OPT_ROOM:
		return set_room(r, value, to);
	case TSI_OPT_SWITCH:
	case TSI_OPT_QUIET:
		*(bool *)to = true;
		return 0;
	case TSI_OPT_SHARE:
		return set_share(r, value, to);
	case TSI_OPT_SHARD:
		return set_shard(r, value, to);
	case TSI_OPT_START:
		return set_start(r, value, to);
	case TSI_OPT_SAMPLING:
		return tsi_sampling_read(value, to);
	case TSI_OPT_SLOW:
		return set_slow(value, to);
	case TSI_OPT_IDLE:
		return tsi_value_seconds(r->name, value, true, to);
	case TSI_OPT_NAME:
		return set_name(value, to);
	default:
		return 0;
	}
}
