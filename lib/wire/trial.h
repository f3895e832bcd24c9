/*
 * trial.h - can a ZeroMQ context have what it needs?
 */
#ifndef TSI_WIRE_TRIAL_H
#define TSI_WIRE_TRIAL_H

/*
 * Descriptors, or threads and their stacks, for one context: 0, or an error
 * that begins with what is done with which path and names the limit.
 */
int tsi_try_descriptors(const char *what, const char *path);
int tsi_try_threads(const char *what, const char *path);

/* The error for EMFILE and ENFILE. */
int tsi_err_descriptors(const char *what, const char *path);

#endif
