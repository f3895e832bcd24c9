/* SPDX-License-Identifier: MIT */
/*
 * audit.h - at the end of a test program its process is as it was at the
 * beginning: as many descriptors and threads, no child that wasn't waited for,
 * and nothing of a ring mapped.  Else the program fails.
 *
 * The Makefile links it into every program of test/unit, test/system,
 * test/faults and test/gpu but those in whose own process CUDA is used.  It
 * begins before main() and is made by exit(), in the program's own process and
 * not in its children.
 */
#ifndef TEST_LIB_AUDIT_H
#define TEST_LIB_AUDIT_H

/* It does nothing; a program into which it is linked is audited. */
void audit_this_program(void);

/* How many milliseconds or so a thread may take to end; else a minute. */
void audit_threads_within(unsigned ms);

#endif
