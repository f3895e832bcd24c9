/* SPDX-License-Identifier: MIT */
/*
 * utf8.h - characters of text that may be UTF-8, or anything else.
 */
#ifndef TSI_BASE_UTF8_H
#define TSI_BASE_UTF8_H

#include <stdint.h>

/*
 * Bytes of the UTF-8 character at s, and its code point; 0: it is none.  A NUL
 * ends the text, and is a character of one byte.
 */
unsigned tsi_utf8_read(const unsigned char *s, uint32_t *c);

#endif
