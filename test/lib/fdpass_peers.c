/* SPDX-License-Identifier: MIT */
/*
 * fdpass_peers.c - both sides of a connection that passes descriptors.
 */
#include "test/lib/fdpass_peers.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

const uint8_t fdpass_token[TSI_TOKEN] = "fifteen letters";
char fdpass_path[80];
int fdpass_listener;
char fdpass_folder[64];

int fdpass_setup(void **s)
{
	(void)s;
	strcpy(fdpass_folder, "/tmp/tsock-fdpass-XXXXXX");
	if (!mkdtemp(fdpass_folder))
		return -1;
	snprintf(fdpass_path, sizeof(fdpass_path), "%s/s.door", fdpass_folder);
	return tsi_fdpass_listen(fdpass_path, &fdpass_listener);
}

int fdpass_teardown(void **s)
{
	(void)s;
	close(fdpass_listener);
	unlink(fdpass_path);
	return rmdir(fdpass_folder);
}

int fdpass_exit_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

void fdpass_wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	poll(&p, 1, LONG_MS);
}

int fdpass_receive(struct tsi_peer *v)
{
	int sock, err;

	fdpass_wait_for(fdpass_listener);
	err = tsi_fdpass_accept(fdpass_listener, &sock);
	if (err)
		return err;
	while ((err = tsi_fdpass_receive(sock, v)) == TSOCK_EAGAIN)
		fdpass_wait_for(sock);
	if (err)
		close(sock);
	return err;
}

void fdpass_forget(struct tsi_peer *v)
{
	if (v->pidfd >= 0)
		close(v->pidfd);
	close(v->sock);
}

int fdpass_raw_connect(void)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	strcpy(sa.sun_path, fdpass_path);
	assert_int_equal(connect(s, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return s;
}

size_t fdpass_request(uint8_t *out)
{
	static const uint8_t head[8] = { 'D', 'O', 'O', 'R', TSI_MSG_VERSION };

	memcpy(out, head, 8);
	memcpy(out + 8, fdpass_token, TSI_TOKEN);
	return 8 + TSI_TOKEN;
}

int fdpass_to_producer(struct tsi_passed *k)
{
	struct tsi_connecting c = { .open = false };
	int err = tsi_fdpass_connect(fdpass_path, fdpass_token, LONG_MS, &c, k);

	tsi_fdpass_abandon(&c);
	return err;
}

int fdpass_be_refused(void)
{
	struct tsi_passed k = { .nfds = 77 };

	if (fdpass_to_producer(&k) != TSOCK_EREFUSED || k.nfds != 77)
		return 1;
	return strcmp(tsock_errmsg(), "the ring is full of people") ? 2 : 0;
}
