/* SPDX-License-Identifier: MIT */
#include "bench/libjpeg.h"

static void on_error(j_common_ptr cinfo)
{
	struct bench_libjpeg *b = (struct bench_libjpeg *)(void *)cinfo->err;

	longjmp(b->out, 1);
}

static void on_message(j_common_ptr cinfo, int level)
{
	(void)cinfo;
	(void)level;
}

struct jpeg_error_mgr *bench_libjpeg_errors(struct bench_libjpeg *b)
{
	jpeg_std_error(&b->mgr);
	b->mgr.error_exit = on_error;
	b->mgr.emit_message = on_message;
	return &b->mgr;
}
