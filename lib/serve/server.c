/* SPDX-License-Identifier: MIT */
/*
 * server.c - a stream being served: what the program and its workers call.
 *
 * Each function checks its arguments, takes the lock, and leaves the rest to
 * the parts.
 */
#include "serve/server.h"

#include <stdatomic.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/sized.h"

/* ---- workers ---- */

static int closed_or_over(struct tsock_server *s)
{
	int err = tsi_gate_err(&s->gate);

	if (err)
		return err;
	if (s->stop)
		return tsi_err(TSOCK_EENDED, "the server is closing");
	if (tsi_readers_over(&s->readers) ||
	    tsi_membership_all_claimed(&s->membership))
		return tsi_err(TSOCK_EENDED, "the last epoch is made");
	return 0;
}

static unsigned take_samples(struct tsock_server *s, unsigned want,
			     uint64_t *first)
{
	unsigned n = tsi_membership_claim(&s->membership, 0, want, first);

	if (!n) {
		tsi_readers_refresh(&s->readers);
		n = tsi_membership_claim(&s->membership, 0, want, first);
	}
	return n;
}

/*
 * Claim samples, or wait for some.  Of the workers that sleep few are woken at
 * a time, so a worker that goes off from here, to make samples or for good,
 * minds those that sleep on; and one that finds the end tells all.
 */
static int claim(struct tsock_server *s, unsigned want, int64_t until,
		 uint64_t *first)
{
	bool waited = false;
	int n;

	for (;; waited = true) {
		n = closed_or_over(s);
		if (n) {
			tsi_sync_wake_all_workers(&s->sync);
			return n;
		}
		n = (int)take_samples(s, want, first);
		if (!n && tsi_now_ns() >= until)
			n = TSOCK_EAGAIN;
		if (n) {
			if (n > 0 || waited)
				tsi_readers_mind_sleepers(&s->readers);
			return n;
		}
		tsi_readers_wait(&s->readers, 0, until);
	}
}

/*
 * n samples were claimed, and are written to the base ring and to the views
 * that workers write.  Memory that runs out now ends the stream.
 */
static int make_room(struct tsock_server *s, uint64_t first, int n)
{
	uint64_t last = first + (uint64_t)n - 1;
	uint32_t rings = 1 | tsi_production_views(&s->production, last);
	char why[TSI_RING_ERROR];
	int err = 0;

	for (unsigned i = 0; rings >> i && !err; i++)
		if (rings >> i & 1)
			err = tsi_ring_make_room(tsi_gate_ring(&s->gate, i),
						 first, (uint64_t)n);
	if (!err)
		return n;
	tsi_err_copy(why, sizeof(why));
	tsi_sync_lock(&s->sync);
	tsi_gate_fail(&s->gate, why);
	err = tsi_gate_err(&s->gate);
	tsi_sync_unlock(&s->sync);
	return err;
}

int tsock_serve_claim(tsock_server *s, unsigned want, int timeout_ms,
		      uint64_t *first)
{
	int64_t until = timeout_ms < 0
				? INT64_MAX
				: tsi_now_ns() + (int64_t)timeout_ms * 1000000;
	int n;

	if (!s || !first)
		return tsi_err(TSOCK_EARG, "tsock_serve_claim: %s is NULL",
			       s ? "first" : "s");
	if (want > INT32_MAX)
		want = INT32_MAX;
	n = (int)tsi_production_claim(&s->production, want, first);
	if (!n) {
		tsi_sync_lock(&s->sync);
		n = claim(s, want, until, first);
		tsi_sync_unlock(&s->sync);
	}
	return n > 0 ? make_room(s, *first, n) : n;
}

void *tsock_serve_slot(tsock_server *s, unsigned f, uint64_t seq)
{
	const struct tsi_ring *base = s ? tsi_gate_ring(&s->gate, 0) : NULL;

	if (!base || f >= tsi_ring_nfields(base)) {
		tsi_err(TSOCK_EARG, "tsock_serve_slot: %s",
			s ? "there is no such field" : "s is NULL");
		return NULL;
	}
	return tsi_ring_slot(base, f, seq);
}

/* All that they are is in the ring's slots. */
static void publish(struct tsock_server *s, uint64_t first, unsigned count)
{
	tsi_ring_mirror(tsi_gate_ring(&s->gate, 0), first, count);
	for (uint64_t k = first; k < first + count; k++) {
		uint32_t views = tsi_production_views(&s->production, k);

		if (views)
			tsi_view_table_convert(&s->views, views, k);
	}
	/* Non-temporal stores aren't ordered by a release alone. */
	atomic_thread_fence(memory_order_seq_cst);
	tsi_production_commit(&s->production, first, count);
}

void tsock_serve_commit(tsock_server *s, uint64_t first, unsigned count)
{
	struct tsi_resident_held *unneeded;

	if (!s)
		return;
	unneeded = tsi_view_table_written(&s->views, first, count);
	publish(s, first, count);
	tsi_residents_give_back(unneeded);
}

static int check_samples(const struct tsock_gpu_samples *from, unsigned count)
{
	unsigned n;
	int err;

	if (!from->data || !from->release || !count)
		return tsi_err(TSOCK_EARG, "tsock_serve_commit_gpu: %s",
			       !count       ? "count is 0"
			       : from->data ? "from.release is NULL"
					    : "from.data is NULL");
	err = tsi_gpu_count(&n);
	if (!err && from->device >= n)
		err = tsi_err(TSOCK_EARG,
			      "tsock_serve_commit_gpu: from.device is %u, and "
			      "this process sees %u",
			      from->device, n);
	return err;
}

int tsock_serve_commit_gpu(tsock_server *s, uint64_t first, unsigned count,
			   const struct tsock_gpu_samples *from)
{
	struct tsock_gpu_samples g = TSOCK_GPU_SAMPLES_INIT;
	struct tsi_resident_held *unneeded = NULL;
	int err;

	if (!s)
		return tsi_err(TSOCK_EARG, "tsock_serve_commit_gpu: s is NULL");
	err = tsi_sized_read("tsock_serve_commit_gpu", &tsi_sized_gpu_samples,
			     from, &g);
	if (!err)
		err = check_samples(&g, count);
	if (!err)
		err = tsi_view_table_commit(&s->views, &g, first, count,
					    &unneeded);
	if (!err)
		publish(s, first, count);
	tsi_residents_give_back(unneeded);
	return err;
}

void tsock_serve_fail(tsock_server *s, const char *why)
{
	if (!s)
		return;
	tsi_sync_lock(&s->sync);
	tsi_gate_fail(&s->gate, why ? why : "no reason was given");
	tsi_sync_unlock(&s->sync);
}

void tsock_serve_count(tsock_server *s, uint64_t read_bytes,
		       uint64_t bad_samples)
{
	if (!s)
		return;
	tsi_production_count(&s->production, read_bytes, bad_samples);
}

void tsock_serve_bad_files(tsock_server *s, uint64_t bad_files)
{
	if (s)
		tsi_production_set_bad_files(&s->production, bad_files);
}

int tsock_serve_warn(tsock_server *s, uint32_t kind, const char *text)
{
	bool done;

	if (!s || !text)
		return tsi_err(TSOCK_EARG, "tsock_serve_warn: %s is NULL",
			       s ? "text" : "s");
	tsi_sync_lock(&s->sync);
	done = tsi_messages_warn(&s->messages, kind, text);
	tsi_sync_unlock(&s->sync);
	return done ? 0
		    : tsi_err(TSOCK_ENOMEM, "a stream has %d warnings at most",
			      TSI_WARNINGS);
}

/* ---- what is said of it ---- */

void tsock_serve_doing(tsock_server *s, const char *what)
{
	if (!s)
		return;
	tsi_sync_lock(&s->sync);
	tsi_waits_doing(&s->waits, what, tsi_now_ms());
	tsi_sync_unlock(&s->sync);
}

int tsock_serve_stats(tsock_server *s, struct tsock_stats *out)
{
	struct tsock_stats st;
	int err;

	if (!s)
		return tsi_err(TSOCK_EARG, "tsock_serve_stats: s is NULL");
	err = tsi_sized_check("tsock_serve_stats", &tsi_sized_stats, out);
	if (err)
		return err;
	tsi_sync_lock(&s->sync);
	tsi_stats_read(&s->stats, &st);
	tsi_sync_unlock(&s->sync);
	tsi_sized_write(&tsi_sized_stats, &st, out);
	return 0;
}

int tsock_serve_connected(tsock_server *s)
{
	struct tsi_sockets k;

	if (!s)
		return tsi_err(TSOCK_EARG, "tsock_serve_connected: s is NULL");
	tsi_sync_lock(&s->sync);
	k = s->sockets;
	tsi_sync_unlock(&s->sync);
	return tsi_sockets_connected(&k);
}

/* ---- the end ---- */

int64_t tsock_serve_end_after(tsock_server *s, uint64_t epoch)
{
	uint64_t epochs;
	int err;

	if (!s)
		return tsi_err(TSOCK_EARG, "tsock_serve_end_after: s is NULL");
	tsi_sync_lock(&s->sync);
	err = tsi_membership_end_after(&s->membership, epoch);
	epochs = tsi_membership_epochs(&s->membership);
	tsi_messages_set_epochs(&s->messages, epochs);
	tsi_gate_end_changed(&s->gate);
	tsi_sync_unlock(&s->sync);
	return err ? err : (int64_t)epochs - 1;
}

int tsock_serve_drained(tsock_server *s)
{
	bool over;

	if (!s)
		return tsi_err(TSOCK_EARG, "tsock_serve_drained: s is NULL");
	tsi_sync_lock(&s->sync);
	tsi_readers_refresh(&s->readers);
	over = tsi_gate_stopped(&s->gate) || tsi_readers_over(&s->readers);
	tsi_sync_unlock(&s->sync);
	return over;
}

int tsock_serve_stopped(tsock_server *s)
{
	bool stopped;

	if (!s)
		return tsi_err(TSOCK_EARG, "tsock_serve_stopped: s is NULL");
	tsi_sync_lock(&s->sync);
	stopped = tsi_gate_stopped(&s->gate);
	tsi_sync_unlock(&s->sync);
	return stopped;
}

void tsock_serve_stop(tsock_server *s)
{
	if (!s)
		return;
	tsi_sync_lock(&s->sync);
	s->stop = true;
	tsi_production_stop(&s->production);
	tsi_gate_changed(&s->gate);
	tsi_sync_unlock(&s->sync);
	eventfd_write(s->event, 1);
}
