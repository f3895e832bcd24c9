/* SPDX-License-Identifier: MIT */
/*
 * fuzz_tar.c - any bytes are a tar file whose members lie behind their headers,
 * or end it; and any bytes are a label or none.
 *
 * The first byte says whether the sums of all blocks are put right: they only
 * keep what is wrong from being looked at.
 */
#include <sys/mman.h>

#include "corpus.h"
#include "data/webdataset/label.h"
#include "data/webdataset/tar.h"
#include "test/lib/tar_gen.h"
#include "tsock/tsock.h"

#define MOST 65536

static int fd = -1;

static void seed(const char *folder)
{
	static const char pax[] = "12 path=a.b\n10 size=3\n";
	static const uint8_t some[600];
	struct tar_gen t = { 0 };
	uint8_t *copy;

	tar_gen_text(&t, "0.cls", "{\"a\":[1],\"label\": 3}");
	tar_gen_header(&t, "prefix", "0.jpg", '0', 600);
	tar_gen_bytes(&t, some, 600);
	tar_gen_header(&t, NULL, "././@LongLink", 'L', 200);
	tar_gen_bytes(&t, some, 200);
	tar_gen_text(&t, "1.cls", "7");
	tar_gen_header(&t, NULL, "x", 'x', sizeof(pax) - 1);
	tar_gen_bytes(&t, pax, sizeof(pax) - 1);
	tar_gen_text(&t, "2.cls", "7");
	tar_gen_header(&t, NULL, "s", 'S', (uint64_t)1 << 40);
	tar_gen_end(&t);
	copy = malloc(t.len + 1);
	never(!copy);
	copy[0] = 1;
	memcpy(copy + 1, t.data, t.len);
	corpus_put(folder, "all", copy, t.len + 1);
	free(copy);
	free(t.data);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = corpus_folder(*argc, *argv);

	fd = memfd_create("fuzz", MFD_CLOEXEC);
	never(fd < 0);
	if (folder)
		seed(folder);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tsi_tar_member m;
	static struct tsi_tar t;
	static uint8_t bytes[MOST];
	uint64_t before = 0;
	uint32_t label;
	int got;

	if (size < 1 || size > MOST)
		return 0;
	memcpy(bytes, data + 1, size - 1);
	for (size_t i = 0; data[0] & 1 && i + 512 <= size - 1; i += 512)
		tar_gen_sum(bytes + i);
	never(ftruncate(fd, 0));
	never(pwrite(fd, bytes, size - 1, 0) != (ssize_t)(size - 1));
	tsi_tar_init(&t, "fuzz", fd, size - 1);
	while ((got = tsi_tar_next(&t, &m)) > 0) {
		never(m.header < before || m.offset < m.header + 512);
		never(t.next < m.offset ||
		      memchr(m.name, 0, TSI_TAR_NAME) == 0);
		before = m.header + 1;
		if (m.regular && m.size < 100)
			never(tsi_tar_read(&t, m.offset, bytes, m.size) < 0);
	}
	never(got != 0 && got != TSOCK_EDATA);
	if (tsi_label_json((const char *)data, size, &label) ==
		    TSI_LABEL_NUMBER ||
	    tsi_label_text((const char *)data, size, &label))
		never(label >= TSI_LABEL_END);
	return 0;
}
