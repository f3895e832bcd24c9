/* SPDX-License-Identifier: MIT */
/*
 * test_tables.c - tables of all samples: a program makes them, consumers map
 * them, and nobody is believed.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memfd.h"
#include "test/lib/inproc.h"
#include "wire/address.h"
#include "wire/fdpass.h"
#include "wire/zmq.h"

#define N 500
#define WAIT_MS 20000
#define IDENTITY "made of=numbers\n"

static const char *const word[2] = { "even", "odd number" };

/* ------------------------------------------------------------------------
 * A program's tables
 */

/* How often each kind was asked for; what the next call does. */
static atomic_uint calls[4];
static atomic_int fails, fd_of_files = -1;
static _Atomic uint64_t folders, folders_at; /* of the files */
static atomic_bool nonsense;

static int make(void *arg, struct tsock_serve_table *t)
{
	int32_t *number = t->data;

	assert_ptr_equal(arg, word);
	calls[t->kind]++;
	if (fails)
		return fails;
	t->count = N;
	t->field = (struct tsock_field){ .name = "label", .dtype = TSOCK_I32 };
	t->bytes = nonsense ? 4 * N - 1 : 4 * N;
	for (unsigned i = 0; number && t->kind == TSOCK_TABLE_LABELS; i++) {
		if (i == N)
			return 0;
		number[i] = -(int32_t)i;
	}
	if (t->kind == TSOCK_TABLE_LABELS)
		return 0;
	t->text = 1;
	t->bytes = sizeof("even") + sizeof("odd number");
	if (t->kind == TSOCK_TABLE_FILES) {
		t->fd = fd_of_files;
		t->length = 4096 + 8 * N;
		t->start_at = 4096;
		t->data_at = 5;
		t->folders = folders;
		t->folders_at = folders_at;
		t->bytes += folders ? 7 : 0;
	}
	if (!t->data)
		return 0;
	strcpy(t->data, word[0]);
	strcpy((char *)t->data + sizeof("even"), word[1]);
	for (unsigned i = 0; i < N; i++)
		t->start[i] = i % 2 ? sizeof("even") : 0;
	return 0;
}

static struct inproc st;

static int serves(void **state)
{
	struct tsock_serve_opts o = inproc_opts(N);

	(void)state;
	memset(calls, 0, sizeof(calls));
	fails = 0;
	nonsense = false;
	o.table = make;
	o.table_arg = (void *)(uintptr_t)word;
	o.identity = IDENTITY;
	inproc_serve(&st, &o);
	return 0;
}

static int stops(void **state)
{
	(void)state;
	inproc_stop(&st);
	return 0;
}

static tsock_table *open_table(uint32_t kind)
{
	tsock_table *t;

	if (tsock_table_open("unit", IDENTITY, kind, WAIT_MS, &t))
		fail_msg("%s", tsock_errmsg());
	return t;
}

static void refuses(const char *identity, uint32_t kind, int code,
		    const char *why)
{
	tsock_table *t;

	assert_int_equal(tsock_table_open("unit", identity, kind, WAIT_MS, &t),
			 code);
	assert_null(t);
	if (!strstr(tsock_errmsg(), why))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), why);
}

static void numbers_are_made_once_and_outlive_the_producer(void **state)
{
	struct tsock_table_info a = { .size = sizeof(a) }, b = a;
	tsock_table *t[2];

	serves(state);
	t[0] = open_table(TSOCK_TABLE_LABELS);
	t[1] = open_table(TSOCK_TABLE_LABELS);
	/* What it describes, and what it writes. */
	assert_int_equal(calls[TSOCK_TABLE_LABELS], 2);
	stops(state);
	assert_int_equal(tsock_table_get_info(t[0], &a), 0);
	assert_int_equal(tsock_table_get_info(t[1], &b), 0);
	assert_int_equal(a.count, N);
	assert_int_equal(a.bytes, 4 * N);
	assert_int_equal(a.field.dtype, TSOCK_I32);
	assert_null(a.start);
	for (int i = 0; i < N; i++)
		assert_int_equal(((const int32_t *)a.data)[i], -i);
	assert_memory_equal(a.data, b.data, 4 * N);
	assert_null(tsock_table_text(t[0], 0, NULL));
	/* Nobody can write into it. */
	assert_int_equal(mprotect((void *)((uintptr_t)a.data & ~4095ul), 4096,
				  PROT_READ | PROT_WRITE),
			 -1);
	tsock_table_close(t[0]);
	tsock_table_close(t[1]);
	refuses(NULL, TSOCK_TABLE_LABELS, TSOCK_ENOPROD, "unit");
}

static void texts_are_found_by_their_rows(void **state)
{
	tsock_table *t = open_table(TSOCK_TABLE_KEYS);
	size_t len;

	(void)state;
	assert_string_equal(tsock_table_text(t, 0, &len), "even");
	assert_int_equal(len, 4);
	assert_string_equal(tsock_table_text(t, N - 1, &len), "odd number");
	assert_int_equal(len, 10);
	assert_null(tsock_table_text(t, N, &len));
	tsock_table_close(t);
}

/* Memory of the program's own is handed out as it is. */
static void memory_that_there_is_is_shared(void **state)
{
	struct tsi_memfd m;
	tsock_table *t;
	uint64_t *start;

	(void)state;
	assert_int_equal(tsi_memfd_create("mine", 4096 + 8 * N, 0, &m), 0);
	strcpy((char *)m.base + 5, word[0]);
	strcpy((char *)m.base + 5 + sizeof("even"), word[1]);
	start = (void *)((char *)m.base + 4096);
	start[1] = sizeof("even");
	start[2] = 15; /* the last byte, a zero */
	start[3] = 17;
	start[4] = UINT64_MAX;
	fd_of_files = m.fd;
	t = open_table(TSOCK_TABLE_FILES);
	assert_int_equal(calls[TSOCK_TABLE_FILES], 1);
	assert_string_equal(tsock_table_text(t, 1, NULL), "odd number");
	assert_string_equal(tsock_table_text(t, 2, NULL), "");
	/* A row that lies elsewhere isn't looked for. */
	for (unsigned i = 3; i < 5; i++) {
		assert_null(tsock_table_text(t, i, NULL));
		assert_non_null(strstr(tsock_errmsg(), "damaged"));
	}
	/* The server has a descriptor of its own. */
	tsi_memfd_close(&m);
	fd_of_files = -1;
	tsock_table_close(t);
	t = open_table(TSOCK_TABLE_FILES);
	assert_string_equal(tsock_table_text(t, 0, NULL), "even");
	tsock_table_close(t);
}

/* The paths of folders stand once, before the names of their files. */
static void names_are_found_with_their_folders(void **state)
{
	static const char text[] = "\0top\0a/b\0one\0two\0c\0one";
	static const char *const want[] = { "top", "a/b/one", "a/b/two",
					    "c/one" };
	struct tsi_memfd m;
	tsock_table *t;
	uint64_t *start;
	size_t len;

	(void)state;
	assert_int_equal(tsi_memfd_create("mine", 4096 + 8 * N, 0, &m), 0);
	start = (void *)((char *)m.base + 4096);
	memcpy((char *)m.base + 5, text, sizeof(text));
	memcpy(start, (uint64_t[]){ 1, 9, 13, 19 }, 32);
	memcpy((char *)m.base + 4088 - 16, (uint64_t[]){ 0, 5, 17 }, 24);
	folders = 3;
	folders_at = 4088 - 16;
	fd_of_files = m.fd;
	t = open_table(TSOCK_TABLE_FILES);
	for (unsigned i = 0; i < 4; i++) {
		assert_string_equal(tsock_table_text(t, i, &len), want[i]);
		assert_int_equal(len, strlen(want[i]));
	}
	/* What is no list of folders leads nowhere else. */
	start = (void *)((char *)m.base + 4088 - 16);
	start[0] = 1;
	start[1] = start[2] = UINT64_MAX;
	assert_string_equal(tsock_table_text(t, 3, NULL), "top/one");
	start[0] = 2;
	assert_null(tsock_table_text(t, 0, NULL));
	assert_non_null(strstr(tsock_errmsg(), "damaged"));
	tsock_table_close(t);
	tsi_memfd_close(&m);
	fd_of_files = -1;
	folders = 0;
}

static void memory_that_could_be_cut_short_is_refused(void **state)
{
	(void)state;
	fd_of_files = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd_of_files, 4096 + 8 * N), 0);
	refuses(NULL, TSOCK_TABLE_FILES, TSOCK_EPROTO, "isn't sealed");
	close(fd_of_files);
	fd_of_files = -1;
}

static void what_fails_says_why_and_is_tried_again(void **state)
{
	tsock_table *t;

	(void)state;
	fails = TSOCK_ENOTSUP;
	refuses(IDENTITY, TSOCK_TABLE_LABELS, TSOCK_ENOTSUP, "");
	fails = 0;
	nonsense = true;
	refuses(IDENTITY, TSOCK_TABLE_LABELS, TSOCK_EARG, "makes no sense");
	nonsense = false;
	refuses("another\n", TSOCK_TABLE_LABELS, TSOCK_ELOST, "another stream");
	refuses(IDENTITY, 4, TSOCK_ENOTSUP, "that kind (4)");
	refuses(IDENTITY, UINT32_MAX, TSOCK_ENOTSUP, "kind");
	t = open_table(TSOCK_TABLE_LABELS);
	tsock_table_close(t);
	assert_int_equal(tsock_table_open("unit", "another\n",
					  TSOCK_TABLE_LABELS, WAIT_MS, &t),
			 TSOCK_ELOST);
}

static void a_stream_without_tables_says_so_at_once(void **state)
{
	(void)state;
	inproc_serve_n(&st, N);
	refuses(NULL, TSOCK_TABLE_LABELS, TSOCK_ENOTSUP, "earlier release");
	inproc_stop(&st);
}

/* ------------------------------------------------------------------------
 * A producer that lies
 */

struct lie {
	const char *what;
	void (*tell)(struct tsi_msg_table_data *d);
	unsigned fds; /* that it sends */
	bool unsealed;
};

static void make_answer(const struct lie *lie, struct tsi_msg *m)
{
	struct tsi_msg_table_data d = { .token = { 7 },
					.kind = TSOCK_TABLE_LABELS,
					.count = 1024,
					.length = 4096,
					.bytes = 4096,
					.field.dtype = TSOCK_I32 };

	if (m->type == TSI_HELLO) {
		m->type = TSI_STREAM;
		m->u.stream = (struct tsi_msg_stream){ .epoch_len = 1,
						       .segments = 1,
						       .max_batch = 1,
						       .capacity = 1,
						       .nfields = 1 };
		m->u.stream.field[0].dtype = TSOCK_U8;
	} else if (m->type == TSI_META) {
		m->type = TSI_META_DATA;
		m->u.meta_data.offset = 0;
		m->u.meta_data.len = 1 + sizeof(TSI_CAN_TABLES);
		memcpy(m->u.meta_data.bytes, "\0" TSI_CAN_TABLES,
		       m->u.meta_data.len);
	} else {
		lie->tell(&d);
		m->type = TSI_TABLE_DATA;
		m->u.table_data = d;
	}
}

static void answer_connection(const struct lie *lie, int listener)
{
	struct tsi_reply a = { .code = 0 };
	struct tsi_peer peer;
	int sock, fd[2], err;
	struct tsi_memfd m;

	if (tsi_fdpass_accept(listener, &sock))
		return;
	do
		err = tsi_fdpass_receive(sock, &peer);
	while (err == TSOCK_EAGAIN);
	if (!err && !tsi_memfd_create("t", 4096, 0, &m)) {
		fd[0] = fd[1] = m.fd;
		if (lie->unsealed)
			fd[0] = memfd_create("t", MFD_CLOEXEC);
		a.keep_sock = peer.pidfd < 0 || peer.keep_sock;
		tsi_fdpass_reply(sock, &a, fd, lie->fds);
		tsi_memfd_close(&m);
	}
	close(sock);
}

static int lies(const struct lie *lie, int ready)
{
	struct tsi_channel *channel;
	struct tsi_routing_id peer;
	struct tsi_address p;
	struct tsi_msg m;
	int lock, fdpass;
	bool there;

	alarm(60);
	if (tsi_address_lock("liar", &p, &lock) ||
	    tsi_zmq_bind(tsi_address_channel(&p), &channel) ||
	    tsi_fdpass_listen(tsi_address_fdpass(&p), &fdpass) ||
	    write(ready, "x", 1) != 1)
		return 1;
	for (;;) {
		struct pollfd f = { .fd = fdpass, .events = POLLIN };

		if (tsi_zmq_poll(channel, &f, 1, -1, &there))
			return 2;
		while (!tsi_zmq_recv(channel, &peer, &m)) {
			make_answer(lie, &m);
			tsi_zmq_send(channel, &peer, &m);
		}
		answer_connection(lie, fdpass);
	}
}

static void survive(const struct lie *lie, int code)
{
	int ready[2], status;
	tsock_table *t;
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid)
		_exit(lies(lie, ready[1]));
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	if (tsock_table_open("liar", NULL, TSOCK_TABLE_LABELS, WAIT_MS, &t) !=
	    code)
		fail_msg("%s: %s", lie->what, tsock_errmsg());
	tsock_table_close(t);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void tell_the_truth(struct tsi_msg_table_data *d)
{
	(void)d;
}

#define LIE(name, change) \
	static void name(struct tsi_msg_table_data *d) \
	{ \
		change; \
	}
LIE(another_kind, d->kind = TSOCK_TABLE_KEYS)
LIE(no_rows, d->count = 0; d->bytes = 0)
LIE(fewer_bytes, d->bytes = 4092)
LIE(more_than_memory, d->count = 2048; d->bytes = 8192)
LIE(beyond_memory, d->data_at = 4)
LIE(far_beyond, d->data_at = UINT64_MAX - 3)
LIE(askew, d->data_at = 2; d->count = 1; d->bytes = 4)
LIE(another_length, d->length = 8192)
LIE(starts_beyond, d->text = 1; d->start_at = 4096; d->count = 1)
LIE(starts_askew, d->text = 1; d->start_at = 4; d->count = 1)
LIE(too_many_starts, d->text = 1; d->count = UINT64_MAX / 8 + 2)
LIE(folders_beyond, d->text = 1; d->count = d->folders = 1;
    d->folders_at = 4096)
LIE(folders_askew, d->text = 1; d->count = d->folders = 1; d->folders_at = 4)
LIE(too_many_folders, d->text = 1; d->count = 1;
    d->folders = UINT64_MAX / 8 + 2)

static void a_lie_is_an_error(void **state)
{
	static void (*const lie[])(struct tsi_msg_table_data * d) = {
		another_kind,    no_rows,
		fewer_bytes,     more_than_memory,
		beyond_memory,   far_beyond,
		askew,           another_length,
		starts_beyond,   starts_askew,
		too_many_starts, folders_beyond,
		folders_askew,   too_many_folders,
	};
	char what[16];

	(void)state;
	survive(&(struct lie){ "the truth", tell_the_truth, 1, false }, 0);
	for (unsigned i = 0; i < sizeof(lie) / sizeof(lie[0]); i++) {
		snprintf(what, sizeof(what), "lie %u", i);
		survive(&(struct lie){ what, lie[i], 1, false }, TSOCK_EPROTO);
	}
	survive(&(struct lie){ "no memory", tell_the_truth, 0, false },
		TSOCK_EPROTO);
	survive(&(struct lie){ "too much", tell_the_truth, 2, false },
		TSOCK_EPROTO);
	survive(&(struct lie){ "open memory", tell_the_truth, 1, true },
		TSOCK_EPROTO);
}

static int begins(void **state)
{
	(void)state;
	inproc_open_folder();
	return 0;
}

static int ends(void **state)
{
	(void)state;
	inproc_close_folder();
	return 0;
}

int main(void)
{
#define SERVED(f) cmocka_unit_test_setup_teardown(f, serves, stops)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			numbers_are_made_once_and_outlive_the_producer),
		SERVED(texts_are_found_by_their_rows),
		SERVED(memory_that_there_is_is_shared),
		SERVED(names_are_found_with_their_folders),
		SERVED(memory_that_could_be_cut_short_is_refused),
		SERVED(what_fails_says_why_and_is_tried_again),
		cmocka_unit_test(a_stream_without_tables_says_so_at_once),
		cmocka_unit_test(a_lie_is_an_error),
	};

	return cmocka_run_group_tests(tests, begins, ends);
}
