/* SPDX-License-Identifier: MIT */
/*
 * text.h - text of unknown origin: its characters, what of it is safe for a
 * terminal and a log, and which word was meant by a misspelt one.
 *
 * A file's name may hold any byte but '/' and NUL: a newline that forges a line
 * of a log, or an escape sequence that a terminal obeys.  So may a message of
 * another process.
 */
#ifndef TSI_BASE_TEXT_H
#define TSI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copy a text so that it prints as one line.  Newline, tab and carriage return
 * become \n, \t and \r; other control characters, bytes that aren't UTF-8 and
 * characters that change the direction of writing become \xNN, byte by byte.
 * All other characters, the backslash too, are copied, so a second call changes
 * nothing.  The copy is cut to size bytes, but never within a character.
 * Returns its length.
 */
size_t tsi_text_printable(char *to, size_t size, const char *from);

/*
 * Bytes of the UTF-8 character at s, and its code point; 0: it is none.  A NUL
 * ends the text, and is a character of one byte.
 */
unsigned tsi_text_utf8(const unsigned char *s, uint32_t *c);

/* Do a and b differ by no more than one or two typing errors? */
bool tsi_text_near(const char *a, size_t alen, const char *b, size_t blen);

/*
 * The word that a misspelt one is near to, among words separated by '|'; its
 * length in *len.  NULL when none is.
 */
const char *tsi_text_nearest(const char *word, const char *list, size_t *len);

#endif
