/* SPDX-License-Identifier: MIT */
/*
 * replay.c - a fuzzer's target without libFuzzer, for `make check`: its seeds,
 * the inputs in the folders that are named, and RUNS others, made of the seeds
 * and of noise by a fixed sequence of numbers.
 *
 *     replay_msg [FOLDER...]
 *
 * An input that fails is left in a file whose name is printed.
 */
#include "test/fuzz/corpus.h"

#include <signal.h>

#define MOST 65536
#define INPUTS 512

__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct {
	uint8_t *data;
	size_t len;
} seed[INPUTS];
static unsigned nseeds;
static uint8_t input[MOST];
static size_t input_len;
static uint64_t state = 1;

static uint32_t roll(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

static void failed(int sig)
{
	static const char path[] = "replay-failed-input";
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd >= 0 && write(fd, input, input_len) == (ssize_t)input_len)
		fprintf(stderr, "the input is in %s\n", path);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void add(const char *path)
{
	FILE *f = nseeds < INPUTS ? fopen(path, "rb") : NULL;
	uint8_t *p = malloc(MOST);

	if (f && p) {
		seed[nseeds].len = fread(p, 1, MOST, f);
		seed[nseeds++].data = p;
		p = NULL;
	}
	free(p);
	if (f)
		fclose(f);
}

static void add_folder(const char *folder)
{
	DIR *d = opendir(folder);
	char path[4096];
	struct dirent *e;

	if (!d) {
		perror(folder);
		exit(1);
	}
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.')
			add(path);
	}
	closedir(d);
}

static void run_input(void)
{
	LLVMFuzzerTestOneInput(input, input_len);
}

static void make_another(void)
{
	uint32_t changes = 1 + roll(8);

	input_len = roll(400);
	for (size_t i = 0; i < input_len; i++)
		input[i] = (uint8_t)roll(256);
	if (nseeds && roll(4)) {
		unsigned k = roll(nseeds);

		input_len = seed[k].len;
		memcpy(input, seed[k].data, input_len);
	}
	for (uint32_t i = 0; i < changes && input_len; i++)
		input[roll((uint32_t)input_len)] = (uint8_t)roll(256);
	if (input_len && roll(4) == 0)
		input_len = roll((uint32_t)input_len);
}

int main(int argc, char **argv)
{
	const char *runs = getenv("REPLAY_RUNS");
	char folder[] = "/tmp/tsock-replay-XXXXXX", command[64];
	char *args[] = { argv[0], folder, NULL };
	/* Static, so that what a fuzzer puts there is not a leak. */
	static char **v;
	int n = 2;

	if (!mkdtemp(folder))
		return 1;
	v = args;
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&n, &v);
	add_folder(folder);
	for (int i = 1; i < argc; i++)
		add_folder(argv[i]);
	signal(SIGABRT, failed);
	signal(SIGSEGV, failed);
	for (unsigned i = 0; i < nseeds; i++) {
		input_len = seed[i].len;
		memcpy(input, seed[i].data, input_len);
		run_input();
	}
	for (unsigned i = runs ? (unsigned)atoi(runs) : 2000; i > 0; i--) {
		make_another();
		run_input();
	}
	for (unsigned i = 0; i < nseeds; i++)
		free(seed[i].data);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command) ? 1 : 0;
}
