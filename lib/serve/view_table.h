/*
 * view_table.h - the views that there are: found, made, freed.
 *
 * The server's lock is held when these functions are called.
 */
#ifndef TSI_SERVE_VIEW_TABLE_H
#define TSI_SERVE_VIEW_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "view/spec.h"

struct tsock_server;

/*
 * The view of this spec.  TSOCK_EAGAIN while it, or what it is made of, is
 * being made: ask again.  Another error if it can't be made.
 */
int tsi_view_table_find(struct tsock_server *s,
			const struct tsi_view_spec *spec, unsigned *view);

/* Free the views that have had no reader for a while. */
void tsi_view_table_sweep(struct tsock_server *s, int64_t now_ms);

/*
 * Free all views, and wait for their threads.  False: some threads are in a
 * call to a GPU that doesn't return, and still use the server.
 */
bool tsi_view_table_close(struct tsock_server *s);

#endif
