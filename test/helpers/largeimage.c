/* SPDX-License-Identifier: MIT */
/*
 * largeimage.c - writes a small file of a large image to standard output.
 *
 *     largeimage WIDTH HEIGHT COMPONENTS SCANS
 *
 * A progressive JPEG whose data soon ends: what is missing is zero, and all
 * decoders take it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "test/lib/made_image.h"

int main(int argc, char **argv)
{
	static struct made m;
	struct made_image_jpeg j = { .sof = 0xc2, .sampling = 0x11, .data = 3 };

	if (argc != 5) {
		fprintf(stderr,
			"usage: largeimage WIDTH HEIGHT COMPONENTS SCANS\n");
		return 2;
	}
	j.width = (unsigned)strtoul(argv[1], NULL, 0);
	j.height = (unsigned)strtoul(argv[2], NULL, 0);
	j.parts = (unsigned)strtoul(argv[3], NULL, 0);
	j.scans = (unsigned)strtoul(argv[4], NULL, 0);
	made_image_jpeg(&m, &j);
	return fwrite(m.bytes, 1, m.len, stdout) != m.len || fflush(stdout);
}
