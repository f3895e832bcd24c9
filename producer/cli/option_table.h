/* SPDX-License-Identifier: MIT */
/*
 * option_table.h - options.def as a table, for getopt, for the checks and for
 * --help.
 */
#ifndef TSI_CLI_OPTION_TABLE_H
#define TSI_CLI_OPTION_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum tsi_opt_kind {
	TSI_OPT_GROUP,    /* a headline of --help */
	TSI_OPT_TEXT,     /* const char * */
	TSI_OPT_PATH,     /* const char *, of a file or folder */
	TSI_OPT_CHOICE,   /* uint64_t: which word of arg, from 0 */
	TSI_OPT_COUNT,    /* uint64_t in [min, max] */
	TSI_OPT_AUTO,     /* as TSI_OPT_COUNT, or "auto", which is 0 */
	TSI_OPT_BYTES,    /* uint64_t in [min, max], with a unit */
	TSI_OPT_ROOM,     /* struct tsi_room */
	TSI_OPT_SWITCH,   /* bool */
	TSI_OPT_ACTION,   /* min is the enum tsi_run_mode */
	TSI_OPT_SHARE,    /* struct tsi_tolerance */
	TSI_OPT_SAMPLING, /* struct tsi_sampling */
	TSI_OPT_SHARD,    /* struct tsi_shard */
	TSI_OPT_START,    /* struct tsi_start */
	TSI_OPT_SLOW,     /* struct tsi_slow */
	TSI_OPT_IDLE,     /* uint64_t, of milliseconds */
	TSI_OPT_NAME,     /* char[], a stream's name */
	TSI_OPT_QUIET,    /* bool, and the log level */
};

/* What an option decides, see options.def. */
enum tsi_opt_part {
	TSI_PART_IDENTITY,
	TSI_PART_SERVING,
	TSI_PART_PROGRAM,
};

struct tsi_opt {
	enum tsi_opt_kind kind;
	enum tsi_opt_part part;
	const char *name;
	const char *arg;  /* as --help shows it; NULL: has no value */
	const char *help; /* lines by '\n' */
	size_t at;        /* in struct tsi_options */
	unsigned id;      /* enum tsi_option_id; an action has none */
	uint64_t min, max;
	char letter;
};

/* At least as many as there are: for arrays. */
#define TSI_OPTS_MAX 80

extern const struct tsi_opt tsi_opts[];
extern const size_t tsi_opts_count;

#endif
