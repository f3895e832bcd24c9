/* SPDX-License-Identifier: MIT */
/*
 * tables.c - tables of all samples, made when a consumer first asks for one.
 *
 * One thread makes the tables that are asked for, and ends when there is no
 * more to make: a producer that nobody asks has no such thread.
 */
#include "serve/tables.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/err.h"
#include "base/field.h"
#include "base/hash.h"
#include "base/thread.h"

static const char *const names[TSI_TABLES + 1] = {
	[TSOCK_TABLE_LABELS] = "labels",
	[TSOCK_TABLE_FILES] = "files",
	[TSOCK_TABLE_KEYS] = "keys",
};

void tsi_tables_init(struct tsi_tables *t, struct tsi_sync *sync,
		     const struct tsock_serve_opts *o)
{
	const char *identity = o->identity ? o->identity : "";

	*t = (struct tsi_tables){
		.sync = sync,
		.make = o->table,
		.arg = o->table_arg,
		.stream = tsi_hash(identity, strlen(identity), 0),
	};
	for (unsigned i = 0; i < TSI_TABLES; i++)
		t->made[i].fd = -1;
}

static void join_thread(struct tsi_tables *t)
{
	if (t->running)
		pthread_join(t->thread, NULL);
	t->running = t->finished = false;
}

void tsi_tables_close(struct tsi_tables *t)
{
	join_thread(t);
	for (unsigned i = 0; i < TSI_TABLES; i++) {
		tsi_memfd_close(&t->made[i].mem);
		if (t->made[i].fd >= 0)
			close(t->made[i].fd);
		t->made[i].fd = -1;
	}
}

/* ---- making one ---- */

static int check_memory(const struct tsock_serve_table *s)
{
	bool good = tsi_field_lies_in(s->data_at, s->bytes, s->length);

	if (good && s->text)
		good = tsi_field_words_lie_in(s->start_at, s->count,
					      s->length) &&
		       tsi_field_words_lie_in(s->folders_at, s->folders,
					      s->length);
	else if (good)
		good = s->data_at % tsock_dtype_size(s->field.dtype) == 0;
	if (!good)
		return tsi_err(TSOCK_EARG,
			       "the table of %s doesn't lie in its memory",
			       names[s->kind]);
	return tsi_memfd_check(s->fd, s->length, 0, names[s->kind]);
}

/* What the program says of a table makes sense. */
static int check_said(const struct tsock_serve_table *s)
{
	uint64_t row = tsi_field_bytes(&s->field);
	bool good = s->count && s->count <= UINT64_MAX / 64 && s->bytes &&
		    s->bytes <= SIZE_MAX / 4;

	if (good && !s->text)
		good = row && s->bytes % row == 0 && s->bytes / row == s->count;
	if (!good)
		return tsi_err(TSOCK_EARG,
			       "the program describes the table of %s in a way "
			       "that makes no sense",
			       names[s->kind]);
	return s->fd < 0 ? 0 : check_memory(s);
}

/* Memory for it, which the program then fills in. */
static int make_memory(struct tsi_tables *t, struct tsock_serve_table *s,
		       struct tsi_memfd *mem)
{
	int err;

	s->data_at = s->text ? s->count * sizeof(*s->start) : 0;
	s->start_at = 0;
	s->length = s->data_at + s->bytes;
	err = tsi_memfd_create(names[s->kind], s->length, 0, mem);
	if (err)
		return err;
	s->start = s->text ? tsi_memfd_base(mem) : NULL;
	s->data = (char *)tsi_memfd_base(mem) + s->data_at;
	err = t->make(t->arg, s);
	if (err)
		tsi_memfd_close(mem);
	return err;
}

/* Its memory is *mem, or a copy of the program's descriptor: *fd. */
static int make_table(struct tsi_tables *t, struct tsock_serve_table *s,
		      struct tsi_memfd *mem, int *fd)
{
	int err = t->make(t->arg, s);

	if (!err)
		err = check_said(s);
	if (err || s->fd < 0)
		return err ? err : make_memory(t, s, mem);
	*fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? tsi_err_sys("no descriptor left for the table of %s",
				     names[s->kind])
		       : 0;
}

static struct tsi_msg_table_data described(const struct tsock_serve_table *s)
{
	struct tsi_msg_table_data d = {
		.kind = s->kind,
		.text = s->text != 0,
		.count = s->count,
		.length = s->length,
		.bytes = s->bytes,
		.data_at = s->data_at,
		.start_at = s->text ? s->start_at : 0,
		.folders_at = s->text ? s->folders_at : 0,
		.folders = s->text ? s->folders : 0,
		.field = s->field,
	};

	if (s->text)
		d.field = (struct tsock_field){ .dtype = TSOCK_U8 };
	return d;
}

/* Called with the lock, which is given up while the table is made. */
static void make_one(struct tsi_tables *t, unsigned i)
{
	struct tsock_serve_table s = { .size = sizeof(s),
				       .kind = i + 1,
				       .fd = -1 };
	struct tsi_tables_made *m = &t->made[i];
	struct tsi_memfd mem = { .fd = -1 };
	uint8_t token[TSI_TOKEN];
	int fd = -1, err;

	tsi_sync_unlock(t->sync);
	if (getrandom(token, TSI_TOKEN, 0) != TSI_TOKEN)
		err = tsi_err_sys("getrandom");
	else
		err = make_table(t, &s, &mem, &fd);
	tsi_sync_lock(t->sync);
	m->state = err ? TSI_TABLES_FAILED : TSI_TABLES_READY;
	m->code = err;
	if (err) {
		tsi_err_copy(m->why, sizeof(m->why));
		return;
	}
	m->mem = mem;
	m->fd = fd;
	m->said = described(&s);
	memcpy(m->said.token, token, TSI_TOKEN);
}

static void *make_asked(void *arg)
{
	struct tsi_tables *t = arg;

	tsi_thread_name("tsock-tables");
	tsi_sync_lock(t->sync);
	for (unsigned i = 0; i < TSI_TABLES;) {
		if (t->made[i].state != TSI_TABLES_ASKED) {
			i++;
			continue;
		}
		make_one(t, i);
		i = 0; /* others may be asked for by now */
	}
	t->finished = true;
	tsi_sync_unlock(t->sync);
	return NULL;
}

/* Have it made, by the thread that runs or another one. */
static int ask(struct tsi_tables *t, struct tsi_tables_made *m)
{
	int err;

	m->state = TSI_TABLES_ASKED;
	if (t->running && !t->finished)
		return TSOCK_EAGAIN;
	join_thread(t);
	err = tsi_thread_start(&t->thread, make_asked, t);
	if (err) {
		m->state = TSI_TABLES_NONE;
		return err;
	}
	t->running = true;
	return TSOCK_EAGAIN;
}

/* ---- answers ---- */

int tsi_tables_find(struct tsi_tables *t, const struct tsi_msg_table *q,
		    struct tsi_msg_table_data *out)
{
	struct tsi_tables_made *m;

	if (!t->make || !q->kind || q->kind > TSI_TABLES)
		return tsi_err(TSOCK_ENOTSUP,
			       "the producer has no table of that kind (%u)",
			       q->kind);
	if (q->stream && q->stream != t->stream)
		return tsi_err(TSOCK_ELOST,
			       "the producer was restarted, and serves another "
			       "stream");
	m = &t->made[q->kind - 1];
	switch (m->state) {
	case TSI_TABLES_READY:
		*out = m->said;
		return 0;
	case TSI_TABLES_FAILED:
		m->state = TSI_TABLES_NONE;
		return tsi_err(m->code, "%s", m->why);
	case TSI_TABLES_NONE:
		return ask(t, m);
	default:
		return TSOCK_EAGAIN;
	}
}

int tsi_tables_fd(const struct tsi_tables *t, const uint8_t *token)
{
	for (unsigned i = 0; i < TSI_TABLES; i++) {
		const struct tsi_tables_made *m = &t->made[i];

		if (m->state != TSI_TABLES_READY ||
		    memcmp(m->said.token, token, TSI_TOKEN) != 0)
			continue;
		return m->fd >= 0 ? m->fd : tsi_memfd_fd(&m->mem);
	}
	return -1;
}
