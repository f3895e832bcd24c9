/* SPDX-License-Identifier: MIT */
/*
 * json.h - some values of a JSON object (RFC 8259), as texts.
 */
#ifndef TSI_DATA_LABELS_JSON_H
#define TSI_DATA_LABELS_JSON_H

#include <stddef.h>

/*
 * A list's text: LIST, and each item behind it ended by ITEM.  No other text
 * has these two.
 */
#define TSI_LABELS_LIST '\x1e'
#define TSI_LABELS_ITEM '\x1f'

#define TSI_LABELS_WANTED 280 /* values at most */

/*
 * Find the values at n paths ("label", or "meta.label" in the object "meta") in
 * the object that line[0..len) is, which is overwritten; line[len] is, too.
 * Numbers are as they stand there, true and false 1 and 0; what isn't there and
 * null is a NULL.  Where a name comes twice, the last one counts.  Returns NULL,
 * or what is wrong, as in "it is no JSON object".
 */
const char *tsi_labels_json(char *line, size_t len, const char *const *path,
			    unsigned n, char **value);

#endif
