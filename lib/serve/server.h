/*
 * server.h - the parts of a server, for the files of this room alone.
 *
 * server.c   the object, and what worker threads call
 * view_table.c    derived views, made and freed; view_plan.c for those on GPUs
 * gpu_table.c  what is known of each GPU
 * view_thread.c  the thread of each view; view_broadcast.c for views that are
 *            filled together
 * control.c  the control thread: deaths, slow readers; messages.c answers
 *            requests, handshake.c accepts connections, sockets.c watches files
 * membership.c  the rules, pure; where readers start in membership_start.c,
 *            who is slow in membership_slow.c
 *
 * One mutex guards everything here; the samples themselves are written with
 * no lock held.
 */
#ifndef TSI_SERVE_SERVER_H
#define TSI_SERVE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mem/gpu.h"
#include "ring/ring.h"
#include "serve/membership.h"
#include "stage/stage.h"
#include "wire/zmq.h"
#include "wire/fdpass.h"
#include "wire/address.h"

/* A member and its row in the ring's header have the same number. */
_Static_assert(TSI_MAX_MEMBERS == TSI_MAX_ROWS, "one row for each member");

#define TSI_OFFERS 64
#define TSI_PENDING_CONNS 64

enum tsi_view_phase {
	TSI_VIEW_EMPTY,
	TSI_VIEW_MAKING,
	TSI_VIEW_READY,
	TSI_VIEW_BROKEN, /* error says why; its thread has ended */
	TSI_VIEW_ENDING, /* its thread is to end, or has */
};

/* View 0 is the base: no thread, no conversion, always READY. */
struct tsi_view {
	struct tsock_server *server;
	unsigned id;
	enum tsi_view_phase phase;
	struct tsi_view_spec spec;
	struct tsi_geometry geometry;
	unsigned source, device; /* device: of the producer's process */
	enum tsi_stage_kind kind;
	struct tsi_stage *stage;
	struct tsi_ring ring;
	pthread_t thread;
	bool has_thread, thread_done;
	uint64_t age;     /* views made before it */
	bool source_lost; /* its source is lost; error says why */
	unsigned offers;  /* made for it and not yet used */
	int64_t idle_ms;  /* since when nobody reads it */
	unsigned waiters; /* threads that sleep until a tail moves */
	bool busy; /* samples are on their way to it (view_broadcast.c) ... */
	uint32_t opening;          /* ... from when it was this one */
	bool sending;              /* its samples are broadcast */
	struct tsi_broadcast *fan; /* that broadcasts them */
	int code;
	char error[256];
};

#define TSI_GPU_ENTRIES 32

enum tsi_gpu_phase {
	TSI_GPU_NONE,
	TSI_GPU_LOOKING, /* a thread asks it */
	TSI_GPU_KNOWN,
	TSI_GPU_UNUSABLE, /* error says why */
};

/* A GPU that some consumer asked for. */
struct tsi_gpu_entry {
	enum tsi_gpu_phase phase;
	uint8_t uuid[TSI_UUID];
	unsigned device;
	struct tsi_gpu_info info; /* its free memory is that of then */
	int64_t since_ms;
	char error[256];
	bool said;            /* by which transport it is shared */
	char refused[3][200]; /* by transport: why that one was tried in vain */
};

/* A row kept for a consumer that was offered a token to connect with. */
struct tsi_offer {
	bool used;
	uint8_t nonce[TSI_NONCE], token[TSI_TOKEN];
	struct tsi_msg_join join;
	unsigned view;
	int64_t expires_ms;
};

struct tsi_pending_conn {
	int sock; /* -1: none */
	uint32_t pid;
	int64_t expires_ms;
};

/* The connection behind member i. */
struct tsi_conn {
	struct tsi_memfd tail;
	int pidfd, sock;
	bool may_kill, killed, staged;
	uint32_t pid, batch;
	uint8_t nonce[TSI_NONCE];
};

/* A file that we made. */
struct tsi_file {
	dev_t dev;
	ino_t ino;
};

struct tsock_server {
	pthread_mutex_t lock;
	pthread_cond_t room;   /* workers: there may be samples to claim */
	pthread_cond_t staged; /* stages: the base's head or a tail moved */
	pthread_t thread;
	bool has_thread;

	struct tsi_address address, first; /* first: at the start */
	int lock_fd, fdpass, event;
	struct tsi_channel *channel;
	struct tsi_file channel_file, fdpass_file;
	int64_t files_ms; /* when they were looked at */
	unsigned lost;    /* tries to make them again, in vain */

	struct tsi_membership membership;
	struct tsi_view view[TSI_VIEWS];
	struct tsi_conn conn[TSI_MAX_MEMBERS];
	struct tsi_offer offer[TSI_OFFERS];
	struct tsi_pending_conn pending[TSI_PENDING_CONNS];
	int64_t accept_again_ms, accept_said_ms; /* until when, for want of
					     * descriptors; when it was told */
	uint8_t *done; /* by slot: written, not yet published */

	struct tsi_msg_stream stream; /* the answer to HELLO */
	uint8_t *meta;                /* class names */
	uint64_t *bounds;
	uint64_t memory, gpu_memory, produced;
	uint32_t fanout, gpu_transport;
	bool no_nccl; /* it was tried in vain */
	struct tsi_gpu_entry gpu[TSI_GPU_ENTRIES];
	unsigned looking;    /* threads that ask GPUs */
	uint64_t spoilt[64]; /* by GPU: those it gets wrong bytes from */
	uint64_t views_made;
	pthread_mutex_t pin_lock; /* of the next two */
	bool pinned, pin_failed;
	uint32_t slow;
	int64_t slow_ms;
	bool stop, failed, over;
	char error[252];

	_Atomic uint64_t read_bytes, bad_samples;
};

/* ---- with the lock held ---- */

/* Read every tail; give up whoever wrote nonsense into it. */
void tsi_server_refresh(struct tsock_server *s);

/* A view's head, a limit or the membership changed: tell who waits. */
void tsi_server_changed(struct tsock_server *s);

/*
 * Sleep until a view's limit may have moved, or until_ns.  States in the
 * headers which tail is waited for, and looks once more before it sleeps.
 */
void tsi_server_wait(struct tsock_server *s, unsigned view, pthread_cond_t *c,
		     int64_t until_ns);

/* Nobody needs anything more, and nobody can come who would: from then on. */
bool tsi_server_over(struct tsock_server *s);

void tsi_server_stats(struct tsock_server *s, struct tsock_stats *out);

/* The stream ends: whoever reads it, or would, is told why. */
void tsi_server_fail(struct tsock_server *s, const char *why);

/* Member id is no more. */
void tsi_server_drop(struct tsock_server *s, unsigned id, const char *why);

/* The view of this spec: made, or in the making; an error if it can't be. */
int tsi_view_table_find(struct tsock_server *s,
			const struct tsi_view_spec *spec, unsigned *view);
/* Of views on GPUs: the device, the transport and the granularity of a spec;
 * EAGAIN while the GPU is asked ... */
int tsi_view_plan_resolve(struct tsock_server *s, struct tsi_view_spec *spec,
			  unsigned *device, uint64_t *granularity);
/* ... and what it is made of, and how; EAGAIN while that is being made. */
int tsi_view_plan_source(struct tsock_server *s,
			 const struct tsi_view_spec *spec, unsigned *source,
			 enum tsi_stage_kind *kind);

/* The GPU of this UUID: known; EAGAIN while it is asked; why not. */
int tsi_gpu_table_find(struct tsock_server *s, const uint8_t *uuid,
		       struct tsi_gpu_entry **out);
/* Why the GPU itself has no such transport; NULL if it has. */
const char *tsi_gpu_table_lacks(const struct tsi_gpu_entry *e,
				uint32_t transport);
/* The first transport that may work.  ENOTSUP with the reasons: none. */
int tsi_gpu_table_choose(struct tsi_gpu_entry *e, uint32_t *transport);
/* A transport was tried in vain: the next one to ask gets another. */
void tsi_gpu_table_refuse(struct tsock_server *s, const uint8_t *uuid,
			  uint32_t transport, const char *why);

/* Samples first .. head-1, taken in that opening, were seen to be in its ring.
 */
void tsi_view_done(struct tsi_view *v, uint32_t opening, uint64_t first,
		   uint64_t head);
/* Can it go on from the base ring when its source fails? */
bool tsi_view_can_fall_back(const struct tsi_view *v);
/* Its source is lost, or it can't be filled: its thread will see. */
void tsi_view_source_lost(struct tsi_view *v, const char *why);
/* Those who read it are told why; what is made of it ends, or goes on from the
 * base ring. */
void tsi_view_fail(struct tsi_view *v, const char *why);

/* The thread of a BROADCAST view: until it ends, or is on its own. */
void tsi_view_broadcast_serve(struct tsi_view *v);

/* The thread of a view. */
void *tsi_view_thread_main(void *view);

/* Free what has been idle for long. */
void tsi_view_table_sweep(struct tsock_server *s, int64_t now_ms);
/*
 * Free all of it, and wait for the threads.  False: some are in a call to a GPU
 * that doesn't return, and still use the server.
 */
bool tsi_view_table_close(struct tsock_server *s);

/* ---- without ---- */

int tsi_control_start(struct tsock_server *s);

/* Page-lock the base ring, once; a failure is logged, and lived with. */
void tsi_view_plan_pin(struct tsock_server *s);
void tsi_view_plan_unpin(struct tsock_server *s);

/* A view as decoded, whose ring is made: is there another GPU's to fill it
 * from?  Waits for one that is being made. */
void tsi_view_plan_neighbour(struct tsi_view *v);

#endif
