/* SPDX-License-Identifier: MIT */
/*
 * fuzz_msg.c - whatever unpack lets through can be packed again, to as many
 * bytes, and means the same.
 */
#include "corpus.h"
#include "wire/msg.h"

#define VERSION_AT 4 /* in a message, its low byte */

/* A message of each type. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = corpus_folder(*argc, *argv);
	static struct tsi_msg m;
	uint8_t bytes[TSI_MSG_MAX];
	char name[16];

	for (uint16_t type = TSI_HELLO; folder && type <= TSI_TABLE_DATA;
	     type++) {
		memset(&m, 0, sizeof(m));
		m.type = type;
		m.serial = 7;
		if (type == TSI_STREAM) {
			m.u.stream.nfields = 1;
			m.u.stream.field[0].ndim = 1;
			m.u.stream.field[0].shape[0] = 3;
		} else if (type == TSI_META_DATA) {
			m.u.meta_data.len = 5;
		} else if (type == TSI_OFFER) {
			m.u.offer.nfields = 1;
		} else if (type == TSI_STATS_DATA) {
			m.u.stats.nrows = m.u.stats.nwaits = 1;
		} else if (type == TSI_TABLE_DATA) {
			m.u.table_data.field.dtype = TSOCK_I32;
		} else if (type == TSI_ERROR) {
			m.u.error.code = TSOCK_ELOST;
		}
		snprintf(name, sizeof(name), "type-%u", type);
		corpus_put(folder, name, bytes, tsi_msg_pack(&m, bytes));
	}
	return 0;
}

/* What stands behind a text's NUL is ignored, so compare messages. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t input[2 * TSI_MSG_MAX];
	static uint8_t bytes[TSI_MSG_MAX], again[TSI_MSG_MAX];
	static struct tsi_msg m, n;
	size_t len;

	if (size > sizeof(input))
		size = sizeof(input);
	memcpy(input, data, size);
	/* Nothing more is read of another version, and inputs that are kept are
	 * older than the version. */
	if (size > VERSION_AT)
		input[VERSION_AT] = TSI_MSG_VERSION;
	if (tsi_msg_unpack(input, size, &m))
		return 0;
	len = tsi_msg_pack(&m, bytes);
	if (len != size || tsi_msg_unpack(bytes, len, &n) ||
	    tsi_msg_pack(&n, again) != len || memcmp(bytes, again, len))
		abort();
	return 0;
}
