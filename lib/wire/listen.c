/* SPDX-License-Identifier: MIT */
/*
 * listen.c - a unix socket that accepts connections.
 */
#include "wire/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int tsi_listen(const char *path, int type, int backlog)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int s, saved;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(sa.sun_path, path);
	s = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return -1;
	if ((!unlink(path) || errno == ENOENT) &&
	    !bind(s, (struct sockaddr *)&sa, sizeof(sa)) && !listen(s, backlog))
		return s;
	saved = errno;
	close(s);
	errno = saved;
	return -1;
}
