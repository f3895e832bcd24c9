/* SPDX-License-Identifier: MIT */
/*
 * files.c - the files of a folder in memory.
 */
#include "bench/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "bench/bench.h"

struct walk {
	size_t most;
	bool (*take)(void *arg, size_t i, uint8_t *data, size_t len);
	void *arg;
	size_t taken, left_out;
};

uint8_t *bench_file_read(const char *path, size_t *len)
{
	FILE *in = fopen(path, "rb");
	struct stat st;
	uint8_t *data;

	if (!in || fstat(fileno(in), &st))
		bench_die("can't read %s", path);
	*len = (size_t)st.st_size;
	data = malloc(*len + 1);
	if (!data || fread(data, 1, *len, in) != *len)
		bench_die("can't read %s", path);
	fclose(in);
	return data;
}

static void take_file(struct walk *w, const char *path)
{
	size_t len;
	uint8_t *data = bench_file_read(path, &len);

	if (w->take(w->arg, w->taken, data, len)) {
		w->taken++;
	} else {
		free(data);
		w->left_out++;
	}
}

static void walk(struct walk *w, const char *folder)
{
	struct dirent **list;
	int n = scandir(folder, &list, NULL, alphasort);

	if (n < 0)
		bench_die("can't list %s", folder);
	for (int i = 0; i < n; i++) {
		char path[4096];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", folder, list[i]->d_name);
		if (list[i]->d_name[0] != '.' && w->taken < w->most &&
		    stat(path, &st) == 0) {
			if (S_ISDIR(st.st_mode))
				walk(w, path);
			else if (S_ISREG(st.st_mode))
				take_file(w, path);
		}
		free(list[i]);
	}
	free(list);
}

size_t bench_files_read(const char *folder, size_t most,
			bool (*take)(void *arg, size_t i, uint8_t *data,
				     size_t len),
			void *arg, size_t *left_out)
{
	struct walk w = { .most = most, .take = take, .arg = arg };

	walk(&w, folder);
	if (left_out)
		*left_out = w.left_out;
	return w.taken;
}
