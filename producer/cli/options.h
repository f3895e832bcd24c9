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

#include "recipe/preset.h"
#include "run/pipeline.h"
#include "wire/address.h"

/* What a bare run does, and what is done instead of it. */
enum tsi_run_mode {
	TSI_RUN_SERVE,
	TSI_RUN_TRANSFORMS, /* --transform help */
#define ACTION(mode, ...) TSI_RUN_##mode,
#include "cli/options.def"
};

/* An identifier for each option, by its member of struct tsi_options. */
enum tsi_option_id {
#define OPTION(kind, member, ...) TSI_OPTION_##member,
#include "cli/options.def"
	TSI_OPTIONS /* how many */
};

#define TSI_UNSET UINT64_MAX /* of a choice: it wasn't given */

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
	char *masks;      /* likewise, of --masks; NULL: there are none */
	struct tsi_samples samples;
};

struct tsi_shard {
	uint32_t first, last, world;
};

struct tsi_start {
	uint64_t epoch, position;
};

struct tsi_slow {
	uint32_t action; /* enum tsock_slow */
	uint64_t ms;     /* for KILL and DETACH */
};

/* A ring's size: either is 0. */
struct tsi_room {
	uint64_t samples, bytes;
};

/* What an option is, by its kind. */
#define TSI_MEMBER_TEXT(m) const char *m;
#define TSI_MEMBER_PATH(m) const char *m;
#define TSI_MEMBER_CHOICE(m) uint64_t m;
#define TSI_MEMBER_COUNT(m) uint64_t m;
#define TSI_MEMBER_AUTO(m) uint64_t m;
#define TSI_MEMBER_BYTES(m) uint64_t m;
#define TSI_MEMBER_ROOM(m) struct tsi_room m;
#define TSI_MEMBER_IDLE(m) uint64_t m;
#define TSI_MEMBER_SWITCH(m) bool m;
#define TSI_MEMBER_QUIET(m) bool m;
#define TSI_MEMBER_SHARE(m) struct tsi_tolerance m;
#define TSI_MEMBER_SHARD(m) struct tsi_shard m;
#define TSI_MEMBER_START(m) struct tsi_start m;
#define TSI_MEMBER_SAMPLING(m) struct tsi_sampling m;
#define TSI_MEMBER_SLOW(m) struct tsi_slow m;
#define TSI_MEMBER_NAME(m) char m[TSI_NAME_MAX + 1];

struct tsi_options {
	enum tsi_run_mode mode;
	const char *stop; /* the stream that is to be stopped */
	bool given[TSI_OPTIONS];

	/* The options, as given or by default. */
#define OPTION(kind, member, ...) TSI_MEMBER_##kind(member)
#include "cli/options.def"

	/* What follows from them. */
	struct tsi_dataset data;
	/* How samples are made of images; NULL: they have none. */
	struct tsi_recipe *recipe;
	struct tsi_recipe *sound; /* what is done to crops of audio; or NULL */
	const struct tsi_preset *images; /* its preset; NULL: it has none */
	bool middle; /* for evaluation: crops of audio are of the middle */
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
