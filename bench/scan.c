/* SPDX-License-Identifier: MIT */
/*
 * scan.c - what the first look at a large data set costs: CPU time and memory
 * of a scan, by numbers of files, of folders and of shards.
 *
 * The trees are made in DIR, of hard links of empty files, since a scan looks at
 * names alone; the tar files have headers and a byte per member.  Each scan is a
 * process of its own with two threads, without a cache.  Peak is the largest
 * memory of the process beside what it had before; kept is what the index takes
 * once it is there, per sample.
 *
 * usage: scan DIR      an empty folder, best in memory; FILES=N: files of the
 *                      large set (1,000,000)
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "bench/bench.h"
#include "data/format.h"
#include "data/index.h"

#define MAX_TURNS 9
#define LINKS 50000 /* of one file: file systems have limits */

struct tree {
	const char *name;
	const struct tsi_format *format;
	unsigned folders; /* or shards */
	unsigned files;   /* in each */
	int against;      /* the tree that it is compared with; -1: none */
};

struct cost {
	double cpu;  /* seconds */
	double wall; /* seconds */
	double peak; /* MB */
	double kept; /* bytes a sample */
};

/* ------------------------------------------------------------------------
 * Trees
 */

static void check(int failed, const char *what)
{
	if (failed)
		bench_die("%s: %s", what, strerror(errno));
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);

	check(fd < 0, path);
	close(fd);
}

static void make_folders(const char *root, const struct tree *t)
{
	char first[600], path[600];
	uint64_t made = 0;

	check(mkdir(root, 0700), root);
	for (unsigned c = 0; c < t->folders; c++) {
		snprintf(path, sizeof(path), "%s/n%08u", root, c);
		check(mkdir(path, 0700), path);
		for (unsigned i = 0; i < t->files; i++) {
			snprintf(path, sizeof(path), "%s/n%08u/n%08u_%u.JPEG",
				 root, c, c, i);
			if (made++ % LINKS == 0) {
				make_file(path);
				snprintf(first, sizeof(first), "%s", path);
			} else {
				check(link(first, path), path);
			}
		}
	}
}

static void put_member(FILE *f, const char *name, char byte)
{
	char block[1024] = { 0 };
	unsigned sum = 8 * ' ';

	snprintf(block, 100, "%s", name);
	memcpy(block + 100, "0000644", 8);
	memcpy(block + 124, "00000000001", 12);
	block[156] = '0';
	memcpy(block + 257, "ustar", 6);
	memcpy(block + 263, "00", 2);
	for (unsigned i = 0; i < 512; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 8, "%06o", sum);
	block[512] = byte;
	if (fwrite(block, 1, sizeof(block), f) != sizeof(block))
		bench_die("a tar file: %s", strerror(errno));
}

static void make_shards(const char *root, const struct tree *t)
{
	static const char end[1024];
	char path[600], name[64];

	check(mkdir(root, 0700), root);
	for (unsigned c = 0; c < t->folders; c++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/shard-%06u.tar", root, c);
		f = fopen(path, "w");
		check(!f, path);
		for (unsigned i = 0; i < t->files / 2; i++) {
			snprintf(name, sizeof(name), "%06u%05u.jpg", c, i);
			put_member(f, name, 'x');
			snprintf(name, sizeof(name), "%06u%05u.cls", c, i);
			put_member(f, name, '1');
		}
		fwrite(end, 1, sizeof(end), f);
		check(fclose(f), path);
	}
}

/* ------------------------------------------------------------------------
 * Scans
 */

static double cpu_now(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static struct cost open_index(const char *root, const struct tsi_format *format)
{
	struct tsi_index_opts o = {
		.format = format,
		.root = root,
		.cache_dir = "",
		.threads = 2,
	};
	long before = bench_proc_kb(getpid(), "status", "VmRSS:");
	double cpu = cpu_now();
	int64_t begun = tsi_now_ns();
	struct tsi_index *x;
	struct cost c;

	if (tsi_index_open(&o, &x))
		bench_die("%s", tsock_errmsg());
	c.wall = (double)(tsi_now_ns() - begun) / 1e9;
	c.cpu = cpu_now() - cpu;
	c.kept =
		(double)(bench_proc_kb(getpid(), "status", "VmRSS:") - before) *
		1024 / (double)tsi_index_count(x);
	c.peak =
		(double)(bench_proc_kb(getpid(), "status", "VmHWM:") - before) *
		1024 / 1e6;
	tsi_index_close(x);
	return c;
}

static struct cost scan_apart(const char *root, const struct tsi_format *format)
{
	struct cost c;
	int ends[2], status;
	pid_t pid;

	check(pipe(ends), "pipe");
	pid = fork();
	check(pid < 0, "fork");
	if (!pid) {
		c = open_index(root, format);
		_exit(write(ends[1], &c, sizeof(c)) != sizeof(c));
	}
	close(ends[1]);
	if (read(ends[0], &c, sizeof(c)) != sizeof(c))
		bench_die("a scan of %s has failed", root);
	close(ends[0]);
	waitpid(pid, &status, 0);
	return c;
}

static void print(const struct tree *t, const char *what, const char *unit,
		  double *v, const double *other, const char *against, int n)
{
	char name[80];
	double ratio[MAX_TURNS];
	struct bench_result r = { .bench = "scan", .name = name, .unit = unit };

	snprintf(name, sizeof(name), "%s, %s", t->name, what);
	for (int i = 0; other && i < n; i++)
		ratio[i] = v[i] / other[i];
	r.value = bench_median(v, (size_t)n);
	r.spread = bench_spread(v, (size_t)n);
	if (other) {
		r.against = against;
		r.ratio = bench_median(ratio, (size_t)n);
		r.spread = bench_spread(ratio, (size_t)n);
	}
	bench_print(&r);
}

#define COLUMN(to, member) \
	for (int i_ = 0; i_ < turns; i_++) \
	to[i_] = cost[k][i_].member

static void measure(const char *dir, const struct tree *tree, int n)
{
	static struct cost cost[8][MAX_TURNS];
	int turns = bench_quick(5, 2);
	char root[512];

	for (int i = 0; i < turns; i++)
		for (int k = 0; k < n; k++) {
			snprintf(root, sizeof(root), "%s/%d", dir, k);
			cost[k][i] = scan_apart(root, tree[k].format);
		}
	bench_head("scan: the first look at a data set, two threads");
	for (int k = 0; k < n; k++) {
		double v[MAX_TURNS], other[MAX_TURNS];
		int a = tree[k].against;

		for (int i = 0; a >= 0 && i < turns; i++)
			other[i] = cost[a][i].cpu;
		COLUMN(v, cpu);
		print(&tree[k], "CPU", "s", v, a >= 0 ? other : NULL,
		      a >= 0 ? tree[a].name : NULL, turns);
		COLUMN(v, wall);
		print(&tree[k], "time", "s", v, NULL, NULL, turns);
		COLUMN(v, peak);
		print(&tree[k], "peak", "MB", v, NULL, NULL, turns);
		COLUMN(v, kept);
		print(&tree[k], "kept", "bytes/sample", v, NULL, NULL, turns);
	}
}

int main(int argc, char **argv)
{
	unsigned all = (unsigned)bench_quick(100000, 10000);
	const char *files = getenv("FILES");
	unsigned many = files ? (unsigned)atol(files) : all * 10;
	const struct tree tree[] = {
		{ "few folders", &tsi_format_imagefolder, all / 100, 100, -1 },
		{ "a folder a file", &tsi_format_imagefolder, all, 1, 0 },
		{ "many files", &tsi_format_imagefolder, 1000, many / 1000,
		  -1 },
		{ "tar files", &tsi_format_webdataset, many / 100, 100, -1 },
	};
	int n = (int)(sizeof(tree) / sizeof(tree[0]));
	char root[512];

	if (argc != 2)
		bench_die("usage: scan DIR");
	for (int k = 0; k < n; k++) {
		snprintf(root, sizeof(root), "%s/%d", argv[1], k);
		if (tree[k].format == &tsi_format_webdataset)
			make_shards(root, &tree[k]);
		else
			make_folders(root, &tree[k]);
	}
	measure(argv[1], tree, n);
	return 0;
}
