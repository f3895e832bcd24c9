/* SPDX-License-Identifier: MIT */
/*
 * msg.h - the control messages, as bytes.
 *
 * Little-endian, fixed layout, at most TSI_MSG_MAX bytes: a header {u32 magic,
 * u16 version, u16 type, u32 length of the whole, u32 serial} and a body by
 * type; README.md lists them.  A reply carries its request's serial.  Requests
 * are idempotent, so a consumer whose request or reply was lost asks again.
 * Pure functions: no socket, no clock, no allocation.
 */
#ifndef TSI_WIRE_MSG_H
#define TSI_WIRE_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "mem/gpu.h"
#include "tsock/tsock.h"
#include "view/spec.h"

#define TSI_MSG_MAX 4096
#define TSI_MSG_VERSION 8
#define TSI_NONCE 16
#define TSI_TOKEN 16
#define TSI_CHUNK 3072
#define TSI_WARNING_TEXT 1024
#define TSI_WARNINGS 64 /* of a stream, at most */

enum tsi_msg_type {
	TSI_HELLO = 1,       /* c->p: which stream is this? */
	TSI_STREAM = 2,      /* p->c: the stream */
	TSI_META = 3,        /* c->p: metadata from an offset on */
	TSI_META_DATA = 4,   /* p->c */
	TSI_JOIN = 5,        /* c->p: to read; OFFER, WAIT or ERROR follow */
	TSI_OFFER = 6,       /* p->c: connect (fdpass.h) with this token */
	TSI_WAIT = 7,        /* p->c: the view is being made; ask again soon */
	TSI_READY = 8,       /* c->p: not used, and ignored; kept reserved */
	TSI_LEAVE = 9,       /* c->p: the reader reads no more */
	TSI_LEFT = 10,       /* p->c: its claim has ended */
	TSI_STATS = 11,      /* c->p */
	TSI_STATS_DATA = 12, /* p->c */
	TSI_CONFIGURE = 13,  /* not used, and ignored; kept reserved */
	TSI_ERROR = 14,      /* p->c: code and text */
	TSI_WHOM = 15,       /* c->p: whom have I been waiting for? */
	TSI_WAITS = 16,      /* p->c: for whom */
	TSI_STOP = 17,       /* c->p: end the stream for good */
	TSI_STOPPED = 18,    /* p->c: it has ended */
	TSI_WARNING = 19,    /* c->p: a warning, by its number */
	TSI_WARNING_DATA = 20, /* p->c */
	TSI_TABLE = 21,        /* c->p: a table; WAIT or ERROR may follow */
	TSI_TABLE_DATA = 22,   /* p->c: connect (fdpass.h) with this token */
};

/*
 * What a producer can do beyond what its version says: words with blanks
 * between them, as the last text that META asks for.
 */
#define TSI_CAN_TABLES "tables" /* it answers TABLE */

struct tsi_msg_hello {
	uint32_t pid;
};

struct tsi_msg_stream {
	uint64_t incarnation;
	uint64_t lineage; /* the incarnation of the first of the producers that
			   * have gone on where the one before them ended */
	uint64_t epoch_len, dataset_len, epochs;
	uint32_t segments, max_batch, capacity, join_window;
	uint32_t nclasses, sequential, pid;
	uint32_t shard, shard_ranks, shards; /* part.h; shards 0: of all */
	uint64_t whole_len;                  /* 0: it isn't known */
	uint64_t start_epoch, start;
	uint32_t resumable;  /* numbers mean the same samples in every run */
	uint32_t meta_bytes; /* class names, each with its NUL */
	uint32_t nfields;
	struct tsock_field field[TSOCK_MAX_FIELDS];
};

struct tsi_msg_meta {
	uint64_t incarnation; /* of the stream that it is asked of */
	uint32_t offset;
};

struct tsi_msg_meta_data {
	uint32_t offset, len;
	uint8_t bytes[TSI_CHUNK];
};

struct tsi_msg_warning {
	uint64_t incarnation; /* of the stream that it is asked of */
	uint32_t number;      /* from 0 */
};

struct tsi_msg_warning_data {
	uint32_t number, kind; /* enum tsock_warning_kind */
	char text[TSI_WARNING_TEXT];
};

struct tsi_msg_table {
	uint64_t stream; /* tsi_hash() of its identity; 0: any */
	uint32_t kind;   /* enum tsock_table_kind */
};

/* Where a table lies in the memory that comes with the token. */
struct tsi_msg_table_data {
	uint8_t token[TSI_TOKEN];
	uint32_t kind;
	uint32_t text; /* rows are texts, whose starts lie at start_at */
	uint64_t count, length, bytes, data_at, start_at;
	uint64_t folders_at, folders; /* of texts; 0: they are whole */
	struct tsock_field field;     /* of numbers */
};

enum tsi_returns {
	TSI_RETURNS_NOT,
	TSI_RETURNS,
	TSI_RETURNS_UNBEGUN, /* and has begun no epoch from after on */
};

/* The producer whose epochs a consumer's process has read. */
enum tsi_read_of {
	TSI_READ_OF_ANOTHER,   /* a producer's that this one doesn't go on */
	TSI_READ_OF_THIS,      /* this producer's, or one's that it goes on */
	TSI_READ_OF_CONTINUED, /* another one's; it is to be gone on */
};

/* Which samples a rank will look at; bits. */
enum tsi_own {
	TSI_OWN = 1, /* its own batches, of epochs that begin at multiples of
		      * their length; and then how these are cut: */
	TSI_OWN_DROP_LAST = 2,
	TSI_OWN_ONCE = 4, /* each sample once, not equal numbers */
	/* Besides: it has begun the epoch from after on, and left it early. */
	TSI_REWOUND = 8,
};

struct tsi_msg_join {
	uint8_t nonce[TSI_NONCE]; /* of this join, in its retries too */
	uint32_t pid, batch_size, join, between;
	uint64_t incarnation; /* of the stream that it knows; 0: any */
	uint64_t after;  /* end of the epoch last begun, or its start where it
			  * was rewound; 0 before the first */
	uint32_t staged; /* the consumer copies to its GPU; for STATS alone */
	struct tsi_view_spec view;
	uint32_t rank, world;   /* world is 1 for a job of one process */
	uint8_t job[TSOCK_JOB]; /* of several: the same for all ranks */
	uint64_t position;  /* to go on there, in the epoch that ends at ... */
	uint64_t epoch_end; /* ... this; 0: begin by the rules */
	uint32_t returns;   /* it knows the stream from an earlier producer:
			     * enum tsi_returns */
	uint8_t was[TSI_NONCE]; /* of its claim there, or zeros */
	uint32_t detached; /* 1: at position; it goes on where the stream is */
	uint64_t read;     /* end of the epoch that its process has read before,
			    * by another handle; 0: of none */
	uint32_t read_of;  /* enum tsi_read_of */
	uint32_t own;      /* of a rank: enum tsi_own */
	uint64_t from;     /* it begins there or later; 0: anywhere */
};

struct tsi_msg_offer {
	uint8_t token[TSI_TOKEN];
	uint64_t forecast;  /* start, if the claim were made now */
	uint32_t transport; /* enum tsock_transport; AUTO on the host */
	uint32_t nfields;   /* of the handles, for LEGACY; else 0 */
	uint8_t handle[TSOCK_MAX_FIELDS][TSI_GPU_HANDLE];
};

struct tsi_msg_leave {
	uint8_t nonce[TSI_NONCE];
};

struct tsi_msg_whom {
	uint8_t nonce[TSI_NONCE]; /* of a reader, or of a JOIN under way */
	uint32_t pid, waited_ms;
	uint64_t want; /* of a reader: the head that it waits for */
};

struct tsi_msg_stop {
	uint32_t force; /* 1: also where somebody reads it */
	char who[128];  /* asks for it */
};

struct tsi_msg_error {
	int32_t code;
	char text[256];
};

struct tsi_msg {
	uint16_t type;
	uint32_t serial;
	union {
		struct tsi_msg_hello hello;
		struct tsi_msg_stream stream;
		struct tsi_msg_meta meta;
		struct tsi_msg_meta_data meta_data;
		struct tsi_msg_warning warning;
		struct tsi_msg_warning_data warning_data;
		struct tsi_msg_join join;
		struct tsi_msg_offer offer;
		struct tsi_msg_leave leave; /* READY and LEFT too */
		struct tsock_stats stats;
		struct tsi_msg_whom whom;
		struct tsock_wait wait;
		struct tsi_msg_stop stop;
		struct tsi_msg_table table;
		struct tsi_msg_table_data table_data;
		struct tsi_msg_error error;
	} u;
};

/* Bytes written to out (at least TSI_MSG_MAX large); never fails. */
size_t tsi_msg_pack(const struct tsi_msg *m, uint8_t *out);

/* 0, or TSOCK_EPROTO with a message: anything may be in the bytes. */
int tsi_msg_unpack(const uint8_t *bytes, size_t len, struct tsi_msg *m);

#endif
