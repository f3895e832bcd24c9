/* SPDX-License-Identifier: MIT */
/*
 * option_table.c - options.def as a table.
 */
#include "cli/option_table.h"

#include "cli/options.h"

#define MAX_RING (UINT64_C(1) << 24)

const struct tsi_opt tsi_opts[] = {
#define GROUP(title) { .kind = TSI_OPT_GROUP, .name = (title) },
#define OPTION(kind_, member, name_, letter_, arg_, low, high, init, part_, \
	       help_) \
	{ .kind = TSI_OPT_##kind_, \
	  .part = TSI_PART_##part_, \
	  .name = (name_), \
	  .arg = (arg_), \
	  .help = (help_), \
	  .at = offsetof(struct tsi_options, member), \
	  .id = TSI_OPTION_##member, \
	  .min = (low), \
	  .max = (high), \
	  .letter = (letter_) },
#define ACTION(mode, name_, letter_, arg_, help_) \
	{ .kind = TSI_OPT_ACTION, \
	  .part = TSI_PART_PROGRAM, \
	  .name = (name_), \
	  .arg = (arg_), \
	  .help = (help_), \
	  .at = offsetof(struct tsi_options, stop), \
	  .min = TSI_RUN_##mode, \
	  .letter = (letter_) },
#include "cli/options.def"
};

#define COUNT (sizeof(tsi_opts) / sizeof(tsi_opts[0]))

const size_t tsi_opts_count = COUNT;
_Static_assert(COUNT <= TSI_OPTS_MAX, "TSI_OPTS_MAX is too small");
