/* SPDX-License-Identifier: MIT */
/*
 * option_table.h - what tsock-producer's command line may say: one table for
 * getopt, for the checks and for --help.
 */
#ifndef TSI_CLI_OPTION_TABLE_H
#define TSI_CLI_OPTION_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum tsi_opt_kind {
	TSI_OPT_GROUP,  /* a headline of --help */
	TSI_OPT_TEXT,   /* const char * */
	TSI_OPT_CHOICE, /* uint64_t: which word of arg, from 0 */
	TSI_OPT_COUNT,  /* uint64_t in [min, max] */
	TSI_OPT_AUTO,   /* as TSI_OPT_COUNT, or "auto", which is 0 */
	TSI_OPT_BYTES,  /* uint64_t in [min, max], with a unit */
	TSI_OPT_SWITCH, /* bool */
	TSI_OPT_MODE,   /* min is the enum tsi_run_mode */
	TSI_OPT_SHARE,  /* struct tsi_tolerance */
	TSI_OPT_SHARD,  /* and these mean just one option each */
	TSI_OPT_SLOW,
	TSI_OPT_AHEAD,
	TSI_OPT_IDLE,
	TSI_OPT_NAME,
	TSI_OPT_NO_CACHE,
	TSI_OPT_QUIET,
};

struct tsi_opt {
	enum tsi_opt_kind kind;
	const char *name;
	const char *arg;  /* as --help shows it; NULL: has no value */
	const char *help; /* lines by '\n' */
	size_t at;        /* in struct tsi_options */
	uint64_t min, max;
	char letter;
};

/* At least as many as there are: for arrays. */
#define TSI_OPTS_MAX 64

extern const struct tsi_opt tsi_opts[];
extern const size_t tsi_opts_count;

#endif
