/* SPDX-License-Identifier: MIT */
/*
 * view_thread.h - the thread that makes a view's ring and fills it.
 */
#ifndef TSI_SERVE_VIEW_THREAD_H
#define TSI_SERVE_VIEW_THREAD_H

/* arg is the struct tsi_view, which is MAKING. */
void *tsi_view_thread_main(void *arg);

#endif
