/*
 * log.c - log lines for whoever set a logger; silent otherwise.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static void (*logger)(void *arg, int level, const char *line);
static void *logger_arg;

void tsock_set_logger(void (*fn)(void *arg, int level, const char *line),
		      void *arg)
{
	logger = fn;
	logger_arg = arg;
}

void tsi_log(int level, const char *fmt, ...)
{
	char line[768];
	va_list ap;

	if (!logger)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	logger(logger_arg, level, line);
}
