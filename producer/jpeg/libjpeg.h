/* SPDX-License-Identifier: MIT */
/*
 * libjpeg.h - libjpeg's decompressor, its errors, its input and its memory.
 * The one file of the producer that includes jpeglib.h.
 *
 * Its memory manager is replaced by an arena: nothing is allocated in the
 * steady state, and the tables of one file can't leak into the next.  Input is
 * in memory and never suspends; where it ends too early libjpeg gets an end
 * marker, and whatever then turns out to be missing makes the file bad.
 *
 * A caller of libjpeg or of these functions has set the jump buffer before:
 * errors come back by longjmp, and tsi_jpeg_lib_failed() says what they are.
 */
#ifndef TSI_JPEG_LIBJPEG_H
#define TSI_JPEG_LIBJPEG_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

#include "pixel/arena.h"
#include "jpeg/blocks.h"

struct tsi_jpeg_lib {
	struct jpeg_decompress_struct c; /* its client_data is this struct */
	struct jpeg_error_mgr err;
	struct jpeg_source_mgr src;
	struct tsi_arena arena;
	jmp_buf fail;
	const char
		*reason; /* why the file is bad, where libjpeg didn't say it */
	bool ended;   /* libjpeg was given an end marker that the file lacks */
	bool in_scan; /* behind the header; the caller says so */
	bool warned;  /* libjpeg has found damage that it lets pass */
	bool strayed; /* a marker, not the end's, came instead of what was due */
	int failed;   /* by somebody else, whose message is set; 0: nobody */
	bool no_memory;
	bool ready; /* libjpeg's permanent objects were created */
};

/* Make libjpeg's permanent objects, of a struct that is all zero. */
void tsi_jpeg_lib_init(struct tsi_jpeg_lib *l);
/* Also of one whose init has failed. */
void tsi_jpeg_lib_fini(struct tsi_jpeg_lib *l);

/* Forget the last file. */
void tsi_jpeg_lib_reset(struct tsi_jpeg_lib *l);
/* The bytes of the next one, which outlive its decoding. */
void tsi_jpeg_lib_input(struct tsi_jpeg_lib *l, const void *data, size_t len);

/* Memory until the next reset, as tsi_arena_alloc() gives it. */
void *tsi_jpeg_lib_alloc(struct tsi_jpeg_lib *l, size_t len);

/* Jump: the file is bad for this reason, or because it ends too early. */
void tsi_jpeg_lib_bad(struct tsi_jpeg_lib *l, const char *reason)
	__attribute__((noreturn));
void tsi_jpeg_lib_truncated(struct tsi_jpeg_lib *l) __attribute__((noreturn));
/* Jump: what libjpeg was asked for has failed with this code and a message. */
void tsi_jpeg_lib_fail(struct tsi_jpeg_lib *l, int err)
	__attribute__((noreturn));

/* After a jump: the error, with its message. */
int tsi_jpeg_lib_failed(struct tsi_jpeg_lib *l);

/*
 * How a file of one component or three is divided, when its coefficients were
 * begun and all components have their quantisers.
 */
void tsi_jpeg_lib_frame(const struct jpeg_decompress_struct *c,
			struct tsi_jpeg_frame *f);

#endif
