/* SPDX-License-Identifier: MIT */
/*
 * running.h - which streams run here, for errors about one that does not.
 */
#ifndef TSI_CONSUMER_RUNNING_H
#define TSI_CONSUMER_RUNNING_H

#include <stddef.h>

/*
 * "; these run: a, b" or, when there is none, "; none runs here", for the end
 * of a sentence.  Nobody is asked anything but whether somebody listens.
 */
void tsi_running(char *buf, size_t size);

#endif
