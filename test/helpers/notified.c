/* SPDX-License-Identifier: MIT */
/*
 * notified.c - run a program as a service manager does, and print what the
 * program tells it: a line for each line of each datagram.
 *
 *   notified PATH COMMAND [ARGUMENT...]
 *
 * PATH is that of the socket, or with an '@' a name in the abstract namespace.
 * Ends with the command, and with its exit code; SIGTERM is passed on to it.
 */
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t child;

static void pass_on(int sig)
{
	if (child > 0)
		kill((pid_t)child, sig);
}

static int listen_at(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (len >= sizeof(at.sun_path))
		return -1;
	memcpy(at.sun_path, path, len);
	if (path[0] == '@')
		at.sun_path[0] = '\0';
	if (bind(fd, (struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)))
		return -1;
	return fd;
}

static void print_all(int fd)
{
	char text[512];
	ssize_t n;

	while ((n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0) {
		text[n] = '\0';
		puts(text);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int fd, status;

	if (argc < 3)
		return 2;
	fd = listen_at(argv[1]);
	if (fd < 0) {
		perror(argv[1]);
		return 2;
	}
	setenv("NOTIFY_SOCKET", argv[1], 1);
	signal(SIGTERM, pass_on);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_DFL);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	while (waitpid((pid_t)child, &status, WNOHANG) == 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		poll(&p, 1, 50);
		print_all(fd);
	}
	print_all(fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
