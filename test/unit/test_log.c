/* SPDX-License-Identifier: MIT */
/*
 * test_log.c - a logger that blocks holds nobody up.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"

#define MANY 1000

static pthread_mutex_t barrier = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned lines, dropped, wrong, shown, bang;
static _Atomic unsigned next_number;
static char newest[64];

/* Numbered lines come in order; those that were dropped are counted. */
static void take(void *arg, int level, const char *line)
{
	unsigned n;

	(void)arg;
	(void)level;
	pthread_mutex_lock(&barrier);
	if (sscanf(line, "line %u", &n) == 1) {
		if (n < next_number)
			wrong++;
		next_number = n + 1;
		lines++;
	} else if (sscanf(line, "%u lines of this log were dropped", &n) == 1) {
		/* They are those that came between the last and the next. */
		dropped += n;
		next_number += n;
	} else {
		bang++;
	}
	pthread_mutex_unlock(&barrier);
}

static void show(const char *line)
{
	pthread_mutex_lock(&barrier);
	snprintf(newest, sizeof(newest), "%s", line);
	shown++;
	pthread_mutex_unlock(&barrier);
}

static int reset(void **state)
{
	(void)state;
	lines = dropped = wrong = shown = bang = 0;
	next_number = 0;
	newest[0] = 0;
	tsock_set_logger(take, NULL);
	return 0;
}

static int unset(void **state)
{
	(void)state;
	tsock_set_logger(NULL, NULL);
	return 0;
}

static void without_a_start_a_line_is_there_at_once(void **state)
{
	(void)state;
	tsi_log(TSOCK_LOG_INFO, "line %u", 3);
	assert_int_equal(lines, 1);
	tsi_log_newest(show, "now");
	assert_string_equal(newest, "now");
	tsock_set_logger(NULL, NULL);
	tsi_log(TSOCK_LOG_INFO, "line %u", 4);
	assert_int_equal(lines, 1);
}

static void every_line_comes_before_the_last_stop_returns(void **state)
{
	(void)state;
	assert_int_equal(tsi_log_start(), 0);
	assert_int_equal(tsi_log_start(), 0);
	for (unsigned i = 0; i < 100; i++)
		tsi_log(TSOCK_LOG_INFO, "line %u", i);
	tsi_log_stop();
	tsi_log_stop();
	assert_int_equal(lines, 100);
	assert_int_equal(wrong + dropped, 0);
	/* And again. */
	assert_int_equal(tsi_log_start(), 0);
	tsi_log(TSOCK_LOG_INFO, "line 100");
	tsi_log_stop();
	assert_int_equal(lines, 101);
}

/* Until all that was logged has come, or is known to be lost. */
static void wait_for_lines(unsigned n)
{
	int64_t end = tsi_now_ms() + 60000;

	while (lines + dropped < n) {
		assert_true(tsi_now_ms() < end);
		usleep(1000);
	}
}

static void a_logger_that_blocks_holds_nobody_up(void **state)
{
	(void)state;
	assert_int_equal(tsi_log_start(), 0);
	pthread_mutex_lock(&barrier);
	/* With a logger called in this thread it would end here. */
	for (unsigned i = 0; i < MANY; i++)
		tsi_log(TSOCK_LOG_INFO, "line %u", i);
	assert_int_equal(lines, 0);
	pthread_mutex_unlock(&barrier);
	wait_for_lines(MANY);
	assert_int_equal(lines + dropped, MANY);
	assert_true(dropped > 0 && lines > 0);
	tsi_log(TSOCK_LOG_INFO, "line %u", MANY);
	tsi_log_stop();
	assert_int_equal(lines + dropped, MANY + 1);
	/* The number was said where the lines are missing. */
	assert_int_equal(wrong, 0);
	assert_int_equal(next_number, MANY + 1);
	assert_int_equal(bang, 0);
}

static void debug_lines_leave_room_for_the_others(void **state)
{
	(void)state;
	assert_int_equal(tsi_log_start(), 0);
	pthread_mutex_lock(&barrier);
	for (unsigned i = 0; i < MANY; i++)
		tsi_log(TSOCK_LOG_DEBUG, "noise");
	for (unsigned i = 0; i < 20; i++)
		tsi_log(TSOCK_LOG_INFO, "line %u", i);
	pthread_mutex_unlock(&barrier);
	tsi_log_stop();
	assert_int_equal(lines, 20);
	assert_true(dropped > 0);
	assert_int_equal(bang + dropped, MANY);
}

static void only_the_newest_is_shown(void **state)
{
	char text[32];

	(void)state;
	assert_int_equal(tsi_log_start(), 0);
	pthread_mutex_lock(&barrier);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "state %u", i);
		tsi_log_newest(show, text);
	}
	tsi_log(TSOCK_LOG_INFO, "line 0");
	tsi_log_newest(show, "end");
	pthread_mutex_unlock(&barrier);
	tsi_log_stop();
	/* One may have been taken before the barrier was seen to be closed. */
	assert_in_range(shown, 2, 3);
	assert_string_equal(newest, "end");
	assert_int_equal(lines, 1);
	assert_int_equal(dropped, 0);
}

static void a_stop_gives_up_on_a_stuck_logger(void **state)
{
	(void)state;
	assert_int_equal(tsi_log_start(), 0);
	pthread_mutex_lock(&barrier);
	for (unsigned i = 0; i < 10; i++)
		tsi_log(TSOCK_LOG_INFO, "line %u", i);
	tsi_log_stop();
	assert_int_equal(lines, 0);
	/* After another start its lines are where they were. */
	assert_int_equal(tsi_log_start(), 0);
	tsi_log(TSOCK_LOG_INFO, "line 10");
	pthread_mutex_unlock(&barrier);
	tsi_log_stop();
	assert_int_equal(lines, 11);
	assert_int_equal(wrong, 0);
}

static void take_slowly(void *arg, int level, const char *line)
{
	(void)level;
	(void)line;
	atomic_store((_Atomic unsigned *)arg, 1);
	usleep(20000);
	atomic_store((_Atomic unsigned *)arg, 2);
}

static void take_a_tenth(void *arg, int level, const char *line)
{
	(void)level;
	(void)line;
	usleep(100000);
	++*(unsigned *)arg;
}

/* Fifteen lines take longer than a stop waits for one. */
static void a_stop_waits_for_a_slow_logger(void **state)
{
	unsigned taken = 0;

	(void)state;
	tsock_set_logger(take_a_tenth, &taken);
	assert_int_equal(tsi_log_start(), 0);
	for (unsigned i = 0; i < 15; i++)
		tsi_log(TSOCK_LOG_INFO, "line %u", i);
	tsi_log_stop();
	assert_int_equal(taken, 15);
}

static void an_old_logger_is_not_called_any_more(void **state)
{
	_Atomic unsigned in = 0;

	(void)state;
	tsock_set_logger(take_slowly, &in);
	assert_int_equal(tsi_log_start(), 0);
	tsi_log(TSOCK_LOG_INFO, "x");
	while (!in)
		usleep(100);
	tsock_set_logger(take, NULL);
	assert_int_equal(in, 2);
	tsi_log(TSOCK_LOG_INFO, "line 0");
	tsi_log_stop();
	assert_int_equal(lines, 1);
}

static void a_forked_child_logs_by_itself(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(tsi_log_start(), 0);
	tsi_log(TSOCK_LOG_INFO, "line 0");
	pid = fork();
	if (!pid) {
		/* The barrier may be the parent's thread's. */
		pthread_mutex_init(&barrier, NULL);
		lines = dropped = wrong = 0;
		tsi_log(TSOCK_LOG_INFO, "line 1");
		if (lines != 1)
			_exit(1);
		if (tsi_log_start())
			_exit(2);
		tsi_log(TSOCK_LOG_INFO, "line 2");
		tsi_log_stop();
		_exit(lines == 2 ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	tsi_log_stop();
	assert_int_equal(lines, 1);
}

/* ---- $TSOCK_LOG: it is read once, so each test is another process ---- */

static void drop(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

/* What the other process does: lines of every level, with a logger or not. */
static int speak(const char *how)
{
	if (!strcmp(how, "logger") || !strcmp(how, "unset"))
		tsock_set_logger(drop, NULL);
	if (!strcmp(how, "unset"))
		tsock_set_logger(NULL, NULL);
	if (!strcmp(how, "serves") && tsi_log_start())
		return 1;
	for (int level = TSOCK_LOG_ERROR; level <= TSOCK_LOG_DEBUG; level++)
		tsi_log(level, "line %d", level);
	if (!strcmp(how, "serves"))
		tsi_log_stop();
	return 0;
}

/* Which levels' lines a process wrote to stderr: "0123" is all. */
static void heard(const char *word, const char *how, const char *want)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };
	char text[1024] = "", line[64], got[5] = "";
	int p[2], status;
	size_t n = 0;
	ssize_t more;
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (!pid) {
		dup2(p[1], 2);
		if (word)
			setenv("TSOCK_LOG", word, 1);
		else
			unsetenv("TSOCK_LOG");
		execl("/proc/self/exe", "test_log", how, (char *)NULL);
		_exit(9);
	}
	close(p[1]);
	while ((more = read(p[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)more;
	close(p[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 4; i++) {
		snprintf(line, sizeof(line), "libtsock[%d] %s: line %d\n",
			 (int)pid, names[i], i);
		if (strstr(text, line))
			strcat(got, (char[]){ (char)('0' + i), 0 });
	}
	assert_string_equal(got, want);
	if (!*want)
		assert_string_equal(text, "");
}

static void the_environment_shows_the_log_of_a_silent_program(void **state)
{
	(void)state;
	heard(NULL, "plain", "");
	heard("", "plain", "");
	heard("error", "plain", "0");
	heard("warn", "plain", "01");
	heard("info", "plain", "012");
	heard("debug", "plain", "0123");
	heard("DEBUG", "plain", "0123");
	heard("1", "plain", "0123");
	heard("debug", "serves", "0123");
}

static void a_logger_has_all_lines_for_itself(void **state)
{
	(void)state;
	heard("debug", "logger", "");
	heard("info", "unset", "012");
	heard(NULL, "unset", "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, reset, unset)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_start_a_line_is_there_at_once),
		TEST(every_line_comes_before_the_last_stop_returns),
		TEST(a_logger_that_blocks_holds_nobody_up),
		TEST(debug_lines_leave_room_for_the_others),
		TEST(only_the_newest_is_shown),
		TEST(a_stop_gives_up_on_a_stuck_logger),
		TEST(a_stop_waits_for_a_slow_logger),
		TEST(an_old_logger_is_not_called_any_more),
		TEST(a_forked_child_logs_by_itself),
		TEST(the_environment_shows_the_log_of_a_silent_program),
		TEST(a_logger_has_all_lines_for_itself),
	};

	if (argc > 1)
		return speak(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
