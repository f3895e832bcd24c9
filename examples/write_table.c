/* SPDX-License-Identifier: MIT */
/*
 * write_table.c - write a table of image files and their labels.
 *
 *     cc -std=c99 -O2 write_table.c -o write_table
 *     ./write_table dogs.table 0 akita.jpg 0 inu.jpg 1 beagle.png
 *     tsock-producer --root dogs.table
 *
 * A label and a file follow each other.  An image that is a part of a file has
 * the offset and the length of that part as its range in place of 0 and 0.
 * docs/reference/table.md describes the file.  For machines that store numbers
 * in little-endian order.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct head {
	char magic[8];
	uint32_t version, endian;
	uint64_t rows, bytes;
	uint32_t columns, crc;
	uint8_t zero[24];
};

struct entry {
	char name[48];
	uint32_t kind, dtype, ndim, shape[4], crc;
	uint64_t count, offset, bytes;
	uint8_t zero[24];
};

struct range {
	uint64_t offset;
	uint32_t length, file;
};

static uint32_t crc32(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = data;

	crc = ~crc;
	while (n--) {
		crc ^= *p++;
		for (int k = 0; k < 8; k++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return ~crc;
}

/* The offset of each path behind these numbers, and the end; then the paths. */
static void *put_texts(char **path, uint64_t n, uint64_t *bytes)
{
	uint64_t end = 0, *at;

	for (uint64_t i = 0; i < n; i++)
		end += strlen(path[2 * i]) + 1;
	*bytes = (n + 1) * sizeof(*at) + end;
	at = calloc(1, *bytes);
	for (uint64_t i = 0; at && i < n; i++) {
		strcpy((char *)(at + n + 1) + at[i], path[2 * i]);
		at[i + 1] = at[i] + strlen(path[2 * i]) + 1;
	}
	return at;
}

/* Zeros follow a column up to a multiple of 64. */
static int write_table(FILE *f, struct head *h, struct entry *e, void *data[])
{
	static const uint8_t zero[64];
	uint64_t at = sizeof(*h) + 3 * sizeof(*e);

	for (int k = 0; k < 3; k++) {
		e[k].offset = at;
		e[k].crc = crc32(0, data[k], e[k].bytes);
		at += (e[k].bytes + 63) / 64 * 64;
	}
	h->bytes = at;
	h->crc = crc32(crc32(0, h, sizeof(*h)), e, 3 * sizeof(*e));
	fwrite(h, sizeof(*h), 1, f);
	fwrite(e, sizeof(*e), 3, f);
	for (int k = 0; k < 3; k++) {
		fwrite(data[k], 1, e[k].bytes, f);
		fwrite(zero, 1, -e[k].bytes % 64, f);
	}
	return ferror(f) | fclose(f);
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 3 ? (uint64_t)(argc - 2) / 2 : 0;
	struct range *range = calloc(n + 1, sizeof(*range));
	int64_t *label = calloc(n + 1, sizeof(*label));
	struct head h = { "tsocktbl", 1, 0x01020304, n, 0, 3, 0, { 0 } };
	struct entry e[3] = {
		{ .name = "image", .kind = 2, .count = n, .bytes = n * 16 },
		{ .name = "files", .kind = 3, .count = n },
		{ .name = "label",
		  .kind = 1,
		  .dtype = 3,
		  .count = n,
		  .bytes = n * 8 },
	};
	void *data[3] = { range, NULL, label };
	FILE *f;

	if (!n || argc % 2 || !range || !label) {
		fprintf(stderr, "usage: write_table TABLE LABEL FILE ...\n");
		return 2;
	}
	for (uint64_t i = 0; i < n; i++) {
		label[i] = atoll(argv[2 + 2 * i]);
		range[i].file = (uint32_t)i;
	}
	data[1] = put_texts(argv + 3, n, &e[1].bytes);
	f = data[1] ? fopen(argv[1], "wb") : NULL;
	if (!f || write_table(f, &h, e, data)) {
		perror(argv[1]);
		return 1;
	}
	free(data[1]);
	free(label);
	free(range);
	return 0;
}
