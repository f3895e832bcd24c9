/* SPDX-License-Identifier: MIT */
/*
 * options.h - the options of a server: read, checked, and the ring they give.
 */
#ifndef TSI_SERVE_OPTIONS_H
#define TSI_SERVE_OPTIONS_H

#include "order/part.h"
#include "ring/geometry.h"
#include "tsock/tsock.h"

/*
 * The options that were passed to a public function, as this version has them,
 * and the geometry of the base ring.  TSOCK_EARG names what is wrong.
 */
int tsi_options_read(const char *function, const struct tsock_serve_opts *from,
		     struct tsock_serve_opts *out, struct tsi_geometry *g);

/* Which part of the whole order the stream is. */
struct tsi_part tsi_options_part(const struct tsock_serve_opts *o);

#endif
