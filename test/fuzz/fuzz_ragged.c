/* SPDX-License-Identifier: MIT */
/*
 * fuzz_ragged.c - any bytes are a slot with a ragged batch whose arrays lie in
 * it, or are refused.
 */
#include "corpus.h"
#include "tsock/tsock.h"

#define MOST 65536
#define ARRAYS 64

static void seed(const char *folder)
{
	struct tsock_ragged_array a[2] = {
		{ TSOCK_RAGGED_I32, 2, { 2, 5 }, 0, NULL },
		{ TSOCK_RAGGED_F64, 0, { 0 }, 0, NULL },
	};
	const char *nest = "[\"t\",[[\"f\",0],[\"f\",1]]]";
	uint64_t bytes = tsock_ragged_bytes(nest, a, 2);
	uint8_t *slot = aligned_alloc(TSOCK_RAGGED_ALIGN, bytes);

	never(!slot);
	memset(slot, 0, bytes);
	never(tsock_ragged_write(slot, bytes, nest, a, 2));
	corpus_put(folder, "two", slot, bytes);
	free(slot);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = corpus_folder(*argc, *argv);

	if (folder)
		seed(folder);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tsock_ragged_array a[ARRAYS];
	const char *nest = NULL;
	uint32_t len, count;
	uint64_t sum = 0;
	void *slot;

	if (!size || size > MOST)
		return 0;
	never(posix_memalign(&slot, TSOCK_RAGGED_ALIGN, size));
	memcpy(slot, data, size);
	if (tsock_ragged_nest(slot, size, &nest, &len, &count)) {
		never(tsock_ragged_read(slot, size, NULL, a, 0) !=
		      TSOCK_EPROTO);
		free(slot);
		return 0;
	}
	for (uint32_t i = 0; i < len; i++)
		sum += (uint8_t)nest[i];
	if (count <= ARRAYS && !tsock_ragged_read(slot, size, NULL, a, count)) {
		for (uint32_t i = 0; i < count; i++) {
			const uint8_t *p = a[i].data;

			never(p < (uint8_t *)slot ||
			      p + a[i].bytes > (uint8_t *)slot + size);
			for (uint64_t b = 0; b < a[i].bytes; b++)
				sum += p[b];
		}
	}
	never(sum > (uint64_t)255 * (ARRAYS + 1) * MOST);
	free(slot);
	return 0;
}
