/* SPDX-License-Identifier: MIT */
/*
 * points.c - named points at which a process is killed or stopped.
 *
 * __wrap_X, which is called in place of X, keeps all arguments that are in
 * registers, asks whether this process ends or stops here, and goes on with X
 * itself.  So it needs to know nothing of X; for x86-64 and aarch64.
 */
#include "test/faults/points.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define CONSUMER(X) \
	X(tsi_request_ask) \
	X(tsi_join) \
	X(tsi_attach) \
	X(tsi_fdpass_connect) \
	X(tsi_ring_read) \
	X(tsi_host_backend_create) \
	X(tsi_reader_create) \
	X(tsi_reader_acquire) \
	X(tsi_mapping_place) \
	X(tsi_tail_append) \
	X(tsi_reader_batch_unref) \
	X(tsi_tail_release) \
	X(tsi_wait_head) \
	X(tsi_leave_reader) \
	X(tsi_request_close)

#define PRODUCER(X) \
	X(tsi_membership_claim) \
	X(tsi_grant_take) \
	X(tsi_production_commit) \
	X(tsi_gate_publish_base) \
	X(tsi_membership_published) \
	X(tsi_ring_publish) \
	X(tsi_messages_answer) \
	X(tsi_offers_add) \
	X(tsi_handshake_serve) \
	X(tsi_fdpass_receive) \
	X(tsi_offers_take) \
	X(tsi_readers_join) \
	X(tsi_membership_join) \
	X(tsi_fdpass_reply) \
	X(tsi_readers_refresh) \
	X(tsi_gate_changed) \
	X(tsi_readers_reap) \
	X(tsi_membership_leave)

/* Points of a producer that makes a view. */
#define VIEWING(X) \
	X(tsi_view_thread_main) \
	X(tsi_stage_create) \
	X(tsi_view_ready) \
	X(tsi_view_publish)

/* Points of a producer to which the readers of the one before return: these,
 * and those of the others that it passes then. */
#define RETURNING(X) \
	X(tsi_membership_hold) \
	X(tsi_returners_ask) \
	X(tsi_record_put) \
	X(tsi_record_write) \
	X(tsi_readers_confirm) \
	X(tsi_returners_take) \
	X(tsi_record_settle)

#define RETURNING_TOO(X) \
	X(tsi_messages_answer) \
	X(tsi_offers_add) \
	X(tsi_fdpass_receive) \
	X(tsi_offers_take) \
	X(tsi_readers_join) \
	X(tsi_membership_join) \
	X(tsi_fdpass_reply) \
	X(tsi_gate_publish_base) \
	X(tsi_membership_claim) \
	X(tsi_gate_changed)

/* Points of a consumer whose producer has died: on its way to the next one. */
#define REJOINING(X) \
	X(tsi_leave_lost) \
	X(tsi_open_again)

#define REJOINING_TOO(X) \
	X(tsi_join) \
	X(tsi_request_ask) \
	X(tsi_attach) \
	X(tsi_fdpass_connect) \
	X(tsi_ring_read) \
	X(tsi_host_backend_create) \
	X(tsi_reader_create) \
	X(tsi_reader_acquire)

/* Points of a consumer that was detached; then those of REJOINING_TOO.  And of
 * one that goes on into the other half of the ring. */
/* The Makefile finds names that begin a line. */
/* clang-format off */
#define DETACHED(X) \
	X(tsi_leave_detached)

#define ENTERING(X) \
	X(tsi_claim_enter)
/* clang-format on */

/* Points of a producer that detaches a consumer. */
#define DETACHING(X) \
	X(tsi_readers_mind_slow) \
	X(tsi_view_table_reserve) \
	X(tsi_conn_set_aside) \
	X(tsi_conn_tell_detached) \
	X(tsi_membership_detach) \
	X(tsi_gate_turned)

static struct points *mine;
static const char *const *names;

void points_obey(struct points *p, const char *const *list)
{
	names = list;
	mine = p;
}

void points_set(struct points *p, int point, int n, int sig)
{
	atomic_store(&p->point, -1);
	atomic_store(&p->times, n);
	atomic_store(&p->sig, sig);
	atomic_store(&p->point, point);
}

/* No vector registers, which hold arguments too. */
__attribute__((used, target("general-regs-only"))) void
points_reached(const char *name)
{
	int point;

	if (!mine)
		return;
	point = atomic_load(&mine->point);
	if (point < 0 || __builtin_strcmp(names[point], name) ||
	    atomic_fetch_sub(&mine->times, 1) != 1)
		return;
	atomic_store(&mine->point, -1);
	kill(getpid(), atomic_load(&mine->sig));
}

/* Keep arguments, call points_reached() and go on with X. */
/* clang-format off */
#ifdef __aarch64__
#define INSTEAD(name) \
		"	stp x29, x30, [sp, #-96]!\n" \
		"	mov x29, sp\n" \
		"	stp x0, x1, [sp, #16]\n" \
		"	stp x2, x3, [sp, #32]\n" \
		"	stp x4, x5, [sp, #48]\n" \
		"	stp x6, x7, [sp, #64]\n" \
		"	str x8, [sp, #80]\n" \
		"	adrp x0, point_name_" #name "\n" \
		"	add x0, x0, :lo12:point_name_" #name "\n" \
		"	bl points_reached\n" \
		"	ldp x0, x1, [sp, #16]\n" \
		"	ldp x2, x3, [sp, #32]\n" \
		"	ldp x4, x5, [sp, #48]\n" \
		"	ldp x6, x7, [sp, #64]\n" \
		"	ldr x8, [sp, #80]\n" \
		"	ldp x29, x30, [sp], #96\n" \
		"	b __real_" #name "\n"
#else
#define INSTEAD(name) \
		"	endbr64\n" \
		"	push %rdi\n" \
		"	push %rsi\n" \
		"	push %rdx\n" \
		"	push %rcx\n" \
		"	push %r8\n" \
		"	push %r9\n" \
		"	push %rax\n" \
		"	lea point_name_" #name "(%rip), %rdi\n" \
		"	call points_reached\n" \
		"	pop %rax\n" \
		"	pop %r9\n" \
		"	pop %r8\n" \
		"	pop %rcx\n" \
		"	pop %rdx\n" \
		"	pop %rsi\n" \
		"	pop %rdi\n" \
		"	jmp __real_" #name "\n"
#endif

#define POINT(name) \
	__asm__(".section .rodata\n" \
		"point_name_" #name ": .string \"" #name "\"\n" \
		".text\n" \
		".globl __wrap_" #name "\n" \
		".type __wrap_" #name ", @function\n" \
		"__wrap_" #name ":\n" \
		INSTEAD(name) \
		".size __wrap_" #name ", . - __wrap_" #name "\n");
/* clang-format on */

#define NAME(name) #name,

CONSUMER(POINT)
PRODUCER(POINT)
VIEWING(POINT)
RETURNING(POINT)
REJOINING(POINT)
DETACHED(POINT)
ENTERING(POINT)
DETACHING(POINT)
const char *const points_consumer[] = { CONSUMER(NAME) NULL };
const char *const points_producer[] = { PRODUCER(NAME) NULL };
const char *const points_returning[] = { RETURNING(NAME) RETURNING_TOO(NAME)
						 NULL };
const char *const points_rejoining[] = { REJOINING(NAME) REJOINING_TOO(NAME)
						 NULL };
const char *const points_detached[] = { DETACHED(NAME) REJOINING_TOO(NAME)
						NULL };
const char *const points_entering[] = { ENTERING(NAME) NULL };
const char *const points_detaching[] = { DETACHING(NAME) NULL };
const char *const points_viewing[] = { VIEWING(NAME) NULL };
