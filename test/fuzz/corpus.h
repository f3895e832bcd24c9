/* SPDX-License-Identifier: MIT */
/*
 * corpus.h - what every fuzzer needs around its inputs: seeds, limits, order.
 *
 * Seeds are made when a fuzzer starts, into the first corpus folder of its
 * command line.  Without a folder (an input to be run again, say) none are
 * made.  What fuzzing has found beyond them, and what had failed, is kept in
 * test/fuzz/corpus/NAME: small files, none of a data set.
 */
#ifndef TEST_FUZZ_CORPUS_H
#define TEST_FUZZ_CORPUS_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Something that must never be so. */
#define never(cond) \
	do { \
		if (cond) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond); \
			abort(); \
		} \
	} while (0)

/* The folder that seeds go to, or NULL. */
static inline const char *corpus_folder(int argc, char **argv)
{
	struct stat st;

	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-' && !stat(argv[i], &st) &&
		    S_ISDIR(st.st_mode))
			return argv[i];
	return NULL;
}

/* Limits of this fuzzer, where the command line doesn't name others. */
static inline void corpus_limits(int *argc, char ***argv,
				 const char *const *flag, int n)
{
	char **v = calloc((size_t)*argc + (size_t)n + 1, sizeof(*v));

	never(!v);
	v[0] = (*argv)[0];
	/* The last of two equal flags counts: ours come first. */
	for (int i = 0; i < n; i++)
		v[1 + i] = strdup(flag[i]);
	for (int i = 1; i < *argc; i++)
		v[n + i] = (*argv)[i];
	*argc += n;
	*argv = v;
}

static inline void corpus_put(const char *folder, const char *name,
			      const void *bytes, size_t len)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/seed-%s", folder, name);
	f = fopen(path, "wb");
	if (!f)
		return;
	if (fwrite(bytes, 1, len, f) != len)
		perror(path);
	fclose(f);
}

/* The number of the lowest free descriptor: it rises when one leaks. */
static inline int corpus_lowest_fd(void)
{
	int fd = open("/", O_PATH | O_CLOEXEC);

	never(fd < 0);
	close(fd);
	return fd;
}

/* A little reader of the input's bytes: zeroes once they are used up. */
struct bytes {
	const uint8_t *at;
	size_t left;
};

static inline uint64_t take(struct bytes *b, unsigned width)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < width && b->left; i++, b->left--)
		v |= (uint64_t)*b->at++ << 8 * i;
	return v;
}

#endif
