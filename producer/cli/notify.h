/* SPDX-License-Identifier: MIT */
/*
 * notify.h - what a service manager is told: systemd's protocol, as in
 * sd_notify(3), without its library.
 *
 * Datagrams to the socket that $NOTIFY_SOCKET names; without that variable
 * nothing is sent.  Never waits.
 */
#ifndef TSI_CLI_NOTIFY_H
#define TSI_CLI_NOTIFY_H

#include <stdint.h>

/* Send lines such as "READY=1"; a failure is no error of the stream's. */
void tsi_notify(const char *state);

/*
 * To be called often, by a thread that has seen that the stream is well: tells
 * the watchdog, if there is one, at half of its time ($WATCHDOG_USEC).
 */
void tsi_notify_alive(int64_t now_ms);

#endif
