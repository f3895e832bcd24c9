/* SPDX-License-Identifier: MIT */
/*
 * catalog.h - labels, files and keys of all samples, as tables that consumers
 * can ask for (tsock/table.h).
 *
 * Where the index has them in memory that other processes can map, that memory
 * is handed out; else they are written into the server's.
 */
#ifndef TSI_RUN_CATALOG_H
#define TSI_RUN_CATALOG_H

#include "data/index.h"
#include "tsock/tsock.h"

/*
 * For tsock_serve_opts.table: arg is a struct tsi_index.  Fails with ENOTSUP
 * (samples have no labels, or no names), EDATA (a file was changed meanwhile),
 * ENOMEM.
 */
int tsi_catalog_table(void *arg, struct tsock_serve_table *t);

#endif
