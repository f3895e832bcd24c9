/* SPDX-License-Identifier: MIT */
/*
 * control.h - the server's control thread.
 */
#ifndef TSI_SERVE_CONTROL_H
#define TSI_SERVE_CONTROL_H

struct tsock_server;

/* Start the thread; it ends after tsock_serve_stop(). */
int tsi_control_start(struct tsock_server *s);

#endif
