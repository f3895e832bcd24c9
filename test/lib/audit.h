/* SPDX-License-Identifier: MIT */
/*
 * audit.h - at the end of a test program that uses proc.h, its process is as it
 * was at the beginning: as many descriptors and threads, no child that wasn't
 * waited for, and nothing of a ring mapped.  Else the program fails.
 *
 * It begins before main() and is made by exit(), in the program's own process
 * and not in its children.
 */
#ifndef TEST_LIB_AUDIT_H
#define TEST_LIB_AUDIT_H

/* A program that calls this anywhere is audited; it does nothing. */
void audit_this_program(void);

/* How long a thread may take to end, in about milliseconds; a minute without. */
void audit_threads_within(unsigned ms);

#endif
