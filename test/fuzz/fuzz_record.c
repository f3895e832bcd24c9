/* SPDX-License-Identifier: MIT */
/*
 * fuzz_record.c - any bytes are the record of a stream's readers that a
 * producer's death left behind (NAME.readers): rows that make sense are waited
 * for, for a minute at most, and what is recorded from then on outlives the
 * next death.
 *
 * An input is a byte of flags, EVENTS bytes of what happens then, and the file.
 * The file's head is put right unless a flag says otherwise, and so is its
 * length: they only keep the rows from being looked at.
 */
#include "corpus.h"
#include "base/clock.h"
#include "ring/layout.h"
#include "serve/readers_record.h"

#define EVENTS 40
/* Flags: the head is as it comes; the table alone is tried. */
#define DAMAGED 1u
#define TABLE 2u
#define STREAM 5
#define N 24 /* samples in an epoch */
#define GRACE_MS 60000

typedef struct tsi_record_row rows_t[TSI_RECORD_ROWS];
#define FILE_LEN (sizeof(struct tsi_record_head) + sizeof(rows_t))

static char folder[256], path[300];

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

static void write_file(const uint8_t *bytes, size_t len, bool mended)
{
	struct tsi_record_head h = { TSI_RECORD_FILE_MAGIC,
				     TSI_RECORD_FILE_VERSION,
				     TSI_RECORD_ROWS,
				     STREAM,
				     0,
				     0,
				     { 0 } };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct stat st;

	never(fd < 0 || write(fd, bytes, len) != (ssize_t)len);
	if (mended) {
		/* Whether pids are of this namespace is the input's choice. */
		if (len & 1 && !stat("/proc/self/ns/pid", &st))
			h.processes = (uint64_t)st.st_ino;
		never(pwrite(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h));
		never(ftruncate(fd, (off_t)FILE_LEN));
	}
	close(fd);
}

/* ---- seeds ---- */

static void seed(const char *in, const char *name, unsigned flags, unsigned n,
		 uint64_t mark)
{
	static uint8_t
		bytes[1 + EVENTS + sizeof(struct tsi_record_head) + 1024];
	struct tsi_record_row row = { .used = 1 };

	never(n * sizeof(row) > 1024);
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = (uint8_t)flags;
	for (unsigned i = 0; i < EVENTS; i++)
		bytes[1 + i] = (uint8_t)(i * 37);
	for (unsigned i = 0; i < n; i++) {
		row.reader = (struct tsi_reader_row){
			.pid = i == 1 ? 1 : 0x7ffffff0 + i,
			.born = 7,
			.together = i == 2,
			.mark = mark + i * 5,
		};
		memset(row.reader.nonce, (int)i + 1, TSI_NONCE);
		/* The fourth one had asked as by the first one's claim. */
		if (i == 3)
			memset(row.reader.was, 1, TSI_NONCE);
		memcpy(bytes + 1 + EVENTS + sizeof(struct tsi_record_head) +
			       i * sizeof(row),
		       &row, sizeof(row));
	}
	corpus_put(in, name, bytes,
		   1 + EVENTS + sizeof(struct tsi_record_head) +
			   n * sizeof(row) + n % 2);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const flag[] = { "-max_len=2048" };
	const char *in = corpus_folder(*argc, *argv);
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
	never(!mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s.readers", folder);
	atexit(remove_folder);
	if (in) {
		seed(in, "none", TABLE, 0, 0);
		seed(in, "table", TABLE, 5, 10);
		seed(in, "one", 0, 1, 100);
		seed(in, "some", 0, 6, 3 * N);
		seed(in, "beyond", 0, 3, UINT64_MAX - 7);
	}
	corpus_limits(argc, argv, flag, 1);
	return 0;
}

/* ---- the table, and its file ---- */

static struct tsi_record record;
static rows_t saved; /* what the file has */

/* A nonce that some row may have; never nobody's. */
static void choose(struct bytes *b, uint8_t nonce[TSI_NONCE])
{
	unsigned which = (unsigned)take(b, 1);

	memset(nonce, (int)(which % 8) + 1, TSI_NONCE);
	if (which & 0x80 && record.row[which & 7].used)
		memcpy(nonce, record.row[which & 7].reader.nonce, TSI_NONCE);
}

static unsigned count_rows(const struct tsi_record *r)
{
	static const uint8_t nobody[TSI_NONCE];
	struct tsi_reader_row row;
	unsigned n = 0;

	for (unsigned i = 0; tsi_record_next(r, &i, &row); i++, n++)
		never(!memcmp(row.nonce, nobody, TSI_NONCE));
	return n;
}

static void open_record(void)
{
	tsi_record_init(&record);
	tsi_record_open(&record, folder, "s", STREAM, 1);
	never(record.fd < 0);
	count_rows(&record);
}

static void save(void)
{
	if (tsi_record_collect(&record))
		tsi_record_write(&record);
	never(tsi_record_collect(&record));
	memcpy(saved, record.row, sizeof(saved));
}

/* The next producer finds all that was saved, and nothing else. */
static void die(void)
{
	close(record.fd);
	open_record();
	never(memcmp(saved, record.row, sizeof(saved)));
}

static void change(struct bytes *b)
{
	struct tsi_reader_row row = { .pid = 1 };
	unsigned what = (unsigned)take(b, 1);

	choose(b, row.nonce);
	row.mark = what;
	switch (what % 7) {
	case 0:
		choose(b, row.was);
		tsi_record_put(&record, &row);
		break;
	case 1:
		tsi_record_mark(&record, row.nonce, what, what & 64);
		break;
	case 2:
		tsi_record_settle(&record, row.nonce);
		break;
	case 3:
		tsi_record_drop(&record, row.nonce);
		break;
	case 4:
		save();
		break;
	case 5:
		unlink(path);
		tsi_record_again(&record, folder, "s");
		save();
		break;
	default:
		die();
	}
}

static void use_table(struct bytes b)
{
	unsigned n;

	open_record();
	memcpy(saved, record.row, sizeof(saved));
	while (b.left)
		change(&b);
	save();
	die();
	n = count_rows(&record);
	tsi_record_close(&record, true);
	/* A producer that nobody reads leaves nothing. */
	never(!access(path, F_OK) != (n > 0));
}

/* ---- a producer, and readers that return, or don't ---- */

static struct {
	struct tsi_sync sync;
	struct tsi_gate gate;
	struct tsi_membership membership;
	struct tsi_offers offers;
	struct tsi_readers readers;
	struct tsi_ring ring;
	struct tsi_ring_shared shared;
} p;

static void start(void)
{
	static const uint64_t bounds[] = { 0, N };
	struct tsi_membership_config config = { .epoch_len = N,
						.join_window = 8,
						.capacity = 32,
						.end = TSI_NEVER,
						.segments = 1,
						.bounds = bounds,
						.min_members = 1 };

	memset(&p, 0, sizeof(p));
	tsi_sync_init(&p.sync);
	tsi_membership_init(&p.membership, &config);
	tsi_gate_init(&p.gate, &p.sync, &p.membership);
	tsi_readers_init(&p.readers, &p.sync, &p.gate, &p.membership, &p.offers,
			 N);
	p.ring.shared = &p.shared;
	tsi_gate_add_ring(&p.gate, 0, &p.ring);
	tsi_sync_lock(&p.sync);
	tsi_readers_keep_record(&p.readers, folder, "s", STREAM, 1);
}

/* Where nobody who is awaited can have been before. */
static uint64_t least(void)
{
	const struct tsi_returners *t = &p.readers.returners;
	uint64_t from = UINT64_MAX;

	for (unsigned i = 0; i < TSI_RETURNERS; i++) {
		const struct tsi_returner *r = &t->returner[i];
		uint64_t at = r->row.mark;

		if (r->used && r->asked && !r->row.together)
			at = r->position;
		if (r->used && at < from)
			from = at;
	}
	return from;
}

/* One says where it is, or that it has left. */
static void return_one(struct bytes *b)
{
	struct tsi_msg_join j = { .epoch_end = 1 };
	unsigned what = (unsigned)take(b, 1), i = what % 8;
	const struct tsi_reader_row *row =
		tsi_returners_next(&p.readers.returners, &i);

	if (!row)
		return;
	memcpy(j.was, what & 64 ? row->was : row->nonce, TSI_NONCE);
	j.position = what & 128 ? take(b, 8) : row->mark + what;
	if (what & 32)
		tsi_readers_withdraw(&p.readers, j.was);
	else
		tsi_readers_note_return(&p.readers, &j);
}

/* Looks all the time; else it would conclude that it was stopped. */
static void await_at(int64_t now_ms)
{
	p.readers.returners.looked_ms = now_ms;
	tsi_readers_await(&p.readers, now_ms);
}

static void use_readers(struct bytes b)
{
	struct tsi_returners *t = &p.readers.returners;
	struct tsi_join j = { .join = TSOCK_JOIN_EPOCH };
	int64_t began = tsi_now_ms();
	uint64_t from, at;

	start();
	never(t->count != count_rows(&p.readers.record) ||
	      t->count > TSI_RETURNERS);
	never(tsi_returners_collect(t) != (t->count > 0));
	while (b.left)
		return_one(&b);
	/* Those are no more whose processes have ended. */
	tsi_readers_await(&p.readers, tsi_now_ms());
	from = least();
	await_at(tsi_now_ms() + 1001);
	never(tsi_returners_collect(t));
	never(p.membership.hold != (t->count ? from : TSI_NEVER));
	never(t->count && !tsi_membership_can_hold(&p.membership, from));
	await_at(began + GRACE_MS + 60000);
	never(t->count || p.membership.hold != TSI_NEVER);
	never(tsi_membership_forecast(&p.membership, &j, &at) || at % N);
	tsi_readers_save_record(&p.readers);
	never(count_rows(&p.readers.record));
	tsi_readers_leave_record(&p.readers, true);
	never(!access(path, F_OK));
	tsi_sync_unlock(&p.sync);
	tsi_readers_fini(&p.readers);
	tsi_sync_fini(&p.sync);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes events;
	int lowest = corpus_lowest_fd();

	if (size < 1 + EVENTS)
		return 0;
	events = (struct bytes){ data + 1, EVENTS };
	write_file(data + 1 + EVENTS, size - 1 - EVENTS, !(data[0] & DAMAGED));
	if (data[0] & TABLE)
		use_table(events);
	else
		use_readers(events);
	unlink(path);
	never(corpus_lowest_fd() != lowest);
	return 0;
}
