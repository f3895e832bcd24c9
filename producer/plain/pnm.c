/* SPDX-License-Identifier: MIT */
/*
 * pnm.c - PPM and PGM, those of bytes (P6 and P5).
 *
 * The head is a few numbers of at most ten digits, with blanks between them and
 * comments from # to the end of the line anywhere, as Pillow reads them.
 */
#include "plain/plain.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

#define DIGITS 10

static bool is_blank(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool claims(const uint8_t *data, size_t len)
{
	return len >= 3 && data[0] == 'P' &&
	       (data[1] == '5' || data[1] == '6') && is_blank(data[2]);
}

static size_t skip_comment(const uint8_t *data, size_t len, size_t at)
{
	while (at < len && data[at] != '\n' && data[at] != '\r')
		at++;
	return at;
}

/* The number at *at, which is then behind the blank that ends it. */
static int read_number(const uint8_t *data, size_t len, size_t *at,
		       uint64_t *value)
{
	unsigned digits = 0;

	*value = 0;
	for (; *at < len; ++*at) {
		uint8_t c = data[*at];

		if (c == '#') {
			*at = skip_comment(data, len, *at);
			continue;
		}
		if (is_blank(c) && !digits)
			continue;
		if (is_blank(c)) {
			++*at;
			return 0;
		}
		if (c < '0' || c > '9' || ++digits > DIGITS)
			return tsi_err(TSOCK_EDATA,
				       "bad PPM: its header has no size");
		*value = *value * 10 + (c - '0');
	}
	return TSOCK_EAGAIN;
}

/* The head's three numbers: width, height and the largest level. */
static int read_numbers(const uint8_t *data, size_t len, size_t *at,
			uint64_t *number)
{
	int err = 0;

	*at = 2;
	for (unsigned i = 0; i < 3 && !err; i++)
		err = read_number(data, len, at, &number[i]);
	if (err)
		return err;
	if (number[0] > UINT32_MAX || number[1] > UINT32_MAX)
		return tsi_err(TSOCK_EDATA, "PPM is too large");
	if (number[2] > 255)
		return tsi_err(TSOCK_EDATA,
			       "PPM of more than 8 bits per channel (levels up "
			       "to %llu) is not supported",
			       (unsigned long long)number[2]);
	if (!number[2])
		return tsi_err(TSOCK_EDATA, "bad PPM: its largest level is 0");
	return 0;
}

/* Levels up to max become those up to 255, rounded as Python rounds. */
static void set_table(struct tsi_plain_layout *y, unsigned max)
{
	for (unsigned i = 0; i < 256; i++) {
		double level = rint((double)i / max * 255);

		memset(y->table[i], level < 255 ? (int)level : 255, 3);
	}
}

static int parse(const uint8_t *data, size_t len, struct tsi_plain_layout *y)
{
	uint64_t number[3];
	size_t at;
	int err = read_numbers(data, len, &at, number);

	if (err)
		return err;
	*y = (struct tsi_plain_layout){
		.width = (uint32_t)number[0],
		.height = (uint32_t)number[1],
		.at = at,
		.bytes = data[1] == '6' ? 3 : 1,
		.green = 1,
		.blue = 2,
		.tabled = number[2] != 255,
	};
	y->stride = (uint64_t)y->width * y->bytes;
	set_table(y, (unsigned)number[2]);
	return 0;
}

static int head(const uint8_t *data, size_t len, uint32_t *width,
		uint32_t *height)
{
	uint64_t number[3];
	size_t at;
	int err = read_numbers(data, len, &at, number);

	if (err)
		return err;
	*width = (uint32_t)number[0];
	*height = (uint32_t)number[1];
	return 0;
}

static int create(struct tsi_decoder **out)
{
	return tsi_plain_create(&tsi_pnm_ops, parse, out);
}

const struct tsi_decoder_ops tsi_pnm_ops = {
	.name = "PPM",
	.claims = claims,
	.head = head,
	.create = create,
	.destroy = tsi_plain_destroy,
	.open = tsi_plain_open,
	.need = tsi_plain_need,
	.begin = tsi_plain_begin,
	.read = tsi_plain_read,
	.rows = tsi_plain_rows,
	.close = tsi_plain_close,
};
