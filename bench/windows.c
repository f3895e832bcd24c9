/* SPDX-License-Identifier: MIT */
/*
 * windows.c - memcpy's own time for what samples of arrays are: parts of a
 * mapped file, in a random order, to a ring of slots, on one thread.
 *
 * For each line that it reads it copies for half a second, and answers with the
 * CPU nanoseconds of a part.
 *
 * usage: windows FILE STRIDE BYTES RING      a part of BYTES every STRIDE bytes
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PASS_NS INT64_C(500000000)
#define TURN 1024 /* parts between two looks at the clock */

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static const uint8_t *map_file(const char *path, uint64_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *mem;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	*len = (uint64_t)st.st_size;
	mem = mmap(NULL, *len, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return mem == MAP_FAILED ? NULL : mem;
}

int main(int argc, char **argv)
{
	uint64_t len, stride, bytes, ring, parts, seed = 1, slot = 0;
	const uint8_t *from;
	uint8_t *to;
	int line;

	if (argc != 5)
		return 2;
	from = map_file(argv[1], &len);
	stride = strtoull(argv[2], NULL, 10);
	bytes = strtoull(argv[3], NULL, 10);
	ring = strtoull(argv[4], NULL, 10) / bytes;
	if (!from || !stride || !ring || len < bytes)
		return 2;
	parts = (len - bytes) / stride + 1;
	to = malloc(ring * bytes);
	if (!to)
		return 1;
	memset(to, 0, ring * bytes);
	while ((line = getchar()) != EOF) {
		int64_t begin = cpu_ns(), took;
		uint64_t n = 0;

		if (line != '\n')
			continue;
		do {
			for (unsigned k = 0; k < TURN; k++) {
				seed = seed * UINT64_C(6364136223846793005) +
				       UINT64_C(1442695040888963407);
				memcpy(to + slot * bytes,
				       from + (seed >> 20) % parts * stride,
				       bytes);
				slot = slot + 1 < ring ? slot + 1 : 0;
			}
			n += TURN;
			took = cpu_ns() - begin;
		} while (took < PASS_NS);
		printf("%.3f\n", (double)took / (double)n);
		fflush(stdout);
	}
	return 0;
}
