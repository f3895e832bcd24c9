/*
 * printable.h - text from elsewhere, made safe for a terminal and a log.
 *
 * A file's name may hold anything but '/' and NUL: a newline that forges a
 * line of a log, an escape sequence that a terminal obeys.  So do messages
 * from other processes.
 */
#ifndef TSI_BASE_PRINTABLE_H
#define TSI_BASE_PRINTABLE_H

#include <stddef.h>

/*
 * Copy a text so that it prints as one line: \n, \t, \r and, for other control
 * characters, for bytes that aren't UTF-8 and for characters that turn the
 * direction of writing, \xNN byte by byte.  Everything else, a backslash too,
 * is left as it is, so that doing it twice changes nothing.  Cut to what fits
 * into size bytes, never within a character.  Returns the copy's length.
 */
size_t tsi_printable(char *to, size_t size, const char *from);

#endif
