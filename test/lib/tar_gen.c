/* SPDX-License-Identifier: MIT */
/*
 * tar_gen.c - makes tar files in memory, right ones and wrong ones.
 */
#include "test/lib/tar_gen.h"

void tar_gen_bytes(struct tar_gen *t, const void *data, size_t len)
{
	size_t padded = (len + 511) / 512 * 512;

	t->data = realloc(t->data, t->len + padded + 1);
	memset(t->data + t->len, 0, padded);
	if (len)
		memcpy(t->data + t->len, data, len);
	t->len += padded;
}

void tar_gen_sum(uint8_t *h)
{
	unsigned sum = 0;

	memset(h + 148, ' ', 8);
	for (unsigned i = 0; i < 512; i++)
		sum += h[i];
	snprintf((char *)h + 148, 8, "%06o", sum);
}

void tar_gen_header(struct tar_gen *t, const char *prefix, const char *name,
		    char type, uint64_t size)
{
	uint8_t h[512] = { 0 };

	memcpy(h, name, strnlen(name, 100));
	snprintf((char *)h + 100, 8, "%07o", 0644);
	if (size < (uint64_t)1 << 33) {
		snprintf((char *)h + 124, 12, "%011llo",
			 (unsigned long long)size);
	} else {
		h[124] = 0x80;
		for (int i = 0; i < 8; i++)
			h[135 - i] = (uint8_t)(size >> 8 * i);
	}
	h[156] = (uint8_t)type;
	memcpy(h + 257,
	       "ustar\0"
	       "00",
	       8);
	if (prefix)
		memcpy(h + 345, prefix, strnlen(prefix, 155));
	tar_gen_sum(h);
	tar_gen_bytes(t, h, sizeof(h));
}

void tar_gen_file(struct tar_gen *t, const char *name, const void *data,
		  size_t len)
{
	tar_gen_header(t, NULL, name, '0', len);
	tar_gen_bytes(t, data, len);
}

void tar_gen_text(struct tar_gen *t, const char *name, const char *text)
{
	tar_gen_file(t, name, text, strlen(text));
}

void tar_gen_end(struct tar_gen *t)
{
	static const uint8_t none[1024];

	tar_gen_bytes(t, none, sizeof(none));
}
