/* SPDX-License-Identifier: MIT */
/*
 * err.h - error codes with a message per thread.
 *
 * The function that finds an error sets the message, and its callers pass the
 * code on.  A message is one printable line, whatever its arguments contain
 * (printable.h).  EAGAIN and EEPOCH have no message.
 */
#ifndef TSI_BASE_ERR_H
#define TSI_BASE_ERR_H

#include <stdarg.h>
#include <stddef.h>

#include "tsock/tsock.h"

/* As much as a ring has room for, its newlines escaped, and a bit more. */
#define TSI_ERR_BYTES 4608

/*
 * Set this thread's message and return code.  An argument may be
 * tsock_errmsg(), so that the new message says more about the old one.
 */
int tsi_err(int code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * For a system call that has just set errno: appends errno's text, and returns
 * TSOCK_ENOMEM for ENOMEM, else TSOCK_ESYS.
 */
int tsi_err_sys(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Copy this thread's message, cut to what fits into size bytes. */
void tsi_err_copy(char *to, size_t size);

/*
 * An error that is kept while calls that may set another message clean up
 * after it.  Restoring sets the message again and returns the code.
 */
struct tsi_err_saved {
	int code;
	char text[TSI_ERR_BYTES];
};
struct tsi_err_saved tsi_err_save(int code);
int tsi_err_restore(const struct tsi_err_saved *saved);

#endif
