/* SPDX-License-Identifier: MIT */
/*
 * jpegmake.c - a JPEG file that Pillow can't write, on the standard output.
 *
 *     jpegmake WIDTH HEIGHT COMPONENTS H V SEED [KIND,...]
 *
 * H and V are the first component's sampling factors.  Kinds: arithmetic,
 * progressive, restart (a marker behind each row of MCUs).
 */
#include "test/lib/image_gen.h"

int main(int argc, char **argv)
{
	const char *kinds = argc > 7 ? argv[7] : "";
	struct image_gen_jpeg g = { .quality = 85 };
	struct image_gen_bytes f;

	if (argc < 7)
		return 2;
	g.width = (uint32_t)strtoul(argv[1], NULL, 0);
	g.height = (uint32_t)strtoul(argv[2], NULL, 0);
	g.components = atoi(argv[3]);
	g.factor[0][0] = atoi(argv[4]);
	g.factor[0][1] = atoi(argv[5]);
	g.seed = strtoul(argv[6], NULL, 0);
	g.arithmetic = strstr(kinds, "arithmetic");
	g.progressive = strstr(kinds, "progressive");
	g.restart_rows = strstr(kinds, "restart") ? 1 : 0;
	f = image_gen_jpeg(&g);
	return fwrite(f.data, 1, f.len, stdout) == f.len ? 0 : 1;
}
