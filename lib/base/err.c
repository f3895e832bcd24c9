/*
 * err.c - error codes with a message per thread.
 */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

static _Thread_local char message[512];

int tsi_err(int code, const char *fmt, ...)
{
	/* An argument may be the message that is there now. */
	char text[sizeof(message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tsi_printable(message, sizeof(message), text);
	return code;
}

int tsi_err_sys(const char *fmt, ...)
{
	int saved = errno;
	char text[sizeof(message)];
	char reason[96];
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tsi_printable(message, sizeof(message), text);
	len = strlen(message);
	snprintf(message + len, sizeof(message) - len, ": %s",
		 strerror_r(saved, reason, sizeof(reason)));
	errno = saved;
	return saved == ENOMEM ? TSOCK_ENOMEM : TSOCK_ESYS;
}

const char *tsock_errmsg(void)
{
	return message;
}

const char *tsock_strerror(int err)
{
	static const char *const name[] = {
		"TSOCK_OK",       "TSOCK_EAGAIN",  "TSOCK_EEPOCH",
		"TSOCK_EENDED",   "TSOCK_ELOST",   "TSOCK_EARG",
		"TSOCK_ENOMEM",   "TSOCK_ESYS",    "TSOCK_ENOPROD",
		"TSOCK_EREFUSED", "TSOCK_EPROTO",  "TSOCK_EFORK",
		"TSOCK_EHELD",    "TSOCK_ESTREAM", "TSOCK_EDATA",
		"TSOCK_ENOTSUP",  "TSOCK_EEXIST",
	};
	unsigned i = err > 0 ? ~0u : 0u - (unsigned)err;

	return i < sizeof(name) / sizeof(name[0]) ? name[i]
						  : "unknown tsock error";
}
