/* SPDX-License-Identifier: MIT */
/*
 * err.c - error codes with a message per thread.
 */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static _Thread_local char message[TSI_ERR_BYTES];

int tsi_err(int code, const char *fmt, ...)
{
	/* An argument may be the message that is there now. */
	char text[sizeof(message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tsi_text_printable(message, sizeof(message), text);
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
	tsi_text_printable(message, sizeof(message), text);
	len = strlen(message);
	snprintf(message + len, sizeof(message) - len, ": %s",
		 strerror_r(saved, reason, sizeof(reason)));
	errno = saved;
	return saved == ENOMEM ? TSOCK_ENOMEM : TSOCK_ESYS;
}

void tsi_err_copy(char *to, size_t size)
{
	tsi_text_printable(to, size, message);
}

struct tsi_err_saved tsi_err_save(int code)
{
	struct tsi_err_saved saved = { .code = code };

	memcpy(saved.text, message, sizeof(saved.text));
	return saved;
}

int tsi_err_restore(const struct tsi_err_saved *saved)
{
	memcpy(message, saved->text, sizeof(message));
	return saved->code;
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
