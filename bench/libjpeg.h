/* SPDX-License-Identifier: MIT */
/*
 * libjpeg.h - libjpeg's errors in a benchmark: a longjmp(), and no message.
 */
#ifndef BENCH_LIBJPEG_H
#define BENCH_LIBJPEG_H

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

struct bench_libjpeg {
	struct jpeg_error_mgr mgr; /* first: libjpeg knows no more */
	jmp_buf out;               /* an error jumps here */
};

/* For cinfo.err. */
struct jpeg_error_mgr *bench_libjpeg_errors(struct bench_libjpeg *b);

#endif
