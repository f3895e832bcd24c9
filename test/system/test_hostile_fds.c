/* SPDX-License-Identifier: MIT */
/*
 * test_hostile_fds.c - a producer whose descriptors are wrong: every consumer
 * gets a named error.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "test/lib/fake_producer.h"

/* ---- the descriptor socket ---- */

static bool say_nothing(int sock)
{
	(void)sock;
	return true;
}

static bool say_noise(int sock)
{
	send(sock, "not an answer", 13, MSG_NOSIGNAL);
	return true;
}

static bool say_much(int sock)
{
	uint8_t bytes[4096] = { 'D', 'O', 'O', 'R', TSI_MSG_VERSION };

	send(sock, bytes, sizeof(bytes), MSG_NOSIGNAL);
	return true;
}

static bool hang_up(int sock)
{
	close(sock);
	return true;
}

static void no_fds(int *fd, unsigned *n)
{
	(void)fd;
	*n = 0;
}

static void one_fd_less(int *fd, unsigned *n)
{
	(void)fd;
	*n -= 1;
}

static void all_fds(int *fd, unsigned *n)
{
	for (unsigned i = *n; i < TSI_FDPASS_FDS; i++)
		fd[i] = fd[0];
	*n = TSI_FDPASS_FDS;
}

static int plain_memfd(size_t len, int seals)
{
	int fd = memfd_create("fake_producer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	need(fd >= 0 && !ftruncate(fd, (off_t)len));
	need(!fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

#define DATA_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | 0x10)

static void unsealed_data(int *fd, unsigned *n)
{
	(void)n;
	fd[3] = plain_memfd(fake_ring.shared->field[0].map_bytes, F_SEAL_GROW);
}

static void unsealed_header(int *fd, unsigned *n)
{
	(void)n;
	fd[0] = plain_memfd(sizeof(*fake_ring.shared), F_SEAL_GROW);
	need(pwrite(fd[0], fake_ring.shared, sizeof(*fake_ring.shared), 0) > 0);
}

static void unsealed_tail(int *fd, unsigned *n)
{
	(void)n;
	fd[1] = plain_memfd(sizeof(struct tsi_tail_page), F_SEAL_GROW);
}

static void short_data(int *fd, unsigned *n)
{
	(void)n;
	fd[3] = plain_memfd(4096, DATA_SEALS);
}

/* Nothing is behind it, yet it has the right length and seals. */
static void hollow_data(int *fd, unsigned *n)
{
	(void)n;
	fd[3] = plain_memfd(fake_ring.shared->field[0].map_bytes, DATA_SEALS);
}

/* Pages that the system may not have: a touch would be a SIGBUS. */
static void huge_pages(int *fd, unsigned *n)
{
	int huge = memfd_create("fake_producer",
				MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	(void)n;
	if (huge < 0 || ftruncate(huge, 2 << 20))
		huge = plain_memfd(4096, DATA_SEALS);
	else
		need(!fcntl(huge, F_ADD_SEALS, DATA_SEALS));
	fd[3] = huge;
}

static void for_huge_pages(struct tsi_ring_shared *s)
{
	s->field[0].desc.shape[0] = s->field[0].sample_bytes =
		(2 << 20) / s->capacity;
	s->field[0].map_bytes = 2 << 20;
	s->field[0].margin = 0;
}

static void for_huge_stream(struct tsi_msg_stream *s)
{
	s->field[0].shape[0] = (2 << 20) / 64;
}

static void pipes(int *fd, unsigned *n)
{
	for (unsigned i = 0; i < *n; i++) {
		int p[2];

		need(!pipe(p));
		fd[i] = p[0];
	}
}

static void folders(int *fd, unsigned *n)
{
	for (unsigned i = 0; i < *n; i++)
		fd[i] = open("/", O_RDONLY | O_CLOEXEC);
}

static void a_pipe_for_an_event(int *fd, unsigned *n)
{
	int p[2];

	(void)n;
	need(!pipe(p));
	fd[2] = p[1];
}

/* Full, and blocking: to write into it is to sleep for ever. */
static void a_trap_for_an_event(int *fd, unsigned *n)
{
	(void)n;
	fd[2] = eventfd(0, 0);
	need(!eventfd_write(fd[2], UINT64_MAX - 1));
	atomic_store(&fake_ring.shared->head, 1000);
	atomic_store(&fake_ring.shared->gate_want, 3);
	atomic_store(&fake_ring.shared->front_want, 20);
}

static void swapped(int *fd, unsigned *n)
{
	int header = fd[0];

	(void)n;
	fd[0] = fd[3];
	fd[3] = header;
}

static void row_300(struct tsi_reply *a)
{
	a->row = 300;
}

static void an_endless_epoch(struct tsi_reply *a)
{
	a->epoch_end = UINT64_MAX;
}

static void an_epoch_backwards(struct tsi_reply *a)
{
	a->start = 10;
	a->epoch_end = 5;
}

static void another_incarnation(struct tsi_reply *a)
{
	a->incarnation++;
}

static void come_again(struct tsi_reply *a)
{
	a->code = TSOCK_EAGAIN;
}

static void a_code_of_its_own(struct tsi_reply *a)
{
	a->code = -45;
	memset(a->text, 'x', sizeof(a->text) - 1);
}

static void a_bad_descriptor_socket_is_a_named_error(void **state)
{
	(void)state;
	SURVIVES("no accept", .no_accept = true, .expect = TSOCK_EAGAIN);
	SURVIVES("silent", .fdpass = say_nothing, .expect = TSOCK_EAGAIN);
	SURVIVES("noise", .fdpass = say_noise, .expect = TSOCK_EPROTO);
	SURVIVES("much", .fdpass = say_much, .expect = TSOCK_EPROTO);
	SURVIVES("hangs up", .fdpass = hang_up);
	SURVIVES("row", .answer = row_300, .expect = TSOCK_EPROTO);
	SURVIVES("endless", .answer = an_endless_epoch, .expect = TSOCK_EPROTO);
	SURVIVES("back", .answer = an_epoch_backwards, .expect = TSOCK_EPROTO);
	SURVIVES("incarnation", .answer = another_incarnation,
		 .expect = TSOCK_ELOST);
	SURVIVES("again", .answer = come_again, .expect = TSOCK_EAGAIN);
	SURVIVES("code", .answer = a_code_of_its_own);
}

static void bad_descriptors_are_refused(void **state)
{
	(void)state;
	SURVIVES("none", .fds = no_fds, .expect = TSOCK_EPROTO);
	SURVIVES("one less", .fds = one_fd_less, .expect = TSOCK_EPROTO);
	SURVIVES("too many", .fds = all_fds, .expect = TSOCK_EPROTO);
	SURVIVES("data", .fds = unsealed_data, .expect = TSOCK_EPROTO);
	SURVIVES("header", .fds = unsealed_header, .expect = TSOCK_EPROTO);
	SURVIVES("tail", .fds = unsealed_tail, .expect = TSOCK_EPROTO);
	SURVIVES("short", .fds = short_data, .expect = TSOCK_EPROTO);
	SURVIVES("hollow", .fds = hollow_data, .expect = TSOCK_EPROTO);
	SURVIVES("huge pages", .fds = huge_pages, .header = for_huge_pages,
		 .stream = for_huge_stream, .expect = TSOCK_EPROTO);
	SURVIVES("pipes", .fds = pipes, .expect = TSOCK_EPROTO);
	SURVIVES("folders", .fds = folders, .expect = TSOCK_EPROTO);
	SURVIVES("pipe", .fds = a_pipe_for_an_event, .expect = TSOCK_EPROTO);
	SURVIVES("trap", .fds = a_trap_for_an_event, .expect = TSOCK_EPROTO);
	SURVIVES("swapped", .fds = swapped, .expect = TSOCK_EPROTO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_descriptor_socket_is_a_named_error),
		cmocka_unit_test(bad_descriptors_are_refused),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("hostile fds", tests, NULL, NULL);
}
