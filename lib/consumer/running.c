/* SPDX-License-Identifier: MIT */
/*
 * running.c - which streams run here, for errors about one that does not.
 */
#include "consumer/running.h"

#include <stdio.h>

#include "wire/fdpass.h"
#include "wire/address.h"

#define NAMED 8

struct names {
	char *buf;
	size_t size;
	size_t len;
	unsigned n;
};

static void add_name(struct names *l, const char *before, const char *text)
{
	int n = snprintf(l->buf + l->len, l->size - l->len, "%s%s", before,
			 text);

	l->len += n > 0 ? (size_t)n : 0;
	if (l->len >= l->size)
		l->len = l->size - 1;
}

static void name_one(void *arg, const struct tsi_address *p)
{
	struct names *l = arg;

	if (tsi_fdpass_listening(tsi_address_fdpass(p)) <= 0)
		return;
	if (l->n < NAMED)
		add_name(l, l->n ? ", " : "; these run: ", tsi_address_name(p));
	l->n++;
}

void tsi_running(char *buf, size_t size)
{
	struct names l = { .buf = buf, .size = size };
	char more[32];

	buf[0] = '\0';
	(void)tsi_address_list(name_one, &l);
	if (l.n == 0)
		add_name(&l, "; ", "none runs here");
	if (l.n > NAMED) {
		snprintf(more, sizeof(more), " and %u more", l.n - NAMED);
		add_name(&l, more, "");
	}
}
