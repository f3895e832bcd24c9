/* SPDX-License-Identifier: MIT */
/*
 * help.h - what tsock-producer --help prints.
 */
#ifndef TSI_CLI_HELP_H
#define TSI_CLI_HELP_H

#include <stdio.h>

void tsi_help_print(FILE *to);

#endif
