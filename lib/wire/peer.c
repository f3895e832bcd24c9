/* SPDX-License-Identifier: MIT */
/*
 * peer.c - which process is at the other end of a unix socket.
 *
 * Works, with less certainty, where pidfd_open or SO_PEERPIDFD are missing or
 * filtered.  Never signals a process, and never blocks.
 */
#include "wire/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"

/* Linux 6.5; not in the headers of older systems. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

int tsi_peer_check(int sock, uint32_t *pid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return tsi_err_sys("ask the kernel for the peer's uid");
	if (cred.uid != geteuid())
		return tsi_err(TSOCK_EREFUSED,
			       "the producer and its consumers must run as "
			       "the same user: this is uid %u, the peer %u",
			       (unsigned)geteuid(), (unsigned)cred.uid);
	*pid = cred.pid > 0 ? (uint32_t)cred.pid : 0;
	return 0;
}

int tsi_peer_open_pidfd(uint32_t pid)
{
	if (!pid)
		return -1;
	return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
}

/*
 * The pid behind fd, if it is a pidfd: 0 is one outside our pid namespace, -1
 * one that is dead and waited for.
 */
static bool pid_behind(int fd, long *pid)
{
	char path[48], line[128];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		found = !strncmp(line, "Pid:", 4);
		if (found)
			*pid = strtol(line + 4, NULL, 10);
	}
	fclose(f);
	return found;
}

int tsi_peer_pidfd(int sock, uint32_t pid, int sent, bool *certain)
{
	socklen_t len = sizeof(int);
	long theirs = 0;
	bool is_pidfd;
	int fd = -1;

	*certain = true;
	if (!getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) && fd >= 0)
		return fd;

	/*
	 * The pid is that of the process that connected, and another process
	 * may have it by now.  If the peer sent a pidfd of a living process
	 * with that pid, it is the same process.  Without one, the pid's pidfd
	 * may be watched, but isn't certain enough to kill.
	 */
	is_pidfd = sent >= 0 && pid_behind(sent, &theirs);
	fd = tsi_peer_open_pidfd(pid);
	*certain = fd >= 0 && is_pidfd && theirs == (long)pid &&
		   !tsi_peer_gone(sent, -1);
	if (fd >= 0 && (*certain || !is_pidfd))
		return fd;
	if (fd >= 0)
		close(fd);
	return is_pidfd ? sent : -1;
}

/* Was the other end of sock closed, by a close() or by a death? */
static bool hung_up(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN | POLLRDHUP };
	char c;

	if (poll(&p, 1, 0) <= 0)
		return false;
	if (p.revents & (POLLHUP | POLLRDHUP | POLLERR))
		return true;
	return (p.revents & POLLIN) &&
	       recv(sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool tsi_peer_gone(int pidfd, int sock)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	if (pidfd >= 0)
		return poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
	return sock >= 0 && hung_up(sock);
}

/*
 * What Python runs, of its command line in size bytes with a NUL behind each
 * word: the first that is no option, or the module of -m; NULL for -c.
 */
static const char *script_in(const char *words, size_t size)
{
	const char *end = words + size, *w = words;
	bool module = false;

	while (w < end && (w += strlen(w) + 1) < end) {
		const char *base = strrchr(w, '/');

		if (module || w[0] != '-')
			return base && !module ? base + 1 : w;
		module = !strcmp(w, "-m");
		if (!strcmp(w, "-c") || !w[1])
			return NULL;
		/* Options with a value of their own. */
		if ((!strcmp(w, "-W") || !strcmp(w, "-X")) && w + 3 < end)
			w += 3;
	}
	return NULL;
}

/* Behind the name of a Python process, which alone says little. */
static void append_script(long pid, char name[TSI_PEER_NAME])
{
	char words[4096], path[48];
	size_t n, len = strlen(name);
	const char *script;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	n = fread(words, 1, sizeof(words) - 1, f);
	fclose(f);
	words[n] = '\0';
	script = script_in(words, n);
	if (script && *script && !strchr(script, '\n'))
		snprintf(name + len, TSI_PEER_NAME - len, " %s", script);
}

bool tsi_peer_name(int pidfd, char name[TSI_PEER_NAME])
{
	long pid = 0;

	if (pidfd < 0 || !pid_behind(pidfd, &pid) || pid <= 0)
		return false;
	if (!tsi_file_first_line(name, TSI_PEER_NAME, "/proc/%ld/comm", pid))
		return false;
	if (!strncmp(name, "python", 6))
		append_script(pid, name);
	/* Otherwise another process may have the pid by now. */
	return name[0] && !tsi_peer_gone(pidfd, -1);
}

bool tsi_peer_stopped(uint32_t pid)
{
	char line[512];
	const char *at;

	if (!pid ||
	    !tsi_file_first_line(line, sizeof(line), "/proc/%u/stat", pid))
		return false;
	/* "PID (NAME) STATE ...", and a name may have parentheses. */
	at = strrchr(line, ')');
	return at && at[1] == ' ' && (at[2] == 'T' || at[2] == 't');
}

uint64_t tsi_peer_born(uint32_t pid)
{
	unsigned long long born = 0;
	char line[1024];
	const char *at;

	if (!pid ||
	    !tsi_file_first_line(line, sizeof(line), "/proc/%u/stat", pid))
		return 0;
	/* "PID (NAME) STATE ...", and a name may have parentheses.  The start
	 * is the 22nd value, the 20th behind the name; a zombie is dead. */
	at = strrchr(line, ')');
	if (!at || strlen(at) < 3 || at[2] == 'Z' || at[2] == 'X')
		return 0;
	at += 2;
	for (int i = 3; at && i < 22; i++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	return at && sscanf(at, "%llu", &born) == 1 ? born : 0;
}
