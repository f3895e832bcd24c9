/* SPDX-License-Identifier: MIT */
/*
 * test_epochs.c - an item is looked up, with no lock, while another thread
 * writes another epoch into its slot: the look-up gives the item of the epoch
 * that was asked for.
 *
 * The page that an item is in can be made to fault, when the item is read or
 * when it is written.  The handler then has the other thread do its part, at
 * just that place, and lets the first one go on.
 */
#include "data/epochs.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT 131072u /* an array of them is mapped by itself */
#define ITEM 4321u
#define EPOCHS 16 /* more than there are slots */
#define RANGES 1024

struct ranges {
	unsigned n;
	struct {
		uintptr_t from, to;
	} r[RANGES];
};

static struct tsi_epochs *order;
static uint64_t expected[EPOCHS + 1]; /* of each epoch, by another object */
static struct ranges arrays;

/* What the handler does, between a fault and its end. */
static void (*meanwhile)(void);
static _Atomic uint32_t *faulted; /* where the last fault was */
static uint32_t item_before, item_after;
static unsigned faults;
static sem_t begin, done;

/* ---- memory ---- */

/* What may be written to in this process. */
static void read_ranges(struct ranges *r)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[4500], mode[5];

	assert_non_null(f);
	r->n = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 ||
		    strncmp(mode, "rw", 2) != 0)
			continue;
		assert_true(r->n < RANGES);
		r->r[r->n].from = from;
		r->r[r->n++].to = to;
	}
	fclose(f);
}

/* What of one range is not in the others, where it is large enough. */
static void add_new(uintptr_t from, uintptr_t to, const struct ranges *old)
{
	for (unsigned i = 0; i <= old->n; i++) {
		uintptr_t end = to;

		if (i < old->n && old->r[i].to <= from)
			continue;
		if (i < old->n && old->r[i].from < to)
			end = old->r[i].from;
		if (from < end && end - from >= COUNT * sizeof(uint32_t)) {
			arrays.r[arrays.n].from = from;
			arrays.r[arrays.n++].to = end;
		}
		if (end == to)
			return;
		from = old->r[i].to;
	}
}

static void protect(int mode)
{
	for (unsigned i = 0; i < arrays.n; i++)
		mprotect((void *)arrays.r[i].from,
			 arrays.r[i].to - arrays.r[i].from, mode);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	bool ours = false;

	(void)context;
	for (unsigned i = 0; i < arrays.n; i++)
		ours |= at >= arrays.r[i].from && at < arrays.r[i].to;
	if (!ours || faults++) {
		signal(sig, SIG_DFL);
		return;
	}
	protect(PROT_READ | PROT_WRITE);
	faulted = info->si_addr;
	meanwhile();
}

/* In a test: cmocka has a handler of its own for each. */
static void handle_faults(void (*fn)(void))
{
	struct sigaction a = { .sa_sigaction = on_fault,
			       .sa_flags = SA_SIGINFO };

	faults = 0;
	meanwhile = fn;
	sigaction(SIGSEGV, &a, NULL);
}

static uint64_t at(struct tsi_epochs *o, uint64_t epoch)
{
	uint64_t index = 0;

	assert_int_equal(tsi_epochs_at(o, epoch, ITEM, &index), 0);
	return index;
}

static int set_up(void **state)
{
	static const struct tsi_order_opts opts = { .kind = TSOCK_ORDER_TORCH,
						    .count = COUNT,
						    .seed = 5 };
	static struct ranges before, after;
	struct tsi_epochs *other;

	(void)state;
	/* Not the limit that grows when such an array is freed. */
	mallopt(M_MMAP_THRESHOLD, COUNT);
	assert_int_equal(tsi_epochs_create(&opts, &other), 0);
	for (unsigned e = 0; e <= EPOCHS; e++)
		expected[e] = at(other, e);
	tsi_epochs_destroy(other);
	read_ranges(&before);
	assert_int_equal(tsi_epochs_create(&opts, &order), 0);
	read_ranges(&after);
	arrays.n = 0;
	for (unsigned i = 0; i < after.n; i++)
		add_new(after.r[i].from, after.r[i].to, &before);
	assert_true(arrays.n > 0);
	sem_init(&begin, 0, 0);
	sem_init(&done, 0, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	protect(PROT_READ | PROT_WRITE);
	tsi_epochs_destroy(order);
	sem_destroy(&begin);
	sem_destroy(&done);
	return 0;
}

static void await(sem_t *s)
{
	while (sem_wait(s))
		;
}

/* ---- an item is read ---- */

static void have_others_made(void)
{
	item_before = atomic_load(faulted);
	sem_post(&begin);
	await(&done);
	item_after = atomic_load(faulted);
}

static void *make_others(void *arg)
{
	(void)arg;
	await(&begin);
	for (unsigned e = 1; e <= EPOCHS; e++)
		at(order, e);
	sem_post(&done);
	return NULL;
}

static void an_item_of_an_epoch_that_came_meanwhile_is_not_given(void **state)
{
	pthread_t maker;

	(void)state;
	assert_int_equal(at(order, 0), expected[0]);
	pthread_create(&maker, NULL, make_others, NULL);
	handle_faults(have_others_made);
	protect(PROT_NONE);
	assert_int_equal(at(order, 0), expected[0]);
	pthread_join(maker, NULL);
	/* The fault was at the item, which was another one then. */
	assert_int_equal(faults, 1);
	assert_int_equal(item_before, expected[0]);
	assert_int_not_equal(item_after, expected[0]);
}

/* ---- an item is written ---- */

static unsigned making, wanted; /* epochs */
static uint64_t found;
static _Atomic int looking; /* 1: the look-up has begun, 2: has ended */
static char looker_stat[64];

/* As the kernel says: S for one that waits, as for a lock. */
static char state_of_looker(void)
{
	char text[256] = "";
	int fd = open(looker_stat, O_RDONLY | O_CLOEXEC);
	const char *end;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		abort();
	close(fd);
	end = strrchr(text, ')');
	return end ? end[2] : '?';
}

/* Until it has its item, or waits for the thread that is in the handler. */
static void have_it_looked_up(void)
{
	wanted = making;
	sem_post(&begin);
	while (atomic_load(&looking) == 0)
		;
	while (atomic_load(&looking) == 1 && state_of_looker() != 'S')
		;
}

static void *look_up(void *arg)
{
	(void)arg;
	snprintf(looker_stat, sizeof(looker_stat), "/proc/self/task/%d/stat",
		 (int)gettid());
	sem_post(&done);
	await(&begin);
	atomic_store(&looking, 1);
	found = at(order, wanted);
	atomic_store(&looking, 2);
	return NULL;
}

static void nothing(void)
{
}

static void
an_item_of_an_epoch_that_is_being_written_is_waited_for(void **state)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	pthread_t looker;

	(void)state;
	/* Where is the item?  Then, that page can't be written to. */
	assert_int_equal(at(order, 0), expected[0]);
	handle_faults(nothing);
	protect(PROT_NONE);
	assert_int_equal(at(order, 0), expected[0]);
	assert_int_equal(faults, 1);
	atomic_store(&looking, 0);
	pthread_create(&looker, NULL, look_up, NULL);
	await(&done);
	handle_faults(have_it_looked_up);
	mprotect((void *)((uintptr_t)faulted / page * page), page, PROT_READ);
	for (making = 1; !faults; making++) {
		assert_true(making <= EPOCHS);
		assert_int_equal(at(order, making), expected[making]);
	}
	pthread_join(looker, NULL);
	assert_int_not_equal(expected[wanted], expected[0]);
	assert_int_equal(found, expected[wanted]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_item_of_an_epoch_that_came_meanwhile_is_not_given,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			an_item_of_an_epoch_that_is_being_written_is_waited_for,
			set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
