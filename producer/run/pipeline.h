/* SPDX-License-Identifier: MIT */
/*
 * pipeline.h - all that the data path is told: which samples, how they are
 * made and how they are served.
 *
 * The command line fills this in (cli/options.h), and so can any other program
 * that serves a data set.  Every value is final: nothing below run/ asks the
 * machine or the user what a default is, except where 0 is the library's.
 */
#ifndef TSI_RUN_PIPELINE_H
#define TSI_RUN_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "audio/load.h"
#include "data/epochs.h"
#include "data/format.h"
#include "io/reader.h"
#include "recipe/recipe.h"
#include "run/sampling.h"
#include "run/verdict.h"
#include "tsock/tsock.h"

/* What happens to a sample whose file is bad. */
enum tsi_on_error {
	TSI_SUBSTITUTE, /* a good file of its class stands in for it */
	TSI_RAISE,      /* the stream stops and names the file */
};

struct tsi_pipeline_opts {
	/*
	 * What decides the bytes of the stream: two pipelines that agree in
	 * these, and in the files of the folder, serve the same samples.
	 */
	const struct tsi_format *format;
	const char *folder; /* what the format reads */
	const char *schema; /* of a sample in its file; NULL: wasn't given */
	bool held_out;      /* the part for evaluation, of a folder with both */
	struct tsi_documents_opts documents; /* of tokens */
	const char *select; /* file of the samples to serve; NULL: all */
	const char *labels; /* file of the labels, and how to read it; NULL */
	const char *masks;  /* folder of the images' masks; NULL: none */
	const char *boxes;  /* columns of the boxes in them; NULL: none */
	bool keys;          /* samples have the field key */
	bool grows;         /* the files may change while it is served */
	enum tsi_on_error on_error;
	enum tsock_order_kind order;
	struct tsi_sampling sampling;
	uint32_t segments; /* of an epoch; 0: by the order */
	struct tsi_part part;
	/* How samples are made of images; NULL: they have none. */
	const struct tsi_recipe *recipe;
	struct tsi_audio_opts audio; /* ... of audio files; views 0: of none */
	const struct tsi_recipe *sound; /* done to these; NULL: nothing is */
	uint64_t seed;                  /* of the order and of the crops */
	uint32_t pillow;       /* major version to equal; 0: the newest known */
	bool fast;             /* JPEG: other pixels, sooner */
	uint64_t image_memory; /* bytes; an image that needs more is bad */

	/* How the samples are made. */
	struct tsi_tolerance allow_bad; /* of files, with TSI_SUBSTITUTE */
	uint64_t index_memory; /* of where rows of JPEGs begin; 0: no index */
	bool rescan;
	bool allow_empty; /* classes without a sample are no error */
	bool look_at_all; /* to find all bad files at once: serve nothing then */
	const char *cache;       /* of scans; NULL: the user's own; "": none */
	const char *shard_cache; /* folder of copies of shards; NULL: none */
	uint64_t shard_cache_size; /* bytes; 0: what its disk has free */
	uint64_t
		image_cache; /* bytes of packed images kept in memory; 0: none */
	unsigned threads;
	bool convert;        /* they write views, too: tsi_pool_converts() */
	unsigned open_files; /* tar files and the like that may stay open */
	enum tsi_io_reader_kind io;
	bool direct;         /* files are read past the page cache */
	uint64_t read_ahead; /* bytes ahead of the workers; 0: none */

	/* How they are served; 0 is what it is in struct tsock_serve_opts. */
	const char *name;
	uint64_t epochs;
	uint32_t ring, join_window, max_batch, min_consumers;
	uint32_t least_batch;
	uint64_t ring_bytes;
	uint32_t slow, slow_ms; /* enum tsock_slow */
	uint64_t memory;
	uint64_t gpu_memory;
	uint32_t fanout, gpu_transport; /* enum tsock_fanout, tsock_transport */
};

#endif
