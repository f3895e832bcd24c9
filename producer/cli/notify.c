/* SPDX-License-Identifier: MIT */
/*
 * notify.c - what a service manager is told.
 */
#include "cli/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void tsi_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	/* A path, or with an '@' a name in the abstract namespace. */
	if (!len || len >= sizeof(to.sun_path) ||
	    (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)!sendto(
		fd, state, strlen(state), MSG_NOSIGNAL,
		(const struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

/* Milliseconds between two signs of life; 0: nobody waits for any. */
static int64_t interval_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	long long n = usec ? strtoll(usec, NULL, 10) : 0;

	if (n <= 0 || (pid && strtoll(pid, NULL, 10) != (long long)getpid()))
		return 0;
	return n / 2000 > 0 ? n / 2000 : 1;
}

void tsi_notify_alive(int64_t now_ms)
{
	static int64_t interval = -1, told_ms;

	if (interval < 0)
		interval = interval_ms();
	if (!interval || (told_ms && now_ms - told_ms < interval))
		return;
	told_ms = now_ms;
	tsi_notify("WATCHDOG=1");
}
