/* SPDX-License-Identifier: MIT */
/*
 * report.h - what tsock-producer says about a stream before and after it, and
 * about those that run already.
 */
#ifndef TSI_CLI_REPORT_H
#define TSI_CLI_REPORT_H

#include "cli/options.h"
#include "run/pipeline.h"
#include "run/pool.h"
#include "run/sampler.h"
#include "tsock/tsock.h"

/* What is going to be served. */
struct tsi_plan {
	struct tsi_pipeline_opts pipeline;
	struct tsi_sampler *sampler;
	struct tsock_geometry geometry;
	double scan_seconds;
};

/* --dry-run, on standard output. */
void tsi_report_plan(const struct tsi_plan *p);

/* --describe, on standard output. */
void tsi_report_describe(const struct tsi_options *o);

/* The plan in a few log lines, when the stream is there. */
void tsi_report_start(const struct tsi_plan *p, const struct tsi_pool *pool);

/* What the cache of images was good for, if there was one. */
void tsi_report_cache(const struct tsi_pool *pool, uint64_t samples);

/* What was served, and the bad files. */
void tsi_report_end(const struct tsi_plan *p, const struct tsock_stats *st,
		    double seconds);

/* --version, on standard output: ours, and those of the libraries. */
void tsi_report_version(void);

/* --list, on standard output. */
int tsi_report_list(void);

#endif
