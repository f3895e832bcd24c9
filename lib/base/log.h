/*
 * log.h - log lines for whoever set a logger; silent otherwise.
 */
#ifndef TSI_BASE_LOG_H
#define TSI_BASE_LOG_H

#include "tsock/tsock.h"

void tsi_log(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
