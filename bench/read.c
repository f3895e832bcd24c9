/* SPDX-License-Identifier: MIT */
/*
 * read.c - files into memory by the reader, from the page cache and from disk.
 *
 *   here, warm         open, pread and close by the thread that asks
 *   pread, warm        the reader with threads that call pread()
 *   io_uring, warm     the reader by io_uring, 8 files ahead
 *   ..., cold          the same after the files were dropped from the page
 *                      cache; how much of them stayed there is printed
 *   ..., direct        past the page cache (O_DIRECT), which the files are in
 *                      or not
 *
 * Warm figures are CPU time of all threads, cold ones are time by the clock,
 * and those past the cache stand among both.  All take turns; of the passes the
 * least counts.
 *
 * usage: read DIR
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "io/reader.h"
#include "tsock/tsock.h"

#define MAX_FILES 2000
#define MAX_PASSES 16
#define DEPTH 8

enum arm { HERE, PREAD, URING, PREAD_DIRECT, URING_DIRECT, ARMS };

static const char *const names[2][ARMS] = {
	{ "here, warm", "pread, warm", "io_uring, warm", "pread, direct, CPU",
	  "io_uring, direct, CPU" },
	{ "here, cold", "pread, cold", "io_uring, cold", "pread, direct, clock",
	  "io_uring, direct, clock" },
};

static char *files[MAX_FILES];
static size_t nfiles;
static double bytes;
static double held, pages;                 /* of files that were dropped */
static struct tsi_io_reader *reader[ARMS]; /* NULL: not on this machine */

static void walk(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)) && nfiles < MAX_FILES) {
		char path[4096];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_name[0] == '.' || stat(path, &st))
			continue;
		if (S_ISDIR(st.st_mode)) {
			walk(path);
		} else if (st.st_size <= (off_t)TSI_READER_AHEAD) {
			files[nfiles] = strdup(path);
			if (!files[nfiles++])
				bench_die("no memory");
			bytes += (double)st.st_size;
		}
	}
	if (d)
		closedir(d);
}

static struct tsi_read_request request(size_t i, bool direct)
{
	return (struct tsi_read_request){
		.dirfd = AT_FDCWD, .path = files[i], .direct = direct, .tag = i
	};
}

static void read_here(void)
{
	for (size_t i = 0; i < nfiles; i++) {
		struct tsi_read_request q = request(i, false);
		uint8_t *data;
		size_t len;

		if (tsi_io_read(&q, TSI_READER_AHEAD, &data, &len))
			bench_die("can't read %s", files[i]);
		free(data);
	}
}

static void read_ahead(struct tsi_io_reader *r, bool direct)
{
	size_t begun = 0;

	for (size_t i = 0; i < nfiles; i++) {
		struct tsi_read got;

		for (; begun < nfiles && begun < i + DEPTH; begun++) {
			struct tsi_read_request q = request(begun, direct);

			if (tsi_io_reader_submit(r, &q))
				bench_die("can't read %s", files[begun]);
		}
		if (tsi_io_reader_next(r, true, &got) || got.err)
			bench_die("can't read a file of %s", files[i]);
		tsi_io_reader_recycle(r, &got);
	}
}

static double cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return 1e9 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e3 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Count the pages of a file, and those that are in the page cache. */
static void count_pages(int fd)
{
	static unsigned char in[TSI_READER_AHEAD / 4096 + 1];
	struct stat st;
	size_t n;
	void *at;

	if (fstat(fd, &st) || st.st_size == 0)
		return;
	n = ((size_t)st.st_size + 4095) / 4096;
	at = mmap(NULL, n * 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED || n > sizeof(in))
		bench_die("can't map a file");
	if (mincore(at, n * 4096, in))
		bench_die("can't ask what the page cache holds");
	for (size_t i = 0; i < n; i++)
		held += in[i] & 1;
	pages += (double)n;
	munmap(at, n * 4096);
}

static void drop_files(void)
{
	for (size_t i = 0; i < nfiles; i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		fsync(fd); /* what isn't written yet can't be dropped */
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		count_pages(fd);
		close(fd);
	}
}

static double timed(int arm, bool cold)
{
	double start;

	if (cold)
		drop_files();
	start = cold ? (double)tsi_now_ns() : cpu_ns();
	if (arm == HERE)
		read_here();
	else
		read_ahead(reader[arm], arm >= PREAD_DIRECT);
	return (cold ? (double)tsi_now_ns() : cpu_ns()) - start;
}

static void report(bool cold, double ns[ARMS][MAX_PASSES], size_t passes)
{
	double here[MAX_PASSES], least = 0;

	memcpy(here, ns[HERE], sizeof(here));
	for (int arm = 0; arm < ARMS; arm++) {
		double ratio[MAX_PASSES];
		struct bench_result r = { .bench = "read",
					  .name = names[cold][arm],
					  .unit = cold ? "us a file"
						       : "us of CPU a file" };

		if (arm != HERE && !reader[arm])
			continue;
		for (size_t p = 0; p < passes; p++)
			ratio[p] = ns[arm][p] / here[p];
		r.spread = bench_spread(arm == HERE ? ns[arm] : ratio, passes);
		bench_median(ns[arm], passes);
		r.value = ns[arm][0] / (double)nfiles / 1e3; /* the least */
		if (arm == HERE) {
			least = ns[arm][0];
		} else {
			r.against = names[cold][HERE];
			r.ratio = ns[arm][0] / least;
		}
		bench_print(&r);
	}
}

/* Where the cache is used although it isn't to be. */
static void warn(void *arg, int level, const char *line)
{
	(void)arg;
	if (level <= TSOCK_LOG_WARN)
		fprintf(stderr, "read: %s\n", line);
}

int main(int argc, char **argv)
{
	static double ns[2][ARMS][MAX_PASSES];
	int passes = bench_quick(9, 3);

	if (argc != 2)
		bench_die("usage: read DIR");
	tsock_set_logger(warn, NULL);
	walk(argv[1]);
	if (!nfiles)
		bench_die("no files in %s", argv[1]);
	if (tsi_io_reader_create(TSI_READER_PREAD, DEPTH, &reader[PREAD]))
		bench_die("no memory");
	if (tsi_io_reader_create(TSI_READER_URING, DEPTH, &reader[URING]))
		reader[URING] = NULL;
	/* A reader reads both ways. */
	reader[PREAD_DIRECT] = reader[PREAD];
	reader[URING_DIRECT] = reader[URING];
	printf("%zu files of %s, %.1f kB each, %d passes\n", nfiles, argv[1],
	       bytes / (double)nfiles / 1e3, passes);
	for (int cold = 0; cold < 2; cold++) {
		read_here();
		for (int p = 0; p < passes; p++)
			for (int a = 0; a < ARMS; a++) {
				int arm = (a + p) % ARMS;

				if (arm == HERE || reader[arm])
					ns[cold][arm][p] = timed(arm, cold);
			}
	}
	bench_head("read: files into memory, one thread asks");
	report(false, ns[0], (size_t)passes);
	report(true, ns[1], (size_t)passes);
	printf("%.1f %% of the pages were in the page cache after the files "
	       "were dropped from it\n",
	       pages > 0 ? 100 * held / pages : 0);
	tsi_io_reader_destroy(reader[PREAD]);
	tsi_io_reader_destroy(reader[URING]);
	for (size_t i = 0; i < nfiles; i++)
		free(files[i]);
	return 0;
}
