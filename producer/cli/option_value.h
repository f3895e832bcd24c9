/* SPDX-License-Identifier: MIT */
/*
 * option_value.h - what an option's kind makes of its value.
 *
 * Fails with EARG, and one sentence that names the option.
 */
#ifndef TSI_CLI_OPTION_VALUE_H
#define TSI_CLI_OPTION_VALUE_H

#include <stdbool.h>

#include "cli/option_table.h"

/* Write the value to *to, which is what the kind says. */
int tsi_option_value(const struct tsi_opt *r, const char *value, void *to);

/* A text, as it is, and not an empty one. */
int tsi_option_text(const struct tsi_opt *r, const char *value,
		    const char **to);

/* May it be in the name of a stream? */
bool tsi_option_name_char(char c);

#endif
