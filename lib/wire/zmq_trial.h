/* SPDX-License-Identifier: MIT */
/*
 * zmq_trial.h - can a ZeroMQ context have what it needs?
 */
#ifndef TSI_WIRE_ZMQ_TRIAL_H
#define TSI_WIRE_ZMQ_TRIAL_H

/*
 * Can the process still have the descriptors of one context, or its threads and
 * their stacks?  An error begins with what and path ("connect to", "/x/s.bus")
 * and names the limit that is in the way.
 */
int tsi_zmq_try_descriptors(const char *what, const char *path);
int tsi_zmq_try_threads(const char *what, const char *path);

/* The error for EMFILE and ENFILE. */
int tsi_zmq_err_descriptors(const char *what, const char *path);

#endif
