/* SPDX-License-Identifier: MIT */
/*
 * table.c - tables of all samples, in memory of the producer.
 *
 * Asked for over a connection of its own, as by query.c.  What the producer
 * says is checked against the memory that it sends; what lies in that memory is
 * checked at each use, since a check of all rows would read every page.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/field.h"
#include "base/hash.h"
#include "base/memfd.h"
#include "base/path.h"
#include "base/sized.h"
#include "consumer/find.h"
#include "consumer/request.h"
#include "tsock/tsock.h"
#include "wire/address.h"
#include "wire/fdpass.h"

/* Between two requests for a table that is being made, which takes under a
 * millisecond if the producer has it in memory. */
#define FIRST_MS 1
#define FIRST 10 /* of them */
#define LATER_MS 20

struct tsock_table {
	struct tsock_table_info info;
	void *map;
	size_t len;
};

/* A question about one stream. */
struct question {
	const struct tsi_address *address;
	struct tsi_requester requests;
	int64_t deadline;
	uint32_t kind;
	uint64_t stream;
};

static int ask(struct question *q, struct tsi_msg *m, uint16_t type,
	       struct tsi_msg *reply)
{
	int err;

	m->serial = tsi_request_serial(&q->requests);
	err = tsi_request_ask(&q->requests, m, q->deadline, reply);
	if (err == TSOCK_EAGAIN)
		return tsi_err(TSOCK_ENOPROD,
			       "the producer of '%s' didn't answer in time: is "
			       "it stopped?",
			       tsi_address_name(q->address));
	if (!err && reply->type != type && reply->type != TSI_WAIT)
		return tsi_err(TSOCK_EPROTO,
			       "the producer of '%s' answered with a message "
			       "of type %u",
			       tsi_address_name(q->address), reply->type);
	return err;
}

/* Is that the last of the texts? */
static bool ends_with(const struct tsi_msg_meta_data *d, const char *text)
{
	size_t len = strlen(text) + 1;

	return d->len > len && !d->bytes[d->len - len - 1] &&
	       !memcmp(d->bytes + d->len - len, text, len);
}

/* An earlier release doesn't answer a request for a table at all. */
static int check_ability(struct question *q)
{
	struct tsi_msg m = { .type = TSI_HELLO }, reply;
	uint32_t last = sizeof(TSI_CAN_TABLES) + 1;
	int err;

	m.u.hello.pid = (uint32_t)getpid();
	err = ask(q, &m, TSI_STREAM, &reply);
	if (err)
		return err;
	m = (struct tsi_msg){ .type = TSI_META };
	m.u.meta.incarnation = reply.u.stream.incarnation;
	m.u.meta.offset = reply.u.stream.meta_bytes;
	m.u.meta.offset -= m.u.meta.offset < last ? m.u.meta.offset : last;
	err = ask(q, &m, TSI_META_DATA, &reply);
	if (err || ends_with(&reply.u.meta_data, TSI_CAN_TABLES))
		return err;
	return tsi_err(TSOCK_ENOTSUP,
		       "the producer of '%s' hands out no tables: a program "
		       "serves its samples, or it is of an earlier release",
		       tsi_address_name(q->address));
}

static int ask_table(struct question *q, struct tsi_msg_table_data *out)
{
	for (unsigned i = 0;; i++) {
		struct tsi_msg m = { .type = TSI_TABLE,
				     .u.table = { q->stream, q->kind } };
		struct tsi_msg reply;
		int err = ask(q, &m, TSI_TABLE_DATA, &reply);

		if (err)
			return err;
		if (reply.type == TSI_TABLE_DATA) {
			*out = reply.u.table_data;
			return 0;
		}
		if (tsi_now_ms() >= q->deadline)
			return tsi_err(TSOCK_ENOPROD,
				       "the producer of '%s' still makes the "
				       "table",
				       tsi_address_name(q->address));
		tsi_pause_until(q->deadline, i < FIRST ? FIRST_MS : LATER_MS);
	}
}

static int check_said(const struct question *q,
		      const struct tsi_msg_table_data *d)
{
	uint64_t row = tsi_field_bytes(&d->field);
	bool good = d->kind == q->kind && d->count && d->bytes &&
		    d->length <= SIZE_MAX / 2 &&
		    tsi_field_lies_in(d->data_at, d->bytes, d->length);

	if (good && d->text)
		good = tsi_field_words_lie_in(d->start_at, d->count,
					      d->length) &&
		       tsi_field_words_lie_in(d->folders_at, d->folders,
					      d->length);
	else if (good)
		good = row &&
		       d->data_at % tsock_dtype_size(d->field.dtype) == 0 &&
		       d->bytes % row == 0 && d->bytes / row == d->count;
	return good ? 0
		    : tsi_err(TSOCK_EPROTO,
			      "the producer of '%s' describes a table in a way "
			      "that makes no sense",
			      tsi_address_name(q->address));
}

static int map_table(const struct tsi_msg_table_data *d, int fd,
		     tsock_table **out)
{
	int err = tsi_memfd_check(fd, (size_t)d->length, 0, "a table");
	tsock_table *t = err ? NULL : calloc(1, sizeof(*t));

	if (err)
		return err;
	if (!t)
		return tsi_err(TSOCK_ENOMEM, "no memory for a table");
	t->len = (size_t)d->length;
	t->map = mmap(NULL, t->len, PROT_READ, MAP_SHARED, fd, 0);
	if (t->map == MAP_FAILED) {
		free(t);
		return tsi_err_sys("map a table");
	}
	t->info = (struct tsock_table_info){
		.size = sizeof(t->info),
		.kind = d->kind,
		.count = d->count,
		.bytes = d->bytes,
		.data = (char *)t->map + d->data_at,
		.field = d->field,
	};
	if (d->text)
		t->info.start = (void *)((char *)t->map + d->start_at);
	if (d->text && d->folders) {
		t->info.folder = (void *)((char *)t->map + d->folders_at);
		t->info.folders = d->folders;
	}
	*out = t;
	return 0;
}

static int fetch(const struct question *q, const struct tsi_msg_table_data *d,
		 tsock_table **out)
{
	struct tsi_connecting c = { .open = false };
	int64_t left = q->deadline - tsi_now_ms();
	struct tsi_passed p;
	int err = tsi_fdpass_connect(tsi_address_fdpass(q->address), d->token,
				     left > INT32_MAX ? INT32_MAX : (int)left,
				     &c, &p);

	if (err == TSOCK_EAGAIN) {
		tsi_fdpass_abandon(&c);
		return tsi_err(TSOCK_ENOPROD,
			       "the producer of '%s' didn't answer in time",
			       tsi_address_name(q->address));
	}
	if (err)
		return err;
	err = p.nfds == 1 ? map_table(d, p.fd[0], out)
			  : tsi_err(TSOCK_EPROTO,
				    "the producer of '%s' sent %u descriptors, "
				    "not 1",
				    tsi_address_name(q->address), p.nfds);
	for (unsigned i = 0; i < p.nfds; i++)
		close(p.fd[i]);
	if (p.producer >= 0)
		close(p.producer);
	if (p.sock >= 0)
		close(p.sock);
	return err;
}

static int ask_at(struct question *q, tsock_table **out)
{
	struct tsi_msg_table_data d;
	int err = tsi_request_open(&q->requests, q->address);

	if (err)
		return err;
	err = check_ability(q);
	if (!err)
		err = ask_table(q, &d);
	if (!err)
		err = check_said(q, &d);
	tsi_request_close(&q->requests);
	return err ? err : fetch(q, &d, out);
}

int tsock_table_open(const char *name, const char *identity, uint32_t kind,
		     int timeout_ms, tsock_table **out)
{
	struct tsi_address address[TSI_ADDRESSES];
	struct question q = {
		.deadline =
			timeout_ms < 0 ? INT64_MAX : tsi_now_ms() + timeout_ms,
		.kind = kind,
	};
	int n, err;

	if (out)
		*out = NULL;
	if (!name || !out)
		return tsi_err(TSOCK_EARG, "tsock_table_open: %s is NULL",
			       name ? "out" : "name");
	if (!kind)
		return tsi_err(TSOCK_EARG, "tsock_table_open: kind 0 is none");
	if (identity)
		q.stream = tsi_hash(identity, strlen(identity), 0);
	n = tsi_address_find(name, address, TSI_ADDRESSES);
	if (n < 0)
		return n;
	q.address = tsi_find_listening(address, n, &err);
	if (q.address)
		return ask_at(&q, out);
	return err ? err : tsi_find_err(address, n, 0);
}

int tsock_table_get_info(const tsock_table *t, struct tsock_table_info *out)
{
	int err;

	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_table_get_info: t is NULL");
	err = tsi_sized_check("tsock_table_get_info", &tsi_sized_table_info,
			      out);
	if (!err)
		tsi_sized_write(&tsi_sized_table_info, &t->info, out);
	return err;
}

/* The text that begins there in data; NULL: it doesn't end in data. */
static const char *text_at(const tsock_table *t, uint64_t start, size_t *len)
{
	const char *at = t->info.data;
	const char *end = start < t->info.bytes
				  ? memchr(at + start, 0, t->info.bytes - start)
				  : NULL;

	if (!end)
		return NULL;
	*len = (size_t)(end - (at + start));
	return at + start;
}

/* A name with its folder before it; NULL: the table is damaged. */
static const char *join(const tsock_table *t, uint64_t start, const char *name,
			size_t *len)
{
	static _Thread_local char joined[TSI_PATH];
	size_t n, k = tsi_path_folder(t->info.folder, t->info.folders, start);
	const char *folder =
		k < t->info.folders ? text_at(t, t->info.folder[k], &n) : NULL;

	if (!folder || n + *len + 2 > TSI_PATH)
		return NULL;
	if (!n)
		return name;
	*len += n + 1;
	return tsi_path_join(folder, name, joined);
}

const char *tsock_table_text(const tsock_table *t, uint64_t row, size_t *len)
{
	const char *at;
	size_t n;

	if (!t || !t->info.start || row >= t->info.count) {
		tsi_err(TSOCK_EARG, "tsock_table_text: %s",
			!t              ? "t is NULL"
			: t->info.start ? "there is no such row"
					: "rows are numbers");
		return NULL;
	}
	at = text_at(t, t->info.start[row], &n);
	if (at && t->info.folder)
		at = join(t, t->info.start[row], at, &n);
	if (!at) {
		tsi_err(TSOCK_EPROTO, "the producer's table is damaged");
		return NULL;
	}
	if (len)
		*len = n;
	return at;
}

void tsock_table_close(tsock_table *t)
{
	if (!t)
		return;
	munmap(t->map, t->len);
	free(t);
}
