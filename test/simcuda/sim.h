/* SPDX-License-Identifier: MIT */
/*
 * sim.h - what the files of the simulated runtime share.
 *
 * One lock guards everything.  A public function takes it in sim_enter() and
 * leaves it in sim_leave(); all others here run with it held.  Devices are
 * physical ones, but where a name says ordinal.
 */
#ifndef SIM_H
#define SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda.h"
#include "cuda_runtime_api.h"
#include "simcuda.h"

#define SIM_DEVICES 16
#define SIM_BLOCK ((size_t)2 << 20) /* granularity of VMM and of cudaMalloc */
#define SIM_CTRL ((size_t)4096)     /* behind the data of every memfd */
#define SIM_SLOTS 960               /* exported allocations of a block */
#define SIM_MS 1000000LL
#define SIM_FIRST_ID 0x51000000 /* of streams and events */

enum sim_mode {
	SIM_EAGER,
	SIM_LATE,
	SIM_RANDOM,
	SIM_REVERSE,
	SIM_STUCK,
};

/* What a call is, for sim_enter(). */
enum {
	SIM_ANYTIME = 0, /* neither needs a context nor hurts a capture */
	SIM_CONTEXT = 1, /* fails when the device has a sticky error */
	SIM_UNSAFE = 2,  /* forbidden while a stream is being captured */
};

struct sim_device {
	uint8_t uuid[16];
	char name[64];
	bool mig;
	size_t total, used;
	cudaError_t sticky;
	bool context, making;
	uint32_t reaches; /* devices that it has enabled access to */
};

/* The page behind an allocation's data, shared by all who map it. */
struct sim_ctrl {
	char magic[8];
	uint64_t size;
	uint8_t uuid[16];
	uint32_t exportable; /* CUmemAllocationHandleType */
	uint32_t vmm;
	_Atomic uint32_t live[SIM_SLOTS]; /* legacy IPC: not freed yet */
};

/* An allocation: a memfd. */
struct sim_phys {
	struct sim_phys *next;
	int fd;
	bool imported;
	size_t size;
	uint64_t ino;
	unsigned device;
	unsigned refs; /* handles and mappings */
	struct sim_ctrl *ctrl;
	unsigned slots; /* of ctrl->live given out */
};

/* A piece of a region with memory behind it. */
struct sim_map {
	size_t off, len;
	struct sim_phys *phys;
	uint8_t access[SIM_DEVICES]; /* CUmemAccess_flags */
};

/* Part of a block: an allocation, or one opened by its handle. */
struct sim_part {
	size_t off, len;
	int slot;       /* of ctrl->live, -1: not exported */
	unsigned count; /* opened so often */
};

enum sim_kind {
	SIM_MALLOC, /* a block of cudaMalloc's */
	SIM_IPC,    /* another process's block */
	SIM_VMM,    /* an address reservation */
};

/*
 * Addresses of devices.  The host can't touch va; the simulation reaches the
 * same bytes, laid out alike, at shadow.
 */
struct sim_region {
	enum sim_kind kind;
	char *va, *shadow;
	size_t size;
	unsigned device;     /* not VMM */
	uint32_t openers;    /* IPC: devices that it was opened for */
	bool whole;          /* MALLOC: one large allocation */
	struct sim_map *map; /* VMM, in order of off; others have one */
	unsigned nmap;
	struct sim_part *part; /* not VMM, in order of off */
	unsigned npart;
};

/* Page-locked host memory. */
struct sim_host {
	char *p;
	size_t len;
	bool ours; /* from cudaHostAlloc, not registered */
	bool read_only;
};

/* A point in a stream: what an event means, and what a wait waits for. */
struct sim_mark {
	unsigned refs;
	bool done;
	bool wanted;               /* asked for before it was in any stream */
	struct sim_stream *stream; /* while not done */
	uint64_t seq;
	unsigned queries;
};

enum sim_opkind {
	SIM_OP_COPY, /* operand 0 from operand 1 */
	SIM_OP_SET,
	SIM_OP_KERNEL,
	SIM_OP_RECORD,
	SIM_OP_WAIT,
};

enum sim_where {
	SIM_NOWHERE,
	SIM_DEVICE,
	SIM_PINNED,
	SIM_PAGEABLE,
	SIM_STRADDLES, /* begins or ends in page-locked memory */
};

struct sim_operand {
	enum sim_where where;
	const char *p;
	const char *const *at; /* if not NULL, p is read there when it runs */
	size_t len;
	bool write;
	bool staged;     /* a copy: the owner's access is as good ... */
	bool nccl;       /* ... but for NCCL's, of VMM memory */
	unsigned device; /* that accesses it */
};

struct sim_op {
	struct sim_op *next;
	enum sim_opkind kind;
	uint64_t order; /* among all of the process */
	uint64_t seq;   /* in its stream */
	bool forced;
	bool reached; /* has been the first of its stream */
	bool running; /* the engine is in it, unlocked */
	bool backward;
	bool lies; /* one byte arrives wrong */
	int64_t not_before, stuck_until;
	unsigned step, nsteps;
	struct sim_mark *mark;
	struct sim_operand operand[SIMCUDA_RANGES];
	unsigned noperand;
	void *staging; /* freed with it */
	int value;
	void (*run)(void *arg, char *const *range, unsigned step);
	void (*fini)(void *arg);
	void *arg;
};

struct sim_stream {
	struct sim_stream *next;
	uintptr_t handle;
	unsigned device;
	bool blocking, legacy, destroyed;
	unsigned thread; /* per-thread default stream of; 0: none */
	struct sim_op *head, *tail;
	uint64_t seq;
	unsigned queries;
	enum cudaStreamCaptureStatus capture;
	enum cudaStreamCaptureMode capture_mode;
	unsigned capture_thread;
	unsigned captured; /* operations that would be in the graph */
	uint64_t capture_number;
};

struct sim_event {
	struct sim_event *next;
	uintptr_t handle;
	unsigned device;
	struct sim_mark *mark;
	bool captured; /* last recorded in a capture, of that number */
	uint64_t capture_number;
};

struct sim_fault {
	char name[48];
	int device;   /* -1: on any */
	unsigned nth; /* 0: all */
	bool onwards;
	cudaError_t code;
	bool lost, hang, told;
	int64_t late_ns;
	unsigned calls;
};

struct sim {
	pthread_mutex_t lock;
	pthread_cond_t done; /* an operation ended, or memory is not in use */
	pthread_cond_t work; /* for the engine */
	bool ready, engine;
	bool busy;            /* the engine is in somebody's memory, unlocked */
	cudaError_t unusable; /* no driver, no device */

	enum sim_mode mode;
	uint64_t rng;
	int64_t slow_ns, stuck_ns, late_ns;
	uint64_t stuck_order; /* the next operation to be stuck */
	bool no_vmm, no_fd, no_register, ro_register;
	int driver_version;
	size_t register_max, context_bytes;
	int64_t context_ns;
	const _Atomic uint32_t *may_use; /* devices for contexts; NULL: all */
	bool gone_streams_seen;
	bool no_image[SIM_DEVICES];

	struct sim_device dev[SIM_DEVICES];
	unsigned ndev;
	unsigned peers_max;
	uint64_t through_host; /* bytes of copies from device to device */
	bool p2p[SIM_DEVICES][SIM_DEVICES];
	bool lies[SIM_DEVICES][SIM_DEVICES], nccl_lies;
	unsigned visible[SIM_DEVICES], nvisible;

	struct sim_region **region;
	unsigned nregion;
	struct sim_phys *phys;
	CUmemGenericAllocationHandle next_handle;
	struct {
		CUmemGenericAllocationHandle id;
		struct sim_phys *phys;
	} * handle;
	unsigned nhandle;
	struct sim_host *host;
	unsigned nhost;

	struct sim_stream *stream;
	struct sim_event *event;
	uintptr_t next_id;
	uint64_t next_order;
	unsigned capturing; /* streams */
	uint64_t captures;  /* so far */

	struct sim_fault fault[32];
	unsigned nfault;
};

extern struct sim sim;

/* ---- state.c, config.c, fault.c ---- */

cudaError_t sim_enter(const char *name, int what);
/* For a call that names a device: faults of that device are meant for it. */
cudaError_t sim_enter_on(const char *name, int what, int ordinal);
cudaError_t sim_leave(cudaError_t err);     /* sets the thread's last error */
CUresult sim_leave_driver(cudaError_t err); /* doesn't */
void sim_configure(void);
void sim_find_visible(const char *list);
/* Breaks device if that is what the error does. */
cudaError_t sim_fault(const char *name, unsigned device);
void sim_fault_init(void);
void sim_parse_faults(const char *text);
bool sim_is_sticky(cudaError_t err);
/* A device's context is broken for good: its work is dropped. */
void sim_break(unsigned device, cudaError_t err);

unsigned sim_current(void);
unsigned sim_thread(void); /* a number, from 1 */
uint32_t sim_random(void);
int64_t sim_now(void);
cudaError_t sim_ordinal(int ordinal, unsigned *device);
int sim_ordinal_of(unsigned device); /* -1: not visible */
void *sim_alloc(size_t len);         /* zeroed; aborts without memory */
void *sim_grow(void *p, size_t len);
void sim_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sim_die(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/* ---- phys.c, region.c, host.c ---- */

cudaError_t sim_phys_create(unsigned device, size_t size, bool vmm,
			    unsigned exportable, struct sim_phys **out);
/* Takes the fd, also when it fails. */
cudaError_t sim_phys_adopt(int fd, struct sim_phys **out);
void sim_phys_put(struct sim_phys *p);

struct sim_region *sim_region_create(enum sim_kind kind, size_t size,
				     size_t align);
void sim_region_destroy(struct sim_region *r);
struct sim_region *sim_region_find(const void *p);
cudaError_t sim_region_map(struct sim_region *r, size_t off,
			   struct sim_phys *p);
void sim_region_unmap(struct sim_region *r, unsigned map);
struct sim_part *sim_part_add(struct sim_region *r, size_t off, size_t len);
void sim_part_remove(struct sim_region *r, struct sim_part *part);
struct sim_part *sim_part_at(struct sim_region *r, size_t off);

/* Where the simulation reaches an operand; 1: nothing there, 700: denied. */
cudaError_t sim_reach(const struct sim_operand *o, char **out);
enum sim_where sim_where(const void *p, size_t len);
/* The device that has this memory; -1: none. */
int sim_owner(const void *p);
/* Returns when the engine is in nobody's memory. */
void sim_quiesce(void);

/* ---- engine.c, queue.c ---- */

void sim_engine_wake(void);
void sim_op_free(struct sim_op *op);
void sim_stream_drop(struct sim_stream *s); /* all of its work */
void sim_reap(void);                        /* destroyed streams without work */

struct sim_mark *sim_mark_create(void);
void sim_mark_put(struct sim_mark *m);
struct sim_op *sim_op_create(enum sim_opkind kind);
/* In order with the default stream; s isn't being captured. */
void sim_enqueue(struct sim_stream *s, struct sim_op *op);
void sim_record(struct sim_stream *s, struct sim_mark *m);
void sim_wait(struct sim_stream *s, struct sim_mark *m);
void sim_demand(struct sim_stream *s, uint64_t seq);
/* Is it time that the work asked for gets done? */
bool sim_insist(unsigned *queries);
void sim_finish(struct sim_mark *m); /* sleeps, unlocked */
cudaError_t sim_stream_finish(struct sim_stream *s);
cudaError_t sim_device_finish(unsigned device);

/* ---- stream.c, event.c, capture.c ---- */

cudaError_t sim_stream_get(cudaStream_t h, struct sim_stream **out);
/* As get, for work: *out is NULL if the work goes into a graph. */
cudaError_t sim_stream_for_work(cudaStream_t h, struct sim_stream **out);
struct sim_event *sim_event_get(cudaEvent_t h);
cudaError_t sim_capture_check(void); /* of an unsafe call */
void sim_capture_invalidate(struct sim_stream *s);

#endif
