/* SPDX-License-Identifier: MIT */
/*
 * order.c - which sample of the data set has which position in an epoch.
 *
 * Shuffled epochs are kept whole, a few at a time, epoch e in slot e modulo
 * their number.  A slot has its own lock, so making an epoch holds up only
 * the threads that want that epoch; the others read theirs under a shared lock.
 */
#include "data/order.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/err.h"
#include "data/shuffle.h"

#define NONE UINT64_MAX /* no epoch has this number */
#define MIN_SLOTS 3     /* one before, the current, the next */
#define MAX_SLOTS 256   /* short epochs: workers spread over many */
#define SLOTS_ITEMS (1u << 20)
#define TORCH_MARKS 64

struct slot {
	pthread_rwlock_t lock;
	_Atomic uint64_t epoch;
	uint32_t *item;
};

/* torch's generator as it stands at the start of an epoch. */
struct mark {
	uint64_t epoch;
	struct tsi_mt19937 mt;
};

struct tsi_order {
	struct tsi_order_opts opts;
	uint64_t len;    /* positions in an epoch */
	uint64_t perm;   /* items in a slot */
	uint32_t *dealt; /* philox with segments: items by segment */
	struct slot slot[MAX_SLOTS];
	unsigned nslots; /* 0: sequential */
	pthread_mutex_t marks_lock;
	struct mark *mark; /* torch, not sharded: epoch e in e % TORCH_MARKS */
};

static uint64_t bound(const struct tsi_order *o, uint32_t segment)
{
	uint64_t each = o->len / o->opts.segments;
	uint64_t more = o->len % o->opts.segments;

	return segment * each + (segment < more ? segment : more);
}

/* This rank's k-th position in an order padded by its own first samples. */
static uint64_t strided(const struct tsi_order *o, uint64_t k)
{
	if (!o->opts.sharded)
		return k;
	/* The sum is below count + world and can't overflow. */
	return (k * o->opts.world + o->opts.rank) % o->opts.count;
}

/* Say, by the seed, which items belong to this rank and to each segment. */
static int deal(struct tsi_order *o)
{
	uint64_t count = o->opts.count;
	uint32_t *all = malloc(count * sizeof(*all));

	o->dealt = malloc(o->len * sizeof(*o->dealt));
	if (!all || !o->dealt) {
		free(all);
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to deal %llu samples into segments",
			       (unsigned long long)count);
	}
	for (uint64_t i = 0; i < count; i++)
		all[i] = (uint32_t)i;
	tsi_shuffle_philox(all, count, o->opts.seed, TSI_SHUFFLE_DEAL, 0, 0);
	for (uint64_t k = 0; k < o->len; k++)
		o->dealt[k] = all[strided(o, k)];
	free(all);
	return 0;
}

static void make_philox(struct tsi_order *o, uint64_t epoch, uint32_t *item)
{
	for (uint64_t i = 0; i < o->perm; i++)
		item[i] = o->dealt ? o->dealt[i] : (uint32_t)i;
	if (!o->dealt) {
		tsi_shuffle_philox(item, o->perm, o->opts.seed,
				   TSI_SHUFFLE_EPOCH, epoch, 0);
		return;
	}
	for (uint32_t s = 0; s < o->opts.segments; s++)
		tsi_shuffle_philox(item + bound(o, s),
				   bound(o, s + 1) - bound(o, s), o->opts.seed,
				   TSI_SHUFFLE_EPOCH, epoch, s);
}

/*
 * A DataLoader's pass draws from its generator: the workers' base seed (two
 * words), the epoch's permutation, and, when RandomSampler has run dry, a
 * second permutation of which it uses nothing.  (With persistent_workers the
 * base seed is drawn in the first pass alone: another order.)
 */
static void torch_full_pass(const struct tsi_order *o, struct tsi_mt19937 *mt)
{
	tsi_mt19937_skip(mt, 2 + 2 * (o->opts.count - 1));
}

/* The generator at the start of an epoch, from the nearest mark before it. */
static void torch_at(struct tsi_order *o, uint64_t epoch,
		     struct tsi_mt19937 *mt)
{
	uint64_t at = 0;
	struct mark *m;

	tsi_mt19937_seed(mt, (uint32_t)o->opts.seed);
	pthread_mutex_lock(&o->marks_lock);
	for (unsigned i = 0; i < TORCH_MARKS; i++) {
		m = &o->mark[i];
		if (m->epoch != NONE && m->epoch <= epoch && m->epoch > at) {
			at = m->epoch;
			*mt = m->mt;
		}
	}
	for (; at < epoch; at++)
		torch_full_pass(o, mt);
	m = &o->mark[epoch % TORCH_MARKS];
	m->epoch = epoch;
	m->mt = *mt;
	pthread_mutex_unlock(&o->marks_lock);
}

static void make_torch(struct tsi_order *o, uint64_t epoch, uint32_t *item)
{
	struct tsi_mt19937 mt;

	if (o->opts.sharded) {
		tsi_mt19937_seed(&mt, (uint32_t)(o->opts.seed + epoch));
	} else {
		torch_at(o, epoch, &mt);
		tsi_mt19937_skip(&mt, 2);
	}
	tsi_shuffle_torch(item, o->perm, &mt);
}

/* The caller holds the slot's exclusive lock. */
static void make(struct tsi_order *o, struct slot *s, uint64_t epoch)
{
	if (o->opts.kind == TSI_TORCH)
		make_torch(o, epoch, s->item);
	else
		make_philox(o, epoch, s->item);
	/* Outside the lock this is a hint; the lock publishes the items. */
	atomic_store_explicit(&s->epoch, epoch, memory_order_relaxed);
}

static bool holds(const struct slot *s, uint64_t epoch)
{
	/* Relaxed: exact under the lock, a hint outside of it. */
	return atomic_load_explicit(&s->epoch, memory_order_relaxed) == epoch;
}

/* Make the next epoch before all threads need it at once. */
static void prepare(struct tsi_order *o, uint64_t epoch)
{
	struct slot *s = &o->slot[epoch % o->nslots];

	if (holds(s, epoch) || pthread_rwlock_trywrlock(&s->lock))
		return;
	if (!holds(s, epoch))
		make(o, s, epoch);
	pthread_rwlock_unlock(&s->lock);
}

static uint64_t look_up(struct tsi_order *o, uint64_t epoch, uint64_t k)
{
	struct slot *s = &o->slot[epoch % o->nslots];
	uint64_t item;

	pthread_rwlock_rdlock(&s->lock);
	if (!holds(s, epoch)) {
		pthread_rwlock_unlock(&s->lock);
		pthread_rwlock_wrlock(&s->lock);
		if (!holds(s, epoch))
			make(o, s, epoch);
	}
	item = s->item[k];
	pthread_rwlock_unlock(&s->lock);
	return item;
}

static int check(const struct tsi_order_opts *p, uint64_t len)
{
	if (p->kind == TSI_TORCH && p->segments > 1)
		return tsi_err(TSOCK_EARG, "the torch order can't have "
					   "segments: it shuffles whole "
					   "epochs; use the philox order");
	if (p->segments > len)
		return tsi_err(TSOCK_EARG,
			       "%u segments are more than the epoch's %llu "
			       "samples; ask for fewer",
			       p->segments, (unsigned long long)len);
	if (p->kind == TSI_TORCH && p->count >= TSI_TORCH_MAX)
		return tsi_err(TSOCK_ENOTSUP,
			       "the torch order is known below %llu samples, "
			       "not for %llu; use the philox order",
			       (unsigned long long)TSI_TORCH_MAX,
			       (unsigned long long)p->count);
	if (p->kind == TSI_PHILOX && p->count > UINT32_MAX)
		return tsi_err(TSOCK_ENOTSUP,
			       "shuffling is made for up to %u samples, not "
			       "%llu; use the sequential order",
			       UINT32_MAX, (unsigned long long)p->count);
	return 0;
}

static int make_slots(struct tsi_order *o)
{
	uint64_t n = SLOTS_ITEMS / o->perm;

	n = n < MIN_SLOTS ? MIN_SLOTS : n > MAX_SLOTS ? MAX_SLOTS : n;
	for (; o->nslots < n; o->nslots++) {
		struct slot *s = &o->slot[o->nslots];

		s->item = malloc(o->perm * sizeof(*s->item));
		if (!s->item)
			return tsi_err(TSOCK_ENOMEM,
				       "no memory for the order of %llu "
				       "samples: %llu bytes are needed",
				       (unsigned long long)o->perm,
				       (unsigned long long)(o->perm * n * 4));
		atomic_init(&s->epoch, NONE);
		pthread_rwlock_init(&s->lock, NULL);
	}
	return 0;
}

static int make_marks(struct tsi_order *o)
{
	o->mark = malloc(TORCH_MARKS * sizeof(*o->mark));
	if (!o->mark)
		return tsi_err(TSOCK_ENOMEM, "no memory for an order");
	for (unsigned i = 0; i < TORCH_MARKS; i++)
		o->mark[i].epoch = NONE;
	return 0;
}

int tsi_order_create(const struct tsi_order_opts *opts, struct tsi_order **out)
{
	struct tsi_order_opts p = *opts;
	struct tsi_order *o;
	uint64_t len;
	int err;

	if (p.count == 0)
		return tsi_err(TSOCK_EARG, "the data set is empty");
	if (p.sharded && p.rank >= p.world)
		return tsi_err(TSOCK_EARG,
			       "rank %u of %u doesn't exist: ranks count from "
			       "0",
			       p.rank, p.world);
	if (p.segments == 0)
		p.segments = 1;
	len = p.sharded ? (p.count - 1) / p.world + 1 : p.count;
	err = check(&p, len);
	if (err)
		return err;
	o = calloc(1, sizeof(*o));
	if (!o)
		return tsi_err(TSOCK_ENOMEM, "no memory for an order");
	o->opts = p;
	o->len = len;
	pthread_mutex_init(&o->marks_lock, NULL);
	o->perm = p.segments > 1 ? len : p.count;
	if (p.kind == TSI_PHILOX && p.segments > 1)
		err = deal(o);
	if (!err && p.kind != TSI_SEQUENTIAL)
		err = make_slots(o);
	if (!err && p.kind == TSI_TORCH && !p.sharded)
		err = make_marks(o);
	if (err) {
		tsi_order_destroy(o);
		return err;
	}
	*out = o;
	return 0;
}

void tsi_order_destroy(struct tsi_order *o)
{
	if (!o)
		return;
	for (unsigned i = 0; i < o->nslots; i++) {
		pthread_rwlock_destroy(&o->slot[i].lock);
		free(o->slot[i].item);
	}
	pthread_mutex_destroy(&o->marks_lock);
	free(o->mark);
	free(o->dealt);
	free(o);
}

uint64_t tsi_order_epoch_len(const struct tsi_order *o)
{
	return o->len;
}

int tsi_order_segment_bounds(const struct tsi_order *o, uint64_t *bounds)
{
	for (uint32_t s = 0; s <= o->opts.segments; s++)
		bounds[s] = bound(o, s);
	return 0;
}

int tsi_order_at(struct tsi_order *o, uint64_t epoch, uint64_t position,
		 uint64_t *index)
{
	uint64_t k;

	if (position >= o->len)
		return tsi_err(TSOCK_EARG,
			       "position %llu is outside an epoch of "
			       "%llu samples",
			       (unsigned long long)position,
			       (unsigned long long)o->len);
	k = o->dealt ? position : strided(o, position);
	if (o->nslots == 0) {
		*index = k;
		return 0;
	}
	if (position >= o->len / 2 && epoch + 1 != NONE)
		prepare(o, epoch + 1);
	*index = look_up(o, epoch, k);
	return 0;
}
