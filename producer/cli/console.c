/* SPDX-License-Identifier: MIT */
/*
 * console.c - standard error: log lines, and the live line below them.
 */
#include "cli/console.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/logline.h"

#define CLEAR "\r\033[K"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int max_level = TSOCK_LOG_INFO;
static bool terminal, shown, journal;

void tsi_console_init(int level, bool live)
{
	const char *term = getenv("TERM");
	struct stat st;

	max_level = level;
	journal = fstat(STDERR_FILENO, &st) == 0 &&
		  tsi_logline_journal(getenv("JOURNAL_STREAM"), &st);
	terminal = live && isatty(STDERR_FILENO) &&
		   !(term && strcmp(term, "dumb") == 0);
}

static void put_text(const char *text)
{
	size_t len = strlen(text);
	ssize_t n = write(STDERR_FILENO, text, len);

	(void)n; /* nobody left to tell */
}

void tsi_console_log(void *arg, int level, const char *line)
{
	time_t now = time(NULL);
	char out[2048] = CLEAR;
	struct tm when;
	size_t at;

	(void)arg;
	if (level > max_level || level < 0)
		return;
	localtime_r(&now, &when);
	pthread_mutex_lock(&lock);
	at = shown ? strlen(CLEAR) : 0;
	tsi_logline(out + at, sizeof(out) - at, journal, &when, level, line);
	shown = false;
	put_text(out);
	pthread_mutex_unlock(&lock);
}

bool tsi_console_live(void)
{
	return terminal;
}

bool tsi_console_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return terminal && !(no && *no);
}

unsigned tsi_console_width(void)
{
	const char *columns = getenv("COLUMNS");
	unsigned width = 80;
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
		width = w.ws_col;
	else if (columns && atoi(columns) > 0)
		width = (unsigned)atoi(columns);
	return width > 1 ? width - 1 : 1;
}

static void show(const char *line)
{
	char out[2048];

	pthread_mutex_lock(&lock);
	if (line[0] || shown) {
		snprintf(out, sizeof(out), CLEAR "%s", line);
		put_text(out);
		shown = line[0];
	}
	pthread_mutex_unlock(&lock);
}

void tsi_console_show(const char *line)
{
	if (terminal)
		tsi_log_newest(show, line ? line : "");
}
