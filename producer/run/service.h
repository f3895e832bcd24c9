/* SPDX-License-Identifier: MIT */
/*
 * service.h - a stream that is served: the data set, the ring and the workers.
 *
 * A service prints nothing and waits for no signal: its caller decides when it
 * ends.
 */
#ifndef TSI_RUN_SERVICE_H
#define TSI_RUN_SERVICE_H

#include "run/pipeline.h"
#include "run/pool.h"
#include "run/sampler.h"
#include "tsock/tsock.h"

struct tsi_service;

/* Bytes of a key, without the zero behind it. */
#define TSI_KEY_MAX 1023

/* An epoch's length before the scan: unknown, and more than a ring may have. */
#define TSI_EPOCH_LONG (UINT64_C(1) << 31)

/*
 * The sizes of the ring as far as the options and an epoch's length say them:
 * with keys, as if the longest had TSI_KEY_MAX bytes.  Opens nothing.  Fails as
 * tsock_serve_geometry() does.
 */
int tsi_service_geometry(const struct tsi_pipeline_opts *o, uint64_t epoch_len,
			 struct tsock_geometry *out);

/*
 * Index the data set and prepare its order.  Fails as tsi_sampler_open() and
 * tsi_service_geometry() do, and with EARG where a key has more bytes than
 * TSI_KEY_MAX.  o must outlive the service.
 */
int tsi_service_open(const struct tsi_pipeline_opts *o,
		     struct tsi_service **out);

/* The sizes of the ring, with this data set's epoch and keys. */
void tsi_service_sizes(const struct tsi_service *s, struct tsock_geometry *out);

struct tsi_sampler *tsi_service_sampler(const struct tsi_service *s);

/*
 * Does it have no more bad files than --allow-bad lets pass?  EDATA says which.
 * A program asks that begins with the data set; where a stream goes on, its
 * readers are told instead.
 */
int tsi_service_check(const struct tsi_service *s);

/* How long it took to open. */
double tsi_service_seconds(const struct tsi_service *s);

/*
 * Before it is started: it goes on after another stream, with this epoch.  So
 * many consumers read that one, and are waited for, ten seconds at most: they
 * begin the epoch together.
 */
void tsi_service_go_on(struct tsi_service *s, uint64_t epoch,
		       uint32_t consumers);

/* Do both serve the same samples of the same folder, in the same order? */
bool tsi_service_equal(const struct tsi_service *a,
		       const struct tsi_service *b);

/*
 * Make the ring and the workers, and let consumers in.  Fails as
 * tsock_serve_open() and tsi_pool_create() do.
 */
int tsi_service_start(struct tsi_service *s);

/* The rest is for a service that was started. */
struct tsi_pool *tsi_service_pool(const struct tsi_service *s);
tsock_server *tsi_service_server(const struct tsi_service *s);

/*
 * Note how many samples were produced so far: what has to be done after an
 * epoch is done by a thread of its own.  Consumers that wait are told of a file
 * that is read slowly.  To be called now and then, by one thread.
 */
void tsi_service_tell(struct tsi_service *s, uint64_t produced);

/* NULL is allowed, and so is a service that was not started. */
void tsi_service_close(struct tsi_service *s);

#endif
