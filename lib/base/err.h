/*
 * err.h - error codes with a message per thread.
 *
 * The function that decides which error it is writes the message; callers
 * pass the code up untouched.  Whatever the arguments hold, a message is one
 * line that may be printed (printable.h).  EAGAIN and EEPOCH carry no message.
 */
#ifndef TSI_BASE_ERR_H
#define TSI_BASE_ERR_H

#include <stdarg.h>

#include "tsock/tsock.h"

/* Set this thread's message and return code. */
int tsi_err(int code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The same for a system call that has just set errno: appends its text, and
 * returns TSOCK_ENOMEM for ENOMEM, else TSOCK_ESYS.
 */
int tsi_err_sys(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
