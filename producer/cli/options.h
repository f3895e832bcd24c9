/* SPDX-License-Identifier: MIT */
/*
 * options.h - the command line of tsock-producer, checked before anything
 * starts.
 *
 * Parsing starts nothing, and looks at no file but for the folder that a split
 * is; every mistake that can be seen without the data set is one sentence.
 */
#ifndef TSI_CLI_OPTIONS_H
#define TSI_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "run/pipeline.h"
#include "wire/address.h"

/* What a bare run does, and what is done instead of it. */
enum tsi_run_mode {
	TSI_RUN_SERVE,
	TSI_RUN_HELP,
	TSI_RUN_VERSION,
	TSI_RUN_LIST,
	TSI_RUN_CHECK,
	TSI_RUN_DRY,
	TSI_RUN_DEVICES,
	TSI_RUN_STOP,
};

#define TSI_READ_AHEAD_AUTO UINT64_MAX

enum tsi_split {
	TSI_SPLIT_TRAIN,
	TSI_SPLIT_VAL,
	TSI_SPLIT_NONE, /* the root itself */
};

/* Which data set, and where. */
struct tsi_dataset {
	const struct tsi_format *format;
	uint64_t split;   /* enum tsi_split */
	const char *root; /* as given */
	char *folder;     /* the tree: root, or root/split, see split.h */
};

struct tsi_options {
	enum tsi_run_mode mode;
	uint64_t dataset; /* as given: which of TSI_FORMATS */
	struct tsi_dataset data;
	char name[TSI_NAME_MAX + 1];
	const char *select;    /* NULL: all samples */
	bool keys;             /* samples have the field key */
	bool grows;            /* its files may change while it is served */
	uint64_t preset_given; /* which of TSI_PRESETS */
	const struct tsi_preset *preset;
	uint64_t order; /* enum tsock_order_kind */
	uint64_t seed;
	uint64_t threads; /* 0: as many as there are CPUs for us */
	uint64_t ring, join_window, max_batch; /* 0: the library's default */
	uint64_t segments;                     /* 0: by the order */
	bool sharded;
	uint32_t rank, world;
	uint64_t size, resize;
	uint64_t pillow; /* major version; 0: the newest known */
	bool fast;
	uint64_t memory;       /* bytes; 0: what there is */
	uint64_t image_memory; /* bytes; 0: by memory and what there is */
	uint64_t index_memory; /* bytes; 0: by what there is */
	uint64_t image_cache;  /* bytes; 0: none */
	uint32_t slow;         /* enum tsock_slow */
	uint64_t slow_ms;      /* for KILL and DETACH */
	uint64_t on_error;     /* enum tsi_on_error */
	struct tsi_tolerance allow_bad;
	uint64_t min_consumers;
	const char *stop; /* the stream that is to be stopped */
	bool force;
	bool supervise;
	bool exit_idle;
	uint64_t exit_idle_ms;
	uint64_t epochs;
	uint64_t gpu_memory;            /* bytes on each GPU; 0: any */
	uint64_t fanout, gpu_transport; /* enum tsock_fanout, tsock_transport */
	uint64_t numa_node;             /* or TSI_NODE_ANY */
	uint64_t io;                    /* enum tsi_io_reader_kind */
	bool direct;                    /* past the page cache */
	uint64_t read_ahead; /* bytes; 0: none; or TSI_READ_AHEAD_AUTO */
	bool rescan;
	bool allow_empty;
	bool no_index;
	const char *cache; /* NULL: the user's own; "": none */
	uint64_t log_level;
	bool live;            /* the live line is wanted */
	char warning[2][160]; /* odd, but meant perhaps; "" is none */
};

/*
 * Fails with EARG and one sentence.  On success tsi_options_fini() frees what
 * it holds.  argv must outlive it.
 */
int tsi_options_parse(struct tsi_options *o, int argc, char **argv);
void tsi_options_fini(struct tsi_options *o);

/*
 * What the data path is told.  threads and image_memory stay 0 where they
 * weren't given.  o must outlive *out.
 */
void tsi_options_pipeline(const struct tsi_options *o,
			  struct tsi_pipeline_opts *out);

/* The word that the command line uses for an order. */
const char *tsi_options_order(enum tsock_order_kind order);

#endif
